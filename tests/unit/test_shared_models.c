/* Goal: two peers of one host read models from each other's memory once both
 * want to, and a model arrives whichever way it goes: where one end does not
 * share, over a link that is shaped. A model that is filled anew while it is
 * read is thrown away, and the next one comes; one whose parts come in another
 * order is no model (T6.3); the analyser has what went which way (T6.5).
 * Method: the two transports of host_pair.h; bytes on the sockets tell which
 * way a model went. Prints expected and measured. */
#include "tests/support/host_pair.h"

#include <stdio.h>
#include <string.h>

#include "kith/wire.h"

/* Of the sender's, and of the receiver's, which ends in the inbox. */
static void passes(const char *way, uint64_t models, uint64_t expected)
{
    const uint64_t out = pair_sides[0].transport.use.passes;
    const uint64_t in = pair_sides[1].transport.use.passes;
    printf("T6.1 passes of sender and receiver, %s: expected %llu and 1, "
           "measured %.3g and %.3g\n",
           way, (unsigned long long)expected, (double)out / (double)models,
           (double)in / (double)models);
    assert_int_equal(out, expected * models);
    assert_int_equal(in, models);
}

static void models_go_by_memory(void **state)
{
    (void)state;
    pair_open(true, true, 0);
    RUN_UNTIL(pair_link(0)->sharing.ready && pair_link(1)->sharing.ready);
    for (uint8_t i = 0; i < 5; i++) {
        const uint64_t sent = pair_cost(i);
        assert_true(sent < 1000);
        if (i == 0)
            printf("T6.1 bytes on the socket, model of %zu: expected <= 1000, "
                   "measured %llu\n",
                   PAIR_BYTES, (unsigned long long)sent);
    }
    passes("shared memory", 5, 0);
}

static void one_that_does_not_share(void **state)
{
    (void)state;
    pair_open(true, false, 0);
    assert_true(pair_cost(1) > PAIR_BYTES);
    assert_true(pair_cost(2) > PAIR_BYTES);
    passes("sealed, TCP", 2, 1);
    assert_false(pair_link(0)->sharing.ready);
}

static void a_shaped_link_carries_its_bytes(void **state)
{
    (void)state;
    pair_open(true, true, KITH_MS);
    RUN_UNTIL(pair_link(0)->sharing.ready);
    assert_true(pair_cost(1) > PAIR_BYTES);
    const uint64_t outside =
        pair_sides[0].transport.sent.slots[PAIR_SLOT].outside;
    printf(
        "T6.5 models that go another way than by the memory that a neighbour "
        "has: expected 1, measured %llu\n",
        (unsigned long long)outside);
    assert_int_equal(outside, 1);
}

static void torn_models_are_thrown_away(void **state)
{
    (void)state;
    pair_open(true, true, 0);
    RUN_UNTIL(pair_link(0)->sharing.ready);
    (void)pair_cost(1);
    /* The begin asks once, then each burst: the second one of three. */
    pair_sides[1].refill_at = pair_sides[1].asked + 3;
    pair_send(2);
    RUN_UNTIL(pair_sides[1].unwanted == 1);
    assert_int_equal(pair_sides[1].models, 1);
    assert_true(pair_cost(3) < 1000);
    /* Nobody waits for it: its bytes are not looked at. */
    pair_sides[1].wants = false;
    pair_send(4);
    RUN_UNTIL(pair_sides[1].unwanted == 2);
    pair_sides[1].wants = true;
    assert_true(pair_cost(5) < 1000);
}

/* READY comes while the first burst is on its way by TCP. */
static void a_model_may_come_both_ways(void **state)
{
    (void)state;
    pair_open(true, true, 0);
    RUN_UNTIL(pair_link(0)->sharing.ready && pair_link(1)->sharing.ready);
    (void)pair_cost(1);
    struct kith_link *out = pair_sides[0].transport.members[1].link;
    kith_shared_refill(&pair_sides[0].shared, PAIR_SLOT);
    pair_fill(2);
    out->sharing.ready = false;
    out->traffic.bursts = KITH_BURSTS_MIN - 1; /* room for one */
    pair_send(2);
    out->traffic.bursts -= KITH_BURSTS_MIN - 1;
    out->sharing.ready = true;
    kith_traffic_pump(out);
    RUN_UNTIL(pair_sides[1].models + pair_sides[1].unwanted > 1);
    assert_int_equal(pair_sides[1].models, 2);
    assert_memory_equal(pair_sides[1].inbox, pair_sides[0].slot, PAIR_BYTES);
}

