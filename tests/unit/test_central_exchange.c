/* Goal: one exchange takes as long as the literature's lower bounds say (T1.2:
 * seven patterns, n in {2, 3, 4, 8, 16}, to 1e-6; the golden column for n = 8),
 * and the laws with latency hold (T12). Lines that are shared change what sends
 * as it likes, as their own law says, and nothing where scripts send: one
 * message a line is all there is. Method: cost-only runs of a 223 MiB model
 * over 1.25e9 B/s, 10 GiB/s to add, 2 GiB/s to apply; for shared lines trace
 * hashes beside those of the queue. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/central_run.h"

#define BYTES (223.0 * 1024 * 1024)
#define T (BYTES / 1.25e9)
#define R (BYTES / (10.0 * 1024 * 1024 * 1024))
#define U (BYTES / (2.0 * 1024 * 1024 * 1024))
#define STEP 1e-3

static struct centralised run;
static const char *sharing = "queue"; /* network.sharing */

/* Seconds of a run of so many steps, less the steps themselves. */
static double exchange(unsigned peers, unsigned steps, const char *central)
{
    centralise(&run,
               "name: t\npeers: %u\nstop: {steps: %u}\nmodel: {kind: none}\n"
               "compute: {step: 1ms}\nnetwork: {rate: 10Gbit, sharing: %s}\n"
               "central: {payload: 233832448, reduce: 85899345920bit, "
               "update: 17179869184bit, %s}\n",
               peers, steps, sharing, central);
    return run.summary.virtual_s - steps * STEP;
}

static double log2_up(double n)
{
    return ceil(log2(n));
}

static bool pattern(const char *name, unsigned n, double expected,
                    double measured, double golden)
{
    char what[64];
    (void)snprintf(what, sizeof what, "%s, n = %u", name, n);
    bool good = agrees(what, expected, measured, 1e-6);
    if (n == 8)
        good = agrees("  golden", golden, measured, 1e-4) && good;
    return good;
}

static bool check_patterns(unsigned workers)
{
    const double n = workers;
    bool good = true;
    good &= pattern("naive, one server", workers, 2 * n * T + (n - 1) * R + U,
                    exchange(workers, 1, "exchange: naive"), 3.2544);
    good &= pattern("binomial tree", workers,
                    2 * log2_up(n + 1) * T + log2_up(n) * R + U,
                    exchange(workers, 1, "exchange: tree"), 1.6707);
    good &= pattern("scatter-reduce, one server", workers,
                    (2 + 2 * (n - 1) / n) * T + (n - 1) / n * R + U,
                    exchange(workers, 1, "exchange: scatter-reduce"), 0.8294);
    good &= pattern("async, whole sweep", workers, n * T + U,
                    exchange(workers, 1, "trigger: async"), 1.6054);
    good &= pattern(
        "co-located, k = n", workers,
        2 * (n - 1) / n * T + (n - 1) / n * R + U / n,
        exchange(workers, 1, "exchange: scatter-reduce, placement: workers"),
        0.3600);
    good &= pattern("recursive doubling", workers, log2_up(n) * (T + R) + U,
                    exchange(workers, 1, "exchange: doubling"), 0.7354);
    good &= pattern("ring", workers, 2 * (n - 1) / n * T + (n - 1) / n * R + U,
                    exchange(workers, 1, "exchange: ring"), 0.4553);
    return good;
}

static void test_lower_bounds(void **state)
{
    (void)state;
    static const unsigned counts[] = {2, 3, 4, 8, 16};
    bool good = true;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        good = check_patterns(counts[i]) && good;
    assert_true(good);
}

/* One worker alone: from its second gradient to its third, 2T + U. */
static void test_async_alone(void **state)
{
    (void)state;
    const double two = exchange(1, 2, "trigger: async");
    const double three = exchange(1, 3, "trigger: async");
    assert_true(agrees("async, one worker", 2 * T + U, three - two, 1e-6));
}

/* k servers share the load; on the workers with k = n this is the co-located
 * pattern. */
static void test_sharded(void **state)
{
    (void)state;
    const double n = 8, k = 4;
    assert_true(agrees("4 servers, n = 8",
                       2 * n / k * T + (n - 1) / k * R + U / k,
                       exchange(8, 1, "servers: 4"), 1e-6));
    assert_true(agrees("8 servers on 8 workers",
                       2 * (n - 1) / n * T + (n - 1) / n * R + U / n,
                       exchange(8, 1, "servers: 8, placement: workers"), 1e-6));
    /* 4 proxies of 2: 2T up to them, R, 4T to the server, 3R, U, and back. */
    assert_true(agrees("4 proxies, n = 8", 2 * (2 + 4) * T + 4 * R + U,
                       exchange(8, 1, "proxies: 4"), 1e-6));
    /* A majority of 3 is one more: T to it. */
    assert_true(agrees("async with 3 replicas", 2 * T + U,
                       exchange(1, 1, "trigger: async, replicas: 3"), 1e-6));
}

