/* Goal: what kith plan predicts is what the simulator does (T2.2). Method: a
 * synchronous parameter server in a network without latency, for each number of
 * workers with as many servers, against Lemma 1; servers that send while
 * workers take their next step, as many as Lemma 2 says and one less. */
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

/* ESSP with a staleness of two: pushes, models on their way back and steps go
 * on at once, for all workers, and nobody waits unless a line is never idle. */
static double overlapped_s(unsigned workers, unsigned servers, unsigned steps,
                           unsigned step_us)
{
    char yaml[512];
    (void)snprintf(yaml, sizeof yaml,
                   "name: lemma\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
                   "model: {kind: none}\n"
                   "central: {method: gradient, trigger: essp, staleness: 2,\n"
                   "  payload: %u, servers: %u}\n"
                   "compute: {step: %uus}\nnetwork: {rate: 1Gbit}\n",
                   workers, steps, BYTES, servers, step_us);
    return simulate(yaml, NULL).summary.virtual_s;
}

/* Of a step, beyond the workers' computing, once they no longer all push at the
 * same time. */
static double stall_s(unsigned workers, unsigned servers, unsigned step_us)
{
    enum { FEW = 20, MANY = 60 };
    return (overlapped_s(workers, servers, MANY, step_us) -
            overlapped_s(workers, servers, FEW, step_us)) /
               (MANY - FEW) -
           1e-6 * step_us;
}

/* A server's bandwidth is what it moves both ways: lines of 1 Gbit/s each. With
 * the rate of one way Lemma 2 asks for twice as many, which do. */
static void test_lemma_2(void **state)
{
    (void)state;
    /* A model takes 57.7 ms on a line. */
    static const struct {
        unsigned workers, step_us;
        double servers;
    } cases[] = {{16, 250000, 4}, {16, 500000, 2}, {8, 160000, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char error[KITH_PLAN_ERROR_BYTES];
        double servers, most;
        const unsigned workers = cases[i].workers, step_us = cases[i].step_us;
        const double step_s = 1e-6 * step_us;
        assert_int_equal(kith_plan_servers(BYTES, workers, 2 * 125e6, step_s,
                                           &servers, error),
                         KITH_OK);
        assert_int_equal(
            kith_plan_servers(BYTES, workers, 125e6, step_s, &most, error),
            KITH_OK);
        assert_true(servers == cases[i].servers && most >= 2 * servers - 1);
        const double enough = stall_s(workers, (unsigned)servers, step_us);
        const double fewer = stall_s(workers, (unsigned)servers - 1, step_us);
        print_message("%u workers: %.0f servers, %.1e of a step stalled; one "
                      "less: %.3f\n",
                      workers, servers, enough / step_s, fewer / step_s);
        assert_true(fabs(enough) < 1e-9);
        assert_true(fabs(stall_s(workers, (unsigned)most, step_us)) < 1e-9);
        assert_true(fewer > 0.01 * step_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lemma_1),
                                       cmocka_unit_test(test_lemma_2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
