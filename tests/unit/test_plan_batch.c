/* Goal: the knapsack of algorithms and the minibatch procedure choose the best
 * there is (T2.4).
 * Method: 200 drawn instances of 6 layers and 3 algorithms against all 3^6
 * choices, sizes in whole cells; the same with sizes that are not, which must
 * fit and be no worse than the best within a cell a layer less. A seed may be
 * given: test_plan_batch SEED; a failure prints that command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plan.h"
#include "kith/rng.h"

enum { LAYERS = 6, WAYS = 3, CHOICES = 729, INSTANCES = 200 };

static uint64_t seed = 19;
static char error[KITH_PLAN_ERROR_BYTES];
static _Alignas(8) char scratch[KITH_PLAN_KNAPSACK_BYTES(KITH_PLAN_LAYERS_MAX)];

static void repeat_with(int instance)
{
    fail_msg("instance %d; repeat: tests/unit/test_plan_batch %llu", instance,
             (unsigned long long)seed);
}

/* The least time of all choices, infinite where none fits. */
static double brute_force(const struct kith_plan_way *ways, double bound)
{
    double best = (double)INFINITY;
    for (unsigned choice = 0; choice < CHOICES; choice++) {
        double seconds = 0, bytes = 0;
        unsigned rest = choice;
        for (unsigned k = 0; k < LAYERS; k++, rest /= WAYS) {
            seconds += ways[k * WAYS + rest % WAYS].seconds;
            bytes += ways[k * WAYS + rest % WAYS].bytes;
        }
        if (bytes <= bound && seconds < best)
            best = seconds;
    }
    return best;
}

/* Sizes are multiples of `unit`; some instances have no room at all. */
static double draw(struct kith_rng *rng, struct kith_plan_way *ways,
                   double unit, double most)
{
    for (unsigned i = 0; i < LAYERS * WAYS; i++) {
        ways[i].seconds = 1e-3 * kith_rng_double(rng);
        ways[i].bytes = unit * floor(most / unit * kith_rng_double(rng));
    }
    return most * (0.5 + LAYERS * 0.6 * kith_rng_double(rng));
}

/* What was chosen takes the time that is said, and fits. */
static bool holds(const struct kith_plan_way *ways, const uint32_t *chosen,
                  double bound, double seconds)
{
    double sum = 0, bytes = 0;
    for (unsigned k = 0; k < LAYERS; k++) {
        sum += ways[k * WAYS + chosen[k]].seconds;
        bytes += ways[k * WAYS + chosen[k]].bytes;
    }
    return bytes <= bound && fabs(sum - seconds) < 1e-12;
}

static void test_whole_cells(void **state)
{
    struct kith_plan_way ways[LAYERS * WAYS];
    struct kith_rng rng;
    unsigned none = 0;
    double worst = 0;
    (void)state;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
    for (int i = 0; i < INSTANCES; i++) {
        /* Cells of 1 MB. */
        const double drawn = draw(&rng, ways, 1e6, 700e6);
        const double bound = KITH_PLAN_CELLS * 1e6;
        /* So much is taken beside the layers: a cap below the table's. */
        const double given = floor(drawn / 1e6) * 1e6;
        uint32_t chosen[LAYERS];
        double seconds;
        struct kith_plan_way padded[LAYERS * WAYS];
        memcpy(padded, ways, sizeof ways);
        for (unsigned l = 0; l < WAYS; l++)
            padded[l].bytes += bound - given;
        const double best = brute_force(ways, given);
        const struct kith_plan_knapsack problem = {padded, LAYERS, WAYS, bound};
        const enum kith_err err =
            kith_plan_knapsack(&problem, scratch, chosen, &seconds, error);
        none += isinf(best) ? 1 : 0;
        if (isinf(best)
                ? err != KITH_ELIMIT
                : err != KITH_OK || !holds(ways, chosen, given, seconds) ||
                      !(fabs(seconds - best) < 1e-12))
            repeat_with(i);
        if (!isinf(best))
            worst = fmax(worst, fabs(seconds - best));
    }
    printf("  T2.4 %d instances, %u without room: expected 0, measured %.3g s "
           "from the best; repeat: tests/unit/test_plan_batch %llu\n",
           INSTANCES, none, worst, (unsigned long long)seed);
    assert_true(none < INSTANCES / 2);
}

static void test_any_sizes(void **state)
{
    struct kith_plan_way ways[LAYERS * WAYS];
    struct kith_rng rng;
    unsigned exact = 0, fit = 0;
    (void)state;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 1);
    for (int i = 0; i < INSTANCES; i++) {
        const double bound = draw(&rng, ways, 1e-3, 700e6);
        const struct kith_plan_knapsack problem = {ways, LAYERS, WAYS, bound};
        const double cell = bound / KITH_PLAN_CELLS;
        const double best = brute_force(ways, bound);
        const double tighter = brute_force(ways, bound - LAYERS * cell);
        uint32_t chosen[LAYERS];
        double seconds = (double)INFINITY;
        const enum kith_err err =
            kith_plan_knapsack(&problem, scratch, chosen, &seconds, error);
        if (err == KITH_OK
                ? !holds(ways, chosen, bound, seconds) ||
                      seconds > tighter + 1e-12 || seconds < best - 1e-12
                : err != KITH_ELIMIT || !isinf(tighter))
            repeat_with(i);
        fit += err == KITH_OK;
        exact += err == KITH_OK && seconds < best + 1e-12;
    }
    printf("  T2.4 sizes of any bytes: %u of %d have room, %u are the best\n",
           fit, INSTANCES, exact);
}

