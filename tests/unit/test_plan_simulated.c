/* Goal: what kith plan predicts is what the simulator does (T2.2). Method: a
 * synchronous parameter server in a network without latency, for each number of
 * workers with as many servers, against Lemma 1. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "kith/plan.h"
#include "tests/support/simulate.h"

/* All of what is divided by 1 to 16 without a rest. */
#define COMPUTE_NS 720720000u
#define BYTES 7207200u
enum { WORKERS = 16, STEPS = 5 };

static double step_s(unsigned workers, unsigned rate_mbit)
{
    char yaml[512];
    (void)snprintf(
        yaml, sizeof yaml,
        "name: lemma\nseed: 1\npeers: %u\nstop: {steps: %d}\n"
        "model: {kind: none}\n"
        "central: {method: gradient, trigger: sync, exchange: naive,\n"
        "  payload: %u, servers: %u}\n"
        "compute: {step: %uns}\nnetwork: {rate: %uMbit}\n",
        workers, STEPS, BYTES, workers, COMPUTE_NS / workers, rate_mbit);
    return simulate(yaml, NULL).summary.virtual_s / STEPS;
}

/* The batch is divided, a model goes to the servers and comes back: T_O is two
 * models' time on a line, whatever the number. */
static void test_lemma_1(void **state)
{
    (void)state;
    static const unsigned rates[] = {100, 800, 6400};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        const double ratio = 2 * 8e-6 * BYTES / rates[i] / (1e-9 * COMPUTE_NS);
        const double alone = step_s(1, rates[i]);
        double worst = 0;
        for (unsigned workers = 1; workers <= WORKERS; workers++) {
            char error[KITH_PLAN_ERROR_BYTES];
            struct kith_plan_speedup lemma;
            assert_int_equal(kith_plan_speedup(workers, ratio, &lemma, error),
                             KITH_OK);
            const double found = alone / step_s(workers, rates[i]);
            worst = fmax(worst, fabs(found / lemma.speedup - 1));
        }
        print_message("R_O = %.4f: %.1e off Lemma 1 at most\n", ratio, worst);
        assert_true(worst <= 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lemma_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
