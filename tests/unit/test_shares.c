/* Goal: a peer's account of push-sum's weights: what nobody can hold is
 * refused, whatever a sender claims, and honest peers never come near it.
 * Method: values by table; a worker that is handed share after share;
 * simulations with loss, crashes and restarts under many seeds, small clusters
 * among them, in which nothing is refused and everybody's weight is looked at
 * after every event. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kith/node.h"
#include "kith/sim.h"
#include "tests/support/simulate.h"
#include "tests/unit/worker_run.h"

static void test_values(void **state)
{
    (void)state;
    static const double bad[] = {NAN,    INFINITY, -INFINITY, -0.5,
                                 5e-324, 0x1p-65,  0,         16.001};
    static const double good[] = {0x1p-64, 0.5, 1, 16};
    const struct kith_algorithm *sgp = kith_algorithm_find("sgp");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(kith_algorithm_is_sane(sgp, 8, bad[i]));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(kith_algorithm_is_sane(sgp, 8, good[i]));
}

/* Two peers, so nobody ever holds 4: three of 1 are taken, no more until some
 * of it has been handed on. */
static void hand_over(const char *algorithm)
{
    const struct kith_experiment experiment =
        fixture_experiment("quadratic", algorithm, 2);
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 10);
    const double one = experiment.gossip.algorithm->scalars_start[0];
    struct kith_work_edge in = {.peer = 1,
                                .sent = KITH_SLOT_NONE,
                                .inbox = KITH_SLOT_ANSWERED_INBOX,
                                .scalars_received = {one}};
    const struct kith_work merge = {.kind = KITH_WORK_MERGE,
                                    .pattern = KITH_PATTERN_PUSH,
                                    .edges = &in,
                                    .edge_count = 1};
    struct kith_work_edge out = {.peer = 1,
                                 .weight = 0.5,
                                 .sent = KITH_SLOT_INITIATED_SENT,
                                 .inbox = KITH_SLOT_NONE};
    double z[37], same[37];
    for (unsigned i = 0; i < 6; i++) {
        kith_worker_read(worker, z);
        run(worker, merge);
        assert_true(in.refused == (i >= 3));
        assert_true(kith_worker_scalars(worker)[0] <= 4 * one);
        kith_worker_read(worker, same);
        if (i >= 3)
            assert_memory_equal(z, same, sizeof z);
    }
    run(worker, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                   .pattern = KITH_PATTERN_PUSH,
                                   .edges = &out,
                                   .edge_count = 1});
    assert_true(kith_worker_scalars(worker)[0] == 2 * one);
    run(worker, merge);
    assert_false(in.refused);
    kith_worker_close(worker);
}

static void test_hostile_sender(void **state)
{
    (void)state;
    hand_over("sgp");
    hand_over("gosgd");
}

static double most;

static void look(const struct sim_world *world, kith_id peer, void *arg)
{
    (void)arg;
    if (peer == KITH_NOBODY || !sim_alive(world, peer) ||
        sim_worker(world, peer) == NULL)
        return;
    const double weight = kith_worker_scalars(sim_worker(world, peer))[0];
    most = weight > most ? weight : most;
}

static void test_honest_peers(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm, *links, *faults;
    } rows[] = {
        {"sgp", "loss: 0.05, ", "restart"},
        {"sgp, topology: ring", "", "restart"},
        {"gosgd", "loss: 0.05, ", "restart"},
        {"sgp-sync, topology: exponential", "", ""},
        {"overlap-sgp, topology: one-peer-exponential", "", ""},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const bool scaled = strcmp(rows[row].algorithm, "gosgd") == 0;
        double highest = 0;
        for (unsigned seed = 1; seed <= 20; seed++) {
            const unsigned peers = row < 3 ? 2 + seed % 7 : 4;
            char yaml[1024];
            const int length = snprintf(
                yaml, sizeof yaml,
                "name: shares\nseed: %u\npeers: %u\nstop: {steps: 300}\n"
                "model: {kind: quadratic, dim: 8}\n"
                "train: {learning_rate: 0.05}\ngossip: {algorithm: %s}\n"
                "save: 100ms\nnetwork: {%slatency: 1ms}\n"
                "compute: {step: 5ms, slow: [{peers: \"n(1)\", by: 4}]}\n"
                "%s",
                seed, peers, rows[row].algorithm, rows[row].links,
                rows[row].faults[0] == '\0'
                    ? ""
                    : "faults: [{at: 200ms, crash: \"n(1)\", restart: 90ms}, "
                      "{at: 500ms, crash: \"n(1)\", restart: 90ms}, "
                      "{at: 900ms, crash: \"n(1)\", restart: 90ms}]\n");
            assert_true(length > 0 && (size_t)length < sizeof yaml);
            most = 0;
            const struct simulated found = simulate(
                yaml, &(struct sim_options){.watch = true, .observe = look});
            assert_int_equal(found.report.marks[KITH_MARK_GATED], 0);
            most /= peers * (scaled ? 0x1p40 : 1);
            highest = most > highest ? most : highest;
        }
        printf("  %-44s at most %.3f n\n", rows[row].algorithm, highest);
        assert_true(highest < 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_hostile_sender),
        cmocka_unit_test(test_honest_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
