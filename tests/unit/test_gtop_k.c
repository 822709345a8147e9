/* Goal: gTop-k as an algorithm keeps to its definition for any number of peers:
 * lists are those of a sequential oracle, nothing that a merge drops is lost
 * (T3.3), rounds and bytes are those of the formulas (T3.4); a peer that heard
 * nothing finds back, and huge values are taken by nobody.
 * Method: in the simulator peers are given whole numbers as differences, whose
 * sums are exact, by a model that does not train; beside it a tree of merges
 * over dense vectors that notes whose numbers are in each value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/rng.h"
#include "kith/worker.h"
#include "tests/support/probe.h"

enum { DIM = 200, KEPT = 10, CYCLES = 12, PEERS_MAX = 8 };
enum { PHI, RESIDUAL, LIST, BORN, VECTORS }; /* as in gtop_k.c */

static unsigned height_of(unsigned peers)
{
    unsigned height = 0;
    while (1u << height < peers)
        height++;
    return height;
}

/* ---- the oracle */

struct oracle {
    unsigned peers;
    double differences[CYCLES][PEERS_MAX][DIM];
    double sum[CYCLES][DIM];             /* G */
    double left[CYCLES][PEERS_MAX][DIM]; /* e */
    double phi[CYCLES + 1][DIM], total;  /* sum of |differences| */
    double leak;                         /* |what is lost without bits| */
};
static struct oracle oracle;

/* Whole numbers, heavy-tailed, many alike; peers agree a little on which are
 * large, so that subtrees share indices. */
static void draw_differences(uint64_t seed)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 3);
    for (unsigned c = 0; c < CYCLES; c++)
        for (unsigned p = 0; p < oracle.peers; p++)
            for (unsigned i = 0; i < DIM; i++) {
                const double size = 2000.0 / (1 + kith_rng_below(&rng, 40));
                const double value = rint(size * (i % 29 == 0 ? 3 : 1));
                oracle.differences[c][p][i] =
                    kith_rng_u32(&rng) & 1 ? value : -value;
                oracle.total += value;
            }
}

/* Of all that are not 0 the k largest stay, ties by the lower index. */
static void cut(const double *values, bool kept[DIM])
{
    memset(kept, 0, DIM * sizeof *kept);
    for (unsigned n = 0; n < KEPT; n++) {
        unsigned best = DIM;
        for (unsigned i = 0; i < DIM; i++)
            if (!kept[i] && values[i] != 0 &&
                (best == DIM || fabs(values[i]) > fabs(values[best])))
                best = i;
        if (best < DIM)
            kept[best] = true;
    }
}

/* Whose numbers are in which value: every peer's own word for each. */
struct node {
    double values[DIM];
    bool holds[PEERS_MAX][DIM];
};

static void merge_nodes(struct node *parent, const struct node *child)
{
    bool kept[DIM];
    for (unsigned i = 0; i < DIM; i++)
        parent->values[i] += child->values[i];
    cut(parent->values, kept);
    for (unsigned i = 0; i < DIM; i++) {
        parent->values[i] = kept[i] ? parent->values[i] : 0;
        for (unsigned p = 0; p < PEERS_MAX; p++)
            parent->holds[p][i] =
                kept[i] && (parent->holds[p][i] || child->holds[p][i]);
    }
}

/* One cycle: v of every peer on the way in, e on the way out. */
static void run_cycle(unsigned c, double v[PEERS_MAX][DIM])
{
    static struct node nodes[PEERS_MAX];
    bool claimed[PEERS_MAX][DIM];
    memset(nodes, 0, sizeof nodes);
    for (unsigned p = 0; p < oracle.peers; p++) {
        cut(v[p], claimed[p]);
        for (unsigned i = 0; i < DIM; i++)
            if (claimed[p][i]) {
                nodes[p].values[i] = v[p][i];
                nodes[p].holds[p][i] = true;
            }
    }
    for (unsigned span = 1; span < oracle.peers; span *= 2)
        for (unsigned p = span; p < oracle.peers; p += 2 * span)
            merge_nodes(&nodes[p - span], &nodes[p]);
    for (unsigned i = 0; i < DIM; i++) {
        oracle.sum[c][i] = nodes[0].values[i];
        oracle.phi[c + 1][i] = oracle.phi[c][i] - oracle.sum[c][i];
        for (unsigned p = 0; p < oracle.peers; p++) {
            const bool used = nodes[0].holds[p][i];
            oracle.left[c][p][i] = used ? 0 : v[p][i];
            /* Its index is in G, so that it would believe that it was sent. */
            if (claimed[p][i] && !used && oracle.sum[c][i] != 0)
                oracle.leak += fabs(v[p][i]);
        }
    }
}

