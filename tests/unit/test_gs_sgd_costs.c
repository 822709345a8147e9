/* Goal: what a step waits for on 1 GbE with d = 10^7, for 4 to 256 peers: dense
 * ring, lists of all (top-k), gTop-k, gs-SGD; from how many peers on one is
 * faster than another (T3.6). Printed, not asserted: what the paper claims is
 * of its machines.
 * Method: no arithmetic and no vectors. Rounds are the schedules that the
 * algorithms run on, bytes what their records say, times the law of links, with
 * the answer for which a round's sender waits. At d = 200,000 the simulator's
 * own time of the same runs is beside it. Lists of all are no algorithm here:
 * recursive doubling, 1, 2, 4, ... lists in a message.
 *
 *   formulas   dense ring  2 (P - 1) a + 2 (P - 1) / P d b
 *              top-k       log2 P a + 2 (P - 1) k b
 *              gTop-k      2 log2 P (a + 2 k b)
 *              gs-SGD      4 log2 P a + 2 log2 P (r c + p2 k) b
 *
 * a the latency, b the time of four bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/probe.h"
#include "tests/support/round_costs.h"

enum { DIM = 10000000, SIM_DIM = 200000, STEPS = 5 };
/* k of the paper's density; a local network's latency. */
#define SHARE 0.001
#define RATE_BITS UINT64_C(1000000000)
#define LATENCY_NS (50 * KITH_US)

enum method { DENSE, TOP_K, GTOP_K, GS_SGD, METHODS };
static const struct round_method methods[METHODS] = {
    {.name = "dense ring", .algorithm = "allreduce-ring"},
    {.name = "top-k", .share = SHARE},
    {.name = "gTop-k", .algorithm = "gtop-k", .share = SHARE},
    {.name = "gs-SGD", .algorithm = "gs-sgd", .share = SHARE}};
static const struct round_network network = {.machine = 1,
                                             .in_bits = RATE_BITS,
                                             .out_bits = RATE_BITS,
                                             .in_ns = LATENCY_NS,
                                             .out_ns = LATENCY_NS};

static struct round_plan plan_of(enum method method, uint32_t peers, size_t dim)
{
    struct round_plan plan;
    assert_null(round_plan_open(&plan, &methods[method], peers, dim));
    return plan;
}

static double milliseconds_of(const struct round_plan *plan)
{
    return round_cost_of(plan, &network, STEPS).ms;
}

static double formula(enum method method, double peers)
{
    const double a = (double)LATENCY_NS * 1e-6, b = 4 * 8e3 / (double)RATE_BITS;
    const double k = SHARE * DIM, log2_peers = ceil(log2(peers));
    switch (method) {
    case DENSE:
        return 2 * (peers - 1) * a + 2 * (peers - 1) / peers * DIM * b;
    case TOP_K:
        return log2_peers * a + 2 * (peers - 1) * k * b;
    case GTOP_K:
        return 2 * log2_peers * (a + 2 * k * b);
    case GS_SGD:
        return 4 * log2_peers * a + 2 * log2_peers * (5 * 4 * k + 4 * k) * b;
    case METHODS:
        break;
    }
    return NAN;
}

static void test_costs(void **state)
{
    double found[METHODS][9] = {{0}};
    (void)state;
    for (unsigned p = 2; p <= 8; p++)
        for (unsigned m = 0; m < METHODS; m++) {
            const struct round_plan plan = plan_of(m, 1u << p, DIM);
            found[m][p] = milliseconds_of(&plan);
            const double expected = formula(m, 1u << p);
            printf("  T3.6 P = %u, %s, ms a step: expected %.3g, measured "
                   "%.3g\n",
                   1u << p, methods[m].name, expected, found[m][p]);
            /* gTop-k's messages hold a block of phi as well, and in each round
             * an answer may be waited for. */
            assert_true(found[m][p] > 0.9 * expected);
            assert_true(found[m][p] <
                        1.6 * expected +
                            (double)(plan.rounds * LATENCY_NS) * 1e-6);
        }
    for (unsigned a = 0; a < METHODS; a++)
        for (unsigned b = 0; b < METHODS; b++) {
            unsigned first = 0;
            for (unsigned p = 8; p >= 2 && found[a][p] < found[b][p]; p--)
                first = 1u << p;
            if (first > 0 && a != b)
                printf("  T3.6 %s is faster than %s: expected from some P on, "
                       "measured from %u on\n",
                       methods[a].name, methods[b].name, first);
        }
    printf("  T3.6 gs-SGD's steps in the time of one of gTop-k, P = 32: "
           "expected 1.3 to 3.1 (the paper's, asserted by nobody), measured "
           "%.2f\n",
           found[GTOP_K][5] / found[GS_SGD][5]);
}

/* ---- the simulator's own time */

static double simulated(enum method method, unsigned peers, unsigned steps)
{
    struct probe probe = {.period = 0};
    probe_must(&probe,
               "name: costs\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive32}\n"
               "gossip: {algorithm: %s%s}\n"
               "network: {latency: 50us, rate: 1Gbit}\ncompute: {step: 1ms}\n",
               peers, steps, SIM_DIM, methods[method].algorithm,
               method == DENSE ? "" : ", share: 0.001");
    const double time = probe.summary.virtual_s * 1e3;
    probe_close(&probe);
    return time;
}

static void test_simulated(void **state)
{
    static const enum method sent[] = {DENSE, GTOP_K, GS_SGD};
    (void)state;
    for (unsigned n = 0; n < 3; n++)
        for (unsigned peers = 4; peers <= 8; peers *= 2) {
            const struct round_plan plan = plan_of(sent[n], peers, SIM_DIM);
            const double expected = milliseconds_of(&plan);
            const double measured =
                (simulated(sent[n], peers, 6) - simulated(sent[n], peers, 2)) /
                    4 -
                1;
            printf("  T3.6 d = 200,000, P = %u, %s in the simulator, ms a "
                   "step: expected %.3g, measured %.3g\n",
                   peers, methods[sent[n]].name, expected, measured);
            assert_true(fabs(measured - expected) < 0.05 * expected);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
