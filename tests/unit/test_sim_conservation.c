/* Goal: averaging never changes the total silently.
 * Method: float64 runs with d = 16 under crash, restart, pause, partition,
 * loss and a slow peer; the ledger checks the equation after every event to
 * 1e-12 and that every exchange id ends settled, torn or orphaned. float32
 * runs: the two halves of every id are exact negatives. A ledger that can
 * never complain proves nothing, so one test cheats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/simulate.h"

static const char *const faults =
    "save: 200ms\n"
    "faults:\n"
    "  - {at: 500ms, crash: \"frac(0.3)\", restart: 300ms}\n"
    "  - {at: 650ms, crash: \"n(1)\"}\n"
    "  - {at: 700ms, for: 200ms, pause: \"n(2)\"}\n"
    "  - {at: 900ms, for: 700ms, partition: \"peer(0..3) <-> peer(4..8)\"}\n";

static struct simulated run(const char *algorithm, const char *topology,
                            const char *backend, unsigned seed,
                            const struct sim_options *options)
{
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "name: conservation\nseed: %u\npeers: 9\nstop: {steps: 300}\n"
             "model: {kind: quadratic, dim: 16}\n"
             "train: {learning_rate: 0.05, momentum: 0.5, backend: %s}\n"
             "gossip: {algorithm: %s, topology: %s}\n"
             "network: {latency: 300us, jitter: 100us, rate: 10Mbit, "
             "loss: 0.002}\n"
             "compute: {step: 5ms, merge: 100us, "
             "slow: [{peers: \"n(1)\", by: 3}]}\n%s",
             seed, backend, algorithm, topology, faults);
    return simulate(yaml, options);
}

static void check_sum(const char *algorithm, const char *topology)
{
    uint64_t torn = 0, pairs = 0, orphaned = 0;
    unsigned withheld = 0; /* runs in which a guard did */
    for (unsigned seed = 1; seed <= 8; seed++) {
        const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
        const struct simulated r =
            run(algorithm, topology, "naive64", seed, &options);
        const struct sim_balance *balance = &r.report.balance;
        if (!(balance->error_max <= 1e-12)) {
            fail_msg("%s on %s, seed %u: off by %g", algorithm, topology, seed,
                     balance->error_max);
        }
        assert_int_equal(balance->mismatched, 0);
        assert_int_equal(balance->unsettled, 0);
        assert_true(fabs(balance->in_doubt) < 1e-12);
        assert_true(balance->lost != 0);    /* crashes took something */
        assert_true(balance->restart != 0); /* and brought something */
        withheld += balance->withheld != 0;
        torn += balance->torn;
        pairs += balance->pairs;
        orphaned += balance->orphaned;
    }
    assert_true(strstr(algorithm, "guard") != NULL ? withheld >= 7
                                                   : withheld == 0);
    printf("  %s on %s: %llu exchanges of both, %llu torn, %llu orphaned\n",
           algorithm, topology, (unsigned long long)pairs,
           (unsigned long long)torn, (unsigned long long)orphaned);
    assert_true(pairs > 1000);
}

static void test_sum_float64(void **state)
{
    (void)state;
    check_sum("adpsgd", "random");
    check_sum("adpsgd", "ring");
    check_sum("dpsgd", "complete");
    check_sum("dpsgd", "ring");
    check_sum("sgp", "exponential");
}

/* What a guard does not let in is booked. */
static void test_sum_guarded(void **state)
{
    (void)state;
    check_sum("adpsgd, guard: clip", "random");
    check_sum("adpsgd, guard: clip", "ring");
    check_sum("dpsgd, guard: clip", "complete");
    check_sum("dpsgd-atc, guard: clip", "ring");
    check_sum("adpsgd, guard: balance", "random");
    check_sum("dpsgd, guard: cs+", "complete");
    check_sum("dpsgd, guard: nnm, liars: 2", "complete");
    check_sum("dpsgd-atc, guard: krum", "complete");
}

static void test_pairs_float32(void **state)
{
    (void)state;
    static const char *const algorithms[][2] = {
        {"adpsgd", "random"},
        {"dpsgd", "ring"},
        {"sgp", "exponential"},
        {"adpsgd, guard: clip", "random"}};
    static const char *const backends[] = {"cpu", "naive32"};
    for (size_t a = 0; a < 4; a++) {
        for (size_t b = 0; b < 2; b++) {
            const struct sim_options options = {.ledger = SIM_LEDGER_PAIRS};
            const struct simulated r = run(algorithms[a][0], algorithms[a][1],
                                           backends[b], 3, &options);
            assert_int_equal(r.report.balance.mismatched, 0);
            assert_int_equal(r.report.balance.unsettled, 0);
            assert_true(r.report.balance.pairs > 100);
        }
    }
}

/* The `always conserved` check turns the ledger on by itself, and counts. */
static void test_check_in_file(void **state)
{
    (void)state;
    const struct simulated r =
        simulate("name: check\nseed: 1\npeers: 5\nstop: {steps: 50}\n"
                 "model: {kind: quadratic, dim: 8}\n"
                 "train: {backend: naive64}\n"
                 "gossip: {algorithm: adpsgd}\ncompute: {step: 5ms}\n"
                 "assert: [\"always conserved\"]\n",
                 NULL);

    assert_true(r.report.balance.pairs > 0);
    assert_int_equal(r.summary.violations, 0);
}

