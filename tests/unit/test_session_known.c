/* Goal: what sessions put on the wire stays as it is, to the byte: peers of two
 * versions else refuse each other, or worse, both err alike. And nothing is
 * left of a session that is closed.
 * Method: a session of fixed keys for each suite and provider: handshake,
 * control frames until nonces are two bytes long, a burst, a rekey, FIN; one
 * hash of all bytes. A change of the wire version writes new ones down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

enum { HASH_BYTES = 16, BURST_BYTES = 200000 };

static const struct known {
    enum kith_suite suite;
    const char *hash;
} known[] = {
    {KITH_SUITE_AESGCM, "693972fd1bd45703926c24c31831762a"},
    {KITH_SUITE_CHACHAPOLY, "0e51d1cabc7a6d69006b651e1169d7a5"},
    {KITH_SUITE_AEGIS256X2, "486bc147588cefa387f4256f1b65539f"},
};

static uint8_t payload[BURST_BYTES], inbox[BURST_BYTES], wire[2 * BURST_BYTES];

/* To the other end, and into the hash. */
static void move(struct sessions *pair, int from, uint8_t *bytes, size_t size,
                 crypto_generichash_state *hash)
{
    crypto_generichash_update(hash, bytes, size);
    assert_int_equal(KITH_OK,
                     sessions_feed(&pair->ends[1 - from], bytes, size));
}

static void connect(struct sessions *pair, crypto_generichash_state *hash)
{
    for (int from = 0, silent = 0; silent < 2; from = 1 - from) {
        const size_t size =
            kith_session_output(pair->ends[from].session, wire, sizeof wire);
        silent = size == 0 ? silent + 1 : 0;
        if (size > 0)
            move(pair, from, wire, size, hash);
    }
    assert_true(kith_session_is_open(pair->ends[0].session));
    assert_true(kith_session_is_open(pair->ends[1].session));
}

static void send_frames(struct sessions *pair, int from,
                        crypto_generichash_state *hash)
{
    struct kith_session *session = pair->ends[from].session;
    size_t size;
    for (unsigned i = 0; i < 300; i++) {
        assert_int_equal(KITH_OK,
                         kith_session_seal_control(session, payload, i % 50,
                                                   wire, sizeof wire, &size));
        move(pair, from, wire, size, hash);
    }
    session->send.since_rekey = KITH_REKEY_RECORDS - 2;
    pair->ends[1 - from].session->receive.since_rekey = KITH_REKEY_RECORDS - 2;
    pair->ends[1 - from].sink = inbox;
    const struct kith_session_burst burst = {5, 1000, payload, BURST_BYTES};
    assert_int_equal(KITH_OK, kith_session_seal_burst(session, &burst, wire,
                                                      sizeof wire, &size));
    move(pair, from, wire, size, hash);
    assert_memory_equal(inbox, payload, BURST_BYTES);
}

/* Both ends told that it is over ask for no more bytes. */
static void finish(struct sessions *pair, int from,
                   crypto_generichash_state *hash)
{
    size_t size;
    assert_int_equal(KITH_OK, kith_session_seal_fin(pair->ends[from].session,
                                                    wire, sizeof wire, &size));
    move(pair, from, wire, size, hash);
    assert_int_equal(KITH_SESSION_FIN, pair->ends[1 - from].last.kind);
    assert_int_equal(0, kith_session_want(pair->ends[1 - from].session));
}

static void assert_wiped(struct sessions_end *end)
{
    kith_session_close(end->session);
    end->session = NULL;
    assert_true(sodium_is_zero(end->memory, kith_session_size()));
}

static void run(const struct known *of, const struct kith_aead *aead)
{
    struct sessions pair;
    crypto_generichash_state hash;
    uint8_t found[HASH_BYTES];
    char text[2 * HASH_BYTES + 1];
    crypto_generichash_init(&hash, NULL, 0, HASH_BYTES);
    sessions_setup(&pair, of->suite, aead, 1);
    pair.ends[0].config.secret[0] = 1;
    pair.ends[1].config.secret[0] = 2;
    assert_true(sessions_start(&pair));

    connect(&pair, &hash);
    for (int from = 0; from < 2; from++) {
        const uint32_t instance =
            kith_session_peer_hello(pair.ends[from].session)->instance;
        crypto_generichash_update(&hash, (const uint8_t *)&instance,
                                  sizeof instance);
        send_frames(&pair, from, &hash);
    }
    finish(&pair, 0, &hash);

    crypto_generichash_final(&hash, found, HASH_BYTES);
    sodium_bin2hex(text, sizeof text, found, HASH_BYTES);
    assert_string_equal(text, of->hash);
    assert_wiped(&pair.ends[0]);
    assert_wiped(&pair.ends[1]);
    sessions_close(&pair);
}

static void test_wire_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (size_t i = 0; kith_aeads[i] != NULL; i++)
            if (kith_aead_has(kith_aeads[i], known[k].suite))
                run(&known[k], kith_aeads[i]);
}

/* The key lies in it as it is, for rekeys. */
static void test_cipher_is_wiped(void **state)
{
    (void)state;
    struct kith_cipher cipher;
    const uint8_t key[KITH_KEY_BYTES] = {1, 2, 3};
    assert_int_equal(KITH_OK,
                     kith_cipher_create(&cipher,
                                        kith_aead_best(KITH_SUITE_CHACHAPOLY),
                                        KITH_SUITE_CHACHAPOLY, KITH_SEAL));
    assert_int_equal(KITH_OK, kith_cipher_key(&cipher, key, 0));
    kith_cipher_destroy(&cipher);
    assert_true(sodium_is_zero((const uint8_t *)&cipher, sizeof cipher));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_is_known),
        cmocka_unit_test(test_cipher_is_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