static void run_oracle(unsigned peers)
{
    static double v[PEERS_MAX][DIM];
    memset(&oracle, 0, sizeof oracle);
    oracle.peers = peers;
    draw_differences(peers);
    for (unsigned c = 0; c < CYCLES; c++) {
        for (unsigned p = 0; p < peers; p++)
            for (unsigned i = 0; i < DIM; i++)
                v[p][i] = (c == 0 ? 0 : oracle.left[c - 1][p][i]) +
                          oracle.differences[c][p][i];
        run_cycle(c, v);
    }
}

/* ---- the simulator, beside it */

struct seen {
    unsigned at[PEERS_MAX]; /* cycles that the peer has been given */
    uint64_t rounds[PEERS_MAX], gated[PEERS_MAX];
    unsigned wrong, compared;
    double applied, left; /* sums over coordinates, signs as they are */
};

static void compare(struct seen *seen, const double *found,
                    const double *expected)
{
    seen->compared++;
    seen->wrong += memcmp(found, expected, DIM * sizeof *found) != 0;
}

/* After cycle c - 1 of this peer. */
static void look(struct seen *seen, kith_id p, unsigned c,
                 const struct kith_worker_content *content)
{
    static const double zero = 0;
    double residual[DIM], list[DIM], phi[DIM], x[DIM];
    memcpy(residual, content->own[RESIDUAL], sizeof residual);
    memcpy(list, content->own[LIST], sizeof list);
    memcpy(phi, content->own[PHI], sizeof phi);
    memcpy(x, content->model, sizeof x);
    for (unsigned i = 0; i < DIM; i++) { /* of -0, too */
        residual[i] += zero;
        list[i] += zero;
    }
    compare(seen, residual, oracle.left[c - 1][p]);
    compare(seen, list, oracle.sum[c - 1]);
    compare(seen, phi, oracle.phi[c]);
    compare(seen, x, oracle.phi[c]);
    for (unsigned i = 0; i < DIM; i++) {
        seen->applied += p == 0 ? list[i] : 0;
        seen->left += c == CYCLES ? residual[i] : 0;
    }
}

/* Where a cycle is over a peer gets the difference of the next one. The first
 * has begun before anything is seen, and has none. */
static void give(const struct sim_world *world, kith_id peer, void *arg)
{
    struct seen *seen = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    if (worker == NULL)
        return;
    struct kith_node_counters counters;
    kith_node_counters(sim_node(world, peer), &counters);
    const struct kith_worker_content content = kith_worker_content(worker);
    const uint64_t period = 2 * (uint64_t)height_of(oracle.peers);
    const unsigned c = seen->at[peer];
    seen->rounds[peer] = counters.rounds;
    seen->gated[peer] = counters.gated;
    if (c > CYCLES || counters.rounds < (c + 1) * period)
        return;
    double *const x = content.model;
    if (c == 0) /* all at 0 */
        for (unsigned i = 0; i < DIM; i++)
            x[i] = ((double *)content.own[PHI])[i] = 0;
    else
        look(seen, peer, c, &content);
    for (unsigned i = 0; i < DIM && c < CYCLES; i++)
        x[i] -= oracle.differences[c][peer][i];
    seen->at[peer]++;
}

/* k of DIM, and alpha = n, so that phi stays whole. */
static void run_peers(unsigned peers, unsigned steps, struct seen *seen,
                      struct probe *probe, const char *more)
{
    static const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
    *seen = (struct seen){.wrong = 0};
    *probe = (struct probe){.meddle = give, .arg = seen, .options = &options};
    probe_must(probe,
               "name: gtop-k\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive64}\n"
               "gossip: {algorithm: gtop-k, every: 1, share: %g, rate: %u, "
               "deadline: 5ms}\n"
               "compute: {step: 20ms}\n%s",
               peers, steps, DIM, (double)KEPT / DIM, peers, more);
}

/* Sums of differences of all cycles. */
static double given(void)
{
    double sum = 0;
    for (unsigned c = 0; c < CYCLES; c++)
        for (unsigned p = 0; p < oracle.peers; p++)
            for (unsigned i = 0; i < DIM; i++)
                sum += oracle.differences[c][p][i];
    return sum;
}

