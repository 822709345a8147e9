/* Goal: ms-top-k chooses as its paper and the repairs say (T4.1): exactly k
 * places whatever the values are, the k largest where the search is long, a
 * window that is as likely to hold any of equal sizes; and four halvings in a
 * pass, of copied values, are as good as 30 passes. Method: random cases beside
 * a search in one loop per halving, and beside a sort. Each test prints what it
 * expects and what it measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compressor_cases.h"
#include "src/gossip/compressor/ms_top_k.h"

enum { DIM_MAX = 600, LONG = 1000000, PLACES_MAX = LONG };

/* ---- values */

enum { GAUSSIAN, TIES, CONSTANT, ZERO, OUTLIER, SPARSE, TAILS, TINY, KINDS };

static void draw(struct kith_rng *rng, unsigned kind, size_t n, double *values)
{
    gaussian(kith_rng_u64(rng), n, values);
    for (size_t i = 0; i < n; i++) {
        const double x = values[i];
        values[i] = kind == TIES       ? (double)((int)(2 * x))
                    : kind == CONSTANT ? (i % 2 == 0 ? 0.1 : -0.1)
                    : kind == ZERO     ? (i % 3 == 0 ? -0.0 : 0.0)
                    : kind == SPARSE   ? (fabs(x) < 1.5 ? 0 : x)
                    : kind == TAILS    ? x * x * x * x * x
                    : kind == TINY     ? 1e-44 * x
                                       : x;
    }
    if (kind == OUTLIER)
        values[kith_rng_below(rng, (uint32_t)n)] =
            kith_rng_below(rng, 2) == 0 ? 1e12 : -3e38;
}

/* ---- the search of the paper, a pass for each halving */

struct plain {
    double t1, t2;
    size_t k1, k2;
};

static size_t count(const struct trip *trip, double bound)
{
    size_t found = 0;
    for (size_t i = 0; i < trip->how.dim; i++) {
        const double x = trip->how.backend->element_bytes == 8
                             ? ((double *)trip->v)[i]
                             : (double)((float *)trip->v)[i];
        found += fabs(x) >= bound;
    }
    return found;
}

static double element(const struct trip *trip, double value)
{
    return trip->how.backend->element_bytes == 8 ? value : (double)(float)value;
}

static void see(struct plain *plain, double t, size_t n, size_t k)
{
    if (n <= k && n > plain->k1) {
        plain->k1 = n;
        plain->t1 = t;
    } else if (n > k && n < plain->k2) {
        plain->k2 = n;
        plain->t2 = t;
    }
}

/* Sizes add up in the 16 lanes of a backend's sums. */
static struct plain search(const struct trip *trip, size_t k, unsigned halvings)
{
    double values[DIM_MAX], lanes[16] = {0}, sum = 0, most = 0, l = 0, r = 1;
    const size_t d = trip->how.dim;
    struct plain plain = {INFINITY, 0, 0, d};
    trip->how.backend->read(d, trip->v, values);
    for (size_t i = 0; i < d; i++) {
        lanes[i % 16] += fabs(values[i]);
        most = fmax(most, fabs(values[i]));
    }
    for (int lane = 0; lane < 16; lane++)
        sum += lanes[lane];
    double base = element(trip, fmin(sum / (double)d, most));
    const double mean = fmin(sum / (double)d, most);
    double span = most - mean;
    see(&plain, base, count(trip, base), k);
    base = mean;
    if (count(trip, element(trip, mean)) < k) {
        base = 0;
        span = mean;
    }
    for (unsigned i = 0; i < halvings && plain.k1 < k; i++) {
        const double q = (l + r) / 2, t = element(trip, base + q * span);
        const size_t n = count(trip, t);
        see(&plain, t, n, k);
        if (n <= k)
            r = q;
        else
            l = q;
    }
    return plain;
}

/* ---- a choice */

static uint32_t places[PLACES_MAX];

