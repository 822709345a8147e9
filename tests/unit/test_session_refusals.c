/* Sessions between ends that must not agree fail, each with its code and its
 * words.
 *
 * Method: a pair that would succeed, one thing wrong, the refusing end's error
 * and reason compared; and after every refusal a good pair connects, because
 * nothing else may be disturbed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/protocol/session/session_state.h"
#include "tests/support/refusals.h"

#define UNAUTHENTIC                                                            \
    "handshake does not authenticate: another cluster id, an altered or a "    \
    "replayed message"

/* Who is certified and has proved its key is told why; nobody else hears
 * anything, and a responder, who has not heard who dialled, neither. */
static void check_told(int end, enum kith_err error)
{
    const struct sessions_end *other = &pair.ends[1 - end];
    const bool told =
        end == 1 && (error == KITH_EEXPIRED || error == KITH_EREVOKED);
    assert_int_equal(other->error == KITH_EPERM, told);
    assert_int_equal(kith_session_notice(other->session),
                     !told                    ? KITH_NOTICE_NONE
                     : error == KITH_EEXPIRED ? KITH_NOTICE_EXPIRED
                                              : KITH_NOTICE_REVOKED);
    if (told && error == KITH_EREVOKED)
        assert_string_equal(kith_session_reason(other->session),
                            "the peer refused us: our certificate is revoked");
}

static void connect_refused(int end, enum kith_err error, const char *reason)
{
    assert_true(sessions_start(&pair));
    assert_false(sessions_connect(&pair));
    check_told(end, error);
    refused(end, error, reason);
}

/* Each end in turn is the bad one; the other refuses. */
static void test_wrong_authority(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        struct sessions_cluster stranger;
        begin(KITH_SUITE_CHACHAPOLY);
        sessions_cluster(&stranger, "elsewhere");
        memcpy(stranger.trust.cluster, pair.cluster.trust.cluster, 32);
        sessions_identity(&pair.ends[bad].identity, "mallory", &stranger);
        connect_refused(1 - bad, KITH_EAUTH,
                        "certificate is not signed by an authority of this "
                        "cluster");
    }
}

static void test_dates(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        begin(KITH_SUITE_CHACHAPOLY);
        struct sessions_end *end = &pair.ends[bad];
        struct kith_certificate c =
            sessions_certificate(&end->identity, "old", &pair.cluster);
        c.not_after_s = SESSIONS_UTC_S - 3600;
        sessions_certify(&end->identity, &c, &pair.cluster);
        connect_refused(1 - bad, KITH_EEXPIRED,
                        "certificate expired 2026-01-01");

        /* The last day of a cycle of 400 years, and of one of 4. */
        begin(KITH_SUITE_CHACHAPOLY);
        c.not_before_s = 0;
        c.not_after_s = INT64_C(951782400);
        sessions_certify(&end->identity, &c, &pair.cluster);
        connect_refused(1 - bad, KITH_EEXPIRED,
                        "certificate expired 2000-02-29");
        begin(KITH_SUITE_CHACHAPOLY);
        c.not_after_s = INT64_C(1709251199);
        sessions_certify(&end->identity, &c, &pair.cluster);
        connect_refused(1 - bad, KITH_EEXPIRED,
                        "certificate expired 2024-02-29");

        begin(KITH_SUITE_CHACHAPOLY);
        c.not_before_s = SESSIONS_UTC_S + 60 * SESSIONS_DAY_S;
        c.not_after_s = c.not_before_s + 1;
        sessions_certify(&end->identity, &c, &pair.cluster);
        connect_refused(1 - bad, KITH_EEXPIRED,
                        "certificate is not valid before 2026-03-03");
    }
}

static void test_revoked(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        uint8_t print[1][32];
        begin(KITH_SUITE_CHACHAPOLY);
        kith_fingerprint(pair.ends[bad].identity.certificate,
                         pair.ends[bad].identity.certificate_bytes, print[0]);
        pair.ends[1 - bad].trust.revoked = (const uint8_t(*)[32])print;
        pair.ends[1 - bad].trust.revoked_count = 1;
        connect_refused(1 - bad, KITH_EREVOKED, "certificate is revoked");
    }
}

static void test_wrong_cluster(void **state)
{
    (void)state;
    begin(KITH_SUITE_CHACHAPOLY); /* The prologue differs. */
    pair.ends[1].trust.cluster[5] ^= 1;
    connect_refused(0, KITH_EAUTH, UNAUTHENTIC);

    for (int bad = 0; bad < 2; bad++) {
        begin(KITH_SUITE_CHACHAPOLY); /* The certificate alone differs. */
        struct sessions_end *end = &pair.ends[bad];
        struct kith_certificate c =
            sessions_certificate(&end->identity, "guest", &pair.cluster);
        c.cluster[0] ^= 1;
        sessions_certify(&end->identity, &c, &pair.cluster);
        connect_refused(1 - bad, KITH_EAUTH,
                        "certificate is for another cluster");
    }
}

