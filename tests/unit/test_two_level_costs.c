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
 * Of a machine's line to the others a flat ring has one message in a round. */
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

enum { DIM = 25000000, MEMBERS = 8, STEPS = 3, SIM_DIM = 200000 };
#define SHARE 0.01
#define OUT_BITS UINT64_C(25000000000)
#define IN_BITS (10 * OUT_BITS)
#define OUT_NS (25 * KITH_US)
#define IN_NS (5 * KITH_US)

enum method { RING, DENSE_TWO, TOP_K, TWO_LEVEL, METHODS };
static const struct round_method methods[METHODS] = {
    {.name = "dense ring", .algorithm = "allreduce-ring"},
    {.name = "dense on two levels",
     .algorithm = "two-level",
     .share = SHARE,
     .members = MEMBERS,
     .rings_between = true},
    {.name = "lists of all",
     .algorithm = "two-level",
     .share = SHARE,
     .members = 1},
    {.name = "two-level",
     .algorithm = "two-level",
     .share = SHARE,
     .members = MEMBERS}};
static const struct round_network machines = {.machine = MEMBERS,
                                              .in_bits = IN_BITS,
                                              .out_bits = OUT_BITS,
                                              .in_ns = IN_NS,
                                              .out_ns = OUT_NS};

static struct round_plan plan_of(const struct round_method *method,
                                 uint32_t peers, size_t dim)
{
    struct round_plan plan;
    assert_null(round_plan_open(&plan, method, peers, dim));
    return plan;
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
               step_ms, methods[than].name,
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
            const struct round_plan plan = plan_of(&methods[m], 1u << p, DIM);
            found[m][p] = round_cost_of(&plan, &machines, STEPS).ms;
            const double expected = formula(m, 1u << p);
            printf("  T4.4 P = %u, %s, ms a step: expected %.3g, measured "
                   "%.3g\n",
                   1u << p, methods[m].name, expected, found[m][p]);
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
               methods[m].name, faster_from(found, TWO_LEVEL, m));
    for (unsigned m = RING; m <= DENSE_TWO; m++)
        printf("  T4.4 %s overtakes lists of all: expected from some P on, "
               "measured from %u on\n",
               methods[m].name, faster_from(found, m, TOP_K));
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
    struct round_method sites_of_four = methods[TWO_LEVEL];
    struct round_network even = machines;
    sites_of_four.members = 4;
    even.machine = 1;
    const struct round_plan plan = plan_of(&sites_of_four, 16, SIM_DIM);
    const double expected = round_cost_of(&plan, &even, STEPS).ms;
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
