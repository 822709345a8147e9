/* Goal: two-level keeps its books over 4 x 4 peers: what was applied and what
 * is left in residuals is the sum of all gradients, and bytes between sites are
 * those of the formulas (T4.3); where a peer is gone the rest of it still
 * holds; who missed a list has the others' x again. Method: sixteen peers by
 * hand, whose gradients are drawn, at d = 10^6 and at few; the simulator beside
 * them. Prints expected and measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/rng.h"
#include "tests/support/probe.h"
#include "tests/support/sites.h"

enum { PEERS = 16, SITES = 4, MEMBERS = PEERS / SITES };
enum { LARGE = 1000000, SMALL = 64 };

/* Heavy-tailed, so that there is something to choose. */
static void draw_gradients(struct sites *sites, uint64_t cycle)
{
    for (kith_id i = 0; i < sites->peers; i++) {
        struct kith_rng rng;
        kith_rng_init(&rng, cycle, KITH_STREAM_TEST, i);
        for (size_t n = 0; n < sites->dim; n++) {
            const double u = kith_rng_u32(&rng) / 4294967296.0 - 0.5;
            sites->each[i].gradient[n] = (float)(u * u * u);
        }
    }
}

static size_t shard_of(const struct sites *sites, size_t i)
{
    const size_t size = (sites->dim + sites->members - 1) / sites->members;
    return i / size;
}

/* owed += gradients of those that are there, and whose site has somebody for
 * the shard. */
static void owe(const struct sites *sites, double *owed)
{
    for (size_t i = 0; i < sites->dim; i++)
        for (kith_id p = 0; p < sites->peers; p++) {
            const uint32_t owner = p / sites->members * sites->members +
                                   (uint32_t)shard_of(sites, i);
            if (!sites->dead[p] && !sites->dead[owner])
                owed[i] += (double)sites->each[p].gradient[i];
        }
}

/* Peers that a mean of this shard speaks for. */
static unsigned heard_of(const struct sites *sites, size_t shard)
{
    unsigned count = 0;
    for (kith_id p = 0; p < sites->peers; p++)
        count += !sites->dead[p] &&
                 !sites->dead[p / sites->members * sites->members + shard];
    return count;
}

/* paid += what one peer applied, times the number it is a mean of. */
static void pay(const struct sites *sites, kith_id peer, double *paid)
{
    for (size_t i = 0; i < sites->dim; i++)
        paid[i] += (double)sites->each[peer].gradient[i] *
                   heard_of(sites, shard_of(sites, i));
}

static void add_residuals(const struct sites *sites, double *paid)
{
    for (size_t i = 0; i < sites->dim; i++)
        for (uint32_t s = 0; s < sites->sites; s++) {
            const kith_id owner =
                s * sites->members + (uint32_t)shard_of(sites, i);
            const float *const residual =
                sites->each[owner].vectors[SITES_RESIDUAL];
            paid[i] += sites->dead[owner] ? 0 : (double)residual[i];
        }
}

/* `cycles` from `first` on; the books of the peer `by`, of the largest sum. */
static double run_books(struct sites *sites, unsigned first, unsigned cycles,
                        kith_id by)
{
    double *const owed = calloc(sites->dim, sizeof *owed);
    double *const paid = calloc(sites->dim, sizeof *paid);
    assert_true(owed != NULL && paid != NULL);
    sites->round = first * sites_period(sites);
    for (unsigned c = 0; c < cycles; c++) {
        draw_gradients(sites, first + c);
        owe(sites, owed);
        sites_cycle(sites);
        pay(sites, by, paid);
    }
    add_residuals(sites, paid);
    const double apart = probe_distance(paid, owed, sites->dim);
    free(owed);
    free(paid);
    return apart;
}

static unsigned others(const struct sites *sites, kith_id than)
{
    unsigned count = 0;
    for (kith_id p = 0; p < sites->peers; p++)
        count += !sites->dead[p] &&
                 memcmp(sites->each[p].gradient, sites->each[than].gradient,
                        sites->dim * sizeof(float)) != 0;
    return count;
}