/* T12, without sums: latency L and bytes S over B. */
static double lawful(unsigned peers, const char *central)
{
    centralise(&run,
               "name: t\npeers: %u\nstop: {steps: 1}\nmodel: {kind: none}\n"
               "compute: {step: 1ms}\n"
               "network: {rate: 1Gbit, latency: 20ms}\n"
               "central: {payload: 12500000, %s}\n",
               peers, central);
    return run.summary.virtual_s - STEP;
}

static void test_laws(void **state)
{
    (void)state;
    const double latency = 0.02, send = 0.1;
    bool good = true;
    for (unsigned n = 2; n <= 64; n *= 2) {
        char what[64];
        (void)snprintf(what, sizeof what, "ring with latency, n = %u", n);
        good &= agrees(what, 2 * (n - 1) * (latency + send / n),
                       lawful(n, "exchange: ring"), 1e-6);
        (void)snprintf(what, sizeof what, "tree with latency, n = %u", n);
        good &= agrees(what, 2 * log2_up(n) * (latency + send),
                       lawful(n, "exchange: tree, placement: workers"), 1e-6);
    }
    good &= agrees("pair, full duplex", latency + send,
                   lawful(2, "exchange: doubling"), 1e-6);
    const double tree = lawful(1024, "exchange: tree, placement: workers");
    good &= agrees("tree / pair, n = 1024", 20,
                   tree / lawful(2, "exchange: doubling"), 1e-6);
    assert_true(good);
}

/* What every machine sends adds up to what its pattern needs. */
static void test_bytes(void **state)
{
    (void)state;
    const double s = 233832448;
    (void)exchange(8, 1, "exchange: ring");
    assert_true(
        agrees("bytes, ring", 2 * 7 * s, (double)run.summary.bytes_sent, 1e-9));
    (void)exchange(8, 1, "exchange: naive");
    assert_true(agrees("bytes, naive", 2 * 8 * s,
                       (double)run.summary.bytes_sent, 1e-9));
    (void)exchange(8, 1, "exchange: doubling");
    assert_true(agrees("bytes, doubling", 8 * 3 * s,
                       (double)run.summary.bytes_sent, 1e-9));
    (void)exchange(8, 1, "exchange: tree");
    assert_true(
        agrees("bytes, tree", 2 * 8 * s, (double)run.summary.bytes_sent, 1e-9));
    (void)exchange(8, 1, "exchange: scatter-reduce");
    assert_true(agrees("bytes, scatter-reduce", (2 * 7 + 2) * s,
                       (double)run.summary.bytes_sent, 1e-9));
}

/* ---- lines that are shared */

/* Is the trace another one than with a queue? */
static bool is_changed(const char *central)
{
    uint64_t hash[2];
    for (int fair = 0; fair < 2; fair++) {
        centralise(&run,
                   "name: t\npeers: 8\nstop: {steps: 300}\n"
                   "model: {kind: none}\ncompute: {step: 1ms}\n"
                   "network: {rate: 10Gbit, latency: 1ms, jitter: 2ms, "
                   "sharing: %s}\n"
                   "central: {payload: 10000000, update: 1GB, %s}\n",
                   fair ? "fair" : "queue", central);
        hash[fair] = run.summary.trace_hash;
    }
    return hash[0] != hash[1];
}

/* Whoever sends when it likes meets others on the server's line. */
static void test_sent_share(void **state)
{
    (void)state;
    static const char *const sent[] = {
        "trigger: async",      "trigger: ssp",
        "trigger: essp",       "trigger: async, servers: 4",
        "method: easgd",       "method: treeeasgd, degree: 4, up: 1, down: 1",
        "trigger: value-bound"};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        if (!is_changed(sent[i]))
            fail_msg("%s: nothing is shared", sent[i]);
    /* All gradients are there at once, and none is applied before. Both copies
     * of a majority share a line. */
    sharing = "fair";
    bool good = true;
    static const unsigned counts[] = {2, 3, 4, 8, 16};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        good &= agrees("async, whole sweep, shared", counts[i] * (T + U),
                       exchange(counts[i], 1, "trigger: async"), 1e-6);
    good &= agrees("async with 3 replicas, shared", 3 * T + U,
                   exchange(1, 1, "trigger: async, replicas: 3"), 1e-6);
    sharing = "queue";
    assert_true(good);
}

/* A script has one message in and one out at a time, which staged_exchange.c
 * asserts of every message. */
static void test_stages_share_nothing(void **state)
{
    (void)state;
    static const char *const staged[] = {
        "exchange: naive",
        "exchange: naive, servers: 4",
        "exchange: naive, proxies: 4",
        "exchange: tree",
        "exchange: scatter-reduce",
        "exchange: scatter-reduce, placement: workers",
        "exchange: doubling",
        "exchange: ring",
        "method: sparknet",
        "method: mpca-sgd, exchange: ring"};
    for (size_t i = 0; i < sizeof staged / sizeof *staged; i++)
        if (is_changed(staged[i]))
            fail_msg("%s: not as with a queue", staged[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower_bounds),
        cmocka_unit_test(test_async_alone),
        cmocka_unit_test(test_sharded),
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_sent_share),
        cmocka_unit_test(test_stages_share_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
