/* Goal: what a step waits for where sites are joined by 25 Gbit/s and their
 * members by ten times that, with d = 25 * 10^6, the largest 1 %: two-level
 * beats both dense forms, and lists of all, which are faster where there are
 * few peers, are overtaken as there are more (T4.4). Method: no arithmetic and
 * no vectors. Rounds are the schedules that algorithms run on, bytes what their
 * records say, times the law of links with the rate of each link, which of a
 * round's message is the sender's line, or the narrow one of its site. The
 * simulator has one rate for all: at that rate its own time of the same run is
 * beside it.
 *
 *   dense ring     allreduce-ring, ranks of a site beside each other
 *   two-level      sites of 8: reduce, lists between, gather
 *   dense on two   the same, and a ring of each shard between sites
 *   lists of all   two-level of sites of one
 *
 * A machine has one line to the others: of all its members' messages that go
 * out in a round each has its share of it. A flat ring has one such message. */
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

enum { PEERS_MAX = 512, DIM = 25000000, MEMBERS = 8, STEPS = 3 };
enum { SIM_DIM = 200000 };
#define SHARE 0.01
#define OUT_BITS UINT64_C(25000000000)
#define IN_BITS (10 * OUT_BITS)
#define OUT_NS (25 * KITH_US)
#define IN_NS (5 * KITH_US)
#define STEP_NS KITH_MS

enum method { RING, DENSE_TWO, TOP_K, TWO_LEVEL, METHODS };
static const char *const names[METHODS] = {"dense ring", "dense on two levels",
                                           "lists of all", "two-level"};

/* ---- rounds and bytes */

struct plan {
    const struct kith_algorithm *algorithm;
    struct kith_topology graph;
    uint64_t rounds, whole, slice;
    uint32_t peers, members;
    bool dense; /* a ring between sites takes the place of lists */
};

static struct plan plan_of(enum method method, uint32_t peers, uint32_t members,
                           size_t dim)
{
    struct plan plan = {
        .peers = peers, .members = members, .dense = method == DENSE_TWO};
    size_t size;
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    const struct kith_topology_options options = {
        .regions = method == TOP_K ? peers : peers / members};
    plan.algorithm =
        kith_algorithm_find(method == RING ? "allreduce-ring" : "two-level");
    assert_int_equal(
        kith_topology_prepare(kith_topology_find(plan.algorithm->schedule),
                              peers, 1, &options, &plan.graph, &size, error),
        KITH_OK);
    double given[KITH_GOSSIP_KEY_COUNT];
    memcpy(given, plan.algorithm->initial, sizeof given);
    given[KITH_GOSSIP_SHARE] = SHARE;
    const struct kith_algebra algebra = {.backend = kith_backend_find("cpu"),
                                         .dim = dim,
                                         .peers = peers,
                                         .coefficients = given,
                                         .graph = &plan.graph};
    plan.rounds = kith_topology_period(&plan.graph);
    plan.whole = kith_algorithm_payload(plan.algorithm, &algebra);
    plan.slice = method == RING ? plan.whole : plan.algorithm->slice(&algebra);
    if (plan.dense) { /* shards alone, and a ring of them: twice as many rounds
                       */
        const uint64_t sites = peers / members;
        plan.whole = (dim + members - 1) / members * sizeof(float);
        plan.slice = (plan.whole + sites - 1) / sites;
        plan.rounds += sites - 1;
    }
    return plan;
}

/* Where round `round` of a plan stands in its schedule: the ring between sites
 * has each of its rounds twice. */
static uint64_t scheduled(const struct plan *plan, uint64_t round)
{
    const uint64_t first = plan->members - 1;
    const uint64_t between = plan->peers / plan->members - 1;
    if (!plan->dense || round < first)
        return round;
    return round < first + 2 * between ? first : round - between;
}

static uint64_t bytes_at(const struct plan *plan, uint64_t round)
{
    return plan->slice == plan->whole ||
                   kith_algorithm_is_whole(plan->algorithm, &plan->graph,
                                           plan->rounds, round)
               ? plan->whole
               : plan->slice;
}

/* ---- time */

