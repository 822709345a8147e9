/* Sessions that go well: handshake, frames, bursts, rekeys, FIN.
 *
 * Method: two ends in memory, every suite on every pair of providers; bytes
 * arrive whole, one by one, and in a buffer no larger than the session asks
 * for. Rekeys are reached by moving the counters of both ends, not by switching
 * anything off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

static uint8_t vector[KITH_BURST_BYTES], inbox[KITH_BURST_BYTES];
static uint8_t wire[2 * KITH_BURST_BYTES];

static struct sessions *open_pair(enum kith_suite suite,
                                  const struct kith_aead *one,
                                  const struct kith_aead *two)
{
    static struct sessions pair;
    sessions_setup(&pair, suite, one, 1);
    pair.ends[1].config.aead = two;
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    return &pair;
}

static struct sessions *open_any(void)
{
    return open_pair(KITH_SUITE_CHACHAPOLY, NULL, NULL);
}

static void send_control(struct sessions *pair, int from, size_t n)
{
    struct sessions_end *a = &pair->ends[from], *b = &pair->ends[1 - from];
    size_t written = 0;
    assert_int_equal(KITH_OK,
                     kith_session_seal_control(a->session, vector, n, wire,
                                               sizeof wire, &written));
    assert_int_equal(written, kith_session_control_size(n));
    assert_int_equal(KITH_OK, sessions_feed(b, wire, written));
    assert_int_equal(KITH_SESSION_CONTROL, b->last.kind);
    assert_int_equal(n, b->last.frame_bytes);
    assert_memory_equal(vector, b->frame, n);
}

static void send_burst(struct sessions *pair, int from, size_t length)
{
    struct sessions_end *a = &pair->ends[from], *b = &pair->ends[1 - from];
    size_t written = 0;
    memset(inbox, 0, sizeof inbox);
    b->sink = inbox;
    assert_int_equal(KITH_OK,
                     kith_session_seal_burst(a->session,
                                             &(const struct kith_session_burst){
                                                 5, 1000, vector, length},
                                             wire, sizeof wire, &written));
    assert_int_equal(written, kith_session_burst_size(length));
    assert_int_equal(KITH_OK, sessions_feed(b, wire, written));
    assert_int_equal(KITH_SESSION_BURST, b->last.kind);
    assert_true(b->last.transfer == 5 && b->last.offset == 1000);
    assert_true(b->last.length == length);
    assert_memory_equal(vector, inbox, length);
}

static void exchange(struct sessions *pair)
{
    static const size_t lengths[] = {1, 65471, 65472, 65473, KITH_BURST_BYTES};
    for (int from = 0; from < 2; from++) {
        send_control(pair, from, 0);
        send_control(pair, from, 1);
        send_control(pair, from, KITH_CONTROL_BYTES_MAX);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            send_burst(pair, from, lengths[i]);
        send_control(pair, from, 77);
    }
}

static void test_every_pair_of_providers(void **state)
{
    (void)state;
    static const enum kith_suite suites[] = {KITH_SUITE_AESGCM,
                                             KITH_SUITE_CHACHAPOLY};
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; kith_aeads[i]; i++)
            for (size_t j = 0; kith_aeads[j]; j++) {
                if (!kith_aead_has(kith_aeads[i], suites[s]) ||
                    !kith_aead_has(kith_aeads[j], suites[s]))
                    continue;
                struct sessions *pair =
                    open_pair(suites[s], kith_aeads[i], kith_aeads[j]);
                exchange(pair);
                sessions_close(pair);
            }
}

static void test_peer_is_known(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    struct sessions_end *a = &pair->ends[0], *b = &pair->ends[1];
    assert_string_equal("bob", kith_session_peer(a->session)->name);
    assert_string_equal("alice", kith_session_peer(b->session)->name);
    assert_memory_equal(b->identity.key, kith_session_peer_key(a->session), 32);
    assert_memory_equal(a->identity.key, kith_session_peer_key(b->session), 32);
    assert_string_equal("mlp", kith_session_peer_hello(a->session)->model);
    assert_true(kith_session_peer_hello(b->session)->dim == 109386);
    assert_int_equal(3, kith_session_peer_hello(b->session)->rank);
    assert_true(kith_session_peer_hello(b->session)->utc_s == SESSIONS_UTC_S);
    size_t n = 0;
    const uint8_t *bytes = kith_session_peer_certificate(a->session, &n);
    assert_int_equal(b->identity.certificate_bytes, n);
    assert_memory_equal(b->identity.certificate, bytes, n);
    assert_string_equal("", kith_session_reason(a->session));
    assert_memory_equal(a->session->noise.hash, b->session->noise.hash, 64);
    sessions_close(pair);
}

/* A driver with a buffer of exactly what the session wants, fed by the byte. */
static void drip(struct sessions_end *to, const uint8_t *bytes, size_t size)
{
    static uint8_t buffer[KITH_PREAUTH_BYTES];
    static size_t held;
    for (size_t i = 0; i < size; i++) {
        assert_true(kith_session_want(to->session) <= sizeof buffer);
        assert_true(held < kith_session_want(to->session));
        buffer[held++] = bytes[i];
        size_t consumed = 0;
        struct kith_session_event event;
        assert_int_equal(KITH_OK, kith_session_read(to->session, buffer, held,
                                                    &consumed, &event));
        memmove(buffer, buffer + consumed, held - consumed);
        held -= consumed;
    }
    assert_int_equal(0, held);
}

