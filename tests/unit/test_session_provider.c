/* Goal: an AEAD provider that fails, at whichever call, ends the session with a
 * reason and lets nothing out. Method: libsodium's, made to fail at its n-th
 * call, for every n that a handshake, a burst and a rekey make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

static uint8_t vector[200000], wire[2 * KITH_BURST_BYTES];

/* A provider that works until its n-th call. */
static int calls_left;

static enum kith_err faulty(void)
{
    return calls_left-- > 0 ? KITH_OK : KITH_EDEVICE;
}

static enum kith_err faulty_create(union kith_aead_state *state,
                                   enum kith_suite suite)
{
    const enum kith_err err = faulty();
    return err == KITH_OK ? kith_aead_sodium.create(state, suite) : err;
}

static enum kith_err faulty_key(union kith_aead_state *state,
                                enum kith_suite suite, const uint8_t *key,
                                enum kith_direction direction)
{
    const enum kith_err err = faulty();
    return err == KITH_OK ? kith_aead_sodium.key(state, suite, key, direction)
                          : err;
}

static enum kith_err faulty_seal(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const struct kith_aead_text *text)
{
    const enum kith_err err = faulty();
    return err == KITH_OK ? kith_aead_sodium.seal(state, suite, text) : err;
}

static enum kith_err faulty_open(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const struct kith_aead_text *text)
{
    const enum kith_err err = faulty();
    return err == KITH_OK ? kith_aead_sodium.open(state, suite, text) : err;
}

/* Every call of the provider fails once, up to a burst and a rekey: the session
 * says so and does nothing else. */
static void test_provider_fails(void **state)
{
    (void)state;
    struct kith_aead aead = kith_aead_sodium;
    aead.create = faulty_create;
    aead.key = faulty_key;
    aead.seal = faulty_seal;
    aead.open = faulty_open;
    int good = -1;
    for (int n = 0; good < 0; n++) {
        struct sessions pair;
        size_t written = 0;
        assert_true(n < 100);
        sessions_setup(&pair, KITH_SUITE_CHACHAPOLY, &aead, 5);
        pair.ends[1].config.aead = NULL;
        calls_left = n;
        bool alive = sessions_start(&pair);
        if (alive && !sessions_connect(&pair)) {
            alive = false;
            assert_string_equal("AEAD provider failed",
                                kith_session_reason(pair.ends[0].session));
        }
        if (alive) {
            pair.ends[0].session->send.since_rekey = KITH_REKEY_RECORDS - 2;
            const enum kith_err err = kith_session_seal_burst(
                pair.ends[0].session,
                &(const struct kith_session_burst){1, 0, vector, sizeof vector},
                wire, sizeof wire, &written);
            assert_true(err == KITH_OK ||
                        (err == KITH_EDEVICE && written == 0));
            good = err == KITH_OK ? n : -1;
            assert_int_equal(err == KITH_OK,
                             kith_session_is_open(pair.ends[0].session));
        } else {
            assert_int_equal(KITH_EDEVICE, pair.ends[0].error);
        }
        sessions_close(&pair);
    }
    printf("  %d calls failed in turn\n", good);
}

static int fill(void **state)
{
    (void)state;
    static const uint8_t seed[randombytes_SEEDBYTES] = {1};
    if (sodium_init() < 0)
        return -1;
    randombytes_buf_deterministic(vector, sizeof vector, seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_provider_fails)};
    return cmocka_run_group_tests(tests, fill, NULL);
}
