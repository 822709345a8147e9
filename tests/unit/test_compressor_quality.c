/* Goal: what compressors keep (T10 of the acceptance tests): contraction
 * factors and variances equal their formulas and the published table, and error
 * feedback loses nothing. Method: Gaussian vectors, 3 standard errors beside
 * half a digit of the table; equalities to 1e-12 in float64, 1e-5 in float32.
 * Each test prints what it expects and what it measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "compressor_cases.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void near(const char *what, double expected, double measured,
                 double tolerance)
{
    print_message("  T10 %-34s expected %.6g, measured %.6g (tolerance %.2g)\n",
                  what, expected, measured, tolerance);
    if (!(fabs(measured - expected) <= tolerance))
        fail_msg("%s", what);
}

/* Mean and standard error of values seen one after another. */
struct tally {
    double count, sum, squares;
};

static void see(struct tally *tally, double value)
{
    tally->count++;
    tally->sum += value;
    tally->squares += value * value;
}

static double mean_of(const struct tally *tally)
{
    return tally->sum / tally->count;
}

static double error_of(const struct tally *tally)
{
    const double mean = mean_of(tally);
    return sqrt((tally->squares / tally->count - mean * mean) /
                (tally->count - 1));
}

static int larger(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return (first < second) - (first > second);
}

enum { TOP = 100000 };

/* Share of |v|^2 in the k largest, by sorting. */
static double sorted_energy(const double *values, size_t kept)
{
    static double squares[TOP];
    double top = 0, all = 0;
    for (size_t i = 0; i < TOP; i++)
        squares[i] = values[i] * values[i];
    qsort(squares, TOP, sizeof squares[0], larger);
    for (size_t i = TOP; i > 0; i--) {
        all += squares[i - 1];
        top += i <= kept ? squares[i - 1] : 0;
    }
    return top / all;
}

static void t10_top_k_keeps_the_most_energy(void **state)
{
    static const struct {
        double density, energy, half;
    } rows[] = {{0.001, 0.012, 0.0005}, {0.005, 0.048, 0.0005},
                {0.01, 0.084, 0.0005},  {0.015625, 0.118, 0.0005},
                {0.02, 0.143, 0.0005},  {0.05, 0.277, 0.0005},
                {0.1, 0.438, 0.0005}};
    static double values[TOP];
    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct kith_compression how = compression("top-k", "naive64", TOP);
        struct tally energy = {0};
        how.config.density = rows[row].density;
        struct trip trip = trip_open(how);
        for (uint64_t seed = 0; seed < 4; seed++) {
            const size_t kept = (size_t)(rows[row].density * TOP + 0.5);
            gaussian(seed, TOP, values);
            trip_write(&trip, values);
            trip_send(&trip, 0);
            const double w = 1 - trip_error(&trip);
            assert_true(fabs(w - sorted_energy(values, kept)) <= 1e-12);
            assert_true(w >= kith_compression_contraction(&how));
            see(&energy, w);
        }
        char what[40];
        (void)snprintf(what, sizeof what, "top-k %g %%: energy",
                       100 * rows[row].density);
        near(what, rows[row].energy, mean_of(&energy),
             rows[row].half + 3 * error_of(&energy));
        trip_close(&trip);
    }
}

static void t10_random_k_keeps_its_share(void **state)
{
    enum { DIM = 1000, KEYS = 2000 };
    double values[DIM], out[DIM], sums[DIM] = {0};
    (void)state;
    gaussian(31, DIM, values);
    for (int unbiased = 0; unbiased < 2; unbiased++) {
        struct kith_compression how = compression("random-k", "naive64", DIM);
        struct tally error = {0};
        how.config.density = 0.1;
        how.config.unbiased = unbiased;
        struct trip trip = trip_open(how);
        trip_write(&trip, values);
        for (uint64_t key = 0; key < KEYS; key++) {
            size_t kept = 0;
            trip_send(&trip, key);
            see(&error, trip_error(&trip));
            how.backend->read(DIM, trip.out, out);
            for (size_t i = 0; i < DIM; i++) {
                kept += out[i] != 0;
                sums[i] += out[i] / values[i];
            }
            assert_int_equal(kept, 100);
        }
        if (unbiased)
            near("random-k 10 %: unbiased variance", 9, mean_of(&error),
                 3 * error_of(&error));
        else
            near("random-k 10 %: w", 0.1, 1 - mean_of(&error),
                 3 * error_of(&error));
        assert_true(fabs(kith_compression_contraction(&how) -
                         (unbiased ? 0 : 0.1)) <= 1e-15);
        trip_close(&trip);
    }
    /* Every place alike: counts of 2,000 + 10 times 2,000 draws of 0.1 each:
     * mean 200 + 2,000, deviation sqrt(180) and ten times that. */
    for (size_t i = 0; i < DIM; i++)
        assert_true(fabs(sums[i] - 2200) <= 5 * sqrt(101 * 180.0));
}

