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

#include "kith/algorithm.h"
#include "kith/link_law.h"
#include "tests/support/probe.h"

enum { PEERS_MAX = 256, DIM = 10000000, SIM_DIM = 200000, STEPS = 5 };
/* k of the paper's density; a local network's latency. */
#define SHARE 0.001
#define RATE_BITS UINT64_C(1000000000)
#define LATENCY_NS (50 * KITH_US)
#define STEP_NS KITH_MS

enum method { DENSE, TOP_K, GTOP_K, GS_SGD, METHODS };
static const char *const names[METHODS] = {"dense ring", "top-k", "gTop-k",
                                           "gs-SGD"};
static const char *const algorithms[METHODS] = {"allreduce-ring", NULL,
                                                "gtop-k", "gs-sgd"};

/* ---- rounds and bytes */

struct plan {
    const struct kith_algorithm *algorithm; /* NULL: lists of all */
    struct kith_topology graph;
    uint64_t rounds, whole, slice; /* bytes */
    uint32_t peers;
};

static struct plan plan_of(enum method method, uint32_t peers, size_t dim)
{
    struct plan plan = {.peers = peers};
    if (method == TOP_K) {
        const uint64_t kept = (uint64_t)(SHARE * (double)dim);
        while (1u << plan.rounds < peers)
            plan.rounds++;
        plan.whole = kept * 2 * sizeof(float);
        return plan;
    }
    plan.algorithm = kith_algorithm_find(algorithms[method]);
    assert_int_equal(
        kith_topology_open(kith_topology_find(plan.algorithm->schedule), peers,
                           &plan.graph),
        KITH_OK);
    double given[KITH_GOSSIP_KEY_COUNT];
    memcpy(given, plan.algorithm->initial, sizeof given);
    given[KITH_GOSSIP_SHARE] = SHARE;
    const struct kith_algebra algebra = {.backend =
                                             kith_backend_find("naive32"),
                                         .dim = dim,
                                         .peers = peers,
                                         .coefficients = given,
                                         .graph = &plan.graph};
    plan.rounds = kith_topology_period(&plan.graph);
    plan.whole = kith_algorithm_payload(plan.algorithm, &algebra);
    plan.slice = plan.algorithm->slice == NULL
                     ? plan.whole
                     : plan.algorithm->slice(&algebra);
    return plan;
}

static uint64_t bytes_at(const struct plan *plan, uint64_t round)
{
    if (plan->algorithm == NULL)
        return plan->whole << round;
    const uint64_t period = plan->slice == plan->whole ? 1 : plan->rounds;
    return kith_algorithm_is_whole(plan->algorithm, &plan->graph, period, round)
               ? plan->whole
               : plan->slice;
}

static uint32_t receiver_of(const struct plan *plan, uint32_t self,
                            uint64_t round)
{
    kith_id to[KITH_DEGREE_MAX];
    if (plan->algorithm == NULL)
        return self ^ (uint32_t)(UINT64_C(1) << round);
    return kith_topology_neighbours(&plan->graph, self, round, to, NULL) > 0
               ? to[0]
               : KITH_NOBODY;
}

/* ---- time */

/* A round ends for who receives when the message is there, and for who sends
 * when it has heard so. */
static void run_round(const struct plan *plan, uint64_t round,
                      kith_ns clock[PEERS_MAX])
{
    const struct kith_link_terms terms = {.latency_ns = LATENCY_NS,
                                          .rate_bits = RATE_BITS};
    const uint64_t bytes = bytes_at(plan, round);
    kith_ns next[PEERS_MAX];
    memcpy(next, clock, sizeof next);
    for (uint32_t from = 0; from < plan->peers; from++) {
        const uint32_t to = receiver_of(plan, from, round);
        if (to == KITH_NOBODY)
            continue;
        struct kith_link_flow flow;
        struct kith_link_piece piece = {
            .begins_ns = clock[from], .ends_ns = clock[from], .bytes = bytes};
        kith_link_flow_init(&flow, &terms, 1, from, to);
        (void)kith_line_take(&piece.ends_ns, RATE_BITS, clock[from], bytes);
        const kith_ns there = kith_link_arrival(&flow, &piece);
        next[to] = there > next[to] ? there : next[to];
        if (there + LATENCY_NS > next[from])
            next[from] = there + LATENCY_NS;
    }
    memcpy(clock, next, sizeof next);
}

/* Of a step, in the long run, less the step's own time: who is there first
 * computes while others still hear. */
static double milliseconds_of(const struct plan *plan)
{
    kith_ns clock[PEERS_MAX] = {0}, first = 0, last = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < plan->peers; i++)
            clock[i] += STEP_NS;
        for (uint64_t round = 0; round < plan->rounds; round++)
            run_round(plan, round, clock);
        for (uint32_t i = 0; i < plan->peers; i++)
            last = clock[i] > last ? clock[i] : last;
        first = step == 0 ? last : first;
    }
    return (double)((last - first) / (STEPS - 1) - STEP_NS) * 1e-6;
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
            const struct plan plan = plan_of(m, 1u << p, DIM);
            found[m][p] = milliseconds_of(&plan);
            const double expected = formula(m, 1u << p);
            printf("  T3.6 P = %u, %s, ms a step: expected %.3g, measured "
                   "%.3g\n",
                   1u << p, names[m], expected, found[m][p]);
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
                       names[a], names[b], first);
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
               peers, steps, SIM_DIM, algorithms[method],
               method == DENSE ? "" : ", share: 0.001");
    const double time = probe.summary.virtual_s * 1e3;
    probe_close(&probe);
    return time;
}

static void test_simulated(void **state)
{
    static const enum method methods[] = {DENSE, GTOP_K, GS_SGD};
    (void)state;
    for (unsigned n = 0; n < 3; n++)
        for (unsigned peers = 4; peers <= 8; peers *= 2) {
            const struct plan plan = plan_of(methods[n], peers, SIM_DIM);
            const double expected = milliseconds_of(&plan);
            const double measured = (simulated(methods[n], peers, 6) -
                                     simulated(methods[n], peers, 2)) /
                                        4 -
                                    1;
            printf("  T3.6 d = 200,000, P = %u, %s in the simulator, ms a "
                   "step: expected %.3g, measured %.3g\n",
                   peers, names[methods[n]], expected, measured);
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
