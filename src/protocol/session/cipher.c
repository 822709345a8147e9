/* Noise's CipherState: (k, n), EncryptWithAd, DecryptWithAd, Rekey.
 *
 *   nonce(AESGCM)     = 0^4 || BE64(n)
 *   nonce(ChaChaPoly) = 0^4 || LE64(n)      n = 2^64 - 1 belongs to Rekey() */
#include "src/protocol/session/cipher.h"

#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/bytes.h"

enum kith_err kith_cipher_create(struct kith_cipher *cipher,
                                 const struct kith_aead *aead,
                                 enum kith_suite suite,
                                 enum kith_direction direction)
{
    memset(cipher, 0, sizeof *cipher);
    cipher->aead = aead;
    cipher->suite = suite;
    cipher->direction = direction;
    return aead->create(&cipher->state, suite);
}

void kith_cipher_destroy(struct kith_cipher *cipher)
{
    cipher->aead->destroy(&cipher->state);
    sodium_memzero(cipher, sizeof *cipher);
}

enum kith_err kith_cipher_key(struct kith_cipher *cipher,
                              const uint8_t key[KITH_KEY_BYTES], uint64_t n)
{
    memcpy(cipher->key, key, KITH_KEY_BYTES);
    cipher->n = n;
    return cipher->aead->key(&cipher->state, cipher->suite, key,
                             cipher->direction);
}

static void nonce_write(enum kith_suite suite, uint64_t n,
                        uint8_t nonce[KITH_NONCE_BYTES])
{
    memset(nonce, 0, 4);
    switch (suite) {
    case KITH_SUITE_AESGCM:
        put_be(nonce + 4, n, 8);
        break;
    case KITH_SUITE_CHACHAPOLY:
        for (size_t i = 0; i < 8; i++)
            nonce[4 + i] = (uint8_t)(n >> (8 * i));
        break;
    }
}

enum kith_err kith_cipher_seal(struct kith_cipher *cipher, const uint8_t *ad,
                               size_t ad_bytes, const uint8_t *plain,
                               size_t bytes, uint8_t *sealed)
{
    KITH_ASSERT(cipher->direction == KITH_SEAL);
    if (cipher->n == UINT64_MAX)
        return KITH_ELIMIT;
    uint8_t nonce[KITH_NONCE_BYTES];
    nonce_write(cipher->suite, cipher->n++, nonce);
    return cipher->aead->seal(&cipher->state, cipher->suite, nonce, ad,
                              ad_bytes, plain, bytes, sealed);
}

enum kith_err kith_cipher_open(struct kith_cipher *cipher, const uint8_t *ad,
                               size_t ad_bytes, const uint8_t *sealed,
                               size_t bytes, uint8_t *plain)
{
    KITH_ASSERT(cipher->direction == KITH_OPEN);
    if (cipher->n == UINT64_MAX)
        return KITH_ELIMIT;
    uint8_t nonce[KITH_NONCE_BYTES];
    nonce_write(cipher->suite, cipher->n, nonce);
    const enum kith_err err =
        cipher->aead->open(&cipher->state, cipher->suite, nonce, ad, ad_bytes,
                           sealed, bytes, plain);
    /* A failed message does not advance n (section 5.1). */
    if (err == KITH_OK)
        cipher->n++;
    return err;
}

enum kith_err kith_cipher_rekey(struct kith_cipher *cipher)
{
    static const uint8_t zeros[KITH_KEY_BYTES] = {0};
    uint8_t nonce[KITH_NONCE_BYTES], sealed[KITH_KEY_BYTES + KITH_TAG_BYTES];
    nonce_write(cipher->suite, UINT64_MAX, nonce);
    /* Encrypts in both directions: an opening state is turned for one call. */
    enum kith_err err = cipher->aead->key(&cipher->state, cipher->suite,
                                          cipher->key, KITH_SEAL);
    if (err == KITH_OK)
        err = cipher->aead->seal(&cipher->state, cipher->suite, nonce, NULL, 0,
                                 zeros, sizeof zeros, sealed);
    if (err == KITH_OK)
        err = kith_cipher_key(cipher, sealed, cipher->n);
    sodium_memzero(sealed, sizeof sealed);
    return err;
}