static void sign_equals(const char *backend, double tolerance)
{
    enum { DIM = 50000 };
    static double values[DIM];
    struct kith_compression how = compression("sign", backend, DIM);
    how.config.block = DIM;
    struct trip trip = trip_open(how);
    double sum = 0, squares = 0;
    gaussian(41, DIM, values);
    values[7] = 0;
    trip_write(&trip, values);
    how.backend->read(DIM, trip.v, values);
    for (size_t i = 0; i < DIM; i++) {
        sum += fabs(values[i]);
        squares += values[i] * values[i];
    }
    trip_send(&trip, 0);
    const double w = 1 - trip_error(&trip), exact = sum * sum / DIM / squares;
    char what[32];
    (void)snprintf(what, sizeof what, "sign: w, %s", backend);
    near(what, exact, w, tolerance * exact);
    /* |v|_1^2 / |v|^2 has a relative variance of (2 pi - 6) / n or so. */
    near("sign: w of Gaussian values", 0.637, w,
         0.0005 + 3 * 0.637 * sqrt(0.3 / DIM));
    trip_close(&trip);
}

static void t10_sign_keeps_what_its_formula_says(void **state)
{
    (void)state;
    sign_equals("naive64", 1e-12);
    sign_equals("naive32", 1e-5);
}

enum { BUCKET = 512, BUCKETS = 600 };

/* Relative variance of each bucket. */
static struct tally bucket_errors(struct trip *trip, size_t bucket)
{
    struct tally tally = {0};
    struct trip part = *trip;
    const size_t element = trip->how.backend->element_bytes;
    part.how.dim = bucket;
    for (size_t from = 0; from < trip->how.dim; from += bucket) {
        part.v = (char *)trip->v + from * element;
        part.out = (char *)trip->out + from * element;
        see(&tally, trip_error(&part));
    }
    return tally;
}

static void t10_qsgd_has_the_variance_of_the_table(void **state)
{
    static const struct {
        uint32_t levels;
        double variance, half;
    } rows[] = {{1, 16.8, 0.05},
                {3, 4.98, 0.005},
                {7, 1.59, 0.005},
                {15, 0.38, 0.005},
                {127, 0.0053, 0.00005}};
    static double values[BUCKET * BUCKETS];
    (void)state;
    gaussian(51, COUNT(values), values);
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct kith_compression how =
            compression("qsgd", "naive64", COUNT(values));
        how.config.levels = rows[row].levels;
        how.config.unbiased = true;
        struct trip trip = trip_open(how);
        trip_write(&trip, values);
        trip_send(&trip, row);
        const struct tally error = bucket_errors(&trip, BUCKET);
        char what[40];
        (void)snprintf(what, sizeof what, "qsgd s = %u: relative variance",
                       rows[row].levels);
        near(what, rows[row].variance, mean_of(&error),
             rows[row].half + 3 * error_of(&error));
        trip_close(&trip);
    }
}

