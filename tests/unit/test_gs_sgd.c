/* Goal: gs-sgd keeps to its definition for any number of peers: candidates,
 * sums and what is left are those of a sequential oracle, to the bit; rounds
 * and bytes are those of the formulas (T3.4); who hears nothing finds back; of
 * a run that loses a peer the books are exact.
 * Method: in the simulator peers are given whole numbers as differences, whose
 * sums are exact, by a model that does not train; beside it one sketch of the
 * sum of all lists, and dense vectors. */
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
#include "kith/sketch.h"
#include "kith/worker.h"
#include "tests/support/probe.h"

enum { DIM = 200, KEPT = 10, CANDIDATES = 30, CYCLES = 10, PEERS_MAX = 8 };
enum { PHI, RESIDUAL, LIST, BORN, TABLE, MOMENTUM, VECTORS }; /* gs_sgd.c */

/* A table of 5 x 20 cells, or v itself; all of v is sketched, or its 20. */
struct kind {
    const char *what, *keys;
    unsigned truncate, columns; /* 0: all; 0: v itself */
    bool is_exact;
};
static const struct kind kinds[] = {
    {"sketches of 2 k values", "columns: 2, truncate: 2, candidates: 3", 2, 20,
     true},
    {"sketches of all", "columns: 2, truncate: 0, candidates: 3", 0, 20, true},
    {"v itself, of k values", "columns: 4, truncate: 1, candidates: 3", 1, 0,
     true},
    {"estimates, of 2 k values", "columns: 2, truncate: 2, candidates: 0", 2,
     20, false}};

static unsigned height_of(unsigned peers)
{
    unsigned height = 0;
    while (1u << height < peers)
        height++;
    return height;
}

/* ---- the oracle */

struct oracle {
    const struct kind *kind;
    unsigned peers;
    double differences[CYCLES][PEERS_MAX][DIM];
    double sum[CYCLES][DIM];             /* G */
    double left[CYCLES][PEERS_MAX][DIM]; /* e */
    double phi[CYCLES + 1][DIM];
};
static struct oracle oracle;

/* Whole numbers, heavy-tailed; peers agree a little on which are large. */
static void draw_differences(uint64_t seed)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 4);
    for (unsigned c = 0; c < CYCLES; c++)
        for (unsigned p = 0; p < oracle.peers; p++)
            for (unsigned i = 0; i < DIM; i++) {
                const double size = 2000.0 / (1 + kith_rng_below(&rng, 40));
                const double value = rint(size * (i % 29 == 0 ? 3 : 1));
                oracle.differences[c][p][i] =
                    kith_rng_u32(&rng) & 1 ? value : -value;
            }
}

/* Of all that are not 0 the `most` largest stay, ties by the lower index. */
static void cut(const double *values, unsigned most, bool kept[DIM])
{
    memset(kept, 0, DIM * sizeof *kept);
    for (unsigned n = 0; n < most; n++) {
        unsigned best = DIM;
        for (unsigned i = 0; i < DIM; i++)
            if (!kept[i] && values[i] != 0 &&
                (best == DIM || fabs(values[i]) > fabs(values[best])))
                best = i;
        if (best < DIM)
            kept[best] = true;
    }
}

/* From one sketch of the sum: what sums of sketches must be. */
static void find_in_sketch(const double *said, bool found[DIM],
                           double estimates[DIM])
{
    static _Alignas(8) unsigned char memory[1 << 16], cells[1 << 12];
    const struct kith_sketch_config config = {.seed = 1,
                                              .dim = DIM,
                                              .rows = 5,
                                              .columns = oracle.kind->columns,
                                              .blocks = 1,
                                              .cells = KITH_SKETCH_FLOAT64};
    struct kith_sketch_family family;
    struct kith_sketch sketch;
    struct kith_top_entry entries[CANDIDATES];
    struct kith_top_list list =
        kith_top_list_of(entries, oracle.kind->is_exact ? CANDIDATES : KEPT);
    assert_true(kith_sketch_family_size(&config, false) <= sizeof memory);
    assert_int_equal(kith_sketch_family_init(memory, &config, false, &family),
                     KITH_OK);
    assert_true(kith_sketch_size(&config) <= sizeof cells);
    kith_sketch_init(cells, &family, &sketch);
    assert_int_equal(kith_sketch_add(&sketch, 0, DIM, said), KITH_OK);
    kith_sketch_largest(&sketch, &list);
    memset(found, 0, DIM * sizeof *found);
    for (uint32_t n = 0; n < list.count; n++) {
        found[list.entries[n].index] = true;
        estimates[list.entries[n].index] = list.entries[n].value;
    }
}