static void test_stolen_certificate(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        begin(KITH_SUITE_CHACHAPOLY);
        struct sessions_end *end = &pair.ends[bad];
        const struct kith_identity *owner = &pair.ends[1 - bad].identity;
        memcpy(end->identity.certificate, owner->certificate,
               owner->certificate_bytes);
        end->identity.certificate_bytes = owner->certificate_bytes;
        connect_refused(1 - bad, KITH_EAUTH, "certificate is for another key");

        begin(KITH_SUITE_CHACHAPOLY);
        end->identity.certificate[0] = 9; /* Sealed well, coded badly. */
        connect_refused(1 - bad, KITH_EPARSE, "certificate is malformed");
    }
    begin(KITH_SUITE_CHACHAPOLY);
    pair.ends[1].identity = pair.ends[0].identity;
    connect_refused(0, KITH_EAUTH,
                    "peer has our own key: a connection to ourselves, or a "
                    "copied key");
}

static void test_allow_list(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        uint8_t prints[2][1][32];
        begin(KITH_SUITE_CHACHAPOLY);
        for (int i = 0; i < 2; i++) {
            struct sessions_end *end = &pair.ends[i];
            kith_fingerprint(pair.ends[1 - i].identity.key, 32, prints[i][0]);
            end->identity.certificate_bytes = 0;
            end->trust.authority_count = 0;
            end->trust.allowed = (const uint8_t(*)[32])prints[i];
            end->trust.allowed_count = 1;
        }
        prints[1 - bad][0][31] ^= 1;
        connect_refused(1 - bad, KITH_EAUTH, "key is not on the allow-list");

        begin(KITH_SUITE_CHACHAPOLY); /* Has a certificate, needs none. */
        kith_fingerprint(pair.ends[bad].identity.key, 32, prints[0][0]);
        struct kith_trust *trust = &pair.ends[1 - bad].trust;
        trust->authority_count = 0;
        trust->allowed = (const uint8_t(*)[32])prints[0];
        trust->allowed_count = 1;
        connect_refused(1 - bad, KITH_EAUTH,
                        "a certificate came where an allow-list rules");
    }
}

/* Alters one byte of the preface on its way to `to`. */
static void altered_preface(int to, size_t at, uint8_t value,
                            enum kith_err error, const char *reason)
{
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    const size_t n = output_of(1 - to);
    wire[at] = value;
    assert_int_equal(error, sessions_feed(&pair.ends[to], wire, n));
    /* Our preface is still to be said, so that the peer can name it too. */
    assert_true(output_of(to) >= KITH_PREFACE_BYTES);
    refused(to, error, reason);
}

static void test_preface(void **state)
{
    (void)state;
    for (int to = 0; to < 2; to++) {
        altered_preface(to, 4, 1, KITH_EVERSION,
                        "peer speaks version 1 (kith before ranks in "
                        "certificates), we speak 3: update the peer");
        altered_preface(to, 4, 4, KITH_EVERSION,
                        "peer speaks version 4, we speak 3: update this one");
        altered_preface(to, 5, KITH_SUITE_AESGCM, KITH_EVERSION,
                        "suite differs: peer offers "
                        "Noise_XX_25519_AESGCM_BLAKE2b, we use "
                        "Noise_XX_25519_ChaChaPoly_BLAKE2b");
        altered_preface(to, 5, 0, KITH_EVERSION,
                        "suite differs: peer offers an unknown suite, we use "
                        "Noise_XX_25519_ChaChaPoly_BLAKE2b");
        altered_preface(to, 7, 1, KITH_EVERSION,
                        "preface has reserved bits set");
        altered_preface(to, 0, 'K', KITH_EPARSE,
                        "preface is not kith's: plain or foreign bytes");
    }
}

/* A man in the middle talks each end into the other's suite: the transcript
 * does not match, whatever the clear bytes say. */
static void test_suites_do_not_mix(void **state)
{
    (void)state;
    if (!kith_aead_best(KITH_SUITE_AESGCM)) {
        skip();
        return;
    }
    begin(KITH_SUITE_AESGCM);
    pair.ends[1].config.suite = KITH_SUITE_CHACHAPOLY;
    assert_true(sessions_start(&pair));
    size_t n = output_of(0);
    wire[5] = KITH_SUITE_CHACHAPOLY;
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n));
    n = output_of(1);
    wire[5] = KITH_SUITE_AESGCM;
    assert_int_equal(KITH_EAUTH, sessions_feed(&pair.ends[0], wire, n));
    refused(0, KITH_EAUTH, UNAUTHENTIC);

    begin(KITH_SUITE_AESGCM); /* Both honest, settings differ: by name. */
    pair.ends[1].config.suite = KITH_SUITE_CHACHAPOLY;
    connect_refused(1, KITH_EVERSION,
                    "suite differs: peer offers Noise_XX_25519_AESGCM_BLAKE2b, "
                    "we use Noise_XX_25519_ChaChaPoly_BLAKE2b");
}