static void t10_int8_has_the_error_of_the_table(void **state)
{
    static const struct {
        uint32_t block;
        double error;
    } rows[] = {{32, 2.8e-5}, {64, 3.5e-5}, {256, 4.8e-5}};
    static double values[BUCKET * BUCKETS];
    (void)state;
    gaussian(61, COUNT(values), values);
    for (size_t row = 0; row < COUNT(rows); row++) {
        struct kith_compression how =
            compression("int8", "naive32", COUNT(values));
        how.config.block = rows[row].block;
        struct trip trip = trip_open(how);
        trip_write(&trip, values);
        trip_send(&trip, 0);
        const struct tally error = bucket_errors(&trip, rows[row].block);
        char what[40];
        (void)snprintf(what, sizeof what, "int8 block %u: relative error^2",
                       rows[row].block);
        /* The table is of one draw: 3 %. */
        near(what, rows[row].error, mean_of(&error),
             0.03 * rows[row].error + 3 * error_of(&error));
        trip_close(&trip);
    }
}

/* Values that are hard: one is all there is; all alike; heavy tails. */
static void hard(unsigned kind, size_t n, double *values)
{
    gaussian(71 + kind, n, values);
    for (size_t i = 0; i < n; i++) {
        const double x = values[i];
        values[i] = kind == 0   ? x
                    : kind == 1 ? (i == n / 2)
                    : kind == 2 ? (x < 0 ? -1 : 1)
                                : x * x * x * x * x;
    }
}

/* E|v - C(v)|^2 <= (1 - w) |v|^2, and E C(v) = v where that is promised. */
static void promises(struct kith_compression how, unsigned kind)
{
    enum { DIM = 700, KEYS = 400 };
    double values[DIM], out[DIM], mean[DIM] = {0}, variance = 0, bias = 0;
    struct tally error = {0};
    how.dim = DIM;
    struct trip trip = trip_open(how);
    hard(kind, DIM, values);
    trip_write(&trip, values);
    for (uint64_t key = 0; key < KEYS; key++) {
        trip_send(&trip, key);
        how.backend->read(DIM, trip.out, out);
        see(&error, trip_error(&trip));
        for (size_t i = 0; i < DIM; i++) {
            mean[i] += out[i] / KEYS;
            variance += (out[i] - values[i]) * (out[i] - values[i]) / KEYS;
        }
    }
    const double w = kith_compression_contraction(&how);
    if (w > 0 && mean_of(&error) > 1 - w + 3 * error_of(&error) + 1e-12)
        fail_msg("%s, kind %u: error %g, but w = %g", how.compressor->name,
                 kind, mean_of(&error), w);
    for (size_t i = 0; i < DIM; i++)
        bias += (mean[i] - values[i]) * (mean[i] - values[i]);
    /* The mean of 400 draws is off by variance / 400. */
    if (kith_compression_unbiased(&how) && bias > 2 * variance / KEYS + 1e-20)
        fail_msg("%s, kind %u: bias^2 %g, variance %g", how.compressor->name,
                 kind, bias, variance);
    trip_close(&trip);
}

static void declared_contraction_and_bias_hold(void **state)
{
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++)
        for (unsigned kind = 0; kind < 4; kind++)
            for (unsigned set = 0; set < 4; set++) {
                struct kith_compression how =
                    compression(kith_compressors[i]->name, "naive64", 1);
                how.config.unbiased = set % 2 == 1;
                how.config.levels = set < 2 ? 2 : 127;
                how.config.density = set < 2 ? 0.05 : 0.8;
                how.config.block = set < 2 ? 0 : 256;
                promises(how, kind);
            }
}

/* Whole numbers add up exactly: the sum of all that was sent and of what is
 * left is the sum of all that was to be sent, to the last bit. */
static void t10_feedback_of_whole_numbers_is_exact(void **state)
{
    enum { DIM = 500, STEPS = 50 };
    static const char *const backends[] = {"naive32", "naive64", "cpu"};
    struct kith_rng rng;
    (void)state;
    kith_rng_init(&rng, 81, KITH_STREAM_TEST, 0);
    for (size_t b = 0; b < COUNT(backends); b++)
        for (int random = 0; random < 2; random++) {
            struct kith_compression how =
                compression(random ? "random-k" : "top-k", backends[b], DIM);
            double values[DIM], out[DIM], error[DIM];
            double given[DIM] = {0}, sent[DIM] = {0};
            how.config.density = 0.04;
            struct trip trip = trip_open(how);
            void *e = how.backend->alloc(DIM * 8, false);
            assert_non_null(e);
            for (uint64_t step = 0; step < STEPS; step++) {
                for (size_t i = 0; i < DIM; i++) {
                    values[i] = (double)kith_rng_below(&rng, 2001) - 1000;
                    given[i] += values[i];
                }
                trip_write(&trip, values);
                assert_true(kith_compress_feedback(&how, 1, trip.v, e, step,
                                                   trip.wire, trip.out));
                how.backend->read(DIM, trip.out, out);
                for (size_t i = 0; i < DIM; i++)
                    sent[i] += out[i];
            }
            how.backend->read(DIM, e, error);
            for (size_t i = 0; i < DIM; i++)
                assert_true(sent[i] + error[i] == given[i]);
            how.backend->release(e);
            trip_close(&trip);
        }
}

