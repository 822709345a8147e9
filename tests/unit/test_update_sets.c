/* Goal: update-sets keeps to its definition: updates reach everybody before
 * they leave the log, and then the sum of their means is everybody's outer
 * point, bit for bit; what went astray arrives later; halves that were parted
 * for long, and who was away, come together with the others; huge values are
 * taken by nobody.
 * Method: in the simulator peers are given differences by a model that does not
 * train; beside it the definition over dense vectors. */
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
#include "kith/compressor.h"
#include "kith/rng.h"
#include "kith/worker.h"
#include "tests/support/probe.h"

enum { DIM = 3000, GIVEN = 12, PEERS_MAX = 8 };
enum { PHI, BASE, ERROR }; /* as in update_sets.c */

struct seen {
    unsigned peers;
    uint64_t rounds[PEERS_MAX], gated[PEERS_MAX];
    unsigned at[PEERS_MAX]; /* differences that the peer has been given */
    bool begun[PEERS_MAX];
    double phi[PEERS_MAX][DIM], base[PEERS_MAX][DIM];
    double base_at[40][PEERS_MAX][DIM]; /* after so many rounds */
};
static struct seen seen;
static double differences[GIVEN][PEERS_MAX][DIM];

static void draw_differences(void)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 4);
    for (unsigned r = 0; r < GIVEN; r++)
        for (unsigned p = 0; p < PEERS_MAX; p++)
            for (unsigned i = 0; i < DIM; i++)
                differences[r][p][i] =
                    (kith_rng_double(&rng) - 0.5) / (1 + i % 17);
}

/* After the first rounds each peer gets a difference for the next one. */
static void give(const struct sim_world *world, kith_id peer, void *arg)
{
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    (void)arg;
    if (worker == NULL)
        return;
    struct kith_node_counters counters;
    kith_node_counters(sim_node(world, peer), &counters);
    const struct kith_worker_content content = kith_worker_content(worker);
    double *const x = content.model;
    const uint64_t before = seen.rounds[peer];
    seen.rounds[peer] = counters.rounds;
    seen.gated[peer] = counters.gated;
    if (counters.rounds == 1 && !seen.begun[peer]) { /* all at 0 */
        memset(x, 0, DIM * sizeof *x);
        memset(content.own[PHI], 0, DIM * sizeof *x);
        memset(content.own[BASE], 0, DIM * sizeof *x);
        seen.begun[peer] = true;
    }
    memcpy(seen.phi[peer], content.own[PHI], DIM * sizeof *x);
    memcpy(seen.base[peer], content.own[BASE], DIM * sizeof *x);
    if (counters.rounds == before || counters.rounds >= 40)
        return;
    memcpy(seen.base_at[counters.rounds][peer], content.own[BASE],
           DIM * sizeof *x);
    for (unsigned i = 0; i < DIM && seen.at[peer] < GIVEN; i++)
        x[i] -= differences[seen.at[peer]][peer][i];
    seen.at[peer]++;
}

static void run_peers(struct probe *probe, unsigned peers, unsigned rounds,
                      const char *gossip, const char *more)
{
    static const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
    memset(&seen, 0, sizeof seen);
    seen.peers = peers;
    *probe = (struct probe){.meddle = give, .options = &options};
    probe_must(probe,
               "name: update-sets\nseed: 1\npeers: %u\nstop: {time: %ums}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive64}\n"
               "gossip: {algorithm: update-sets, every: 1, decay: 0.9, "
               "deadline: 5ms, compressor: top-k-2bit, density: 0.02, "
               "%s}\ncompute: {step: 20ms}\n%s",
               peers, 20 * rounds + 15, DIM, gossip, more);
}