static size_t places_of(const struct trip *trip, struct kith_choice choice)
{
    const size_t d = trip->how.dim, bytes = trip->how.backend->element_bytes;
    uint32_t some[KITH_SPARSE_SLICE];
    size_t all = 0;
    for (size_t from = 0; from < d; from += KITH_SPARSE_SLICE) {
        const size_t left = d - from;
        const size_t n = left < KITH_SPARSE_SLICE ? left : KITH_SPARSE_SLICE;
        const size_t found = kith_choice_places(
            &choice, &trip->how, n, (char *)trip->v + from * bytes, some);
        for (size_t i = 0; i < found; i++) {
            assert_true(all < PLACES_MAX);
            places[all++] = (uint32_t)from + some[i];
        }
    }
    return all;
}

static struct kith_choice choose(const struct trip *trip, size_t k,
                                 unsigned halvings, uint64_t seed, size_t room)
{
    static double scratch[LONG];
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 1);
    return kith_ms_top_k_choose(
        &trip->how, (struct kith_view){trip->v, trip->how.dim}, k, halvings,
        &rng, (struct kith_sparse_scratch){scratch, room});
}

static void same_choice(const struct kith_choice *a,
                        const struct kith_choice *b)
{
    assert_true(a->from == b->from && a->sure == b->sure);
    assert_true(a->first == b->first && a->count == b->count && a->of == b->of);
}

/* k places, ascending and inside, and the window that the plain search leaves
 * open. */
static void right(const struct trip *trip, size_t k, unsigned halvings,
                  uint64_t seed)
{
    const size_t d = trip->how.dim;
    const struct kith_choice choice = choose(trip, k, halvings, seed, 0);
    const struct kith_choice copied = choose(trip, k, halvings, seed, d);
    const struct kith_choice some = choose(trip, k, halvings, seed, d / 16);
    same_choice(&choice, &copied);
    same_choice(&choice, &some);
    const size_t found = places_of(trip, choice);
    assert_int_equal(found, k);
    for (size_t i = 0; i < found; i++)
        assert_true(places[i] < d && (i == 0 || places[i] > places[i - 1]));
    if (k == 0 || k == d)
        return;
    const struct plain plain = search(trip, k, halvings);
    if (choice.sure != plain.t1)
        fail_msg("case %u: %zu of %zu by %u halvings on %s: %.17g, not %.17g",
                 (unsigned)seed, k, d, halvings, trip->how.backend->name,
                 choice.sure, plain.t1);
    assert_int_equal(choice.count, k - plain.k1);
    if (plain.k1 < k) {
        assert_true(choice.from == plain.t2);
        assert_int_equal(choice.of, plain.k2 - plain.k1);
    }
}

static void t4_1_exactly_k_places(void **state)
{
    enum { CASES = 10000 };
    static const char *const backends[] = {"cpu", "naive32", "naive64"};
    static const unsigned halvings[] = {30, 10, 5, 1, 0};
    double values[DIM_MAX];
    struct kith_rng rng;
    unsigned cases = 0;
    (void)state;
    kith_rng_init(&rng, 41, KITH_STREAM_TEST, 0);
    for (; cases < CASES; cases++) {
        const size_t d = 1 + kith_rng_below(&rng, DIM_MAX);
        const unsigned kind = cases % KINDS, ends = kith_rng_below(&rng, 8);
        const size_t k = ends == 0   ? 0
                         : ends == 1 ? 1
                         : ends == 2 ? d - 1
                         : ends == 3 ? d
                                     : kith_rng_below(&rng, (uint32_t)d + 1);
        struct trip trip = trip_open(
            compression("ms-top-k", backends[kith_rng_below(&rng, 3)], d));
        draw(&rng, kind, d, values);
        trip_write(&trip, values);
        right(&trip, k, halvings[kith_rng_below(&rng, 5)], cases);
        trip_close(&trip);
    }
    print_message("  T4.1 cases with exactly k distinct places inside: "
                  "expected %d, measured %u\n",
                  CASES, cases);
}

/* ---- recall */

static int larger(const void *a, const void *b)
{
    const float first = *(const float *)a, second = *(const float *)b;
    return (first < second) - (first > second);
}

