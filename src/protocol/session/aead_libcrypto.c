/* The AEADs of OpenSSL's libcrypto, through EVP.
 *
 * create() makes the context and names the cipher, key() expands a key into
 * it; a record then costs one Init with nothing but a nonce. EVP releases plain
 * text before the tag is known, so a failed open wipes what it wrote. */
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aead.h"

_Static_assert(KITH_RECORD_BYTES_MAX + KITH_TAG_BYTES <= INT_MAX,
               "lengths are int in EVP");
_Static_assert(KITH_NONCE_BYTES == 12, "EVP's default length of a nonce");

static bool libcrypto_has(enum kith_suite suite)
{
    return suite == KITH_SUITE_AESGCM || suite == KITH_SUITE_CHACHAPOLY;
}

/* Created once a direction and never copied: the state holds the pointer. */
static EVP_CIPHER_CTX *context_of(union kith_aead_state *state)
{
    KITH_ASSERT(state->pointer != NULL);
    return state->pointer;
}

static void libcrypto_destroy(union kith_aead_state *state)
{
    EVP_CIPHER_CTX_free(state->pointer); /* Clears the key schedule. */
    state->pointer = NULL;
}

/* A context per direction, made once: making it and fetching a
 * cipher allocate, which no record may do. */
static enum kith_err libcrypto_create(union kith_aead_state *state,
                                      enum kith_suite suite)
{
    const EVP_CIPHER *cipher = NULL;
    switch (suite) {
    case KITH_SUITE_AESGCM:
        cipher = EVP_aes_256_gcm();
        break;
    case KITH_SUITE_CHACHAPOLY:
        cipher = EVP_chacha20_poly1305();
        break;
    }
    memset(state, 0, sizeof *state);
    if (!cipher)
        return KITH_EUNSUPPORTED;
    state->pointer = EVP_CIPHER_CTX_new();
    if (!state->pointer)
        return KITH_ENOMEM;
    if (EVP_EncryptInit_ex(state->pointer, cipher, NULL, NULL, NULL) == 1)
        return KITH_OK;
    libcrypto_destroy(state);
    return KITH_EUNSUPPORTED;
}

static enum kith_err libcrypto_key(union kith_aead_state *state,
                                   enum kith_suite suite,
                                   const uint8_t key[KITH_KEY_BYTES],
                                   enum kith_direction direction)
{
    (void)suite; /* create() named the cipher. */
    KITH_ASSERT(direction == KITH_SEAL || direction == KITH_OPEN);
    /* Here the key is expanded: once a Rekey, never per record. */
    const int ok = EVP_CipherInit_ex(context_of(state), NULL, NULL, key, NULL,
                                     direction == KITH_SEAL ? 1 : 0);
    return ok == 1 ? KITH_OK : KITH_EDEVICE;
}

/* EVP counts in int, and its AEADs here are stream ciphers: an update gives as
 * many bytes as it takes, the final call none. */
static enum kith_err libcrypto_seal(union kith_aead_state *state,
                                    enum kith_suite suite,
                                    const struct kith_aead_text *text)
{
    (void)suite;
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    KITH_ASSERT(text->ad_bytes <= KITH_RECORD_BYTES_MAX);
    EVP_CIPHER_CTX *context = context_of(state);
    uint8_t *tag = text->out + text->bytes;
    int n = 0;
    int ok = EVP_EncryptInit_ex(context, NULL, NULL, NULL, text->nonce);
    if (text->ad_bytes)
        ok &=
            EVP_EncryptUpdate(context, NULL, &n, text->ad, (int)text->ad_bytes);
    if (text->bytes) {
        ok &= EVP_EncryptUpdate(context, text->out, &n, text->in,
                                (int)text->bytes);
        KITH_ASSERT(ok != 1 || (size_t)n == text->bytes);
    }
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
    KITH_ASSERT(text->bytes <= KITH_RECORD_BYTES_MAX);
    KITH_ASSERT(text->ad_bytes <= KITH_RECORD_BYTES_MAX);
    EVP_CIPHER_CTX *context = context_of(state);
    uint8_t tag[KITH_TAG_BYTES], unused[KITH_TAG_BYTES];
    int n = 0;
    /* EVP wants the tag before the text, and not to be const. */
    memcpy(tag, text->in + text->bytes, sizeof tag);
    int ok = EVP_DecryptInit_ex(context, NULL, NULL, NULL, text->nonce);
    ok &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, KITH_TAG_BYTES,
                              tag);
    if (text->ad_bytes)
        ok &=
            EVP_DecryptUpdate(context, NULL, &n, text->ad, (int)text->ad_bytes);
    if (text->bytes)
        ok &= EVP_DecryptUpdate(context, text->out, &n, text->in,
                                (int)text->bytes);
    if (ok == 1 && EVP_DecryptFinal_ex(context, unused, &n) == 1)
        return KITH_OK;
    /* EVP has written the plain text already: nobody may read what did not
     * authenticate. */
    memset(text->out, 0, text->bytes);
    return ok == 1 ? KITH_EAUTH : KITH_EDEVICE;
}

const struct kith_aead kith_aead_libcrypto = {
    .name = "libcrypto",
    .has = libcrypto_has,
    .create = libcrypto_create,
    .destroy = libcrypto_destroy,
    .key = libcrypto_key,
    .seal = libcrypto_seal,
    .open = libcrypto_open,
};
