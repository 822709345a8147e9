/* Goal: a neighbour that dies, returns, is cut off or is slow costs the others
 * nothing but exchanges, and the sums stay booked.
 * Method: forked peers, faults from outside: SIGKILL and a restart from its
 * save, `link RANK partition`, `slow`, a launcher that disappears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/checkpoint.h"
#include "tests/support/peers.h"

static void print_all(const struct peers *peers)
{
    if (getenv("PEERS_PRINT"))
        for (kith_id i = 0; i < peers->experiment.peers; i++)
            peers_print(peers, i);
}

/* Who goes on measures nothing anew: a save from the midst of a run says what
 * the run knew. */
static void save_has_peak(const struct peers *peers, kith_id rank, double want)
{
    char path[96], error[KITH_DATA_ERROR_BYTES], *text = NULL;
    peers_save_path(peers, rank, path);
    assert_int_equal(kith_checkpoint_text(path, "peak", &text, error), KITH_OK);
    assert_non_null(text);
    assert_true(strtod(text, NULL) == want);
    free(text);
}

static void a_killed_peer_comes_back(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, "name: killed\nseed: 11\npeers: 4\nstop: {steps: 400}\n"
                       "model: {kind: quadratic, dim: 50}\n"
                       "gossip: {algorithm: adpsgd, every: 2}\n"
                       "compute: {step: 4ms, peak: 1e10}\nsave: 100ms\n");
    peers_start_all(&peers);
    assert_true(peers_wait_step(&peers, 3, 100, 20));
    peers_kill(&peers, 3);
    save_has_peak(&peers, 3, 1e10);
    assert_true(peers_wait_step(&peers, 0, 180, 20));
    peers_start(&peers, 3, 1, true);
    for (kith_id i = 0; i < 4; i++)
        assert_true(peers_wait_finished(&peers, i, 30));
    assert_true(peers_stop(&peers, 10));
    print_all(&peers);
    for (kith_id i = 0; i < 3; i++) {
        const struct kith_peer_report *report = &peers.shared[i].report;
        assert_int_equal(report->counters.steps, 400);
        assert_int_equal(report->counters.bad, 0);
        /* Training never waits for an exchange: 400 steps of 4 ms. */
        assert_true(report->counters.waited_ns < report->wall_ns / 100);
    }
    const struct kith_peer_report *back = &peers.shared[3].report;
    assert_int_equal(back->counters.steps, 400);
    assert_true(back->counters.done > 0);
    assert_true(peers.shared[3].marks[KITH_MARK_STEP] < 400 + 150);
    peers_close(&peers);
}

static void a_partition_heals(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, "name: cut\nseed: 12\npeers: 3\nstop: {steps: 500}\n"
                       "model: {kind: quadratic, dim: 50}\n"
                       "gossip: {algorithm: adpsgd, every: 1}\n"
                       "compute: {step: 4ms}\n");
    peers_start_all(&peers);
    assert_true(peers_wait_step(&peers, 0, 50, 20));
    for (kith_id i = 0; i < 2; i++) {
        char line[32];
        snprintf(line, sizeof line, "link %u partition 1 1", i);
        peers_tell(&peers, 2, line);
        peers_tell(&peers, i, "link 2 partition 1 1");
    }
    assert_true(peers_wait_step(&peers, 0, 250, 20));
    assert_true(peers_wait_step(&peers, 2, 200, 20));
    for (kith_id i = 0; i < 2; i++) {
        char line[32];
        snprintf(line, sizeof line, "link %u partition 0 1", i);
        peers_tell(&peers, 2, line);
        peers_tell(&peers, i, "link 2 partition 0 1");
    }
    for (kith_id i = 0; i < 3; i++)
        assert_true(peers_wait_finished(&peers, i, 30));
    assert_true(peers_stop(&peers, 10));
    print_all(&peers);
    for (kith_id i = 0; i < 3; i++) {
        const struct kith_peer_report *report = &peers.shared[i].report;
        char line[32];
        assert_int_equal(report->counters.bad, 0);
        assert_true(report->counters.waited_ns < report->wall_ns / 100);
        assert_true(report->counters.done > 0);
        snprintf(line, sizeof line, "link %u partition 0", i < 2 ? 2u : 0u);
        assert_true(peers_said(&peers, i, line));
    }
    peers_close(&peers);
}

static void one_slow_peer_holds_nobody_up(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, "name: slow\nseed: 13\npeers: 3\nstop: {steps: 300}\n"
                       "model: {kind: quadratic, dim: 50}\n"
                       "gossip: {algorithm: adpsgd, every: 2}\n"
                       "compute: {step: 4ms}\n");
    peers_start_all(&peers);
    peers_tell(&peers, 2, "slow 10");
    assert_true(peers_wait_finished(&peers, 0, 20));
    assert_true(peers_wait_finished(&peers, 1, 20));
    assert_true(peers.shared[2].step < 100);
    peers_tell(&peers, 2, "nonsense");
    peers_tell(&peers, 2, "slow 0.5");
    peers_tell(&peers, 2, "link 9 partition 1 1");
    peers_tell(&peers, 2, "link 0 slow 1 2");
    assert_true(peers_stop(&peers, 10));
    print_all(&peers);
    assert_true(peers_said(&peers, 2, "control-unread line=\"nonsense\""));
    assert_true(peers_said(&peers, 2, "control-unread line=\"slow 0.5\""));
    assert_true(peers_said(&peers, 2, "control-unread line=\"link 9 part"));
    assert_true(peers_said(&peers, 2, "control-unread line=\"link 0 slow"));
    assert_true(peers.shared[2].report.interrupted);
    assert_true(peers.shared[2].report.saved);
    for (kith_id i = 0; i < 2; i++)
        assert_true(peers.shared[i].report.counters.waited_ns <
                    peers.shared[i].report.wall_ns / 100);
    peers_close(&peers);
}

static void without_its_launcher_a_peer_ends(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, "name: orphan\nseed: 14\npeers: 1\nstop: {steps: 9000}\n"
                       "model: {kind: quadratic, dim: 5}\n"
                       "compute: {step: 4ms}\n");
    peers_start(&peers, 0, 0, false);
    assert_true(peers_wait_step(&peers, 0, 10, 20));
    close(peers.controls[0]);
    peers.controls[0] = -1;
    assert_true(peers_stop(&peers, 10));
    assert_true(peers.shared[0].report.saved);
    peers_close(&peers);
}

static void stop_time_is_kept(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, "name: time\nseed: 16\npeers: 2\nstop: {time: 500ms}\n"
                       "model: {kind: quadratic, dim: 5}\n"
                       "compute: {step: 4ms}\n");
    peers_start_all(&peers);
    for (int i = 0;
         i < 5000 && !(peers.shared[0].ended && peers.shared[1].ended); i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_true(peers_stop(&peers, 5));
    assert_true(peers.shared[0].report.finished);
    assert_false(peers.shared[0].report.interrupted);
    assert_true(peers.shared[0].report.wall_ns >= 500 * KITH_MS);
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_peer_comes_back),
        cmocka_unit_test(a_partition_heals),
        cmocka_unit_test(one_slow_peer_holds_nobody_up),
        cmocka_unit_test(without_its_launcher_a_peer_ends),
        cmocka_unit_test(stop_time_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
