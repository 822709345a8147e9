/* Goal: messages that share lines leave at fair rates, and what ends one of
 * them gives its share to the others at once; nothing depends on queue, threads
 * or wire.
 * Method: ends computed by hand, of flows alone and of models in a trace; an
 * idle path against the queue's; random experiments with faults, and with real
 * sessions, which refuse records out of order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/rng.h"
#include "sim/flows.h"
#include "tests/support/traced.h"

static void begin(struct sim_flows_in_time *flows, uint32_t flow, uint32_t from,
                  uint32_t to, uint64_t bytes, kith_ns now_ns)
{
    const uint32_t path[] = {from, to};
    assert_int_equal(sim_flows_begin(flows, flow, path, 2, bytes, now_ns),
                     KITH_OK);
}

static kith_ns next_end(struct sim_flows_in_time *flows, kith_ns now_ns,
                        uint32_t expected)
{
    uint32_t flow;
    assert_int_equal(sim_flows_share(flows, now_ns), KITH_OK);
    const kith_ns end_ns = sim_flows_next(flows, &flow);
    assert_int_equal(flow, expected);
    return end_ns;
}

/* Lines 0 to 3 of a byte a nanosecond. */
static void test_ends_by_hand(void **state)
{
    (void)state;
    struct sim_flows_in_time flows;
    assert_int_equal(sim_flows_open(&flows, 4), KITH_OK);
    for (uint32_t link = 0; link < 4; link++)
        sim_rates_capacity(&flows.rates, link, 1);
    begin(&flows, 5, 0, 2, 1000, 0);
    assert_int_equal(next_end(&flows, 0, 5), 1000);
    /* From 200 on half each: 800 left of one, 100 of the other. */
    begin(&flows, 1, 0, 3, 100, 200);
    assert_int_equal(next_end(&flows, 200, 1), 400);
    assert_true(sim_flows_end(&flows, 1, 400) == 0);
    assert_int_equal(next_end(&flows, 400, 5), 1100);
    /* Three into one line: 350 left at 750; the two others began together. */
    begin(&flows, 2, 1, 2, 50, 750);
    begin(&flows, 3, 3, 2, 50, 750);
    assert_int_equal(next_end(&flows, 750, 2), 900);
    assert_true(sim_flows_end(&flows, 5, 780) == 340);
    /* 40 left of each, at half a byte. */
    assert_int_equal(next_end(&flows, 780, 2), 860);
    (void)sim_flows_end(&flows, 2, 860);
    assert_int_equal(next_end(&flows, 860, 3), 861);
    (void)sim_flows_end(&flows, 3, 861);
    assert_int_equal(next_end(&flows, 861, UINT32_MAX), KITH_NEVER);
    /* Longer than time goes. */
    begin(&flows, 0, 0, 1, UINT64_MAX, 861);
    assert_int_equal(next_end(&flows, 861, 0), KITH_NEVER);
    sim_flows_close(&flows);
}

/* ---- in a run */

/* A message at a time has the line for itself: both say the same. */
static void test_idle_path(void **state)
{
    (void)state;
    static const char *const words[] = {"link with 0 is up",
                                        "link with 1 is up", "< request from 0",
                                        "< model from 0"};
    kith_ns queued[4];
    for (unsigned fair = 0; fair < 2; fair++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
                 "name: pair\nseed: 1\npeers: 2\nstop: {steps: 2}\n"
                 "model: {kind: consensus, dim: 1000}\ncompute: {step: 100ms}\n"
                 "gossip: {algorithm: adpsgd, every: 2, topology: ring}\n"
                 "network: {latency: 3ms, rate: 1Mbit, sharing: %s}\n",
                 fair ? "fair" : "queue");
        traced(yaml);
        for (unsigned i = 0; i < 4; i++) {
            if (!fair)
                queued[i] = when(words[i]);
            assert_true(queued[i] > 0);
            assert_int_equal(when(words[i]), queued[i]);
        }
    }
}

/* Three peers, each with a model for both others at 200 ms: two flows on each
 * line, 4 MB at half a Gbit/s. */
static struct simulated three(const char *gossip, const char *faults)
{
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "name: three\nseed: 1\npeers: 3\nstop: {steps: 4}\n"
             "model: {kind: consensus, dim: 1000000}\ncompute: {step: 100ms}\n"
             "gossip: {algorithm: dpsgd, topology: complete%s}\n"
             "network: {latency: 1ms, rate: 1Gbit, sharing: fair}\n%s",
             gossip, faults);
    return traced(yaml);
}

static kith_ns model_comes(unsigned from, unsigned to)
{
    char words[64];
    snprintf(words, sizeof words, " %u  < model from %u ", to, from);
    return when_from(201 * KITH_MS, words);
}

/* How long a model takes at half of a line, without latency. */
static kith_ns half_rate_time(void)
{
    three("", "");
    const kith_ns time_ns = model_comes(0, 1) - 201 * KITH_MS;
    assert_in_range(time_ns, 64 * KITH_MS, 64100 * KITH_US);
    return time_ns;
}

static void test_lines_are_shared(void **state)
{
    (void)state;
    const kith_ns there_ns = 201 * KITH_MS + half_rate_time();
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            if (from != to)
                assert_int_equal(model_comes(from, to), there_ns);
}