static void test_oracle(void **state)
{
    static const unsigned peers[] = {2, 3, 4, 5, 8};
    (void)state;
    for (unsigned n = 0; n < sizeof peers / sizeof *peers; n++) {
        struct seen seen;
        struct probe probe;
        run_oracle(peers[n]);
        run_peers(peers[n], CYCLES + 1, &seen, &probe, "");
        printf("  T3.3 run of %u: vectors as the oracle's: expected %u, "
               "measured %u\n",
               peers[n], 4 * CYCLES * peers[n], seen.compared - seen.wrong);
        printf("  T3.3 run of %u: applied + residuals (%.2f %% would leak "
               "without bits): expected %.17g, measured %.17g\n",
               peers[n], 100 * oracle.leak / oracle.total, given(),
               seen.applied + seen.left);
        assert_int_equal(seen.compared, 4 * CYCLES * peers[n]);
        assert_int_equal(seen.wrong, 0);
        assert_true(seen.applied + seen.left == given());
        probe_close(&probe);
    }
}

/* ---- T3.4 */

/* count, k values of 8 bytes, k indices, k bits, k values. */
static uint64_t bytes_of(void)
{
    return 4 + KEPT * 8 + KEPT * 4 + (KEPT + 7) / 8 + KEPT * 8;
}

static void test_costs(void **state)
{
    static const unsigned peers[] = {3, 5, 6, 7, 8};
    (void)state;
    for (unsigned n = 0; n < sizeof peers / sizeof *peers; n++) {
        struct seen seen;
        struct probe probe;
        const uint64_t rounds =
            (CYCLES + 1) * 2 * (uint64_t)height_of(peers[n]);
        const uint64_t messages = (CYCLES + 1) * 2 * (uint64_t)(peers[n] - 1);
        run_oracle(peers[n]);
        run_peers(peers[n], CYCLES + 1, &seen, &probe, "");
        printf("  T3.4 run of %u: rounds: expected %llu, measured %llu\n",
               peers[n], (unsigned long long)rounds,
               (unsigned long long)seen.rounds[0]);
        printf("  T3.4 run of %u: bytes, %llu a message: expected %llu, "
               "measured %llu\n",
               peers[n], (unsigned long long)bytes_of(),
               (unsigned long long)(messages * bytes_of()),
               (unsigned long long)probe.report.bulk_bytes);
        for (unsigned p = 0; p < peers[n]; p++)
            assert_int_equal(seen.rounds[p], rounds);
        assert_int_equal(probe.report.bulk_bytes, messages * bytes_of());
        assert_int_equal(probe.summary.exchanges.done, messages);
        assert_int_equal(seen.wrong, 0);
        probe_close(&probe);
    }
}

/* ---- who heard nothing */

static double furthest(const struct probe *probe)
{
    double most = 0;
    for (unsigned p = 1; p < probe->peers; p++)
        for (unsigned i = 0; i < DIM; i++)
            most = fmax(most, fabs(probe->z[p * DIM + i] - probe->z[i]));
    return most;
}

/* Peers 4 to 7 hang on peer 4, which hears nothing of the root for some of the
 * first cycles: their phi misses what the others take. A block of 10 in a
 * cycle: 20 of them after that all hold the root's. */
static void test_finds_back(void **state)
{
    static const char *const cut_off =
        "faults:\n  - {at: 90ms, for: 60ms, partition: \"peer(0) <-> "
        "peer(4)\"}\n";
    static const unsigned steps[] = {14, 14 + 20 + 8};
    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        struct seen seen;
        struct probe probe;
        run_oracle(8);
        run_peers(8, steps[n], &seen, &probe, cut_off);
        printf("  after %u steps the furthest from the root's phi is %g, "
               "expected %s\n",
               steps[n], furthest(&probe), n == 0 ? "above 0" : "0");
        assert_true(probe.summary.completed && seen.wrong > 0);
        assert_true((furthest(&probe) > 0) == (n == 0));
        probe_close(&probe);
    }
}

/* ---- a member that lies */

/* Values of 1e38 and -1e38 for a list, in the simulator: nobody takes it. */
static void test_huge(void **state)
{
    struct seen seen;
    struct probe probe;
    (void)state;
    run_oracle(5);
    run_peers(
        5, 30, &seen, &probe,
        "faults:\n  - {at: 100ms, for: 200ms, huge: \"peer(2)\", by: 1e38}\n");
    uint64_t gated = 0;
    for (unsigned p = 0; p < 5; p++)
        gated += seen.gated[p];
    printf("  %llu messages refused, expected some; values are finite: ",
           (unsigned long long)gated);
    bool finite = true;
    for (unsigned i = 0; i < 5 * DIM; i++)
        finite &= isfinite(probe.z[i]);
    printf("%s, expected yes\n", finite ? "yes" : "no");
    assert_true(finite && probe.summary.completed);
    assert_true(gated > 0);
    probe_close(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_finds_back),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
