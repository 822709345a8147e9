/* Goal: sparse-loco keeps to its definition, with every compressor; all peers
 * have one outer point, bit for bit; who missed a round, or was away, has it
 * again after 1 / share rounds; huge values are taken by nobody.
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
#include "kith/hash.h"
#include "kith/rng.h"
#include "kith/worker.h"
#include "tests/support/probe.h"

enum { DIM = 200, ROUNDS = 12, PEERS = 5 };
enum { PHI, ERROR }; /* as in sparse_loco.c */

static double differences[ROUNDS][PEERS][DIM];

static void draw_differences(void)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 4);
    for (unsigned r = 0; r < ROUNDS; r++)
        for (unsigned p = 0; p < PEERS; p++)
            for (unsigned i = 0; i < DIM; i++)
                differences[r][p][i] =
                    (kith_rng_double(&rng) - 0.5) / (1 + i % 17);
}

/* ---- the definition */

struct state {
    double phi[DIM], error[PEERS][DIM];
};

static uint64_t key_of(uint64_t round, kith_id from)
{
    uint64_t key = kith_hash_word(KITH_HASH_START, 1);
    key = kith_hash_word(key, round);
    return kith_hash_word(key, from);
}

static void run_round(const struct kith_compression *how, unsigned round,
                      struct state *state)
{
    static uint8_t wire[DIM * 16];
    double v[DIM], q[DIM], sum[DIM] = {0};
    assert_true(kith_compression_bytes(how) <= sizeof wire);
    for (unsigned p = 0; p < PEERS; p++) {
        for (unsigned i = 0; i < DIM; i++)
            v[i] = 0.9 * state->error[p][i] + differences[round][p][i];
        /* The first round has begun before anything is given. */
        const uint64_t key = key_of(round + 1, p);
        assert_true(kith_compress(how, v, key, wire));
        assert_true(kith_decompress(how, wire, key, q));
        for (unsigned i = 0; i < DIM; i++) {
            state->error[p][i] = v[i] - q[i];
            sum[i] += q[i];
        }
    }
    for (unsigned i = 0; i < DIM; i++)
        state->phi[i] -= 0.7 * sum[i] / PEERS;
}

/* ---- the simulator, beside it */

struct seen {
    uint64_t rounds[PEERS], gated[PEERS];
    unsigned at[PEERS]; /* rounds that the peer has been given */
    double phi[ROUNDS][PEERS][DIM], error[ROUNDS][PEERS][DIM];
    double last[PEERS][DIM]; /* phi, as it was seen last */
};
static struct seen seen;

/* After each round a peer gets the difference of the next one. */
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
    const unsigned r = seen.at[peer];
    seen.rounds[peer] = counters.rounds;
    seen.gated[peer] = counters.gated;
    memcpy(seen.last[peer], content.own[PHI], sizeof seen.last[peer]);
    if (r > ROUNDS || counters.rounds < r + 1)
        return;
    double *const x = content.model;
    if (r == 0) { /* all at 0 */
        memset(x, 0, DIM * sizeof *x);
        memset(content.own[PHI], 0, DIM * sizeof *x);
        memset(content.own[ERROR], 0, DIM * sizeof *x);
    } else {
        memcpy(seen.phi[r - 1][peer], content.own[PHI], DIM * sizeof *x);
        memcpy(seen.error[r - 1][peer], content.own[ERROR], DIM * sizeof *x);
    }
    for (unsigned i = 0; i < DIM && r < ROUNDS; i++)
        x[i] -= differences[r][peer][i];
    seen.at[peer]++;
}

static void run_peers(struct probe *probe, unsigned ms, const char *gossip,
                      const char *more)
{
    static const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
    memset(&seen, 0, sizeof seen);
    *probe = (struct probe){.meddle = give, .options = &options};
    probe_must(probe,
               "name: sparse-loco\nseed: 1\npeers: %d\nstop: {time: %ums}\n"
               "model: {kind: consensus, dim: %d}\n"
               "train: {backend: naive64}\n"
               "gossip: {algorithm: sparse-loco, every: 1, rate: 0.7, "
               "decay: 0.9, deadline: 5ms, %s}\ncompute: {step: 20ms}\n%s",
               PEERS, ms, DIM, gossip, more);
}