/* What a crash ends is the others' at once: the rest of the models that are
 * left takes half as long. */
static void test_crash(void **state)
{
    (void)state;
    const kith_ns half_ns = half_rate_time();
    three("", "faults: [{at: 216ms, crash: peer(2)}]\n");
    const kith_ns there_ns = 217 * KITH_MS + (half_ns - 16 * KITH_MS + 1) / 2;
    assert_int_equal(model_comes(0, 1), there_ns);
    assert_int_equal(model_comes(1, 0), there_ns);
    assert_int_equal(model_comes(0, 2), -1);
    assert_int_equal(model_comes(2, 0), -1);
}

/* Nothing leaves over the cut; the third peer's lines are full all the same.
 * Once it has healed, half a line again until the others are through. */
static void test_partition(void **state)
{
    (void)state;
    const kith_ns half_ns = half_rate_time();
    three("", "faults: [{at: 216ms, for: 30ms, "
              "partition: \"peer(0) <-> peer(2)\"}]\n");
    assert_int_equal(model_comes(0, 1), 201 * KITH_MS + half_ns);
    assert_int_equal(model_comes(1, 2), 201 * KITH_MS + half_ns);
    const kith_ns there_ns = 201 * KITH_MS + half_ns + 15 * KITH_MS;
    /* But for a READY that crosses it meanwhile. */
    assert_in_range(model_comes(0, 2), there_ns, there_ns + KITH_US);
    assert_in_range(model_comes(2, 0), there_ns, there_ns + KITH_US);
}

/* A round that gives up calls its models back; what it says after that has an
 * idle line. */
static void test_cancel(void **state)
{
    (void)state;
    three(", deadline: 30ms", "");
    assert_int_equal(model_comes(0, 1), -1);
    const kith_ns abort_ns = when_from(201 * KITH_MS, "< abort from");
    assert_in_range(abort_ns, 231 * KITH_MS, 231 * KITH_MS + 2 * KITH_US);
}

/* ---- the same however it is simulated */

static uint64_t hash_of(const char *yaml, enum sim_queue_kind queue,
                        unsigned threads, enum kith_wire_mode wire)
{
    const struct sim_options options = {
        .queue = queue, .threads = threads, .wire = wire};
    return simulate(yaml, &options).summary.trace_hash;
}

static void draw_experiment(unsigned seed, char *yaml, size_t size)
{
    static const char *const algorithms[] = {"adpsgd", "dpsgd", "diloco",
                                             "gosgd", "choco"};
    struct kith_rng rng;
    kith_rng_init(&rng, seed, 0, 0);
    snprintf(yaml, size,
             "name: random\nseed: %u\npeers: %u\nstop: {steps: 60}\n"
             "model: {kind: quadratic, dim: %u}\n"
             "gossip: {algorithm: %s, every: %u, topology: %s}\n"
             "compute: {step: 1ms, spread: %s}\n"
             "network: {latency: %uus, jitter: %uus, rate: %ukbit, loss: %s, "
             "sharing: fair}\n"
             "faults:\n  - {at: 10ms, crash: n(1), restart: 15ms}\n"
             "  - {at: 20ms, pause: n(1), for: 9ms}\n"
             "  - {at: %uus, partition: \"peer(0) -> peer(1)\", for: %ums}\n",
             seed, 2 + kith_rng_below(&rng, 12), 1 + kith_rng_below(&rng, 500),
             algorithms[kith_rng_below(&rng, 5)], 1 + kith_rng_below(&rng, 4),
             kith_rng_below(&rng, 2) ? "ring" : "complete",
             kith_rng_below(&rng, 2) ? "fixed" : "exponential",
             kith_rng_below(&rng, 2) * kith_rng_below(&rng, 500),
             kith_rng_below(&rng, 2) * kith_rng_below(&rng, 200),
             500 + kith_rng_below(&rng, 20000),
             kith_rng_below(&rng, 3) ? "0" : "0.02",
             kith_rng_below(&rng, 40000), 1 + kith_rng_below(&rng, 10));
}

static void test_random_experiments(void **state)
{
    (void)state;
    const char *given = getenv("KITH_SEED");
    const unsigned first = given ? (unsigned)strtoul(given, NULL, 10) : 1;
    for (unsigned seed = first; seed < first + (given ? 1 : 60); seed++) {
        char yaml[1024];
        draw_experiment(seed, yaml, sizeof yaml);
        const uint64_t hash =
            hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_SIZED);
        if (hash != hash_of(yaml, SIM_QUEUE_HEAP, 1, KITH_WIRE_SIZED) ||
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 2, KITH_WIRE_SIZED))
            fail_msg("KITH_SEED=%u: queues or threads differ\n%s", seed, yaml);
        if (seed % 4 == 0 &&
            hash != hash_of(yaml, SIM_QUEUE_CALENDAR, 1, KITH_WIRE_FULL))
            fail_msg("KITH_SEED=%u: wires differ\n%s", seed, yaml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_by_hand),
        cmocka_unit_test(test_idle_path),
        cmocka_unit_test(test_lines_are_shared),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_random_experiments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
