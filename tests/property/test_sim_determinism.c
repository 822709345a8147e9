/* Goal: a run is a function of (experiment, seed): the same trace hash, event
 * and byte counts at every repeat, for both queues, for 1 to 4 threads, and for
 * both wire modes (promise 2). With --print the hashes are printed, so that
 * builds by other compilers and optimisation levels can be compared.
 * Method: a set of experiments that between them use every pattern, fault and
 * network setting, each run in all ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/simulate.h"

#define FAULTS                                                                 \
    "save: 300ms\n"                                                            \
    "faults:\n"                                                                \
    "  - {at: 400ms, crash: \"n(2)\", restart: \"uniform(100ms, 400ms)\"}\n"   \
    "  - {at: 500ms, for: 300ms, partition: \"peer(0..2) -> peer(3..6)\"}\n"   \
    "  - {at: 600ms, for: 200ms, pause: \"n(1)\"}\n"                           \
    "  - {at: 700ms, for: 200ms, slow: \"frac(0.3)\", by: 3}\n"
#define NETWORK                                                                \
    "network: {latency: 250us, jitter: 80us, rate: 50Mbit, loss: 0.005}\n"

static const char *const experiments[] = {
    "name: swap\nseed: 11\npeers: 7\nstop: {steps: 200}\n"
    "model: {kind: quadratic, dim: 40}\ntrain: {learning_rate: 0.05}\n"
    "gossip: {algorithm: adpsgd, topology: random}\n"
    "compute: {step: 5ms, merge: 50us}\n" NETWORK FAULTS,

    "name: round\nseed: 12\npeers: 7\nstop: {steps: 150}\n"
    "model: {kind: quadratic, dim: 40}\ntrain: {learning_rate: 0.05}\n"
    "gossip: {algorithm: dpsgd, topology: ring}\n"
    "compute: {step: 5ms}\n" NETWORK FAULTS,

    "name: push\nseed: 13\npeers: 7\nstop: {steps: 200}\n"
    "model: {kind: consensus, dim: 40}\n"
    "gossip: {algorithm: sgp, topology: exponential, every: 2}\n"
    "compute: {step: 5ms}\n" NETWORK FAULTS,

    "name: drop\nseed: 14\npeers: 8\nstop: {steps: 100}\n"
    "model: {kind: consensus, dim: 9}\n"
    "gossip: {algorithm: sgp, topology: one-peer-exponential, every: 4}\n"
    "network: {latency: 1ms, drop_push: 0.1}\ncompute: {step: 5ms}\n",

    "name: lockstep\nseed: 15\npeers: 64\nstop: {steps: 40}\n"
    "model: {kind: none}\ngossip: {algorithm: adpsgd}\n"
    "compute: {step: 5ms}\n",

    "name: timed\nseed: 16\npeers: 5\nstop: {time: 2s}\n"
    "model: {kind: quadratic, dim: 3}\ngossip: {algorithm: dpsgd, "
    "topology: complete}\n"
    "network: {latency: 2ms}\ncompute: {step: 5ms}\nevaluate: 500ms\n",

    "name: alone\nseed: 17\npeers: 1\nstop: {steps: 20}\n"
    "model: {kind: quadratic, dim: 3}\ngossip: {algorithm: adpsgd}\n"
    "compute: {step: 5ms}\n",

    /* Bursts of 16 records, several per model: rekeys and bulk framing. */
    "name: large\nseed: 18\npeers: 3\nstop: {steps: 4}\n"
    "model: {kind: quadratic, dim: 300001}\n"
    "gossip: {algorithm: adpsgd, topology: complete}\n"
    "network: {latency: 100us, rate: 1Gbit, suite: ChaChaPoly}\n"
    "compute: {step: 5ms}\n",
};
enum { EXPERIMENTS = sizeof experiments / sizeof experiments[0] };

static void assert_same(const struct simulated *a, const struct simulated *b)
{
    assert_int_equal(a->summary.trace_hash, b->summary.trace_hash);
    assert_int_equal(a->summary.events, b->summary.events);
    assert_int_equal(a->summary.bytes_sent, b->summary.bytes_sent);
    assert_int_equal(a->summary.bytes_per_peer_max,
                     b->summary.bytes_per_peer_max);
    assert_int_equal(a->report.messages, b->report.messages);
    assert_int_equal(a->report.handshakes, b->report.handshakes);
    assert_int_equal(a->report.bulk_bytes, b->report.bulk_bytes);
    /* Floats too, on one build: the order of every sum is fixed. */
    assert_memory_equal(&a->summary.loss.averaged, &b->summary.loss.averaged,
                        sizeof(double));
    assert_memory_equal(&a->summary.consensus_distance,
                        &b->summary.consensus_distance, sizeof(double));
}

static void in_all_ways(const char *yaml)
{
    const struct simulated first = simulate(yaml, NULL);
    static const struct sim_options ways[] = {
        {.threads = 1},
        {.queue = SIM_QUEUE_HEAP},
        {.threads = 2},
        {.threads = 4, .queue = SIM_QUEUE_HEAP},
        {.wire = KITH_WIRE_FULL},
        {.wire = KITH_WIRE_FULL, .threads = 2},
        {.ledger = SIM_LEDGER_PAIRS},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct simulated again = simulate(yaml, &ways[i]);
        assert_same(&first, &again);
    }
}

static void test_all_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXPERIMENTS; i++)
        in_all_ways(experiments[i]);
}

static void test_seed_matters(void **state)
{
    (void)state;
    char other[4096];
    snprintf(other, sizeof other, "%s", experiments[0]);
    memcpy(strstr(other, "seed: 11"), "seed: 21", 8);

    const struct simulated a = simulate(experiments[0], NULL);
    const struct simulated b = simulate(other, NULL);

    assert_int_not_equal(a.summary.trace_hash, b.summary.trace_hash);
}

/* The pool really shares the work: items heavy enough to wake a thread for. */
static void test_both_threads_work(void **state)
{
    (void)state;
    const char *yaml = "name: pool\nseed: 1\npeers: 8\nstop: {steps: 30}\n"
                       "model: {kind: quadratic, dim: 60000}\n"
                       "gossip: {algorithm: adpsgd, every: 4}\n"
                       "compute: {step: 5ms}\n";
    const struct sim_options two = {.threads = 2};
    const struct simulated alone = simulate(yaml, NULL);
    const struct simulated r = simulate(yaml, &two);

    printf("  items: %" PRIu64 " on the first thread, %" PRIu64
           " on the second\n",
           r.report.items[0], r.report.items[1]);
    assert_true(r.report.items[0] > 0);
    assert_true(r.report.items[1] > 0);
    assert_int_equal(alone.report.items[0],
                     r.report.items[0] + r.report.items[1]);
    assert_same(&alone, &r);
}

static int print_hashes(void)
{
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        const struct simulated r = simulate(experiments[i], NULL);
        printf("%016" PRIx64 " %" PRIu64 "\n", r.summary.trace_hash,
               r.summary.bytes_sent);
    }
    return 0;
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "--print") == 0)
        return print_hashes();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_ways),
        cmocka_unit_test(test_seed_matters),
        cmocka_unit_test(test_both_threads_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