/* Messages of this peer's machine that leave it in the round. */
static unsigned leaving(const struct plan *plan, uint64_t round, kith_id of)
{
    const kith_id first = of / MEMBERS * MEMBERS;
    unsigned count = 0;
    for (kith_id i = first; i < first + MEMBERS; i++) {
        kith_id to[KITH_DEGREE_MAX];
        if (kith_topology_neighbours(&plan->graph, i, round, to, NULL) > 0)
            count += to[0] / MEMBERS != of / MEMBERS;
    }
    return count;
}

/* A round ends for who receives when the message is there, and for who sends
 * when it has heard so. */
static void run_round(const struct plan *plan, uint64_t round, bool is_even,
                      kith_ns clock[PEERS_MAX])
{
    kith_ns next[PEERS_MAX];
    memcpy(next, clock, sizeof next);
    for (kith_id from = 0; from < plan->peers; from++) {
        kith_id to[KITH_DEGREE_MAX];
        if (kith_topology_neighbours(&plan->graph, from, round, to, NULL) == 0)
            continue;
        const bool inside = !is_even && from / MEMBERS == to[0] / MEMBERS;
        const unsigned share =
            inside || is_even ? 1 : leaving(plan, round, from);
        const struct kith_link_terms terms = {
            .latency_ns = inside ? IN_NS : OUT_NS,
            .rate_bits = (inside ? IN_BITS : OUT_BITS) / share};
        struct kith_link_flow flow;
        struct kith_link_piece piece = {.begins_ns = clock[from],
                                        .ends_ns = clock[from],
                                        .bytes = bytes_at(plan, round)};
        kith_link_flow_init(&flow, &terms, 1, from, to[0]);
        (void)kith_line_take(&piece.ends_ns, terms.rate_bits, clock[from],
                             piece.bytes);
        const kith_ns there = kith_link_arrival(&flow, &piece);
        next[to[0]] = there > next[to[0]] ? there : next[to[0]];
        if (there + terms.latency_ns > next[from])
            next[from] = there + terms.latency_ns;
    }
    memcpy(clock, next, sizeof next);
}

/* Of a step, in the long run, less the step's own time. */
static double milliseconds_of(const struct plan *plan, bool is_even)
{
    static kith_ns clock[PEERS_MAX];
    kith_ns first = 0, last = 0;
    memset(clock, 0, sizeof clock);
    assert_true(plan->peers <= PEERS_MAX);
    for (unsigned step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < plan->peers; i++)
            clock[i] += STEP_NS;
        for (uint64_t round = 0; round < plan->rounds; round++)
            run_round(plan, scheduled(plan, round), is_even, clock);
        for (uint32_t i = 0; i < plan->peers; i++)
            last = clock[i] > last ? clock[i] : last;
        first = step == 0 ? last : first;
    }
    return (double)((last - first) / (STEPS - 1) - STEP_NS) * 1e-6;
}

/* n peers in m sites of g; a, b: latency and the time of four bytes. */
static double formula(enum method method, unsigned n)
{
    const double g = MEMBERS, m = n / g, d = DIM;
    const double a_in = (double)IN_NS * 1e-6, a_out = (double)OUT_NS * 1e-6;
    const double b_in = 4 * 8e3 / (double)IN_BITS;
    const double b_out = 4 * 8e3 / (double)OUT_BITS;
    const double a = n > MEMBERS ? a_out : a_in, b = n > MEMBERS ? b_out : b_in;
    const double inside = 2 * (g - 1) * (a_in + d / g * b_in);
    double lists = 0;
    switch (method) {
    case RING: /* the narrow link sets the pace */
        return 2 * (n - 1) * (a + d / n * b);
    case DENSE_TWO:
        return inside + 2 * (m - 1) * (a_out + d / m * b_out);
    case TOP_K: /* r places on: so many lists in the line of a machine */
        for (unsigned r = 1; r < n; r++)
            lists += n == MEMBERS ? 1 : fmin(fmin(r, g), n - r);
        return (n - 1) * a + lists * 2 * SHARE * d * b;
    case TWO_LEVEL:
        return inside + (m - 1) * (a_out + 2 * SHARE * d * b_out);
    case METHODS:
        break;
    }
    return NAN;
}

enum { FIRST = 3, LAST = 8 }; /* 8, a single site, to 256 peers */

