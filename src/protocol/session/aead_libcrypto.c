/* The AEADs of OpenSSL's libcrypto, through EVP.
 *
 * create() makes the context and names the cipher, key() expands a key into
 * it; a record then costs one Init with nothing but a nonce. A context is
 * written by every record, so each lane has its own. EVP releases plain text
 * before the tag is known, so a failed open wipes what it wrote. */
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aead.h"

_Static_assert(KITH_RECORD_BYTES_MAX + KITH_TAG_BYTES <= INT_MAX,
               "lengths are int in EVP");
_Static_assert(KITH_NONCE_BYTES == 12, "EVP's default length of a nonce");
_Static_assert(KITH_LANES_MAX >= 1 && sizeof(void *[KITH_LANES_MAX]) <=
                                          sizeof(union kith_aead_state),
               "a state has a context for every lane");

/* Created once a direction and never copied: the state holds the pointers. */
static EVP_CIPHER_CTX *context_of(const union kith_aead_state *state,
                                  unsigned lane)
{
    KITH_ASSERT(lane < KITH_LANES_MAX && state->lanes[lane] != NULL);
    return state->lanes[lane];
}

static void libcrypto_destroy(union kith_aead_state *state)
{
    for (unsigned i = 0; i < KITH_LANES_MAX; i++) {
        EVP_CIPHER_CTX_free(state->lanes[i]); /* Clears the key schedule. */
        state->lanes[i] = NULL;
    }
}

/* EVP's cipher, NULL: none of ours. */
static const EVP_CIPHER *cipher_of(enum kith_suite suite)
{
    return suite == KITH_SUITE_AESGCM       ? EVP_aes_256_gcm()
           : suite == KITH_SUITE_CHACHAPOLY ? EVP_chacha20_poly1305()
                                            : NULL;
}

static bool libcrypto_has(enum kith_suite suite)
{
    return cipher_of(suite) != NULL;
}

/* On an error the state keeps the lanes that it got, for destroy(). */
static enum kith_err libcrypto_widen(union kith_aead_state *state,
                                     enum kith_suite suite, unsigned lanes)
{
    const EVP_CIPHER *cipher = cipher_of(suite);
    KITH_ASSERT(lanes >= 1 && lanes <= KITH_LANES_MAX);
    if (!cipher)
        return KITH_EUNSUPPORTED;
    for (unsigned i = 0; i < lanes; i++) {
        if (state->lanes[i])
            continue;
        state->lanes[i] = EVP_CIPHER_CTX_new();
        if (!state->lanes[i])
            return KITH_ENOMEM;
        if (EVP_EncryptInit_ex(state->lanes[i], cipher, NULL, NULL, NULL) != 1)
            return KITH_EUNSUPPORTED;
    }
    return KITH_OK;
}

/* A context per direction, made once: making it and fetching a
 * cipher allocate, which no record may do. */
static enum kith_err libcrypto_create(union kith_aead_state *state,
                                      enum kith_suite suite)
{
    memset(state, 0, sizeof *state);
    const enum kith_err err = libcrypto_widen(state, suite, 1);
    if (err != KITH_OK)
        libcrypto_destroy(state);
    return err;
}

static enum kith_err libcrypto_key(union kith_aead_state *state,
                                   enum kith_suite suite,
                                   const uint8_t key[KITH_KEY_BYTES],
                                   enum kith_direction direction)
{
    (void)suite; /* create() named the cipher. */
    KITH_ASSERT(direction == KITH_SEAL || direction == KITH_OPEN);
    /* Here the key is expanded: once a Rekey, never per record. */
    int ok = 1;
    for (unsigned i = 0; i < KITH_LANES_MAX && state->lanes[i]; i++)
        ok &= EVP_CipherInit_ex(state->lanes[i], NULL, NULL, key, NULL,
                                direction == KITH_SEAL ? 1 : 0);
    return ok == 1 ? KITH_OK : KITH_EDEVICE;
}

/* All but the tag, in the direction of the key. EVP counts in int, and its
 * AEADs here are stream ciphers: an update gives as many bytes as it takes, the
 * final call none. */
static int run(EVP_CIPHER_CTX *context, const struct kith_aead_text *text,
               int (*update)(EVP_CIPHER_CTX *, uint8_t *, int *,
                             const uint8_t *, int))
{
    int n = 0;
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    KITH_ASSERT(text->ad_bytes <= KITH_RECORD_BYTES_MAX);
    int ok = EVP_CipherInit_ex(context, NULL, NULL, NULL, text->nonce, -1);
    if (text->ad_bytes)
        ok &= update(context, NULL, &n, text->ad, (int)text->ad_bytes);
    if (text->bytes) {
        ok &= update(context, text->out, &n, text->in, (int)text->bytes);
        KITH_ASSERT(ok != 1 || (size_t)n == text->bytes);
    }
    return ok;
}

static enum kith_err libcrypto_seal(union kith_aead_state *state,
                                    enum kith_suite suite,
                                    const struct kith_aead_text *text)
{
    (void)suite;
    EVP_CIPHER_CTX *context = context_of(state, text->lane);
    uint8_t *tag = text->out + text->bytes;
    int n = 0;
    int ok = run(context, text, EVP_EncryptUpdate);
    ok &= EVP_EncryptFinal_ex(context, tag, &n);
    KITH_ASSERT(ok != 1 || n == 0);
    ok &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, KITH_TAG_BYTES,
                              tag);
    return ok == 1 ? KITH_OK : KITH_EDEVICE;
}

static enum kith_err libcrypto_open(union kith_aead_state *state,
                                    enum kith_suite suite,
                                    const struct kith_aead_text *text)
{
    (void)suite;
    EVP_CIPHER_CTX *context = context_of(state, text->lane);
    uint8_t tag[KITH_TAG_BYTES], unused[KITH_TAG_BYTES];
    int n = 0;
    /* Apart, for the text may be opened in place, and not to be const. */
    memcpy(tag, text->in + text->bytes, sizeof tag);
    int ok = run(context, text, EVP_DecryptUpdate);
    ok &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, KITH_TAG_BYTES,
                              tag);
    if (ok == 1 && EVP_DecryptFinal_ex(context, unused, &n) == 1)
        return KITH_OK;
    /* EVP has written the plain text already: nobody may read what did not
     * authenticate. */
    memset(text->out, 0, text->bytes);
    return ok == 1 ? KITH_EAUTH : KITH_EDEVICE;
}

const struct kith_aead kith_aead_libcrypto = {
    .name = "libcrypto",
    .suites = KITH_SUITE_BIT(KITH_SUITE_AESGCM) |
              KITH_SUITE_BIT(KITH_SUITE_CHACHAPOLY),
    .has = libcrypto_has,
    .create = libcrypto_create,
    .destroy = libcrypto_destroy,
    .widen = libcrypto_widen,
    .key = libcrypto_key,
    .seal = libcrypto_seal,
    .open = libcrypto_open,
};
