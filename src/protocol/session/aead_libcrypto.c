/* The AEADs of OpenSSL's libcrypto, through EVP.
 *
 * create() makes the context and names the cipher, key() expands a key into
 * it; a record then costs one Init with nothing but a nonce. EVP releases plain
 * text before the tag is known, so a failed open wipes what it wrote. */
#include <openssl/evp.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aead.h"

static bool libcrypto_has(enum kith_suite suite)
{
    return suite == KITH_SUITE_AESGCM || suite == KITH_SUITE_CHACHAPOLY;
}

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
    const int ok = EVP_CipherInit_ex(context_of(state), NULL, NULL, key, NULL,
                                     direction == KITH_SEAL ? 1 : 0);
    return ok == 1 ? KITH_OK : KITH_EDEVICE;
}

static enum kith_err libcrypto_seal(union kith_aead_state *state,
                                    enum kith_suite suite,
                                    const uint8_t nonce[KITH_NONCE_BYTES],
                                    const uint8_t *ad, size_t ad_bytes,
                                    const uint8_t *plain, size_t bytes,
                                    uint8_t *sealed)
{
    (void)suite;
    KITH_ASSERT(bytes <= KITH_RECORD_BYTES_MAX && ad_bytes <= 65535);
    EVP_CIPHER_CTX *context = context_of(state);
    int n = 0;
    int ok = EVP_EncryptInit_ex(context, NULL, NULL, NULL, nonce);
    if (ad_bytes)
        ok &= EVP_EncryptUpdate(context, NULL, &n, ad, (int)ad_bytes);
    if (bytes)
        ok &= EVP_EncryptUpdate(context, sealed, &n, plain, (int)bytes);
    ok &= EVP_EncryptFinal_ex(context, sealed + bytes, &n);
    ok &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, KITH_TAG_BYTES,
                              sealed + bytes);
    return ok == 1 ? KITH_OK : KITH_EDEVICE;
}

static enum kith_err libcrypto_open(union kith_aead_state *state,
                                    enum kith_suite suite,
                                    const uint8_t nonce[KITH_NONCE_BYTES],
                                    const uint8_t *ad, size_t ad_bytes,
                                    const uint8_t *sealed, size_t bytes,
                                    uint8_t *plain)
{
    (void)suite;
    KITH_ASSERT(bytes <= KITH_RECORD_BYTES_MAX && ad_bytes <= 65535);
    EVP_CIPHER_CTX *context = context_of(state);
    uint8_t tag[KITH_TAG_BYTES], unused[KITH_TAG_BYTES];
    int n = 0;
    memcpy(tag, sealed + bytes, sizeof tag);
    int ok = EVP_DecryptInit_ex(context, NULL, NULL, NULL, nonce);
    ok &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, KITH_TAG_BYTES,
                              tag);
    if (ad_bytes)
        ok &= EVP_DecryptUpdate(context, NULL, &n, ad, (int)ad_bytes);
    if (bytes)
        ok &= EVP_DecryptUpdate(context, plain, &n, sealed, (int)bytes);
    if (ok == 1 && EVP_DecryptFinal_ex(context, unused, &n) == 1)
        return KITH_OK;
    memset(plain, 0, bytes);
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