/* Peers 8 and 9 restart together and adopt from one that is behind: they do
 * rounds 69 to 72 with each other twice, which are two exchanges each. */
static void test_rounds_twice(void **state)
{
    (void)state;
    const struct simulated r = simulate(
        "name: twice\nseed: 257580944907743\npeers: 16\nstop: {time: 4s}\n"
        "model: {kind: consensus, dim: 2}\n"
        "gossip: {algorithm: local-sgd, topology: watts-strogatz, every: 2}\n"
        "network: {latency: 3ms}\ncompute: {step: 15ms}\nsave: 571ms\n"
        "faults:\n  - {at: 3184ms, crash: \"peer(8..10)\", restart: 50ms}\n"
        "  - {at: 1706ms, for: 552ms, pause: \"n(4)\"}\n"
        "assert: [\"finally conserved\"]\n",
        NULL);

    assert_int_equal(r.report.balance.mismatched, 0);
    assert_int_equal(r.summary.violations, 0);
}

/* A share that was given for a round which does not open any more, because time
 * is up, is merged all the same. */
static void test_last_shares_stay(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 6; seed++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
                 "name: leave\nseed: %u\npeers: 3\nstop: {time: 3s}\n"
                 "model: {kind: consensus, dim: 4}\n"
                 "gossip: {algorithm: overlap-sgp, topology: ring}\n"
                 "network: {latency: 3ms}\n"
                 "compute: {step: 20ms, spread: exponential}\n"
                 "assert: [\"finally conserved\"]\n",
                 seed);
        assert_int_equal(simulate(yaml, NULL).summary.violations, 0);
    }
}

/* Changes one coordinate of one model behind everybody's back. */
static void cheat(const struct sim_world *world, kith_id peer, void *arg)
{
    bool *done = arg;
    (void)peer;
    if (!*done && sim_now(world) > 100 * KITH_MS) {
        double *x = kith_worker_slot(sim_worker(world, 2), KITH_SLOT_LIVE);
        x[0] += 1e-6;
        *done = true;
    }
}

static void test_ledger_can_fail(void **state)
{
    (void)state;
    bool done = false;
    const struct sim_options options = {
        .ledger = SIM_LEDGER_SUM, .observe = cheat, .arg = &done};
    const struct simulated r = run("adpsgd", "ring", "naive64", 1, &options);

    assert_true(done);
    assert_true(r.report.balance.error_max > 1e-9);
}

/* T4: a push that is lost takes half of its sender's mass with it, and the
 * books say so: E[mass_t]/n = (1 - q/2)^t. With four steps between pushes all
 * peers split before any of them merges: the synchronous rounds of T4. */
static void push_loss(double loss, unsigned seeds)
{
    enum { PEERS = 16, ROUNDS = 80 };
    double mass = 0, dropped = 0;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 "name: t4\nseed: %u\npeers: %d\nstop: {steps: %d}\n"
                 "model: {kind: consensus, dim: 4}\n"
                 "train: {backend: naive64}\n"
                 "gossip: {algorithm: sgp, every: 4, "
                 "topology: one-peer-exponential}\n"
                 "network: {latency: 1ms, drop_push: %g}\n"
                 "compute: {step: 1s}\n",
                 seed, PEERS, 4 * ROUNDS, loss);
        const struct sim_options options = {.ledger = SIM_LEDGER_SUM};
        const struct simulated r = simulate(yaml, &options);
        const struct sim_balance *balance = &r.report.balance;
        assert_true(balance->error_max <= 1e-12);
        assert_int_equal(balance->unsettled, 0);
        /* A push that times out is undone: that is no loss. */
        assert_in_range(balance->pairs + balance->dropped,
                        PEERS * ROUNDS * 99 / 100, PEERS * ROUNDS);
        assert_true(fabs(balance->weight_live + balance->weight_lost - PEERS) <
                    1e-12 * PEERS);
        dropped += (double)balance->dropped;
        mass += balance->weight_live / PEERS / seeds;
    }
    /* k losses, each of about half a peer's mass, spread the total by about
     * sqrt(k) / (2 n); four standard errors of the mean over seeds. */
    const double expected = pow(1 - loss / 2, ROUNDS);
    const double slack =
        4 * sqrt(dropped / seeds) / (2 * PEERS) / sqrt(seeds) + 1e-12;
    printf("  T4 q=%g: mass %.4f, expected %.4f within %.1f %%\n", loss, mass,
           expected, 100 * slack);
    assert_true(fabs(mass / expected - 1) < slack);
}

static void test_push_loss(void **state)
{
    (void)state;
    push_loss(0, 1);
    push_loss(0.01, 40);
    push_loss(0.05, 40);
    push_loss(0.1, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_float64),
        cmocka_unit_test(test_sum_guarded),
        cmocka_unit_test(test_pairs_float32),
        cmocka_unit_test(test_check_in_file),
        cmocka_unit_test(test_rounds_twice),
        cmocka_unit_test(test_last_shares_stay),
        cmocka_unit_test(test_ledger_can_fail),
        cmocka_unit_test(test_push_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
