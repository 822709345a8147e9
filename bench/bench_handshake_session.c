/* Whole handshakes against the sum of the operations that they cannot do
 * without.
 *
 * Both ends run in one thread: preface, three messages, two certificates, two
 * HELLOs, init and close included. By side the floor is one key pair, three
 * Diffie-Hellmans, one Ed25519 verification, and four sealed or opened
 * messages' worth of small AEAD calls; twice that per handshake. Target: 0.8 of
 * 1 / floor. */
#include "bench/bench.h"

#include <sodium.h>

#include "kith/assert.h"
#include "tests/support/sessions.h"

#define ROUNDS 15
#define HANDSHAKES 50 /* in one sample */

static uint8_t secret[32], key[32], shared[32], text[160], sealed[176];
static uint8_t signature[64], signer[64], verifier[32];

/* What one handshake, both sides, asks of the library. */
static void operations(void)
{
    static const uint8_t nonce[12] = {0};
    for (int side = 0; side < 2; side++) {
        KITH_ASSERT(crypto_scalarmult_base(shared, secret) == 0);
        for (int i = 0; i < 3; i++)
            KITH_ASSERT(crypto_scalarmult(shared, secret, key) == 0);
        KITH_ASSERT(crypto_sign_verify_detached(signature, text, sizeof text,
                                                verifier) == 0);
        for (int i = 0; i < 4; i++)
            crypto_aead_chacha20poly1305_ietf_encrypt(
                sealed, NULL, text, sizeof text, NULL, 0, NULL, nonce, key);
    }
}

static double run_operations(void)
{
    const double start = bench_cpu();
    for (int i = 0; i < HANDSHAKES; i++)
        operations();
    return HANDSHAKES / (bench_cpu() - start);
}

static double run_handshakes(struct sessions *pair)
{
    const double start = bench_cpu();
    for (int i = 0; i < HANDSHAKES; i++) {
        KITH_ASSERT(sessions_start(pair) && sessions_connect(pair));
        kith_session_close(pair->ends[0].session);
        kith_session_close(pair->ends[1].session);
    }
    return HANDSHAKES / (bench_cpu() - start);
}

static void compare(const struct kith_aead *aead, enum kith_suite suite)
{
    double ours[ROUNDS], floor[ROUNDS];
    struct sessions pair;
    sessions_setup(&pair, suite, aead, 1);
    run_operations();
    run_handshakes(&pair);
    for (int r = 0; r < ROUNDS; r++)
        for (int turn = 0; turn < 2; turn++)
            if ((turn + r) % 2)
                ours[r] = run_handshakes(&pair);
            else
                floor[r] = run_operations();
    pair.ends[0].session = pair.ends[1].session = NULL;
    sessions_close(&pair);
    printf("# %s, %s\n", kith_suite_name(suite), kith_aead_name(aead));
    bench_print("sum of the operations, both sides", floor, ROUNDS, "1/s");
    bench_print("handshakes, both sides", ours, ROUNDS, "1/s");
    bench_ratio("handshakes : sum of their operations", ours, floor, ROUNDS,
                0.80);
}

int main(void)
{
    static const enum kith_suite suites[] = {KITH_SUITE_AESGCM,
                                             KITH_SUITE_CHACHAPOLY};
    KITH_ASSERT(sodium_init() >= 0);
    bench_pin(0);
    randombytes_buf(secret, sizeof secret);
    KITH_ASSERT(crypto_scalarmult_base(key, secret) == 0);
    randombytes_buf(secret, sizeof secret);
    crypto_sign_keypair(verifier, signer);
    crypto_sign_detached(signature, NULL, text, sizeof text, signer);
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; kith_aeads[i]; i++)
            if (kith_aead_has(kith_aeads[i], suites[s]))
                compare(kith_aeads[i], suites[s]);
    return 0;
}
