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

_Static_assert(crypto_aead_aes256gcm_KEYBYTES == KITH_KEY_BYTES &&
                   crypto_aead_chacha20poly1305_ietf_KEYBYTES == KITH_KEY_BYTES,
               "keys of 256 bits");
_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == KITH_NONCE_BYTES &&
                   crypto_aead_chacha20poly1305_ietf_NPUBBYTES ==
                       KITH_NONCE_BYTES,
               "nonces of 96 bits, as Noise writes them");
_Static_assert(crypto_aead_aes256gcm_ABYTES == KITH_TAG_BYTES &&
                   crypto_aead_chacha20poly1305_ietf_ABYTES == KITH_TAG_BYTES,
               "tags of 128 bits");

static crypto_aead_aes256gcm_state *expanded_of(union kith_aead_state *state)
{
    return (crypto_aead_aes256gcm_state *)(void *)state->bytes;
}

static bool sodium_has(enum kith_suite suite)
{
    /* Detects the processor's features on its first call, then costs nothing.
     */
    if (sodium_init() < 0)
        return false;
    return suite == KITH_SUITE_CHACHAPOLY ||
           (suite == KITH_SUITE_AESGCM &&
            crypto_aead_aes256gcm_is_available() == 1);
}

/* The one place that refuses a suite: the others get what it let through. */
static enum kith_err sodium_create(union kith_aead_state *state,
                                   enum kith_suite suite)
{
    memset(state, 0, sizeof *state);
    return sodium_has(suite) ? KITH_OK : KITH_EUNSUPPORTED;
}

/* memzero, for a compiler may leave out a memset of what is not read again. */
static void sodium_destroy(union kith_aead_state *state)
{
    sodium_memzero(state, sizeof *state);
}

static enum kith_err sodium_key(union kith_aead_state *state,
                                enum kith_suite suite,
                                const uint8_t key[KITH_KEY_BYTES],
                                enum kith_direction direction)
{
    (void)direction; /* GCM and ChaCha run the cipher forward either way. */
    if (suite == KITH_SUITE_AESGCM)
        crypto_aead_aes256gcm_beforenm(expanded_of(state), key);
    else
        memcpy(state->bytes, key, KITH_KEY_BYTES);
    return KITH_OK;
}

/* The detached calls would save nothing: a tag follows its text on the wire. */
static enum kith_err sodium_seal(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const struct kith_aead_text *text)
{
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    if (suite == KITH_SUITE_AESGCM)
        crypto_aead_aes256gcm_encrypt_afternm(
            text->out, NULL, text->in, text->bytes, text->ad, text->ad_bytes,
            NULL, text->nonce, expanded_of(state));
    else
        crypto_aead_chacha20poly1305_ietf_encrypt(
            text->out, NULL, text->in, text->bytes, text->ad, text->ad_bytes,
            NULL, text->nonce, state->bytes);
    return KITH_OK;
}

static enum kith_err sodium_open(union kith_aead_state *state,
                                 enum kith_suite suite,
                                 const struct kith_aead_text *text)
{
    const size_t sealed_bytes = text->bytes + KITH_TAG_BYTES;
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    const int bad =
        suite == KITH_SUITE_AESGCM
            ? crypto_aead_aes256gcm_decrypt_afternm(
                  text->out, NULL, NULL, text->in, sealed_bytes, text->ad,
                  text->ad_bytes, text->nonce, expanded_of(state))
            : crypto_aead_chacha20poly1305_ietf_decrypt(
                  text->out, NULL, NULL, text->in, sealed_bytes, text->ad,
                  text->ad_bytes, text->nonce, state->bytes);
    if (bad == 0)
        return KITH_OK;
    /* libsodium has not written, or zeroed, the target; the contract promises
     * zeros in either case. */
    memset(text->out, 0, text->bytes);
    return KITH_EAUTH;
}

const struct kith_aead kith_aead_sodium = {
    .name = "libsodium",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AESGCM) |
              KITH_SUITE_BIT(KITH_SUITE_CHACHAPOLY),
    .has = sodium_has,
    .create = sodium_create,
    .destroy = sodium_destroy,
    .key = sodium_key,
    .seal = sodium_seal,
    .open = sodium_open,
};