/* Larger batches are faster an example, until the fast way has no room. */
static void test_minibatch(void **state)
{
    /* Way 0: slow and small; way 1: fast, 100 bytes an example. */
    static const uint32_t batches[] = {8, 16, 32, 64};
    struct kith_plan_way ways[4][2];
    struct kith_plan_candidate candidates[4];
    struct kith_plan_epoch best;
    uint32_t chosen[1];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const double x = batches[i];
        ways[i][0] = (struct kith_plan_way){2e-3 + x * 2e-4, 0};
        ways[i][1] = (struct kith_plan_way){2e-3 + x * 1e-4, 100 * x};
        candidates[i] = (struct kith_plan_candidate){batches[i], ways[i]};
    }
    struct kith_plan_minibatch problem = {.cap = 1000 + 32 * 110,
                                          .sample_bytes = 10,
                                          .fixed_bytes = 1000,
                                          .examples = 1000,
                                          .layers = 1,
                                          .width = 2,
                                          .candidates = candidates,
                                          .candidate_count = 4};
    assert_int_equal(
        kith_plan_minibatch(&problem, scratch, chosen, &best, error), KITH_OK);
    printf("  batch 32 with the fast way: expected 0.1664 s, measured %.6f s\n",
           best.epoch_s);
    assert_int_equal(batches[best.candidate], 32);
    assert_int_equal(chosen[0], 1);
    assert_true(fabs(best.epoch_s - 32 * 5.2e-3) < 1e-12);
    problem.cap = 1000 + 16 * 10 + 1; /* 16 with the slow way, or 8 */
    assert_int_equal(
        kith_plan_minibatch(&problem, scratch, chosen, &best, error), KITH_OK);
    assert_int_equal(batches[best.candidate], 16);
    assert_int_equal(chosen[0], 0);
    problem.cap = 1000 + 8 * 10;
    assert_int_equal(
        kith_plan_minibatch(&problem, scratch, chosen, &best, error),
        KITH_ELIMIT);
    assert_non_null(strstr(error, "no candidate fits 1080 bytes"));
}

/* What is chosen fits to the last byte, however many round alike. */
static void test_fits(void **state)
{
    static struct kith_plan_way ways[KITH_PLAN_LAYERS_MAX];
    uint32_t chosen[KITH_PLAN_LAYERS_MAX];
    double seconds;
    struct kith_plan_knapsack problem = {ways, KITH_PLAN_LAYERS_MAX, 1,
                                         KITH_PLAN_BYTES_MAX};
    (void)state;
    for (unsigned i = 0; i < KITH_PLAN_LAYERS_MAX; i++)
        ways[i].bytes = KITH_PLAN_BYTES_MAX / KITH_PLAN_LAYERS_MAX;
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_OK);
    for (unsigned i = 0; i < KITH_PLAN_LAYERS_MAX; i++)
        ways[i].bytes += 3;
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_ELIMIT);
    ways[0].bytes = 4096;
    problem = (struct kith_plan_knapsack){ways, 1, 1, 4095.9999999};
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_ELIMIT);
}

/* Of a second candidate that is refused the first leaves nothing. */
static void test_unchanged(void **state)
{
    const struct kith_plan_way good[] = {{2, 1}, {1, 1}};
    const struct kith_plan_way bad[] = {{1, 1}, {(double)NAN, 1}};
    const struct kith_plan_candidate candidates[] = {{1, good}, {2, bad}};
    const struct kith_plan_minibatch problem = {.cap = 1000,
                                                .examples = 10,
                                                .layers = 1,
                                                .width = 2,
                                                .candidates = candidates,
                                                .candidate_count = 2};
    struct kith_plan_epoch best = {.candidate = 77};
    uint32_t chosen[1] = {77};
    (void)state;
    assert_int_equal(
        kith_plan_minibatch(&problem, scratch, chosen, &best, error),
        KITH_EINVAL);
    assert_int_equal(chosen[0], 77);
    assert_int_equal(best.candidate, 77);
}

static void test_refused(void **state)
{
    const struct kith_plan_way good = {1, 1};
    const struct kith_plan_way bad = {(double)NAN, 1}, negative = {1, -1};
    uint32_t chosen[1];
    double seconds;
    struct kith_plan_knapsack problem = {&bad, 1, 1, 10};
    (void)state;
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_EINVAL);
    assert_non_null(strstr(error, "seconds: found nan"));
    problem.ways = &negative;
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_EINVAL);
    assert_non_null(strstr(error, "bytes: found -1"));
    problem = (struct kith_plan_knapsack){&good, 1, 1, 0};
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_EINVAL);
    problem = (struct kith_plan_knapsack){&good, 0, 1, 10};
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_EINVAL);
    problem.layers = KITH_PLAN_LAYERS_MAX + 1;
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_EINVAL);
    problem = (struct kith_plan_knapsack){&good, 1, 1, 1};
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_OK);
    problem.bound = 0.5; /* less than a byte */
    assert_int_equal(
        kith_plan_knapsack(&problem, scratch, chosen, &seconds, error),
        KITH_ELIMIT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_cells), cmocka_unit_test(test_any_sizes),
        cmocka_unit_test(test_minibatch),   cmocka_unit_test(test_fits),
        cmocka_unit_test(test_unchanged),   cmocka_unit_test(test_refused),
    };
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