static void find_candidates(double v[PEERS_MAX][DIM], bool found[DIM],
                            double estimates[DIM])
{
    double said[DIM] = {0};
    for (unsigned p = 0; p < oracle.peers; p++) {
        bool taken[DIM];
        cut(v[p], oracle.kind->truncate * KEPT, taken);
        for (unsigned i = 0; i < DIM; i++)
            said[i] += taken[i] || oracle.kind->truncate == 0 ? v[p][i] : 0;
    }
    if (oracle.kind->columns > 0)
        find_in_sketch(said, found, estimates);
    else
        cut(said, CANDIDATES, found);
}

static void run_oracle(const struct kind *kind, unsigned peers)
{
    static double v[PEERS_MAX][DIM];
    memset(&oracle, 0, sizeof oracle);
    oracle.kind = kind;
    oracle.peers = peers;
    draw_differences(peers);
    for (unsigned c = 0; c < CYCLES; c++) {
        bool found[DIM], chosen[DIM];
        double sums[DIM] = {0}, estimates[DIM] = {0};
        for (unsigned p = 0; p < peers; p++)
            for (unsigned i = 0; i < DIM; i++)
                v[p][i] = (c == 0 ? 0 : oracle.left[c - 1][p][i]) +
                          oracle.differences[c][p][i];
        find_candidates(v, found, estimates);
        for (unsigned p = 0; p < peers && kind->is_exact; p++)
            for (unsigned i = 0; i < DIM; i++)
                sums[i] += found[i] ? v[p][i] : 0;
        if (!kind->is_exact)
            memcpy(sums, estimates, sizeof sums);
        cut(sums, KEPT, chosen);
        for (unsigned i = 0; i < DIM; i++) {
            oracle.sum[c][i] = chosen[i] ? sums[i] : 0;
            oracle.phi[c + 1][i] = oracle.phi[c][i] - oracle.sum[c][i];
            for (unsigned p = 0; p < peers; p++)
                oracle.left[c][p][i] = chosen[i] ? 0 : v[p][i];
        }
    }
}

/* ---- the simulator, beside it */

struct seen {
    unsigned at[PEERS_MAX]; /* cycles that the peer has been given */
    uint64_t rounds[PEERS_MAX], gated[PEERS_MAX];
    unsigned wrong, compared;
    kith_id silent; /* is given nothing; KITH_NOBODY: all are given */
    double applied; /* sum over coordinates and cycles of the root's G */
    double given[PEERS_MAX], left[PEERS_MAX]; /* of each peer; so far */
};

static void compare(struct seen *seen, const double *found,
                    const double *expected)
{
    bool same = true;
    for (unsigned i = 0; i < DIM; i++) /* of -0, too */
        same = same && found[i] == expected[i];
    seen->compared++;
    seen->wrong += !same;
}