/* As kith_traffic_pump() does it, but for the order of the three bursts. */
static void send_in_order(const unsigned order[3])
{
    struct kith_link *link = pair_sides[0].transport.members[1].link;
    struct kith_transfer transfer = {.message = {.kind = KITH_MESSAGE_MODEL,
                                                 .pattern = KITH_PATTERN_SWAP,
                                                 .id = {.counter = 1},
                                                 .mine = true,
                                                 .payload_bytes = PAIR_BYTES,
                                                 .slot = PAIR_SLOT}};
    uint8_t header[KITH_WIRE_BYTES_MAX], frame[KITH_SHARED_BURST_BYTES];
    link->traffic.out_id++;
    assert_true(kith_link_control(link, header,
                                  kith_wire_pack(&transfer.message, header)));
    for (unsigned i = 0; i < 3; i++) {
        transfer.offset = order[i] * (size_t)KITH_BURST_BYTES;
        const size_t length = order[i] < 2 ? KITH_BURST_BYTES : 4096;
        const size_t size = kith_shared_burst_place(
            link, &transfer, pair_sides[0].slot, length, frame);
        assert_int_equal(size, sizeof frame);
        (void)kith_link_control(link, frame, size);
    }
}

/* A transport that delivers out of address order: the paper's flag, the last
 * byte of a write, would take such a model for whole. */
static void bursts_out_of_order_are_detected(void **state)
{
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint64_t *refused =
        &pair_sides[1].transport.refusals[KITH_REFUSAL_TRANSFER];
    (void)state;
    pair_open_side(0, true, 0);
    pair_open_side(1, true, 0);
    for (unsigned i = 0; i < 6; i++) {
        /* After a refusal the next dial waits. */
        RUN_UNTIL((kith_transport_dial(&pair_sides[0].transport, 1),
                   pair_link(0) != NULL && pair_link(0)->sharing.ready));
        pair_fill((uint8_t)i);
        send_in_order(orders[i]);
        RUN_UNTIL(*refused + pair_sides[1].models == i + 1);
        RUN_UNTIL(i == 0 || pair_link(0) == NULL);
    }
    printf("T6.3 models accepted and refused, of the 6 orders of 3 bursts: "
           "expected 1 and 5, measured %u and %llu\n",
           pair_sides[1].models, (unsigned long long)*refused);
    assert_int_equal(pair_sides[1].models, 1);
}

/* What the analyser has of the only slot. */
static void the_first_model_alone_is_copied(void **state)
{
    const struct kith_sent_slot *slot =
        &pair_sides[0].transport.sent.slots[PAIR_SLOT];
    (void)state;
    pair_open(true, true, 0);
    assert_false(pair_link(0)->sharing.ready); /* it takes some turns */
    (void)pair_cost(1);
    const uint64_t first = slot->by_channel;
    RUN_UNTIL(pair_link(0)->sharing.ready);
    for (uint8_t i = 2; i < 7; i++)
        (void)pair_cost(i);
    printf("T6.5 copies at the sender in iteration 1, in 2 to 6: expected 1 "
           "and 0, measured %llu and %llu\n",
           (unsigned long long)first,
           (unsigned long long)(slot->by_channel - first));
    assert_int_equal(first, 1);
    assert_int_equal(slot->by_channel, 1);
    assert_int_equal(slot->by_memory, 5);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)
    const struct CMUnitTest tests[] = {
        TEST(models_go_by_memory),
        TEST(one_that_does_not_share),
        TEST(a_shaped_link_carries_its_bytes),
        TEST(torn_models_are_thrown_away),
        TEST(a_model_may_come_both_ways),
        TEST(bursts_out_of_order_are_detected),
        TEST(the_first_model_alone_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