static double far(const double *a, const double *b)
{
    double most = 0;
    for (unsigned i = 0; i < DIM; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void compare(const char *name)
{
    static struct state state;
    double phi = 0, error = 0;
    unsigned apart = 0;
    struct kith_compression how = {kith_compressor_find(name),
                                   kith_compressor_defaults(),
                                   kith_backend_find("naive64"), DIM, NULL};
    how.config.density = 0.05;
    how.config.block = 64;
    memset(&state, 0, sizeof state);
    for (unsigned r = 0; r < ROUNDS; r++) {
        run_round(&how, r, &state);
        for (unsigned p = 0; p < PEERS; p++) {
            phi = fmax(phi, far(seen.phi[r][p], state.phi));
            error = fmax(error, far(seen.error[r][p], state.error[p]));
            apart +=
                memcmp(seen.phi[r][p], seen.phi[r][0], sizeof state.phi) != 0;
        }
    }
    printf("  %s: phi and e differ from the definition's by %.3g and %.3g, "
           "expected below 1e-13; outer points that are not rank 0's: "
           "expected 0, measured %u\n",
           name, phi, error, apart);
    assert_true(phi < 1e-13 && error < 1e-13);
    assert_int_equal(apart, 0);
}

static void test_definition(void **state)
{
    (void)state;
    draw_differences();
    for (unsigned c = 0; kith_compressors[c] != NULL; c++) {
        char gossip[128];
        struct probe probe;
        const unsigned keys = kith_compressors[c]->keys;
        (void)snprintf(
            gossip, sizeof gossip, "compressor: %s%s%s",
            kith_compressors[c]->name,
            keys & KITH_COMPRESSOR_READS(DENSITY) ? ", density: 0.05" : "",
            keys & KITH_COMPRESSOR_READS(BLOCK) ? ", block: 64" : "");
        run_peers(&probe, 20 * (ROUNDS + 1) + 15, gossip, "");
        assert_true(probe.summary.completed);
        compare(kith_compressors[c]->name);
        probe_close(&probe);
    }
}

/* ---- who missed a round, or was away */

static double furthest(void)
{
    double most = 0;
    for (unsigned p = 1; p < PEERS; p++)
        most = fmax(most, far(seen.last[p], seen.last[0]));
    return most;
}

/* Ten values of phi in a round: 20 rounds of those after the fault. Two peers
 * that do not hear each other, one that hears nobody, one that comes back. */
static void test_together_again(void **state)
{
    static const struct {
        const char *what, *faults;
    } cases[] = {
        {"two that miss each other",
         "faults:\n  - {at: 90ms, for: 60ms, partition: \"peer(2) <-> "
         "peer(4)\"}\n"},
        {"one that misses rank 0",
         "faults:\n  - {at: 90ms, for: 60ms, partition: \"peer(0) <-> "
         "peer(1)\"}\n"},
        {"halves", "faults:\n  - {at: 90ms, for: 90ms, partition: "
                   "\"peer(0..1) <-> peer(2..4)\"}\n"},
        {"one that crashes and comes back",
         "save: 1s\nfaults:\n  - {at: 110ms, crash: \"peer(3)\", restart: "
         "50ms}\n"}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++)
        for (unsigned late = 0; late < 2; late++) {
            struct probe probe;
            const unsigned ms =
                20 * (late ? ROUNDS + 3 + 20 + 10 : ROUNDS + 1) + 15;
            run_peers(&probe, ms,
                      "compressor: top-k-2bit, density: 0.05, share: 0.05",
                      cases[n].faults);
            const double most = furthest();
            printf("  %s: after %u ms the furthest from rank 0's is %g, "
                   "expected %s\n",
                   cases[n].what, ms, most, late ? "0" : "above 0");
            assert_true(probe.summary.completed);
            assert_true((most > 0) == (late == 0));
            probe_close(&probe);
        }
}

/* ---- a member that lies */

static void test_huge(void **state)
{
    struct probe probe;
    (void)state;
    run_peers(&probe, 600, "compressor: top-k-2bit, density: 0.05",
              "faults:\n  - {at: 100ms, for: 200ms, huge: \"peer(2)\", by: "
              "1e38}\n");
    uint64_t gated = 0;
    bool finite = true;
    for (unsigned p = 0; p < PEERS; p++)
        gated += seen.gated[p];
    for (unsigned i = 0; i < PEERS * DIM; i++)
        finite &= isfinite(seen.last[i / DIM][i % DIM]);
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
