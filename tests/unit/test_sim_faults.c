/* Goal: faults do in virtual time what they say, and no
 * more. Method: small runs, compared with the undisturbed one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/simulate.h"

enum { PEERS = 6, STEPS = 200 };

/* What an observer notes about each peer. */
struct notes {
    uint64_t steps[PEERS];
    kith_ns last_ns[PEERS], longest_ns[PEERS]; /* between two steps */
    kith_ns first_ns[PEERS];                   /* when the first ended */
    bool died[PEERS], came_back[PEERS];
    uint64_t steps_after[PEERS]; /* of the new incarnation when it started */
};

static void note(const struct sim_world *world, kith_id unused, void *arg)
{
    struct notes *notes = arg;
    (void)unused;
    for (kith_id peer = 0; peer < PEERS; peer++) {
        if (!sim_alive(world, peer)) {
            notes->died[peer] = true;
            continue;
        }
        struct kith_node_counters counters;
        kith_node_counters(sim_node(world, peer), &counters);
        if (notes->died[peer] && !notes->came_back[peer]) {
            notes->came_back[peer] = true;
            notes->steps_after[peer] = counters.steps;
            notes->steps[peer] = counters.steps;
            notes->last_ns[peer] = sim_now(world);
        }
        if (counters.steps > notes->steps[peer]) {
            const kith_ns gap = sim_now(world) - notes->last_ns[peer];
            if (gap > notes->longest_ns[peer])
                notes->longest_ns[peer] = gap;
            if (notes->first_ns[peer] == 0)
                notes->first_ns[peer] = sim_now(world);
            notes->steps[peer] = counters.steps;
            notes->last_ns[peer] = sim_now(world);
        }
    }
}

static struct simulated run(const char *algorithm, const char *rest,
                            struct notes *notes)
{
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
             "name: faults\nseed: 4\npeers: %d\nstop: {steps: %d}\n"
             "model: {kind: quadratic, dim: 12}\n"
             "train: {learning_rate: 0.05}\n"
             "gossip: {algorithm: %s}\nsave: 100ms\n"
             "network: {latency: 200us}\ncompute: {step: 5ms}\n%s",
             PEERS, STEPS, algorithm, rest);
    memset(notes, 0, sizeof *notes);
    const struct sim_options options = {.observe = note, .arg = notes};
    return simulate(yaml, &options);
}

static void test_undisturbed(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r = run("adpsgd", "", &notes);

    assert_int_equal(r.summary.steps, PEERS * STEPS);
    assert_int_equal(r.summary.faults, 0);
    for (kith_id peer = 0; peer < PEERS; peer++)
        assert_int_equal(notes.longest_ns[peer], 5 * KITH_MS);
}

/* A dead peer costs its share and nothing else: nobody's step is late. */
static void test_crash(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r =
        run("adpsgd", "faults:\n  - {at: 307ms, crash: \"peer(2)\"}\n", &notes);

    assert_true(notes.died[2]);
    assert_false(notes.came_back[2]);
    assert_int_equal(notes.steps[2], 61);
    assert_int_equal(r.summary.steps, (PEERS - 1) * STEPS + 61);
    assert_int_equal(r.summary.faults, 1);
    for (kith_id peer = 0; peer < PEERS; peer++)
        assert_true(notes.longest_ns[peer] <= 5 * KITH_MS);
    assert_true(r.summary.exchanges.failed > 0); /* somebody met it */
}

/* It comes back with its last save, and does the rest of its share. */
static void test_restart(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r =
        run("adpsgd",
            "faults:\n  - {at: 302ms, crash: \"peer(2)\", restart: 100ms}\n",
            &notes);

    assert_true(notes.came_back[2]);
    assert_in_range(notes.steps_after[2], 58, 60); /* saved at 300 ms */
    assert_int_equal(r.summary.faults, 2);
    /* The others do not wait for it: the run ends when they are done. */
    assert_true(r.summary.virtual_s < 1.2);
}

/* Held, not lost: one gap as long as the pause. */
static void test_pause(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r = run(
        "adpsgd", "faults:\n  - {at: 302ms, for: 200ms, pause: \"peer(3)\"}\n",
        &notes);

    assert_int_equal(notes.longest_ns[3], 205 * KITH_MS);
    assert_int_equal(notes.longest_ns[0], 5 * KITH_MS);
    assert_int_equal(r.summary.steps, PEERS * STEPS);
}

