/* Goal: guards that compare the models of a round answer what their papers
 * say, and keep out two liars of ten where a round is of all.
 * Method: by hand, five received models of three values and our own; and the
 * digits in the simulator, where two send values of 2 (the fault `huge`). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/guard.h"
#include "tests/support/simulate.h"

enum { DIM = 3, RECEIVED = 5, OWN = RECEIVED };

static double models[RECEIVED + 1][DIM], merged[DIM];
static struct kith_guard_config config;

static struct kith_guard_round judged(const char *name, uint32_t liars)
{
    static const double start[RECEIVED + 1][DIM] = {
        {1, 10, -1}, {2, 20, -2},      {4, 40, -4},
        {8, 80, -8}, {1e6, -1e6, 1e6}, {3, 30, -3}};
    const struct kith_guard *guard = kith_guard_find(name);
    struct kith_guard_round round = {.config = &config,
                                     .host = kith_backend_find("naive64"),
                                     .dim = DIM,
                                     .count = RECEIVED,
                                     .merged = merged};
    void *state = calloc(1, guard->bytes == NULL ? 1 : guard->bytes(DIM));
    assert_non_null(state);
    config.liars = liars;
    memcpy(models, start, sizeof models);
    for (unsigned i = 0; i <= RECEIVED; i++)
        round.models[i] = models[i];
    for (unsigned i = 0; i < RECEIVED; i++) {
        round.let_in[i] = 1;
        round.distances[i] =
            sqrt(round.host->distance_squared(DIM, models[i], models[OWN]));
    }
    guard->judge(state, &round);
    free(state);
    assert_memory_equal(models, start, sizeof models);
    return round;
}

static void close_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fmax(1, fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* That is merged in the place of all that came. */
static void all_are(const struct kith_guard_round *round, double a, double b,
                    double c)
{
    close_to(merged[0], a);
    close_to(merged[1], b);
    close_to(merged[2], c);
    for (unsigned i = 0; i < RECEIVED; i++)
        close_to(round->let_in[i], 1);
}

static void test_coordinates(void **state)
{
    (void)state;
    struct kith_guard_round round = judged("trimmed-mean", 1);
    all_are(&round, (2 + 3 + 4 + 8) / 4., (10 + 20 + 30 + 40) / 4.,
            (-4 - 3 - 2 - 1) / 4.);
    round = judged("trimmed-mean", 2);
    all_are(&round, 3.5, 25, -2.5);
    round = judged("trimmed-mean", 64); /* no more than there are */
    all_are(&round, 3.5, 25, -2.5);
    round = judged("median", 0);
    all_are(&round, 3.5, 25, -2.5);
    round = judged("trimmed-mean", 0);
    all_are(&round, (18 + 1e6) / 6, (180 - 1e6) / 6, (-18 + 1e6) / 6);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of every number of models, ties among them, beside qsort, where
 * coordinates fill no chunk. */
static void test_any_number(void **state)
{
    enum { MANY = KITH_DEGREE_MAX + 1, WIDE = 70 };
    static double all[MANY][WIDE], found[WIDE];
    const struct kith_guard *median = kith_guard_find("median");
    (void)state;
    for (uint32_t n = 2; n <= MANY; n++) {
        struct kith_guard_round round = {.config = &config,
                                         .host = kith_backend_find("naive64"),
                                         .dim = WIDE,
                                         .count = n - 1,
                                         .merged = found};
        for (uint32_t i = 0; i < n; i++) {
            round.models[i] = all[i];
            for (uint32_t k = 0; k < WIDE; k++)
                all[i][k] = (double)((i * 2654435761u + k * 40503u * n) % 97);
        }
        median->judge(NULL, &round);
        for (uint32_t k = 0; k < WIDE; k++) {
            double column[MANY];
            for (uint32_t i = 0; i < n; i++)
                column[i] = all[i][k];
            qsort(column, n, sizeof *column, by_value);
            assert_true(found[k] ==
                        column[(n - 1) / 2] / 2 + column[n / 2] / 2);
        }
    }
}

/* Nearest to the three others of 1, 2, 3, 4, 8: the model 2, at distances of
 * 1, 1 and 2, before 3, whose are the same: ours is preferred. */
static void test_krum(void **state)
{
    (void)state;
    const struct kith_guard_round round = judged("krum", 1);
    all_are(&round, 3, 30, -3);
}

/* Of points on a line the median: five honest ones and one far off one side
 * pull evenly at 3, which has a weight of its own. */
static void test_geometric_median(void **state)
{
    (void)state;
    (void)judged("geometric-median", 0);
    assert_true(merged[0] > 2 && merged[0] < 4.5);
    assert_true(merged[1] > 20 && merged[1] < 45);
}

/* Two of seven of 3e38, or of 1e200, whose squares are none: the five others'
 * median, 3, moved by no more than what is between them. */
static void test_geometric_median_of_huge(void **state)
{
    enum { MANY = 7 };
    static const double huge[] = {3e38, 1e200};
    const struct kith_guard *guard = kith_guard_find("geometric-median");
    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        double all[MANY], found = 0;
        struct kith_guard_round round = {.config = &config,
                                         .host = kith_backend_find("naive64"),
                                         .dim = 1,
                                         .count = MANY - 1,
                                         .merged = &found};
        void *memory = calloc(1, guard->bytes(1));
        assert_non_null(memory);
        for (unsigned i = 0; i < MANY; i++) {
            all[i] = i < 2 ? huge[h] : i - 1; /* huge, huge, 1 to 5 */
            round.models[i] = &all[i];
        }
        guard->judge(memory, &round);
        free(memory);
        assert_true(found > 2.9 && found < 3.1);
    }
}