/* The same for every compressor on Gaussian vectors, to rounding; with a decay
 * d the sum is of what is weighted so: e_T + sum c_t d^(T-t) = sum u_t d^(T-t).
 */
static void feedback_adds_up(const char *name, double decay)
{
    enum { DIM = 1000, STEPS = 40 };
    static double values[DIM], out[DIM], error[DIM], given[DIM], sent[DIM];
    struct kith_compression how = compression(name, "naive64", DIM);
    double worst = 0;
    struct trip trip = trip_open(how);
    void *e = how.backend->alloc(DIM * 8, false);
    assert_non_null(e);
    memset(given, 0, sizeof given);
    memset(sent, 0, sizeof sent);
    for (uint64_t step = 0; step < STEPS; step++) {
        gaussian(90 + step, DIM, values);
        trip_write(&trip, values);
        assert_true(kith_compress_feedback(&how, decay, trip.v, e, step,
                                           trip.wire, trip.out));
        how.backend->read(DIM, trip.out, out);
        for (size_t i = 0; i < DIM; i++) {
            given[i] = decay * given[i] + values[i];
            sent[i] = decay * sent[i] + out[i];
        }
    }
    how.backend->read(DIM, e, error);
    for (size_t i = 0; i < DIM; i++)
        worst = fmax(worst, fabs(sent[i] + error[i] - given[i]));
    char what[40];
    (void)snprintf(what, sizeof what, "%s, decay %g: max |sum|", name, decay);
    near(what, 0, worst, 1e-12 * STEPS);
    how.backend->release(e);
    trip_close(&trip);
}

static void t10_feedback_loses_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; kith_compressors[i] != NULL; i++) {
        feedback_adds_up(kith_compressors[i]->name, 1);
        feedback_adds_up(kith_compressors[i]->name, 0.95);
    }
}

static void feedback_survives_what_cannot_be_sent(void **state)
{
    static const double e0[3] = {1, 2, 3}, bad[3] = {0, NAN, 0};
    static const double good[3] = {5, 0, -1};
    const double large[3] = {1.7e308, 0, 0};
    struct kith_compression how = compression("top-k", "naive64", 3);
    double e[3], wire[16], sent[3];
    (void)state;
    how.config.density = 0.3;
    assert_true(kith_compression_bytes(&how) <= sizeof wire);

    memcpy(e, e0, sizeof e);
    assert_false(kith_compress_feedback(&how, 1, bad, e, 0, wire, sent));
    assert_memory_equal(e, e0, sizeof e);
    assert_true(kith_compress_feedback(&how, 1, good, e, 0, wire, sent));
    assert_true(sent[0] == 6 && e[0] == 0 && e[1] == 2 && e[2] == 2);

    memcpy(e, large, sizeof e);
    assert_false(kith_compress_feedback(&how, 1, large, e, 0, wire, sent));
    assert_true(e[0] == 0 && e[1] == 0 && e[2] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t10_top_k_keeps_the_most_energy),
        cmocka_unit_test(t10_random_k_keeps_its_share),
        cmocka_unit_test(t10_sign_keeps_what_its_formula_says),
        cmocka_unit_test(t10_qsgd_has_the_variance_of_the_table),
        cmocka_unit_test(t10_int8_has_the_error_of_the_table),
        cmocka_unit_test(declared_contraction_and_bias_hold),
        cmocka_unit_test(t10_feedback_of_whole_numbers_is_exact),
        cmocka_unit_test(t10_feedback_loses_nothing),
        cmocka_unit_test(feedback_survives_what_cannot_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