static double far(const double *a, const double *b)
{
    double most = 0;
    for (unsigned i = 0; i < DIM; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* ---- the definition */

/* base_r <- of all updates of the first rounds; the very first are zeros. */
static double defined[40][DIM];
static void define(unsigned peers, unsigned rounds)
{
    static double error[PEERS_MAX][DIM];
    static uint8_t wire[DIM];
    struct kith_compression how = {kith_compressor_find("top-k-2bit"),
                                   kith_compressor_defaults(),
                                   kith_backend_find("naive64"), DIM, NULL};
    how.config.density = 0.02;
    memset(error, 0, sizeof error);
    memset(defined, 0, sizeof defined);
    assert_true(kith_compression_bytes(&how) <= sizeof wire);
    for (unsigned r = 1; r < rounds; r++) {
        double v[DIM], q[DIM];
        memcpy(defined[r], defined[r - 1], sizeof defined[r]);
        for (unsigned p = 0; p < peers; p++) {
            for (unsigned i = 0; i < DIM; i++)
                v[i] = 0.9 * error[p][i] +
                       (r <= GIVEN ? differences[r - 1][p][i] : 0);
            assert_true(kith_compress(&how, v, 0, wire));
            assert_true(kith_decompress(&how, wire, 0, q));
            for (unsigned i = 0; i < DIM; i++) {
                error[p][i] = v[i] - q[i];
                defined[r][i] -= 0.7 * q[i] / peers;
            }
        }
    }
}

static unsigned window_of(unsigned peers)
{
    unsigned bits = 0;
    while (1u << bits < peers)
        bits++;
    return 2 * bits + 10;
}

/* What has left the window is what the definition says, bit for bit the same
 * for all. (Of other seeds 1 of 1,000 updates comes too late.) */
static void test_definition(void **state)
{
    static const unsigned cases[] = {2, 7, 8};
    (void)state;
    draw_differences();
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct probe probe;
        const unsigned peers = cases[n], window = window_of(peers);
        unsigned apart = 0, compared = 0;
        double most = 0;
        define(peers, 40);
        run_peers(&probe, peers, 38, "rate: 0.7, share: 1e-9", "");
        assert_true(probe.summary.completed);
        for (unsigned r = window + 2; r <= 37; r++)
            for (unsigned p = 0; p < peers; p++) {
                const double *const base = seen.base_at[r][p];
                assert_true(seen.rounds[p] >= 37);
                most = fmax(most, far(base, defined[r - 1 - window]));
                apart +=
                    memcmp(base, seen.base_at[r][0], sizeof defined[r]) != 0;
                compared++;
            }
        printf("  %u peers, a window of %u rounds: the sums of what has left "
               "it differ from the definition's by %.3g, expected below "
               "1e-12; from rank 0's: expected 0 of %u, measured %u\n",
               peers, window, most, compared, apart);
        assert_true(compared > 0 && most < 1e-12);
        assert_int_equal(apart, 0);
        probe_close(&probe);
    }
}

/* ---- what went astray, who was away */

static double furthest(void)
{
    double most = 0;
    for (unsigned p = 1; p < seen.peers; p++)
        most = fmax(most, far(seen.base[p], seen.base[0]));
    return most;
}

/* A fifth of BASE in a round. What few missed is told later; else it is
 * averaged. */
static void test_together_again(void **state)
{
    static const struct {
        const char *what, *faults;
        unsigned soon, late;
        double first, last; /* how far apart then: at least, at most */
    } cases[] = {
        {"two that miss each other",
         "faults:\n  - {at: 70ms, for: 100ms, partition: \"peer(2) <-> "
         "peer(4)\"}\n",
         30, 39, 0, 0},
        {"halves for three rounds",
         "faults:\n  - {at: 90ms, for: 60ms, partition: \"peer(0..3) <-> "
         "peer(4..7)\"}\n",
         30, 190, 0, 1e-6},
        {"halves for thirty",
         "faults:\n  - {at: 90ms, for: 600ms, partition: \"peer(0..3) <-> "
         "peer(4..7)\"}\n",
         34, 190, 1e-3, 1e-6},
        {"one that crashes and comes back",
         "save: 1s\nfaults:\n  - {at: 170ms, crash: \"peer(3)\", restart: "
         "50ms}\n",
         30, 190, 1e-3, 1e-6}};
    bool held = true;
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++)
        for (unsigned late = 0; late < 2; late++) {
            struct probe probe;
            const unsigned rounds = late ? cases[n].late : cases[n].soon;
            run_peers(&probe, 8, rounds, "share: 0.2", cases[n].faults);
            const double most = furthest();
            printf("  %s: after %u rounds the furthest from rank 0's is %.3g, "
                   "expected at %s %g\n",
                   cases[n].what, rounds, most, late ? "most" : "least",
                   late ? cases[n].last : cases[n].first);
            assert_true(probe.summary.completed);
            held &= late ? most <= cases[n].last : most >= cases[n].first;
            probe_close(&probe);
        }
    assert_true(held);
}

/* ---- a member that lies */

static void test_huge(void **state)
{
    struct probe probe;
    (void)state;
    run_peers(&probe, 8, 30, "share: 0.2",
              "faults:\n  - {at: 100ms, for: 200ms, huge: \"peer(2)\", by: "
              "1e38}\n");
    uint64_t gated = 0;
    bool finite = true;
    for (unsigned p = 0; p < seen.peers; p++) {
        gated += seen.gated[p];
        for (unsigned i = 0; i < DIM; i++)
            finite &= isfinite(seen.phi[p][i]);
    }
    printf("  %llu messages refused, expected some; values are finite: %s, "
           "expected yes\n",
           (unsigned long long)gated, finite ? "yes" : "no");
    assert_true(finite && probe.summary.completed && gated > 0);
    probe_close(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_together_again),
        cmocka_unit_test(test_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