/* From how many peers on a is faster than b. */
static unsigned faster_from(double found[METHODS][LAST + 1], enum method a,
                            enum method b)
{
    unsigned first = 0;
    for (unsigned p = LAST; p >= FIRST && found[a][p] < found[b][p]; p--)
        first = 1u << p;
    return first;
}

/* Steps that compute this long, nothing overlapped. */
static void print_gain(double found[METHODS][LAST + 1], enum method than)
{
    enum { P128 = 7 };
    for (unsigned step_ms = 50; step_ms <= 200; step_ms *= 2)
        printf("  T4.4 P = 128, steps of %u ms, throughput of two-level over "
               "%s: expected 25 to 40 %% (the paper's, asserted by nobody), "
               "measured %.0f %%\n",
               step_ms, names[than],
               100 * ((step_ms + found[than][P128]) /
                          (step_ms + found[TWO_LEVEL][P128]) -
                      1));
}

static void test_costs(void **state)
{
    double found[METHODS][LAST + 1] = {{0}};
    (void)state;
    for (unsigned p = FIRST; p <= LAST; p++)
        for (unsigned m = 0; m < METHODS; m++) {
            const struct plan plan = plan_of(m, 1u << p, MEMBERS, DIM);
            found[m][p] = milliseconds_of(&plan, false);
            const double expected = formula(m, 1u << p);
            printf("  T4.4 P = %u, %s, ms a step: expected %.3g, measured "
                   "%.3g\n",
                   1u << p, names[m], expected, found[m][p]);
            /* Blocks of x are in shards as well, and in each round an answer
             * may be waited for. */
            assert_true(found[m][p] > 0.95 * expected);
            assert_true(found[m][p] <
                        1.05 * expected +
                            (double)(plan.rounds * OUT_NS) * 1e-6);
        }
    for (unsigned m = 0; m < TWO_LEVEL; m++)
        printf("  T4.4 two-level is faster than %s: expected from 16 peers on, "
               "measured from %u on\n",
               names[m], faster_from(found, TWO_LEVEL, m));
    for (unsigned m = RING; m <= DENSE_TWO; m++)
        printf("  T4.4 %s overtakes lists of all: expected from some P on, "
               "measured from %u on\n",
               names[m], faster_from(found, m, TOP_K));
    print_gain(found, RING);
    print_gain(found, DENSE_TWO);
    assert_true(found[TOP_K][FIRST] < found[TWO_LEVEL][FIRST]);
    for (unsigned m = 0; m < TWO_LEVEL; m++)
        assert_int_equal(faster_from(found, TWO_LEVEL, m), 16);
    for (unsigned m = RING; m <= DENSE_TWO; m++)
        assert_true(faster_from(found, m, TOP_K) > 0);
}

/* ---- the simulator's own time, at one rate for all */

static double simulated(unsigned steps)
{
    struct probe probe = {.period = 0};
    probe_must(&probe,
               "name: costs\nseed: 1\npeers: 16\nstop: {steps: %u}\n"
               "model: {kind: mlp, layers: [%d, 10]}\n"
               "data: {kind: gaussian, rows: 16, split: iid}\n"
               "train: {backend: cpu, batch: 1}\n"
               "gossip: {algorithm: two-level, regions: 4, share: 0.01}\n"
               "network: {latency: 25us, rate: 25Gbit}\ncompute: {step: 1ms}\n",
               steps, SIM_DIM / 10 - 1);
    const double time = probe.summary.virtual_s * 1e3;
    assert_int_equal(probe.dim, SIM_DIM);
    probe_close(&probe);
    return time;
}

static void test_simulated(void **state)
{
    (void)state;
    const struct plan plan = plan_of(TWO_LEVEL, 16, 4, SIM_DIM);
    const double expected = milliseconds_of(&plan, true);
    const double measured = (simulated(6) - simulated(2)) / 4 - 1;
    printf("  T4.4 d = 200,000, 4 x 4 peers, two-level in the simulator at 25 "
           "Gbit/s for all, ms a step: expected %.3g, measured %.3g\n",
           expected, measured);
    assert_true(fabs(measured - expected) < 0.05 * expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