static void test_slow(void **state)
{
    (void)state;
    struct notes notes;
    run("adpsgd",
        "faults:\n  - {at: 302ms, for: 100ms, slow: \"peer(1)\", by: 7}\n",
        &notes);

    assert_int_equal(notes.longest_ns[1], 35 * KITH_MS);
    assert_int_equal(notes.longest_ns[0], 5 * KITH_MS);
}

/* Traffic stalls across the cut and flows again; training never waits. */
static void test_partition(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r =
        run("adpsgd",
            "faults:\n  - {at: 300ms, for: 300ms, "
            "partition: \"peer(0..2) <-> peer(3..5)\"}\n",
            &notes);

    assert_int_equal(r.summary.faults, 36); /* 9 pairs, 2 ways, cut and heal */
    assert_int_equal(r.summary.steps, PEERS * STEPS);
    for (kith_id peer = 0; peer < PEERS; peer++)
        assert_int_equal(notes.longest_ns[peer], 5 * KITH_MS);
    struct notes quiet;
    const struct simulated whole = run("adpsgd", "", &quiet);
    assert_true(r.summary.exchanges.done < whole.summary.exchanges.done);
}

/* The half with the slow peer falls behind in the cut, and each end of it has
 * one neighbour that is ahead: the ring closes again. */
static void test_cut_ring_heals(void **state)
{
    (void)state;
    const struct simulated r = simulate(
        "name: cut-ring\nseed: 16\npeers: 6\nstop: {steps: 300}\n"
        "model: {kind: quadratic, dim: 12}\ntrain: {learning_rate: 0.05}\n"
        "gossip: {algorithm: dpsgd-atc, topology: ring}\n"
        "network: {latency: 1ms}\ncompute:\n  step: 60ms\n"
        "  slow: [{peers: \"peer(4)\", by: 2}]\nfaults:\n"
        "  - {at: 2s, for: 3s, partition: \"peer(0..2) <-> peer(3..5)\"}\n",
        NULL);
    assert_true(r.summary.exchanges.done >= 1680); /* of 1,800 */
}

/* A cut before anybody has dialled: dials give up after 5 s, what waited for
 * them is forgotten, and later dials succeed. */
static void test_cut_dials(void **state)
{
    (void)state;
    const struct simulated r =
        simulate("name: dials\nseed: 4\npeers: 2\nstop: {steps: 200}\n"
                 "model: {kind: quadratic, dim: 12}\n"
                 "gossip: {algorithm: adpsgd}\n"
                 "network: {latency: 200us}\ncompute: {step: 100ms}\n"
                 "faults:\n  - {at: 1ms, for: 8s, "
                 "partition: \"peer(0) <-> peer(1)\"}\n",
                 NULL);

    assert_int_equal(r.summary.steps, 400);
    assert_int_equal(r.report.handshakes, 1);
    assert_true(r.summary.exchanges.done > 0);
    assert_true(r.summary.exchanges.failed > 0);
}

/* A connection keeps its order where a cut comes upon messages that are at
 * their receiver already, held for a paused peer or half taken in: real
 * sessions refuse any other. */
static void test_cut_keeps_order(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "name: held\nseed: 4\npeers: 2\n"
        "network: {latency: 4ms, wire: full}\nfaults:\n"
        "  - {at: 302ms, for: 300ms, pause: \"peer(1)\"}\n"
        "  - {at: 402ms, for: 600ms, partition: \"peer(0) <-> peer(1)\"}\n"
        "model: {kind: consensus, dim: 12}\n",
        "name: taken\nseed: 4\npeers: 6\n"
        "network: {latency: 4ms, wire: full, rate: 4Mbit}\nfaults:\n"
        "  - {at: 402ms, for: 300ms, partition: \"all <-> peer(0)\"}\n"
        "model: {kind: consensus, dim: 2000}\n"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 "%sstop: {steps: 400}\ncompute: {step: 5ms}\n"
                 "gossip: {algorithm: adpsgd, topology: complete}\n",
                 cases[i]);
        assert_true(simulate(yaml, NULL).summary.exchanges.done > 0);
    }
}

/* At time 0, before any node has had its first event: the same faults, whether
 * lines queue or share, and nothing of the sum is lost. */