/* After cycle c - 1 of this peer. */
static void look(struct seen *seen, kith_id p, unsigned c,
                 const struct kith_worker_content *content)
{
    const double *const residual = content->own[RESIDUAL];
    const double *const sums = content->own[LIST];
    if (c <= CYCLES) {
        compare(seen, residual, oracle.left[c - 1][p]);
        compare(seen, sums, oracle.sum[c - 1]);
        compare(seen, content->own[PHI], oracle.phi[c]);
        compare(seen, content->model, oracle.phi[c]);
    }
    seen->left[p] = 0;
    for (unsigned i = 0; i < DIM; i++) {
        seen->applied += p == 0 ? sums[i] : 0;
        seen->left[p] += residual[i];
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
    const uint64_t period = 4 * (uint64_t)height_of(oracle.peers);
    const unsigned c = seen->at[peer];
    seen->rounds[peer] = counters.rounds;
    seen->gated[peer] = counters.gated;
    if (counters.rounds < (c + 1) * period)
        return;
    double *const x = content.model;
    if (c == 0) /* all at 0 */
        for (unsigned i = 0; i < DIM; i++)
            x[i] = ((double *)content.own[PHI])[i] = 0;
    else
        look(seen, peer, c, &content);
    for (unsigned i = 0; i < DIM && c < CYCLES && peer != seen->silent; i++) {
        x[i] -= oracle.differences[c][peer][i];
        seen->given[peer] += oracle.differences[c][peer][i];
    }
    seen->at[peer]++;
}

/* k of DIM, and alpha = n, so that phi stays whole. */
static void run_peers(unsigned steps, struct seen *seen, struct probe *probe,
                      const char *deadline, const char *more)
{
    static const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
    *probe = (struct probe){.meddle = give, .arg = seen, .options = &options};
    probe_must(probe,
               "name: gs-sgd\nseed: 1\npeers: %u\nstop: {steps: %u}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive64}\n"
               "gossip: {algorithm: gs-sgd, every: 1, share: %g, rate: %u, "
               "rows: 5, deadline: %s, %s}\n"
               "compute: {step: 20ms}\n%s",
               oracle.peers, steps, DIM, (double)KEPT / DIM, oracle.peers,
               deadline, oracle.kind->keys, more);
}

static void test_oracle(void **state)
{
    (void)state;
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        unsigned same = 0, all = 0;
        double off = 0;
        for (unsigned peers = 2; peers <= PEERS_MAX; peers++) {
            struct seen seen = {.silent = KITH_NOBODY};
            struct probe probe;
            run_oracle(&kinds[k], peers);
            run_peers(CYCLES + 1, &seen, &probe, "5ms", "");
            double missing = -seen.applied;
            for (unsigned p = 0; p < peers; p++)
                missing += seen.given[p] - seen.left[p];
            assert_int_equal(seen.compared, 4 * CYCLES * peers);
            same += seen.compared - seen.wrong;
            all += seen.compared;
            off = fmax(off, fabs(missing));
            probe_close(&probe);
        }
        printf("  T3.3 gs-sgd of 2 to 8, %s: vectors as the oracle's: expected "
               "%u, measured %u\n",
               kinds[k].what, all, same);
        assert_int_equal(same, all);
        if (!kinds[k].is_exact)
            continue;
        printf("  T3.3 gs-sgd of 2 to 8, %s: given less applied and residuals: "
               "expected 0, measured %g\n",
               kinds[k].what, off);
        assert_true(off == 0);
    }
}

/* ---- T3.4 */

/* A table behind its fingerprint; and the larger of candidates behind theirs,
 * and of a list, its bits and the block of phi. */
static const uint64_t table_bytes = 8 + 5 * 20 * 8,
                      value_bytes = 8 + CANDIDATES * 8,
                      list_bytes =
                          4 + KEPT * 8 + KEPT * 4 + (KEPT + 7) / 8 + KEPT * 8;

/* Where n is no power of two a child without children of its own is two rounds
 * ahead of its parent when values go up: the core has an inbox for one, and
 * asks for what came too early again. Those bytes are counted beside. */

