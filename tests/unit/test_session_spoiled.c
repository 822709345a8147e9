/* Bytes that were altered, cut, or sealed by an end that knows the keys and not
 * the rules, are refused, each with its code and its words.
 *
 * Method: every offset of the handshake and of records in turn; then frames
 * that no honest end would seal. After every refusal a good pair connects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/protocol/session/session_state.h"
#include "tests/support/refusals.h"

/* Plays the handshake, spoiling flight `flight` (0: the initiator's first) in
 * `wire[at]` by `mask`, or cutting it to `at` bytes where mask is 0. */
static bool spoiled_handshake(int flight, size_t at, uint8_t mask,
                              size_t *flight_bytes)
{
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    for (int turn = 0; turn < 4; turn++) {
        struct sessions_end *to = &pair.ends[1 - turn % 2];
        size_t n = output_of(turn % 2);
        if (turn == flight) {
            *flight_bytes = n;
            assert_true(at < n);
            wire[at] ^= mask;
            n = mask ? n : at;
        }
        if (to->error == KITH_OK)
            to->error = sessions_feed(to, wire, n);
    }
    return kith_session_is_open(pair.ends[0].session) &&
           kith_session_is_open(pair.ends[1].session);
}

static void test_every_handshake_byte(void **state)
{
    (void)state;
    for (int flight = 0; flight < 4; flight++) {
        size_t bytes = 1;
        for (size_t at = 0; at < bytes; at++) {
            const uint8_t mask = (uint8_t)(1u << at % 8);
            assert_false(spoiled_handshake(flight, at, mask, &bytes));
            for (int i = 0; i < 2; i++) {
                const struct sessions_end *end = &pair.ends[i];
                if (end->error != KITH_OK)
                    assert_true(kith_session_reason(end->session)[0] != '\0');
            }
            sessions_close(&pair);
            assert_false(spoiled_handshake(flight, at, 0, &bytes));
            assert_int_equal(KITH_OK, pair.ends[1 - flight % 2].error);
            sessions_close(&pair);
        }
        printf("  flight %d: %zu bytes flipped and cut\n", flight, bytes);
    }
    good_again();
}

/* One control record and one short burst behind it. */
static size_t seal_some(uint8_t *out, size_t capacity)
{
    static const uint8_t payload[100] = {1, 2, 3};
    size_t n = 0, m = 0;
    assert_int_equal(KITH_OK,
                     kith_session_seal_control(pair.ends[0].session, payload,
                                               20, out, capacity, &n));
    assert_int_equal(KITH_OK,
                     kith_session_seal_burst(
                         pair.ends[0].session,
                         &(const struct kith_session_burst){1, 0, payload, 100},
                         out + n, capacity - n, &m));
    return n + m;
}

static void test_every_record_byte(void **state)
{
    (void)state;
    static uint8_t sink[100];
    size_t n = 1;
    for (size_t at = 0; at < n; at++)
        for (int cut = 0; cut < 2; cut++) {
            begin(KITH_SUITE_CHACHAPOLY);
            assert_true(sessions_start(&pair));
            assert_true(sessions_connect(&pair));
            struct sessions_end *end = &pair.ends[1];
            end->sink = sink;
            n = seal_some(wire, sizeof wire);
            wire[at] ^= (uint8_t)(cut ? 0 : 1u << at % 8);
            const enum kith_err err = sessions_feed(end, wire, cut ? at : n);
            assert_int_not_equal(KITH_SESSION_BURST, end->last.kind);
            /* A longer length waits for bytes; all else is refused. */
            if (cut)
                assert_int_equal(KITH_OK, err);
            else if (err == KITH_OK)
                assert_int_equal(1, kith_session_is_open(end->session));
            else
                assert_true(err == KITH_EAUTH || err == KITH_EPARSE);
            sessions_close(&pair);
        }
    printf("  %zu record bytes flipped and cut\n", n);
    good_again();
}

static void record_refused(uint8_t *bytes, size_t n, enum kith_err error,
                           const char *reason)
{
    assert_int_equal(error, sessions_feed(&pair.ends[1], bytes, n));
    assert_int_equal(error, sessions_feed(&pair.ends[1], bytes, n)); /* Final */
    assert_string_equal(reason, kith_session_reason(pair.ends[1].session));
    sessions_close(&pair);
    good_again();
}

static void connected(void)
{
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
}

/* Our own keys seal what no honest end would. */
static size_t seal_raw(const uint8_t *plain, size_t n)
{
    assert_int_equal(KITH_OK,
                     kith_record_seal(pair.ends[0].session, plain, n, wire));
    return n + KITH_RECORD_OVERHEAD;
}