static void test_bytes_one_by_one(void **state)
{
    (void)state;
    struct sessions pair;
    uint8_t out[KITH_PREAUTH_BYTES];
    size_t total[2] = {0, 0};
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, 2);
    assert_true(sessions_start(&pair));
    assert_int_equal(40, kith_session_want(pair.ends[1].session));
    for (int turn = 0; turn < 6; turn++) {
        const int i = turn % 2;
        const size_t n =
            kith_session_output(pair.ends[i].session, out, sizeof out);
        total[i] += n;
        drip(&pair.ends[1 - i], out, n);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(kith_session_is_open(pair.ends[i].session));
        assert_int_equal(total[i],
                         kith_session_handshake_bytes(
                             i == 0, pair.ends[i].identity.certificate_bytes,
                             strlen("mlp")));
    }
    sessions_close(&pair);
}

static void test_events_of_a_burst(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    struct kith_session *a = pair->ends[0].session, *b = pair->ends[1].session;
    const size_t length = 2 * KITH_BULK_BYTES + 100;
    size_t written = 0, consumed = 0, at = 0;
    struct kith_session_event event;
    assert_int_equal(
        KITH_OK,
        kith_session_seal_burst(
            a, &(const struct kith_session_burst){9, 4096, vector, length},
            wire, sizeof wire, &written));

    assert_int_equal(KITH_OK,
                     kith_session_read(b, wire, written, &consumed, &event));
    assert_int_equal(KITH_SESSION_BULK, event.kind);
    assert_true(event.transfer == 9 && event.offset == 4096);
    kith_session_sink(b, inbox);
    at += consumed;
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(KITH_OK, kith_session_read(b, wire + at, written - at,
                                                    &consumed, &event));
        assert_int_equal(KITH_SESSION_RECORD, event.kind);
        assert_true(event.record_at == i * KITH_BULK_BYTES);
        assert_true(event.record_bytes == (i < 2 ? KITH_BULK_BYTES : 100));
        assert_memory_equal(vector + event.record_at, inbox + event.record_at,
                            event.record_bytes);
        at += consumed;
    }
    assert_int_equal(written, at);
    assert_int_equal(KITH_OK,
                     kith_session_read(b, wire + at, 0, &consumed, &event));
    assert_int_equal(KITH_SESSION_BURST, event.kind);
    assert_int_equal(KITH_OK,
                     kith_session_read(b, wire + at, 0, &consumed, &event));
    assert_int_equal(KITH_SESSION_NONE, event.kind);
    sessions_close(pair);
}

static void test_discarded_burst(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    size_t written = 0;
    assert_int_equal(
        KITH_OK, kith_session_seal_burst(
                     pair->ends[0].session,
                     &(const struct kith_session_burst){1, 0, vector, 200000},
                     wire, sizeof wire, &written));
    pair->ends[1].sink = NULL;
    assert_int_equal(KITH_OK, sessions_feed(&pair->ends[1], wire, written));
    assert_int_equal(KITH_SESSION_BURST, pair->ends[1].last.kind);
    send_control(pair, 0, 5);

    assert_int_equal(
        KITH_OK, kith_session_seal_burst(
                     pair->ends[0].session,
                     &(const struct kith_session_burst){1, 0, vector, 200000},
                     wire, sizeof wire, &written));
    wire[written - 1] ^= 1; /* Discarded, authenticated all the same. */
    assert_int_equal(KITH_EAUTH, sessions_feed(&pair->ends[1], wire, written));
    sessions_close(pair);
}

