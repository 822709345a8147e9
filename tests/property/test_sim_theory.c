/* Goal: the simulator obeys the laws of stragglers (T11). With one of n peers s
 * times slower and communication hidden, rounds without a deadline run at
 * n / (s T), pairwise averaging at (n - 1 + 1/s) / T; where all steps last
 * Exp(T), a round of all lasts H_n T, and pairs wait for nobody.
 * Method: both in virtual time for 10^4 steps of a healthy peer; the ratio of
 * their throughputs is (s (n - 1) + 1) / n to 0.5 %. Learning gains less than
 * steps, for what the slow peer has seen counts less: at least 0.6 of it.
 * Source: Lian et al. 2018, section 5. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/probe.h"

#define ROUNDS ", deadline: never"

static double throughput(unsigned peers, const char *gossip,
                         const char *compute, unsigned time_s)
{
    struct probe probe = {.period = 0};
    probe_must(&probe,
               "name: straggler\nseed: 1\npeers: %u\nstop: {time: %us}\n"
               "model: {kind: none}\ngossip: {every: 1, algorithm: %s}\n"
               "network: {latency: 1us}\ncompute: {%s}\n",
               peers, time_s, gossip, compute);
    const double rate = (double)probe.summary.steps / probe.summary.virtual_s;
    probe_close(&probe);
    return rate;
}

static void straggler(unsigned peers, unsigned slower)
{
    char compute[64];
    (void)snprintf(compute, sizeof compute,
                   "step: 1ms, slow: [{peers: \"peer(0)\", by: %u}]", slower);
    const double together =
        throughput(peers, "dpsgd, topology: ring" ROUNDS, compute, 10 * slower);
    const double alone =
        throughput(peers, "adpsgd, topology: random", compute, 10);
    const double expected = (slower * (peers - 1.0) + 1) / peers;
    printf("  T11 n=%u s=%u: expected %.4f measured %.4f (%.0f and %.0f "
           "steps/s)\n",
           peers, slower, expected, alone / together, alone, together);
    assert_true(fabs(alone / together / expected - 1) < 0.005);
}

static void test_t11_straggler(void **state)
{
    (void)state;
    straggler(16, 2);
    straggler(16, 10);
    straggler(16, 100);
    straggler(8, 10);
}

/* Three standard errors of a mean of `count`, and 0.5 %. */
static void near(const char *what, unsigned n, double expected, double measured,
                 double variance, double count)
{
    const double error = sqrt(variance / count);
    printf("  T11 %s, n=%-2u: expected %.4f measured %.4f +- %.4f\n", what, n,
           expected, measured, error);
    assert_true(fabs(measured - expected) < 0.005 * expected + 3 * error);
}

/* Steps so long that the latencies of a tree are nothing beside them. */
static void exponential(unsigned n)
{
    static const char compute[] = "step: 1s, spread: exponential";
    const unsigned seconds = 40000;
    double mean = 0, variance = 0;
    for (unsigned i = 1; i <= n; i++) {
        mean += 1.0 / i;
        variance += 1.0 / ((double)i * i);
    }
    const double together =
        throughput(n, "allreduce-tree" ROUNDS, compute, seconds);
    near("Exp(1) steps, a round of all", n, mean, n / together, variance,
         seconds / mean);
    const double alone =
        throughput(n, "adpsgd, topology: random", compute, seconds / 10);
    near("Exp(1) steps, pairs", n, 1, n / alone, 1, seconds / 10.0 * n);
}

static void test_t11_exponential_steps(void **state)
{
    (void)state;
    exponential(16);
    exponential(64);
}

static double loss_after(const char *gossip, double seconds)
{
    struct probe probe = {.period = 0};
    probe_must(&probe,
               "name: straggler\nseed: 1\npeers: 8\nstop: {time: %.0fus}\n"
               "model: {kind: mlp, layers: [100, 64, 10]}\n"
               "data: {kind: gaussian, rows: 8000, spread: 0.28}\n"
               "train: {learning_rate: 0.05, batch: 16}\n"
               "gossip: {every: 1, algorithm: %s}\nnetwork: {latency: 1us}\n"
               "compute: {step: 5ms, slow: [{peers: \"n(1)\", by: 10}]}\n",
               1e6 * seconds, gossip);
    const double loss = probe.summary.loss.averaged;
    probe_close(&probe);
    return loss;
}

static void test_t11_time_to_loss(void **state)
{
    (void)state;
    const double seconds = 8, ratio = 0.6 * 8.875;
    const double together = loss_after("allreduce-tree" ROUNDS, seconds);
    const double alone =
        loss_after("adpsgd, topology: random", seconds / ratio);
    printf("  T11 n=8 s=10: loss after %.1f s of all-reduce %.4f, expected at "
           "most that after %.2f s of pairs, measured %.4f\n",
           seconds, together, seconds / ratio, alone);
    assert_true(alone <= together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t11_straggler),
        cmocka_unit_test(test_t11_exponential_steps),
        cmocka_unit_test(test_t11_time_to_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