static void test_bad_records(void **state)
{
    (void)state;
    uint8_t copy[KITH_PREAUTH_BYTES], frame[64] = {0};
    connected();
    size_t n = seal_some(wire, sizeof wire);
    memcpy(copy, wire, 39);
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, 39));
    record_refused(copy, 39, KITH_EAUTH, "record does not authenticate");

    connected(); /* Two records change places. */
    n = seal_some(wire, sizeof wire);
    record_refused(wire + 39, n - 39, KITH_EAUTH,
                   "record does not authenticate");

    connected();
    record_refused((uint8_t[]){0, 16, 1, 2, 3}, 5, KITH_EPARSE,
                   "record has an impossible length");
    connected(); /* At once: nothing else of it is awaited. */
    record_refused((uint8_t[]){0, 16}, 2, KITH_EPARSE,
                   "record has an impossible length");
    connected();
    record_refused((uint8_t[]){0xff, 0xff, 1, 2, 3}, 5, KITH_EPARSE,
                   "record has an impossible length");
    connected();
    frame[0] = 99;
    n = seal_raw(frame, 9);
    record_refused(wire, n, KITH_EPARSE, "frame type is unknown");
    connected();
    frame[0] = KITH_FRAME_HELLO; /* Only once. */
    n = seal_raw(frame, 30);
    record_refused(wire, n, KITH_EPARSE, "frame type is unknown");
    connected();
    frame[0] = KITH_FRAME_FIN;
    n = seal_raw(frame, 2);
    record_refused(wire, n, KITH_EPARSE, "frame type is unknown");
}

static void test_bad_announcements(void **state)
{
    (void)state;
    uint8_t frame[KITH_ANNOUNCEMENT_BYTES + 1] = {KITH_FRAME_BULK};
    const char *reason = "bulk announcement is malformed";
    connected(); /* Length 0. */
    size_t n = seal_raw(frame, KITH_ANNOUNCEMENT_BYTES);
    record_refused(wire, n, KITH_EPARSE, reason);
    connected();
    memset(frame + 17, 0xff, 4); /* 4 GiB. */
    n = seal_raw(frame, KITH_ANNOUNCEMENT_BYTES);
    record_refused(wire, n, KITH_EPARSE, reason);
    connected();
    memset(frame + 17, 0, 3);
    memset(frame + 9, 0xff, 8); /* Past the end of numbers. */
    n = seal_raw(frame, KITH_ANNOUNCEMENT_BYTES);
    record_refused(wire, n, KITH_EPARSE, reason);
    connected();
    frame[9] = 0;
    n = seal_raw(frame, KITH_ANNOUNCEMENT_BYTES + 1);
    record_refused(wire, n, KITH_EPARSE, reason);
    connected();
    n = seal_raw(frame, KITH_ANNOUNCEMENT_BYTES); /* 255 bytes announced, */
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n));
    n = seal_raw(frame, 20); /* 20 come. */
    record_refused(wire, n, KITH_EPARSE,
                   "bulk record has not the announced length");
}

/* Keys agree, and still nothing but a HELLO may come first. */
static void test_hello_comes_first(void **state)
{
    (void)state;
    const uint8_t frame[4] = {KITH_FRAME_CONTROL};
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    size_t n = output_of(0);
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n));
    n = output_of(1);
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[0], wire, n));
    n = output_of(0);
    const size_t hello = KITH_HELLO_HEAD_BYTES + 3 + KITH_RECORD_OVERHEAD;
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n - hello));
    assert_false(kith_session_is_open(pair.ends[1].session));
    assert_int_equal(KITH_ECLOSED,
                     kith_session_seal_control(pair.ends[1].session, frame, 1,
                                               wire, sizeof wire, &n));
    pair.ends[0].session->send.cipher.n = 0; /* Its HELLO is held back. */
    n = seal_raw(frame, sizeof frame);
    assert_int_equal(KITH_EPARSE, sessions_feed(&pair.ends[1], wire, n));
    refused(1, KITH_EPARSE, "first record is not a HELLO");
}

static void test_long_handshake_message(void **state)
{
    (void)state;
    for (int to = 0; to < 2; to++)
        for (int i = 0; i < 3; i++) {
            static const uint8_t lengths[3][2] = {
                {0xff, 0xff}, {0, 1}, {2, 97}};
            begin(KITH_SUITE_CHACHAPOLY);
            assert_true(sessions_start(&pair));
            size_t n = output_of(0);
            assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n));
            n = output_of(1);
            if (to == 0)
                assert_int_equal(KITH_OK, sessions_feed(&pair.ends[0], wire,
                                                        KITH_PREFACE_BYTES));
            memcpy(wire, lengths[i], 2);
            assert_int_equal(KITH_EPARSE,
                             sessions_feed(&pair.ends[to], wire, 2));
            refused(to, KITH_EPARSE,
                    "handshake message has an impossible length");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_handshake_byte),
        cmocka_unit_test(test_every_record_byte),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_bad_announcements),
        cmocka_unit_test(test_hello_comes_first),
        cmocka_unit_test(test_long_handshake_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
