/* The AEADs of libsodium: AES-256-GCM where the processor has it (1.0.18: x86
 * with AES-NI only), ChaCha20-Poly1305 (RFC 8439) everywhere.
 *
 * The state holds AES's expanded key, or ChaCha's plain one. Nothing here
 * allocates. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aead.h"

_Static_assert(sizeof(crypto_aead_aes256gcm_state) <=
                   sizeof(union kith_aead_state),
               "the expanded key fits the state");
_Static_assert(_Alignof(crypto_aead_aes256gcm_state) <=
                   _Alignof(union kith_aead_state),
               "the expanded key is aligned");

static bool sodium_has(enum kith_suite suite)
{
    /* Detects the processor's features on its first call, then costs nothing.
     */
    if (sodium_init() < 0)
        return false;
    switch (suite) {
    case KITH_SUITE_AESGCM:
        return crypto_aead_aes256gcm_is_available() == 1;
    case KITH_SUITE_CHACHAPOLY:
        return true;
    }
    return false;
}

static enum kith_err sodium_create(union kith_aead_state *state,
                                   enum kith_suite suite)
{
    memset(state, 0, sizeof *state);
    return sodium_has(suite) ? KITH_OK : KITH_EUNSUPPORTED;
}

static void sodium_destroy(union kith_aead_state *state)
{
    sodium_memzero(state, sizeof *state);
}

static enum kith_err sodium_key(union kith_aead_state *state,
                                enum kith_suite suite,
                                const uint8_t key[KITH_KEY_BYTES],
                                enum kith_direction direction)
{
    (void)direction; /* One expansion serves both. */
    switch (suite) {
    case KITH_SUITE_AESGCM:
        crypto_aead_aes256gcm_beforenm(
            (crypto_aead_aes256gcm_state *)(void *)state->bytes, key);
        return KITH_OK;
    case KITH_SUITE_CHACHAPOLY:
        memcpy(state->bytes, key, KITH_KEY_BYTES);
        return KITH_OK;
    }
    return KITH_EUNSUPPORTED;
}

static enum kith_err sodium_seal(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const uint8_t nonce[KITH_NONCE_BYTES],
                                 const uint8_t *ad, size_t ad_bytes,
                                 const uint8_t *plain, size_t bytes,
                                 uint8_t *sealed)
{
    switch (suite) {
    case KITH_SUITE_AESGCM:
        crypto_aead_aes256gcm_encrypt_afternm(
            sealed, NULL, plain, bytes, ad, ad_bytes, NULL, nonce,
            (const crypto_aead_aes256gcm_state *)(const void *)state->bytes);
        return KITH_OK;
    case KITH_SUITE_CHACHAPOLY:
        crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, plain, bytes,
                                                  ad, ad_bytes, NULL, nonce,
                                                  state->bytes);
        return KITH_OK;
    }
    return KITH_EUNSUPPORTED;
}

static enum kith_err sodium_open(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const uint8_t nonce[KITH_NONCE_BYTES],
                                 const uint8_t *ad, size_t ad_bytes,
                                 const uint8_t *sealed, size_t bytes,
                                 uint8_t *plain)
{
    int bad = -1;
    switch (suite) {
    case KITH_SUITE_AESGCM:
        bad = crypto_aead_aes256gcm_decrypt_afternm(
            plain, NULL, NULL, sealed, bytes + KITH_TAG_BYTES, ad, ad_bytes,
            nonce,
            (const crypto_aead_aes256gcm_state *)(const void *)state->bytes);
        break;
    case KITH_SUITE_CHACHAPOLY:
        bad = crypto_aead_chacha20poly1305_ietf_decrypt(
            plain, NULL, NULL, sealed, bytes + KITH_TAG_BYTES, ad, ad_bytes,
            nonce, state->bytes);
        break;
    }
    if (bad != 0) {
        memset(plain, 0, bytes);
        return KITH_EAUTH;
    }
    return KITH_OK;
}

const struct kith_aead kith_aead_sodium = {
    .name = "libsodium",
    .has = sodium_has,
    .create = sodium_create,
    .destroy = sodium_destroy,
    .key = sodium_key,
    .seal = sodium_seal,
    .open = sodium_open,
};