/* Share of what is kept that is as large as the k-th of a sort. */
static double recall(const struct trip *trip, size_t k, unsigned halvings)
{
    static float sizes[LONG];
    const float *const v = trip->v;
    size_t good = 0;
    for (size_t i = 0; i < LONG; i++)
        sizes[i] = fabsf(v[i]);
    qsort(sizes, LONG, sizeof sizes[0], larger);
    assert_int_equal(places_of(trip, choose(trip, k, halvings, 3, k)), k);
    for (size_t i = 0; i < k; i++)
        good += fabsf(v[places[i]]) >= sizes[k - 1];
    return (double)good / (double)k;
}

static void at_least(const char *what, double expected, double measured)
{
    print_message("  T4.1 %-44s expected >= %g, measured %.6f\n", what,
                  expected, measured);
    if (!(measured >= expected))
        fail_msg("%s", what);
}

static double shape(unsigned kind, double x, double u)
{
    return kind == 0   ? x
           : kind == 1 ? (x < 0 ? log(u) : -log(u)) /* Laplace */
           : kind == 2 ? u - 0.5
                       : exp(x);
}

static void t4_1_recall(void **state)
{
    static const char *const names[] = {"normal", "Laplace", "uniform",
                                        "log-normal"};
    static double values[LONG];
    struct kith_rng rng;
    char what[80];
    (void)state;
    kith_rng_init(&rng, 43, KITH_STREAM_TEST, 0);
    for (unsigned kind = 0; kind < 4; kind++) {
        struct trip trip = trip_open(compression("ms-top-k", "cpu", LONG));
        gaussian(kind, LONG, values);
        for (size_t i = 0; i < LONG; i++)
            values[i] = shape(kind, values[i], 1 - kith_rng_double(&rng));
        trip_write(&trip, values);
        for (unsigned halvings = 10; halvings <= 30; halvings += 20) {
            (void)snprintf(what, sizeof what, "recall, %s, k = d/100, N = %u",
                           names[kind], halvings);
            at_least(what, halvings == 30 ? 0.999 : 0.97,
                     recall(&trip, LONG / 100, halvings));
        }
        trip_close(&trip);
    }
}

/* Half of the values: the k-th is below the mean, where the search goes on. */
static void t4_1_recall_below_the_mean(void **state)
{
    static double values[LONG];
    (void)state;
    struct trip trip = trip_open(compression("ms-top-k", "cpu", LONG));
    gaussian(7, LONG, values);
    trip_write(&trip, values);
    at_least("recall, normal, k = d/2, N = 30", 0.999,
             recall(&trip, LONG / 2, 30));
    values[LONG / 3] = 1e12;
    trip_write(&trip, values);
    at_least("recall, one of 10^12 beside them, k = d/2", 0.999,
             recall(&trip, LONG / 2, 30));
    trip_close(&trip);
}

/* Of equal sizes any is as likely; the same key draws the same ones. */
static void the_window_is_fair(void **state)
{
    enum { DIM = 10, KEPT = 3, KEYS = 20000 };
    static const double values[DIM] = {1, -1, 1, 1, -1, 1, 1, 1, 1, -1};
    unsigned counts[DIM] = {0};
    double worst = 0;
    (void)state;
    struct trip trip = trip_open(compression("ms-top-k", "cpu", DIM));
    trip_write(&trip, values);
    for (uint64_t key = 0; key < KEYS; key++) {
        const struct kith_choice choice = choose(&trip, KEPT, 30, key, 0);
        const struct kith_choice again = choose(&trip, KEPT, 30, key, DIM);
        same_choice(&choice, &again);
        assert_int_equal(places_of(&trip, choice), KEPT);
        for (size_t i = 0; i < KEPT; i++)
            counts[places[i]]++;
    }
    const double share = (double)KEPT / DIM;
    for (size_t i = 0; i < DIM; i++)
        worst = fmax(worst, fabs(counts[i] / (double)KEYS - share));
    const double tolerance = 5 * sqrt(share * (1 - share) / KEYS);
    print_message("  T4.1 equal sizes, share of each: expected %g, measured at "
                  "most %.4f off (tolerance %.4f)\n",
                  share, worst, tolerance);
    assert_true(worst <= tolerance);
    trip_close(&trip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t4_1_exactly_k_places),
        cmocka_unit_test(t4_1_recall),
        cmocka_unit_test(t4_1_recall_below_the_mean),
        cmocka_unit_test(the_window_is_fair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