static void test_costs(void **state)
{
    static const unsigned peers[] = {3, 5, 6, 7, 8};
    (void)state;
    for (unsigned n = 0; n < sizeof peers / sizeof *peers; n++) {
        struct seen seen = {.silent = KITH_NOBODY};
        struct probe probe;
        const uint64_t rounds =
            (CYCLES + 1) * 4 * (uint64_t)height_of(peers[n]);
        const uint64_t pairs = (CYCLES + 1) * 2 * (uint64_t)(peers[n] - 1);
        run_oracle(&kinds[0], peers[n]);
        run_peers(CYCLES + 1, &seen, &probe, "5ms", "");
        printf("  T3.4 gs-sgd of %u: rounds: expected %llu, measured %llu\n",
               peers[n], (unsigned long long)rounds,
               (unsigned long long)seen.rounds[0]);
        const uint64_t bytes = pairs * (table_bytes + value_bytes);
        const uint64_t more = probe.report.bulk_bytes - bytes;
        printf("  T3.4 gs-sgd of %u: bytes, %llu a table, %llu other, %llu "
               "times repeated: expected %llu, measured %llu\n",
               peers[n], (unsigned long long)table_bytes,
               (unsigned long long)value_bytes,
               (unsigned long long)(more / value_bytes),
               (unsigned long long)bytes,
               (unsigned long long)(probe.report.bulk_bytes -
                                    more / value_bytes * value_bytes));
        for (unsigned p = 0; p < peers[n]; p++)
            assert_int_equal(seen.rounds[p], rounds);
        assert_true(value_bytes > list_bytes && more % value_bytes == 0);
        assert_true(more / value_bytes <= CYCLES + 1);
        assert_true(more == 0 || (peers[n] & (peers[n] - 1)) != 0);
        assert_int_equal(probe.summary.exchanges.done, 2 * pairs);
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
 * first cycles. A block of 10 in a cycle: 20 of them after that all hold the
 * root's phi. */
static void test_finds_back(void **state)
{
    static const char *const cut_off =
        "faults:\n  - {at: 90ms, for: 60ms, partition: \"peer(0) <-> "
        "peer(4)\"}\n";
    static const unsigned steps[] = {12, 12 + 20 + 10};
    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        struct seen seen = {.silent = KITH_NOBODY};
        struct probe probe;
        run_oracle(&kinds[0], 8);
        run_peers(steps[n], &seen, &probe, "5ms", cut_off);
        printf("  after %u steps the furthest from the root's phi is %g, "
               "expected %s\n",
               steps[n], furthest(&probe), n == 0 ? "above 0" : "0");
        assert_true(probe.summary.completed && seen.wrong > 0);
        assert_true((furthest(&probe) > 0) == (n == 0));
        probe_close(&probe);
    }
}

/* ---- a peer is lost */

/* The last peer, which nobody hangs on, has nothing to say and dies at some
 * time within a cycle: the others end, and each number that they were given was
 * applied once or waits at its owner. Each is 50 or more; what is divided by
 * those that are left is no longer whole, hence a bound. A deadline that peers
 * miss is another matter: what came up and nothing came down counts twice. */
static void test_loses_one(void **state)
{
    static const unsigned peers[] = {8, 6, 5, 4};
    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        double off = 0;
        for (unsigned at = 0; at < 24; at++) {
            struct seen seen = {.silent = peers[n] - 1};
            struct probe probe;
            char fault[128];
            (void)snprintf(fault, sizeof fault,
                           "faults:\n  - {at: %ums, crash: \"peer(%u)\"}\n"
                           "network: {latency: 1ms}\n",
                           80 + at, peers[n] - 1);
            run_oracle(&kinds[0], peers[n]);
            run_peers(CYCLES + 30, &seen, &probe, "1s", fault);
            double given = 0, found = seen.applied;
            for (unsigned p = 0; p + 1 < peers[n]; p++) {
                given += seen.given[p];
                found += seen.left[p];
                assert_true(seen.at[p] > CYCLES);
            }
            off = fmax(off, fabs(found - given));
            assert_true(seen.at[peers[n] - 1] < CYCLES);
            probe_close(&probe);
        }
        printf("  one of %u dies, at 24 times of a cycle: applied + residuals "
               "of the others less what they were given: expected 0 to 1e-6, "
               "measured %.1e\n",
               peers[n], off);
        assert_true(off < 1e-6);
    }
}

/* ---- a member that lies */

/* Values of 1e38 and -1e38 in a table, in the simulator: nobody takes it. */
static void test_huge(void **state)
{
    struct seen seen = {.silent = KITH_NOBODY};
    struct probe probe;
    (void)state;
    run_oracle(&kinds[0], 5);
    run_peers(
        30, &seen, &probe, "5ms",
        "faults:\n  - {at: 100ms, for: 200ms, huge: \"peer(2)\", by: 1e38}\n");
    uint64_t gated = 0;
    for (unsigned p = 0; p < 5; p++)
        gated += seen.gated[p];
    bool finite = true;
    for (unsigned i = 0; i < 5 * DIM; i++)
        finite &= isfinite(probe.z[i]);
    printf("  %llu messages refused, expected some; values are finite: %s, "
           "expected yes\n",
           (unsigned long long)gated, finite ? "yes" : "no");
    assert_true(finite && probe.summary.completed);
    assert_true(gated > 0);
    probe_close(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),     cmocka_unit_test(test_costs),
        cmocka_unit_test(test_finds_back), cmocka_unit_test(test_loses_one),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