/* ---- T4.3 */

/* Of a ring all-reduce of every shard between sites. */
static uint64_t dense_bytes(void)
{
    const struct kith_algorithm *ring = kith_algorithm_find("allreduce-ring");
    struct kith_topology graph;
    assert_int_equal(
        kith_topology_open(kith_topology_find(ring->schedule), SITES, &graph),
        KITH_OK);
    const struct kith_algebra algebra = {.backend = kith_backend_find("cpu"),
                                         .dim = LARGE / MEMBERS,
                                         .peers = SITES,
                                         .graph = &graph};
    return MEMBERS * kith_topology_period(&graph) *
           kith_algorithm_payload(ring, &algebra);
}

static void test_bytes_and_books(void **state)
{
    struct sites sites;
    (void)state;
    sites_open(&sites, PEERS, SITES, LARGE, 0.01);
    double apart = run_books(&sites, 0, 1, 0);
    for (unsigned s = 0; s < SITES; s++) {
        printf("  T4.3 4 x 4 peers, d = 10^6, share 0.01, bytes that site %u "
               "receives of others: expected 240000, measured %llu\n",
               s, (unsigned long long)sites.between[s]);
        assert_int_equal(sites.between[s], 240000);
    }
    printf("  T4.3 result + residuals, of the dense sum: expected <= 1e-06 "
           "off, measured %.2e\n",
           apart);
    printf("  T4.3 peers whose mean is another: expected 0, measured %u\n",
           others(&sites, 0));
    assert_true(apart <= 1e-6);
    assert_int_equal(others(&sites, 0), 0);
    sites_close(&sites);
    printf("  T4.3 dense on two levels, bytes that a site receives of others: "
           "expected 6000000, measured %llu\n",
           (unsigned long long)dense_bytes());
    assert_int_equal(dense_bytes(), 6000000);
    sites_open(&sites, PEERS, PEERS, LARGE, 0.01);
    apart = run_books(&sites, 0, 1, 0);
    printf("  T4.3 16 sites of one, top-k of all, bytes that a peer receives: "
           "expected 1200000, measured %llu\n",
           (unsigned long long)sites.between[0]);
    assert_int_equal(sites.between[0], 1200000);
    assert_true(apart <= 1e-6);
    sites_close(&sites);
}

/* Cycles in which sites show x among them; shards that do not divide. */
static void test_many_cycles(void **state)
{
    static const struct {
        unsigned sites;
        size_t dim;
        double share;
    } cases[] = {{4, 64, 0.125}, {4, 67, 0.1}, {2, 1001, 0.01},
                 {8, 333, 0.05}, {1, 70, 0.5}, {16, 50, 0.06}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct sites sites;
        sites_open(&sites, PEERS, cases[n].sites, cases[n].dim, cases[n].share);
        const double apart = run_books(&sites, 0, 40, PEERS - 1);
        printf("  T4.3 %u sites, d = %zu, 40 cycles, result + residuals: "
               "expected <= 1e-06 off, measured %.2e\n",
               cases[n].sites, cases[n].dim, apart);
        assert_true(apart <= 1e-6);
        assert_int_equal(others(&sites, 0), 0);
        assert_int_equal(sites.refused, 0);
        sites_close(&sites);
    }
}

/* ---- a peer is gone */

/* Of site 1, member 1: its shard has no sum there. */
static void test_one_is_gone(void **state)
{
    enum { GONE = 5, BESIDE = 4, SHARD = SMALL / MEMBERS };
    struct sites sites;
    float own[SHARD];
    (void)state;
    sites_open(&sites, PEERS, SITES, SMALL, 0.125);
    sites.dead[GONE] = true;
    const double apart = run_books(&sites, 0, 7, 0);
    printf("  T4.3 peer 5 is gone, result + residuals of the rest: expected "
           "<= 1e-06 off, measured %.2e\n",
           apart);
    assert_true(apart <= 1e-6);
    draw_gradients(&sites, 99);
    memcpy(own, sites.each[BESIDE].gradient + SHARD, sizeof own);
    sites_cycle(&sites);
    unsigned same = 0, outside = 0;
    for (unsigned i = 0; i < SMALL; i++)
        same += sites.each[BESIDE].gradient[i] == sites.each[0].gradient[i];
    for (kith_id p = 8; p < PEERS; p++)
        outside += memcmp(sites.each[p].gradient, sites.each[0].gradient,
                          sizeof(float) * SMALL) != 0;
    printf("  T4.3 values of the mean that its site has as others do: expected "
           "%d, measured %u\n",
           SMALL - SHARD, same);
    assert_int_equal(same, SMALL - SHARD);
    assert_int_equal(outside, 0);
    assert_memory_equal(sites.each[BESIDE].gradient + SHARD, own, sizeof own);
    sites_close(&sites);
}