static void move_counters(struct sessions *pair, uint32_t since_rekey)
{
    for (int i = 0; i < 2; i++) {
        pair->ends[i].session->send.since_rekey = since_rekey;
        pair->ends[i].session->receive.since_rekey = since_rekey;
    }
}

static uint64_t rekeys(const struct sessions *pair)
{
    struct kith_session_counters a, b;
    kith_session_counters(pair->ends[0].session, &a);
    kith_session_counters(pair->ends[1].session, &b);
    assert_true(a.rekeys == b.rekeys);
    assert_true(a.records_sealed == b.records_opened);
    assert_true(a.bytes_sealed == b.bytes_opened);
    return a.rekeys;
}

/* Every place of the boundary, before, in and after a burst of every length. */
static void test_rekey_boundaries(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    uint64_t before = rekeys(pair);
    for (uint32_t left = 1; left <= 20; left++)
        for (size_t records = 1; records <= KITH_BURST_RECORDS; records += 5) {
            move_counters(pair, KITH_REKEY_RECORDS - left);
            const uint64_t n = pair->ends[0].session->send.cipher.n;
            send_burst(pair, 0, records * KITH_BULK_BYTES);
            /* The announcement uses one; the rest rekeys if it lacks room, or
             * when the last record fills the key. */
            const bool rekeyed = left - 1 <= records;
            assert_int_equal(rekeyed, rekeys(pair) - before);
            assert_true(pair->ends[0].session->send.cipher.n ==
                        n + 1 + records);
            assert_true(pair->ends[0].session->send.since_rekey ==
                        pair->ends[1].session->receive.since_rekey);
            before = rekeys(pair);
        }
    sessions_close(pair);
}

static void test_rekey_by_control_frames(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    uint8_t old[KITH_KEY_BYTES];
    move_counters(pair, KITH_REKEY_RECORDS - 2);
    memcpy(old, pair->ends[0].session->send.cipher.key, sizeof old);
    const uint64_t before = rekeys(pair);
    send_control(pair, 0, 10);
    assert_int_equal(0, rekeys(pair) - before);
    send_control(pair, 0, 10);
    assert_int_equal(1, rekeys(pair) - before);
    assert_memory_not_equal(old, pair->ends[0].session->send.cipher.key, 32);
    for (int i = 0; i < 5; i++) {
        send_control(pair, 0, 10);
        send_control(pair, 1, 10);
    }
    assert_int_equal(2, rekeys(pair) - before); /* The other way, later. */
    sessions_close(pair);
}

/* 2^16 records without help, so that the constant itself is tested. */
static void test_whole_key(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    for (uint32_t i = 0; i < KITH_REKEY_RECORDS + 10; i++)
        send_control(pair, 0, 1);
    assert_int_equal(1, rekeys(pair));
    assert_int_equal(11, pair->ends[0].session->send.since_rekey);
    sessions_close(pair);
}

static void test_fin(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    struct sessions_end *a = &pair->ends[0], *b = &pair->ends[1];
    size_t written = 0;
    assert_int_equal(KITH_OK, kith_session_seal_fin(a->session, wire,
                                                    sizeof wire, &written));
    assert_int_equal(KITH_OK, sessions_feed(b, wire, written));
    assert_int_equal(KITH_SESSION_FIN, b->last.kind);
    assert_int_equal(KITH_ECLOSED,
                     kith_session_seal_control(a->session, vector, 1, wire,
                                               sizeof wire, &written));
    assert_int_equal(
        KITH_ECLOSED,
        kith_session_seal_fin(a->session, wire, sizeof wire, &written));
    send_control(pair, 1, 4); /* The other way is still open. */
    assert_int_equal(KITH_EPARSE, sessions_feed(b, wire, 1));
    assert_string_equal("bytes came after FIN",
                        kith_session_reason(b->session));
    sessions_close(pair);
}

