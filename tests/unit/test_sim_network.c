/* Goal: time and bytes on simulated links are what the arithmetic says.
 * Method: two or three peers, one exchange, and delays computed by hand: the
 * trace carries every arrival with its nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/session.h"
#include "kith/wire.h"
#include "sim/link_table.h"
#include "sim/world.h"
#include "tests/support/traced.h"

/* Two steps each, then one exchange with a neighbour, who is not dialled ahead:
 * a seed, and what the network is like. */
#define PAIR                                                                   \
    "name: pair\nseed: %u\npeers: 2\nstop: {steps: 2}\n"                       \
    "model: {kind: consensus, dim: 10}\ncompute: {step: 100ms}\n"              \
    "gossip: {algorithm: adpsgd, every: 2, topology: ring}\n"                  \
    "network: {%s}\n"

static struct simulated pair(const char *network)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml, PAIR, 1, network);
    return traced(yaml);
}

static void test_latency(void **state)
{
    (void)state;
    pair("latency: 3ms");

    /* Both dial at 200 ms; the lower rank's SYN counts. SYN, SYNACK, three
     * flights and a HELLO: the responder is up after 5, the dialler after 6
     * latencies; then its REQUEST takes one more. */
    assert_int_equal(when("link with 0 is up"), 215 * KITH_MS);
    assert_int_equal(when("link with 1 is up"), 218 * KITH_MS);
    assert_int_equal(when("< request from 0"), 221 * KITH_MS);
}

static void test_rate(void **state)
{
    (void)state;
    const struct simulated run = pair("latency: 3ms, rate: 1Mbit");

    /* 1 us per bit, and cut-through: bytes cost once on an idle path. */
    const kith_ns up = when("link with 0 is up");
    const kith_ns request = when("< request from 0");
    const kith_ns dialler_up = when("link with 1 is up");
    assert_true(up > 215 * KITH_MS);
    struct kith_message message = {.kind = KITH_MESSAGE_REQUEST,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = KITH_ASKS},
                                   .mine = true,
                                   .step = 2,
                                   .payload_bytes = 40,
                                   .overlap = 1};
    const kith_ns expected =
        3 * KITH_MS + 8 * KITH_US * (kith_ns)sim_message_bytes(&message);
    assert_int_equal(request - dialler_up, expected);
    assert_true(run.summary.bytes_sent > 0);
}

/* Header, bursts, tags and announcements: added up by hand. */
static void test_message_bytes(void **state)
{
    (void)state;
    struct kith_message message = {.kind = KITH_MESSAGE_MODEL,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = 7},
                                   .payload_bytes = 0};
    const uint64_t empty = kith_session_control_size(kith_wire_size(&message));
    assert_int_equal(sim_message_bytes(&message), empty);

    message.payload_bytes = 2 * (uint64_t)KITH_BURST_BYTES + 100;
    const uint64_t header = kith_session_control_size(kith_wire_size(&message));
    const uint64_t announcements = 3 * (2 + 1 + 20 + KITH_TAG_BYTES);
    const uint64_t records = 2 * KITH_BURST_RECORDS + 1;
    assert_int_equal(sim_message_bytes(&message),
                     header + announcements + message.payload_bytes +
                         records * (2 + KITH_TAG_BYTES));
}

/* The answering end waits for a model as long as one takes to come, though the
 * models of both ends leave at once: 54 where it waited for the answer's lead
 * alone. */
static void test_long_way(void **state)
{
    (void)state;
    const struct simulated run = simulate(
        "name: way\nseed: 1\npeers: 2\nstop: {steps: 600}\n"
        "model: {kind: consensus, dim: 10}\ncompute: {step: 40ms}\n"
        "gossip: {algorithm: adpsgd, every: 2}\nnetwork: {latency: 160ms}\n",
        NULL);
    assert_true(run.summary.exchanges.done >= 120);
}

/* Peers that take part in one exchange at a time and whose steps are short
 * beside a round trip: 12 where each asks again as soon as it was refused. */
static void test_askers_listen(void **state)
{
    (void)state;
    const struct simulated run =
        simulate("name: listen\nseed: 3\npeers: 15\nstop: {time: 20s}\n"
                 "model: {kind: consensus, dim: 4}\n"
                 "compute: {step: 10ms, spread: exponential}\n"
                 "gossip: {algorithm: acid, topology: binary-tree}\n"
                 "network: {latency: 154ms}\n",
                 NULL);
    assert_true(run.summary.exchanges.done >= 50);
}

/* Loss is delay, by whole timers of 200 ms and a round trip. */
static void test_loss_delays(void **state)
{
    (void)state;
    unsigned late = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml, PAIR, seed, "latency: 3ms, loss: 0.1");
        traced(yaml);
        const kith_ns up_ns = when("link with 0 is up");
        if (up_ns > 215 * KITH_MS) {
            assert_int_equal((up_ns - 215 * KITH_MS) % (206 * KITH_MS), 0);
            late++;
        } else {
            assert_int_equal(up_ns, 215 * KITH_MS);
        }
    }
    assert_in_range(late, 1, 19);
}

/* Jitter reorders nothing on one connection. */
static void test_jitter_keeps_order(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
                 "name: jitter\nseed: %u\npeers: 4\nstop: {steps: 50}\n"
                 "model: {kind: consensus, dim: 4}\n"
                 "gossip: {algorithm: adpsgd, topology: complete}\n"
                 "network: {latency: 100us, jitter: 20ms, wire: sized}\n"
                 "compute: {step: 50ms}\n",
                 seed);
        /* Out of order, a record would fail its tag: the run would end. */
        const struct sim_options full = {.wire = KITH_WIRE_FULL};
        const struct simulated run = simulate(yaml, &full);
        assert_true(run.report.messages > 100);
    }
}

static void test_table(void **state)
{
    (void)state;
    enum { PEERS = 300 };
    struct sim_link_table table;
    assert_int_equal(sim_link_table_open(&table), KITH_OK);
    uint32_t count = 0;
    for (kith_id a = 0; a < PEERS; a++) {
        for (kith_id b = a + 1; b < PEERS; b += 7) {
            uint32_t index, again;
            bool made;
            assert_non_null(sim_link_table_get(&table, a, b, &index, &made));
            assert_true(made);
            assert_int_equal(index, count);
            count++;
            const struct sim_link *link =
                sim_link_table_get(&table, b, a, &again, &made);
            assert_false(made);
            assert_int_equal(index, again);
            assert_int_equal(link->end[0], a);
            assert_int_equal(link->end[1], b);
        }
    }
    sim_link_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_message_bytes),
        cmocka_unit_test(test_long_way),
        cmocka_unit_test(test_askers_listen),
        cmocka_unit_test(test_loss_delays),
        cmocka_unit_test(test_jitter_keeps_order),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