/* ---- who missed a list */

static bool loses_one(uint64_t round, kith_id from, kith_id to)
{
    return round < 10 && from == 8 && to == 0;
}

static double furthest(const struct sites *sites)
{
    double most = 0;
    for (kith_id p = 1; p < sites->peers; p++)
        for (size_t i = 0; i < sites->dim; i++)
            most = fmax(most, fabs((double)sites->each[p].x[i] -
                                   (double)sites->each[0].x[i]));
    return most;
}

static void run_steps(struct sites *sites, unsigned cycles)
{
    for (unsigned c = 0; c < cycles; c++) {
        draw_gradients(sites, sites->round);
        sites_cycle(sites);
        for (kith_id p = 0; p < sites->peers; p++)
            for (size_t i = 0; i < sites->dim; i++)
                sites->each[p].x[i] -= 0.1f * sites->each[p].gradient[i];
    }
}

/* All blocks of x have gone round after 4 / share cycles. */
static void test_finds_back(void **state)
{
    struct sites sites;
    (void)state;
    sites_open(&sites, PEERS, SITES, SMALL, 0.125);
    sites.loses = loses_one;
    run_steps(&sites, 7);
    const double missed = furthest(&sites);
    run_steps(&sites, 32);
    printf("  one list is lost: x of others is %.2e apart, after 4 / share "
           "cycles %.2e, expected 0\n",
           missed, furthest(&sites));
    assert_true(missed > 0);
    assert_true(furthest(&sites) == 0);
    sites_close(&sites);
}

/* ---- the simulator */

static uint64_t simulated_bytes(unsigned steps)
{
    struct probe probe = {.period = 0};
    probe_must(&probe,
               "name: two-level\nseed: 7\npeers: 16\nstop: {steps: %u}\n"
               "model: {kind: mlp, layers: [%d, 10]}\n"
               "data: {kind: gaussian, rows: 64, spread: 0.5, split: iid}\n"
               "train: {backend: cpu, batch: 4}\n"
               "gossip: {algorithm: two-level, regions: 4, share: 0.01}\n"
               "network: {latency: 50us, rate: 1Gbit}\ncompute: {step: 1ms}\n",
               steps, LARGE / 10 - 1);
    const uint64_t bytes = probe.report.bulk_bytes;
    assert_int_equal(probe.dim, LARGE);
    probe_close(&probe);
    return bytes;
}

/* A shard and a block of as many values as a list has room for behind it. Of a
 * step in which all links are up, and on lines that take time: whose messages
 * come two rounds early is asked for them again. */
static void test_sim_bytes(void **state)
{
    const uint64_t dense = 4 * (LARGE / MEMBERS + 2 * LARGE / MEMBERS / 100);
    const uint64_t expected =
        PEERS * 2 * (MEMBERS - 1) * dense + SITES * UINT64_C(240000);
    (void)state;
    const uint64_t measured = simulated_bytes(2) - simulated_bytes(1);
    printf("  T4.3 bytes of a step in the simulator, of all: expected %llu, "
           "measured %llu\n",
           (unsigned long long)expected, (unsigned long long)measured);
    assert_int_equal(measured, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_books),
        cmocka_unit_test(test_many_cycles),
        cmocka_unit_test(test_one_is_gone),
        cmocka_unit_test(test_finds_back),
        cmocka_unit_test(test_sim_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