static void test_limits(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    struct kith_session *a = pair->ends[0].session;
    size_t n = 0;
    assert_int_equal(KITH_ELIMIT, kith_session_seal_control(
                                      a, vector, KITH_CONTROL_BYTES_MAX + 1,
                                      wire, sizeof wire, &n));
    assert_int_equal(KITH_ELIMIT,
                     kith_session_seal_control(a, vector, 10, wire, 28, &n));
    assert_int_equal(KITH_ELIMIT,
                     kith_session_seal_burst(
                         a, &(const struct kith_session_burst){1, 0, vector, 0},
                         wire, sizeof wire, &n));
    assert_int_equal(KITH_ELIMIT, kith_session_seal_burst(
                                      a,
                                      &(const struct kith_session_burst){
                                          1, 0, vector, KITH_BURST_BYTES + 1},
                                      wire, sizeof wire, &n));
    assert_int_equal(KITH_ELIMIT,
                     kith_session_seal_burst(
                         a,
                         &(const struct kith_session_burst){1, 0, vector, 100},
                         wire, kith_session_burst_size(100) - 1, &n));
    assert_int_equal(KITH_ELIMIT,
                     kith_session_seal_burst(a,
                                             &(const struct kith_session_burst){
                                                 1, UINT64_MAX - 5, vector, 10},
                                             wire, sizeof wire, &n));
    assert_int_equal(KITH_ELIMIT, kith_session_seal_fin(a, wire, 18, &n));
    exchange(pair); /* Nothing was spent on them. */
    sessions_close(pair);
}

static void test_allow_list(void **state)
{
    (void)state;
    struct sessions pair;
    uint8_t prints[2][KITH_FINGERPRINT_BYTES];
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, 3);
    for (int i = 0; i < 2; i++) {
        struct sessions_end *end = &pair.ends[i];
        kith_fingerprint(pair.ends[1 - i].identity.key, 32, prints[i]);
        end->identity.certificate_bytes = 0;
        end->trust.authority_count = 0;
        end->trust.allowed = (const uint8_t(*)[32])prints[i];
        end->trust.allowed_count = 1;
    }
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    exchange(&pair);
    sessions_close(&pair);
}

static void test_close_wipes(void **state)
{
    (void)state;
    struct sessions *pair = open_any();
    kith_session_close(pair->ends[0].session);
    assert_true(sodium_is_zero(pair->ends[0].memory, kith_session_size()));
    pair->ends[0].session = NULL;
    sessions_close(pair);
}

static void test_init_refusals(void **state)
{
    (void)state;
    struct sessions pair;
    sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, NULL, 4);
    struct sessions_end *a = &pair.ends[0];
    a->trust.authority_count = 0; /* Trusts nobody: no such mode. */
    assert_false(sessions_start(&pair));
    assert_int_equal(KITH_EINVAL, a->error);
    a->trust.authority_count = 1;
    a->identity.certificate_bytes = 0;
    assert_false(sessions_start(&pair));
    assert_int_equal(KITH_EINVAL, a->error);
    a->identity.certificate_bytes = KITH_CERTIFICATE_BYTES_MAX + 1;
    assert_false(sessions_start(&pair));
    assert_int_equal(KITH_EINVAL, a->error);
    sessions_identity(&a->identity, "alice", &pair.cluster);
    a->config.suite = (enum kith_suite)9;
    assert_false(sessions_start(&pair));
    assert_int_equal(KITH_EUNSUPPORTED, a->error);
    a->config.suite = KITH_SUITE_CHACHAPOLY;
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    sessions_close(&pair);
}

static int fill(void **state)
{
    (void)state;
    static const uint8_t seed[randombytes_SEEDBYTES] = {1};
    if (sodium_init() < 0)
        return -1;
    randombytes_buf_deterministic(vector, sizeof vector, seed);
    printf("  a session takes %zu bytes\n", kith_session_size());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_providers),
        cmocka_unit_test(test_peer_is_known),
        cmocka_unit_test(test_bytes_one_by_one),
        cmocka_unit_test(test_events_of_a_burst),
        cmocka_unit_test(test_discarded_burst),
        cmocka_unit_test(test_rekey_boundaries),
        cmocka_unit_test(test_rekey_by_control_frames),
        cmocka_unit_test(test_whole_key),
        cmocka_unit_test(test_fin),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_allow_list),
        cmocka_unit_test(test_close_wipes),
        cmocka_unit_test(test_init_refusals),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