/* b = 1: means of the five nearest. For each honest one these are the honest
 * ones, 3.6; the liar's five are itself and four of them, trimmed away. */
static void test_nearest_mean(void **state)
{
    (void)state;
    const struct kith_guard_round round = judged("nnm", 1);
    all_are(&round, 3.6, 36, -3.6);
}

/* The three largest of five with b = 1: the two beyond are clipped. */
static void test_cs_plus(void **state)
{
    (void)state;
    const double unit = sqrt(1 + 100 + 1);
    struct kith_guard_round round = judged("cs+", 1);
    close_to(round.let_in[0], 1);
    close_to(round.let_in[1], 1);
    close_to(round.let_in[2], 1);
    close_to(round.let_in[3], 2. / 5);
    close_to(round.let_in[4], 2 * unit / round.distances[4]);
    round = judged("cs+", 3);
    for (unsigned i = 0; i < RECEIVED; i++)
        close_to(round.let_in[i], 0);
}

static void test_balance(void **state)
{
    (void)state;
    const struct kith_guard *guard = kith_guard_find("balance");
    config.tolerance = 0.3;
    struct kith_guard_model model = {
        .config = &config, .distance = 2.99, .norm = 10};
    close_to(guard->weigh(NULL, &model), 1);
    model.distance = 3.01;
    close_to(guard->weigh(NULL, &model), 0);
    model.distance = 1.2;
    model.elapsed = 1; /* 3 / e = 1.1036 */
    close_to(guard->weigh(NULL, &model), 0);
    model.distance = 1.1;
    close_to(guard->weigh(NULL, &model), 1);
}

/* Of losses 1, 3, 2, 4 and none beside our 2: the first and third of the four
 * that are nearest; none: the nearest, 2, alone. */
static void test_ubar(void **state)
{
    (void)state;
    const struct kith_guard *guard = kith_guard_find("ubar");
    static const double losses[RECEIVED + 1] = {1, 3, 2, 4, 0, 2};
    struct kith_guard_round round = judged("ubar", 1);
    close_to(round.let_in[1], 1); /* all alike */
    memcpy(round.losses, losses, sizeof losses);
    guard->judge(NULL, &round);
    for (unsigned i = 0; i < RECEIVED; i++)
        close_to(round.let_in[i], i == 0 || i == 2);
    round.losses[OWN] = (double)NAN;
    guard->judge(NULL, &round);
    for (unsigned i = 0; i < RECEIVED; i++)
        close_to(round.let_in[i], i == 1);
    struct kith_guard_model model = {.loss = 2, .own_loss = 2};
    close_to(guard->weigh(NULL, &model), 1);
    model.loss = 2.001;
    close_to(guard->weigh(NULL, &model), 0);
    model.loss = (double)NAN;
    close_to(guard->weigh(NULL, &model), 0);
}

/* The worst is a liar's own: the mean counts, of which two hundredths each. */
static void test_liars(void **state)
{
    (void)state;
    const char *const folder = getenv("srcdir");
    for (unsigned g = 0; kith_guards[g] != NULL; g++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 "name: liars\nseed: 3\npeers: 10\nstop: {epochs: 5}\n"
                 "model: {kind: mlp, layers: [64, 32, 10]}\n"
                 "data: {kind: idx, path: %s/examples/data/digits}\n"
                 "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
                 "gossip: {algorithm: dpsgd, topology: complete, guard: %s%s}\n"
                 "network: {latency: 200us}\ncompute: {step: 5ms}\n"
                 "faults: [{at: 20ms, huge: \"peer(8..9)\", by: 2}]\n",
                 folder != NULL ? folder : ".", kith_guards[g]->name,
                 kith_guards[g]->keys & KITH_GUARD_READS(LIARS) ? ", liars: 2"
                                                                : "");
        const struct kith_summary found = simulate(yaml, NULL).summary;
        printf("  %-18s mean accuracy %.3f\n", kith_guards[g]->name,
               found.accuracy.mean);
        if (strcmp(kith_guards[g]->name, "none") == 0)
            assert_true(found.accuracy.mean < 0.4);
        else
            assert_true(found.accuracy.mean > 0.65);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinates),
        cmocka_unit_test(test_any_number),
        cmocka_unit_test(test_krum),
        cmocka_unit_test(test_geometric_median),
        cmocka_unit_test(test_geometric_median_of_huge),
        cmocka_unit_test(test_nearest_mean),
        cmocka_unit_test(test_cs_plus),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_ubar),
        cmocka_unit_test(test_liars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