static void test_time_zero(void **state)
{
    (void)state;
    static const struct {
        const char *faults;
        /* When peer 3's first step ends, and how much later where it first
         * adopts a model, which waits for neighbours' steps; and its steps
         * that are not done when those who do not wait for it have ended. */
        unsigned first_ms, adopts_ms, missing;
    } cases[] = {
        {"{for: 200ms, pause: peer(3)", 205, 0, 0},
        {"{for: 0s, pause: peer(3)", 5, 0, 0},
        {"{for: 200ms, pause: all", 205, 0, 0},
        {"{for: 200ms, slow: peer(3), by: 7", 35, 0, 0},
        {"{for: 200ms, partition: peer(3) <-> all", 5, 0, 0},
        {"{crash: peer(3)", 0, 0, STEPS},
        {"{restart: 100ms, crash: peer(3)", 105, 12, 20},
        {"{restart: 0s, crash: peer(3)", 5, 12, 0},
        {"{crash: peer(3), at: 5ms}, {for: 200ms, pause: peer(3)", 0, 0, STEPS},
        {"{crash: peer(3), at: 5ms, restart: 3ms}, {for: 9ms, pause: peer(3)",
         13, 12, 2},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char yaml[1024];
        struct notes notes = {0};
        const struct sim_options options = {
            .observe = note, .arg = &notes, .ledger = SIM_LEDGER_SUM};
        snprintf(yaml, sizeof yaml,
                 "name: zero\nseed: 4\npeers: %d\nstop: {steps: %d}\n"
                 "model: {kind: quadratic, dim: 12}\n"
                 "train: {learning_rate: 0.05, backend: naive64}\n"
                 "gossip: {algorithm: adpsgd}\ncompute: {step: 5ms}\n"
                 "network: {latency: 200us, rate: 10Mbit, sharing: %s}\n"
                 "faults: [%s, at: 0s}]\n",
                 PEERS, STEPS, i % 2 ? "fair" : "queue", cases[i / 2].faults);
        const struct simulated r = simulate(yaml, &options);

        assert_int_equal(r.summary.steps, PEERS * STEPS - cases[i / 2].missing);
        const kith_ns first_ns = cases[i / 2].first_ms * KITH_MS;
        assert_in_range(notes.first_ns[3], first_ns,
                        first_ns + cases[i / 2].adopts_ms * KITH_MS);
        assert_true(r.report.balance.error_max <= 1e-12);
        assert_true(r.summary.exchanges.done > 0);
    }
}

/* Everybody dies: the run ends, and says what is left. */
static void test_all_crash(void **state)
{
    (void)state;
    struct notes notes;
    const struct simulated r =
        run("adpsgd", "faults:\n  - {at: 100ms, crash: all}\n", &notes);

    assert_true(r.summary.steps < PEERS * STEPS);
    for (kith_id peer = 0; peer < PEERS; peer++)
        assert_true(notes.died[peer]);
}

/* Ctrl-C: the run stops at once, its results so far are good. */
static void interrupt(const struct sim_world *world, kith_id peer, void *arg)
{
    (void)peer;
    if (sim_now(world) >= 50 * KITH_MS)
        *(volatile sig_atomic_t *)arg = 1;
}

static void test_interrupted(void **state)
{
    (void)state;
    const char *yaml = "name: stop\nseed: 1\npeers: 40\nstop: {steps: 100000}\n"
                       "model: {kind: quadratic, dim: 3}\n"
                       "gossip: {algorithm: adpsgd}\ncompute: {step: 5ms}\n";
    volatile sig_atomic_t stop = 0;
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    assert_int_equal(kith_experiment_parse("stop", yaml, strlen(yaml), NULL, 0,
                                           &experiment, error),
                     KITH_OK);
    const struct sim_options options = {.experiment = &experiment,
                                        .observe = interrupt,
                                        .arg = (void *)&stop,
                                        .stop = &stop};
    struct kith_summary summary;
    struct sim_report report;
    assert_int_equal(sim_run(&options, &summary, &report, error), KITH_OK);

    assert_false(summary.completed);
    assert_in_range(summary.steps, 1, 40 * 100);
    kith_experiment_close(&experiment);
}

static void test_refuses_free_steps(void **state)
{
    (void)state;
    const char *yaml = "name: free\nseed: 1\npeers: 2\nstop: {steps: 3}\n"
                       "model: {kind: none}\ngossip: {algorithm: adpsgd}\n";
    struct kith_experiment experiment;
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    assert_int_equal(kith_experiment_parse("free", yaml, strlen(yaml), NULL, 0,
                                           &experiment, error),
                     KITH_OK);
    const struct sim_options options = {.experiment = &experiment};
    struct kith_summary summary;
    assert_int_equal(sim_run(&options, &summary, NULL, error), KITH_EINVAL);
    assert_non_null(strstr(error, "compute"));
    kith_experiment_close(&experiment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_cut_ring_heals),
        cmocka_unit_test(test_cut_dials),
        cmocka_unit_test(test_cut_keeps_order),
        cmocka_unit_test(test_time_zero),
        cmocka_unit_test(test_all_crash),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_refuses_free_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
