/* Goal: who floods a peer with connections keeps no member out, and costs it
 * little: an honest join within 5 s under 1,000 silent connections a second.
 * Method: one peer trains; a process floods it from 200 loopback addresses,
 * which count as strangers here; then a member dials. With PEERS_PRINT
 * what floods cost, pinned: peers on core 0, the flooder on core 1. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/flood.h"
#include "tests/support/visit.h"

static const char yaml[] = "name: flood\nseed: 9\npeers: 3\n"
                           "stop: {time: 120s}\n"
                           "model: {kind: consensus, dim: 100}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

static void strangers(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    options->limits.loopback_exempt = false;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_s(double seconds)
{
    const double until = now_s() + seconds;
    while (now_s() < until)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Seconds until rank 2, which nobody can dial, has a session; it dials as peers
 * do, with their back-off. */
static double join_under(enum flood_kind kind, unsigned per_s, bool exempt)
{
    struct peers peers;
    double pause_s = 0.05;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    if (!exempt)
        peers.change = strangers;
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    const pid_t flooder = flood_begin(&peers, 0, kind, per_s, -1);
    wait_s(3);
    const struct visit_options options = visit_as(&peers, 2);
    const double began_s = now_s();
    for (bool open = false; !open && now_s() < began_s + 60;) {
        struct visit visit;
        visit_begin(&visit, &peers, &options);
        open = kith_session_is_open(visit.session);
        visit_end(&visit);
        if (!open)
            wait_s(pause_s);
        pause_s = pause_s > 2.5 ? 5 : 2 * pause_s;
    }
    const double took_s = now_s() - began_s;
    flood_end(flooder);
    assert_true(peers_stop(&peers, 10));
    if (getenv("PEERS_PRINT"))
        peers_print(&peers, 0);
    peers_close(&peers);
    print_message("kind %d, %u a second%s: joined after %.2f s\n", (int)kind,
                  per_s, exempt ? ", exempt" : "", took_s);
    return took_s;
}

/* Within 5 s where there are cores for the flooder and the peers (run with
 * PEERS_PRINT=1); on a busy machine two more of the dialler's pauses. */
static void members_join_under_a_flood(void **state)
{
    (void)state;
    const double most_s = getenv("PEERS_PRINT") ? 5 : 20;
    assert_true(join_under(FLOOD_SILENT, 1000, false) <= most_s);
    assert_true(join_under(FLOOD_HELLO, 1000, false) <= most_s);
    assert_true(join_under(FLOOD_SILENT, 1000, true) <= most_s);
}

/* CPU seconds of a peer's loop, which runs on the first thread: what a flood
 * takes from the steps where there is one core, and, unlike their rate, hardly
 * moved by what else runs on this machine. */
static double loop_s(pid_t pid)
{
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid,
             (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &ns), 1);
    fclose(file);
    return 1e-9 * (double)ns;
}

/* The loop's share of a core. */
static double loop_share(const struct peers *peers, double seconds)
{
    const double began_s = now_s(), before_s = loop_s(peers->pids[0]);
    wait_s(seconds);
    return (loop_s(peers->pids[0]) - before_s) / (now_s() - began_s);
}

static long resident_kb(pid_t pid)
{
    char path[64];
    long pages = 0, all = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* By turns: without, with, without. */
static void floods_cost_little(void **state)
{
    static const struct {
        enum flood_kind kind;
        unsigned per_s;
    } rows[] = {{FLOOD_RESET, 1000},  {FLOOD_RESET, 5000}, {FLOOD_SILENT, 1000},
                {FLOOD_SILENT, 5000}, {FLOOD_HELLO, 1000}, {FLOOD_HELLO, 5000}};
    struct peers peers;
    cpu_set_t cores;
    (void)state;
    if (!getenv("PEERS_PRINT"))
        skip();
    CPU_ZERO(&cores);
    CPU_SET(0, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    if (!getenv("PEERS_EXEMPT"))
        peers.change = strangers;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 0, "connected rank=1"));
    wait_s(1);
    const long before_kb = resident_kb(peers.pids[0]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double without = 0, with = 0;
        for (int turn = 0; turn < 4; turn++) {
            without += loop_share(&peers, 1.5) / 4;
            const pid_t flooder =
                flood_begin(&peers, 0, rows[i].kind, rows[i].per_s, 1);
            wait_s(0.2);
            with += loop_share(&peers, 1.5) / 4;
            flood_end(flooder);
            wait_s(0.2);
        }
        print_message("kind %d, %u a second: loop %.2f %% of a core, without "
                      "%.2f, +%ld kB\n",
                      (int)rows[i].kind, rows[i].per_s, 100.0 * with,
                      100.0 * without, resident_kb(peers.pids[0]) - before_kb);
    }
    assert_true(peers_stop(&peers, 10));
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_join_under_a_flood),
        cmocka_unit_test(floods_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