static void test_plain_bytes(void **state)
{
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "SSH-2.0-OpenSSH_9.2\r\n",
                                        "\x16\x03\x01\x02\x00\x01\x00\x01"};
    for (size_t i = 0; i < 3; i++)
        for (int to = 0; to < 2; to++) {
            begin(KITH_SUITE_CHACHAPOLY);
            assert_true(sessions_start(&pair));
            memset(wire, 0, sizeof wire);
            memcpy(wire, texts[i], strlen(texts[i]));
            assert_int_equal(KITH_EPARSE,
                             sessions_feed(&pair.ends[to], wire, 64));
            refused(to, KITH_EPARSE,
                    "preface is not kith's: plain or foreign bytes");
        }
}

/* Everything the initiator said, said again to a new responder. */
static void test_replayed_handshake(void **state)
{
    (void)state;
    uint8_t record[2][KITH_PREAUTH_BYTES], spare[KITH_PREAUTH_BYTES];
    size_t n[2], m = 0;
    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    for (int i = 0; i < 2; i++) {
        n[i] = kith_session_output(pair.ends[0].session, record[i],
                                   sizeof record[i]);
        memcpy(spare, record[i], n[i]);
        assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], spare, n[i]));
        m = kith_session_output(pair.ends[1].session, spare, sizeof spare);
        assert_int_equal(KITH_OK, sessions_feed(&pair.ends[0], spare, m));
    }
    assert_true(kith_session_is_open(pair.ends[1].session));
    sessions_close(&pair);

    begin(KITH_SUITE_CHACHAPOLY);
    assert_true(sessions_start(&pair));
    assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], record[0], n[0]));
    assert_true(output_of(1) > 0);
    assert_int_equal(KITH_EAUTH, sessions_feed(&pair.ends[1], record[1], n[1]));
    refused(1, KITH_EAUTH, UNAUTHENTIC);
}

static void test_hello_differs(void **state)
{
    (void)state;
    begin(KITH_SUITE_CHACHAPOLY);
    snprintf(pair.ends[0].config.hello.model, KITH_NAME_MAX, "logistic");
    connect_refused(1, KITH_EMISMATCH,
                    "model differs: peer has logistic, we have mlp");
    begin(KITH_SUITE_CHACHAPOLY); /* The other end can say it too. */
    snprintf(pair.ends[0].config.hello.model, KITH_NAME_MAX, "logistic");
    connect_refused(0, KITH_EMISMATCH,
                    "model differs: peer has mlp, we have logistic");
    begin(KITH_SUITE_CHACHAPOLY);
    pair.ends[1].config.hello.dim = 7850;
    connect_refused(0, KITH_EMISMATCH,
                    "model size differs: peer has 7850 parameters, we have "
                    "109386");
    begin(KITH_SUITE_CHACHAPOLY);
    pair.ends[1].config.hello.experiment_hash = 0xabc;
    connect_refused(0, KITH_EMISMATCH,
                    "experiment differs: peer has 0000000000000abc, we have "
                    "0000000000001234");
    begin(KITH_SUITE_CHACHAPOLY);
    snprintf(pair.ends[1].config.hello.model, KITH_NAME_MAX, "a\tb\x1b[31m");
    connect_refused(0, KITH_EPARSE, "first record is not a HELLO");
    begin(KITH_SUITE_CHACHAPOLY);
    pair.ends[1].config.hello.incarnation = 77; /* May differ. */
    assert_true(sessions_start(&pair));
    assert_true(sessions_connect(&pair));
    assert_int_equal(
        77, kith_session_peer_hello(pair.ends[0].session)->incarnation);
    sessions_close(&pair);
}

/* The orders of X25519's small subgroup, as points. */
static const uint8_t low_order[][32] = {
    {0},
    {1},
    {0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
     0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
     0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
    {0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1,
     0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c,
     0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
};

static void test_low_order_points(void **state)
{
    (void)state;
    const char *reason = "key exchange failed: the peer sent a low-order point";
    for (size_t i = 0; i < sizeof low_order / sizeof *low_order; i++) {
        begin(KITH_SUITE_CHACHAPOLY);
        assert_true(sessions_start(&pair));
        size_t n = output_of(0);
        memcpy(wire + KITH_PREFACE_BYTES, low_order[i], 32);
        assert_int_equal(KITH_EAUTH, sessions_feed(&pair.ends[1], wire, n));
        refused(1, KITH_EAUTH, reason);

        begin(KITH_SUITE_CHACHAPOLY);
        assert_true(sessions_start(&pair));
        n = output_of(0);
        assert_int_equal(KITH_OK, sessions_feed(&pair.ends[1], wire, n));
        n = output_of(1);
        memcpy(wire + KITH_PREFACE_BYTES + 2, low_order[i], 32);
        assert_int_equal(KITH_EAUTH, sessions_feed(&pair.ends[0], wire, n));
        refused(0, KITH_EAUTH, reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_authority),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_wrong_cluster),
        cmocka_unit_test(test_stolen_certificate),
        cmocka_unit_test(test_allow_list),
        cmocka_unit_test(test_preface),
        cmocka_unit_test(test_suites_do_not_mix),
        cmocka_unit_test(test_plain_bytes),
        cmocka_unit_test(test_replayed_handshake),
        cmocka_unit_test(test_hello_differs),
        cmocka_unit_test(test_low_order_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
