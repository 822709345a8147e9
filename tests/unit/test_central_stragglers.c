/* Goal: what slow workers cost (T11, T1.4). Method: cost-only runs whose
 * communication takes no time, and the workload of the taxonomy. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/central_run.h"

static struct centralised run;

/* Gradients per step time of n workers, the last s times slower. */
static double throughput(unsigned n, unsigned slow, const char *central)
{
    centralise(&run,
               "name: t\npeers: %u\nstop: {time: %us}\nmodel: {kind: none}\n"
               "compute: {step: 1s, slow: [{peers: \"peer(%u)\", by: %u}]}\n"
               "central: {%s}\n",
               n, (slow < 100 ? 10000 : 30000), n - 1, slow, central);
    return (double)run.summary.exchanges.done / run.summary.virtual_s;
}

static void test_one_slow(void **state)
{
    (void)state;
    static const struct {
        unsigned n, slow;
    } cases[] = {{16, 2}, {16, 10}, {16, 100}, {8, 10}};
    bool good = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double n = cases[i].n, s = cases[i].slow;
        char what[64];
        const double sync =
            throughput(cases[i].n, cases[i].slow, "exchange: doubling");
        const double async =
            throughput(cases[i].n, cases[i].slow, "trigger: async");
        (void)snprintf(what, sizeof what, "AllReduce n/(sT), n = %g, s = %g", n,
                       s);
        good &= agrees(what, n / s, sync, 0.005);
        (void)snprintf(what, sizeof what, "async n - 1 + 1/s, n = %g, s = %g",
                       n, s);
        good &= agrees(what, n - 1 + 1 / s, async, 0.005);
        good &= agrees("  ratio", (s * (n - 1) + 1) / n, async / sync, 0.005);
    }
    assert_true(good);
}

/* The round of n steps that each last Exp(1) has the mean H_n. */
static void test_exponential(void **state)
{
    (void)state;
    bool good = true;
    for (unsigned n = 4; n <= 16; n *= 4) {
        double harmonic = 0;
        char what[64];
        for (unsigned i = 1; i <= n; i++)
            harmonic += 1.0 / i;
        centralise(&run,
                   "name: t\nseed: 3\npeers: %u\nstop: {steps: 60000}\n"
                   "model: {kind: none}\n"
                   "compute: {step: 1ms, spread: exponential}\n"
                   "central: {exchange: doubling}\n",
                   n);
        (void)snprintf(what, sizeof what, "mean round H_n, n = %u", n);
        good &= agrees(what, harmonic, run.summary.virtual_s / 60, 0.005);
    }
    centralise(&run, "name: t\nseed: 3\npeers: 16\nstop: {time: 40s}\n"
                     "model: {kind: none}\n"
                     "compute: {step: 1ms, spread: exponential}\n"
                     "central: {trigger: async}\n");
    good &= agrees("async, steps per mean step and worker", 1,
                   (double)run.summary.steps / 16 / 40000, 0.005);
    assert_true(good);
}

/* T1.4: one node of 8 slowed 10 times on W1. */
static void learn(const char *rate, const char *central, const char *time)
{
    centralise(&run,
               "name: w1\nseed: 1\npeers: 8\nstop: {time: %s}\n"
               "model: {kind: mlp, layers: [100, 64, 10]}\n"
               "data: {kind: gaussian, rows: 8000, spread: 0.28}\n"
               "train: {learning_rate: %s, batch: 16}\n"
               "compute: {step: 5ms, slow: [{peers: \"n(1)\", by: 10}]}\n"
               "central: {%s}\n",
               time, rate, central);
}

static void test_one_slow_of_eight(void **state)
{
    (void)state;
    learn("0.05", "exchange: ring", "4s");
    const double sync = (double)run.summary.exchanges.done / 4;
    const double target = run.summary.loss.averaged;
    learn("0.00625", "trigger: async", "4s");
    const double async = (double)run.summary.exchanges.done / 4;
    printf("gradients per second: async %.1f, sync %.1f, ratio expected >= 7 "
           "(8.875) measured %.3f\n",
           async, sync, async / sync);
    assert_true(async / sync >= 7);
    /* The loss that sync has after 4 s, async has within a third of that. */
    learn("0.00625", "trigger: async", "1333ms");
    printf("loss: sync after 4 s %.4f, async after 1.333 s %.4f: speed-up "
           "expected >= 3\n",
           target, run.summary.loss.averaged);
    assert_true(run.summary.loss.averaged <= target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_slow),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_one_slow_of_eight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
