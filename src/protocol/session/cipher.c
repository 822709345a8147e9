/* Noise's CipherState: (k, n), EncryptWithAd, DecryptWithAd, Rekey.
 *
 *   nonce(AESGCM)     = 0^4 || BE64(n)
 *   nonce(ChaChaPoly) = 0^4 || LE64(n)      n = 2^64 - 1 belongs to Rekey()
 *   nonce(AEGIS256X2) = 0^4 || LE64(n) || 0^20 */
#include "src/protocol/session/cipher.h"

#include <sodium.h>
#include <string.h>

#include "kith/assert.h"

_Static_assert(KITH_NONCE_BYTES == 4 + sizeof(uint64_t) &&
                   KITH_NONCE_BYTES <= KITH_NONCE_BYTES_MAX,
               "a nonce is four zero bytes and n, then zeros");

enum kith_err kith_cipher_create(struct kith_cipher *cipher,
                                 const struct kith_aead *aead,
                                 enum kith_suite suite,
                                 enum kith_direction direction)
{
    KITH_ASSERT(direction == KITH_SEAL || direction == KITH_OPEN);
    *cipher = (struct kith_cipher){
        .aead = aead, .suite = suite, .direction = direction};
    return aead->create(&cipher->state, suite);
}

void kith_cipher_destroy(struct kith_cipher *cipher)
{
    cipher->aead->destroy(&cipher->state);
    /* The plain key lies here too, for Rekey. */
    sodium_memzero(cipher, sizeof *cipher);
}

/* Under the key that is there, since a new lane has none. */
enum kith_err kith_cipher_widen(struct kith_cipher *cipher, unsigned lanes)
{
    KITH_ASSERT(lanes >= 1 && lanes <= KITH_LANES_MAX);
    if (lanes == 1 || !cipher->aead->widen)
        return KITH_OK;
    const enum kith_err err =
        cipher->aead->widen(&cipher->state, cipher->suite, lanes);
    return err == KITH_OK ? cipher->aead->key(&cipher->state, cipher->suite,
                                              cipher->key, cipher->direction)
                          : err;
}

/* n comes with the key: a handshake key starts at 0, Rekey goes on counting. */
enum kith_err kith_cipher_key(struct kith_cipher *cipher,
                              const uint8_t key[KITH_KEY_BYTES], uint64_t n)
{
    memcpy(cipher->key, key, KITH_KEY_BYTES);
    cipher->n = n;
    return cipher->aead->key(&cipher->state, cipher->suite, key,
                             cipher->direction);
}

/* Noise gives its two suites different byte orders (section 12.3, 12.4), each
 * after its cipher's own convention; AEGIS counts little-endian. Every suite
 * gets the longest nonce and reads as much as it has. */
static void nonce_write(enum kith_suite suite, uint64_t n,
                        uint8_t nonce[KITH_NONCE_BYTES_MAX])
{
    memset(nonce, 0, KITH_NONCE_BYTES_MAX);
    for (size_t i = 0; i < 8; i++)
        nonce[4 + i] =
            (uint8_t)(n >> 8 * (suite == KITH_SUITE_AESGCM ? 7 - i : i));
}

/* Providers write the target while they read the source: one place or two, but
 * never places that overlap in part. */
static bool are_apart(const uint8_t *a, size_t a_bytes, const uint8_t *b,
                      size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x == y || x + a_bytes <= y || y + b_bytes <= x;
}

/* Of one record: where it lies, and which nonce and lane are its. `text` lacks
 * its nonce. In the cipher's direction. */
static enum kith_err run(struct kith_cipher *cipher, uint64_t ahead,
                         struct kith_aead_text text)
{
    uint8_t nonce[KITH_NONCE_BYTES_MAX];
    /* 2^64 - 1 is Rekey's. */
    if (ahead >= UINT64_MAX - cipher->n)
        return KITH_ELIMIT;
    nonce_write(cipher->suite, cipher->n + ahead, nonce);
    text.nonce = nonce;
    return (cipher->direction == KITH_SEAL
                ? cipher->aead->seal
                : cipher->aead->open)(&cipher->state, cipher->suite, &text);
}

void kith_cipher_spend(struct kith_cipher *cipher, uint64_t records)
{
    KITH_ASSERT(records <= UINT64_MAX - cipher->n);
    cipher->n += records;
}

enum kith_err kith_cipher_seal_ahead(struct kith_cipher *cipher, unsigned lane,
                                     uint64_t ahead, const uint8_t *plain,
                                     size_t bytes, uint8_t *sealed)
{
    KITH_ASSERT(cipher->direction == KITH_SEAL);
    KITH_ASSERT(are_apart(plain, bytes, sealed, bytes + KITH_TAG_BYTES));
    return run(cipher, ahead,
               (struct kith_aead_text){
                   .in = plain, .out = sealed, .bytes = bytes, .lane = lane});
}

enum kith_err kith_cipher_open_ahead(struct kith_cipher *cipher, unsigned lane,
                                     uint64_t ahead, const uint8_t *sealed,
                                     size_t bytes, uint8_t *plain)
{
    KITH_ASSERT(cipher->direction == KITH_OPEN);
    KITH_ASSERT(are_apart(sealed, bytes + KITH_TAG_BYTES, plain, bytes));
    return run(cipher, ahead,
               (struct kith_aead_text){
                   .in = sealed, .out = plain, .bytes = bytes, .lane = lane});
}

enum kith_err kith_cipher_seal(struct kith_cipher *cipher, const uint8_t *ad,
                               size_t ad_bytes, const uint8_t *plain,
                               size_t bytes, uint8_t *sealed)
{
    KITH_ASSERT(cipher->direction == KITH_SEAL);
    KITH_ASSERT(are_apart(plain, bytes, sealed, bytes + KITH_TAG_BYTES));
    if (cipher->n == UINT64_MAX)
        return KITH_ELIMIT;
    const enum kith_err err = run(cipher, 0,
                                  (struct kith_aead_text){.ad = ad,
                                                          .ad_bytes = ad_bytes,
                                                          .in = plain,
                                                          .out = sealed,
                                                          .bytes = bytes});
    /* Spent even where sealing fails: a nonce that was used twice under one key
     * gives away GCM's authentication key (Joux 2006), one left out costs
     * nothing. */
    kith_cipher_spend(cipher, 1);
    return err;
}

enum kith_err kith_cipher_open(struct kith_cipher *cipher, const uint8_t *ad,
                               size_t ad_bytes, const uint8_t *sealed,
                               size_t bytes, uint8_t *plain)
{
    KITH_ASSERT(cipher->direction == KITH_OPEN);
    KITH_ASSERT(are_apart(sealed, bytes + KITH_TAG_BYTES, plain, bytes));
    const enum kith_err err = run(cipher, 0,
                                  (struct kith_aead_text){.ad = ad,
                                                          .ad_bytes = ad_bytes,
                                                          .in = sealed,
                                                          .out = plain,
                                                          .bytes = bytes});
    /* A message that does not authenticate must not advance n (revision 34,
     * section 5.1): else a forger could make both sides disagree. */
    if (err == KITH_OK)
        kith_cipher_spend(cipher, 1);
    return err;
}

/* Rekey (section 11.3), without a word on the wire: both ends count records.
 * It gives forward secrecy within a session, and keeps GCM far below its
 * limits of use (KITH_REKEY_RECORDS). */
enum kith_err kith_cipher_rekey(struct kith_cipher *cipher)
{
    static const uint8_t zeros[KITH_KEY_BYTES] = {0};
    const uint64_t before = cipher->n;
    uint8_t nonce[KITH_NONCE_BYTES_MAX];
    uint8_t sealed[KITH_KEY_BYTES + KITH_TAG_BYTES];
    nonce_write(cipher->suite, UINT64_MAX, nonce);
    const struct kith_aead_text text = {
        .nonce = nonce, .in = zeros, .out = sealed, .bytes = sizeof zeros};
    /* Rekey encrypts in both directions: an opening state is turned for one
     * call. */
    enum kith_err err = cipher->aead->key(&cipher->state, cipher->suite,
                                          cipher->key, KITH_SEAL);
    if (err == KITH_OK)
        err = cipher->aead->seal(&cipher->state, cipher->suite, &text);
    if (err == KITH_OK)
        err = kith_cipher_key(cipher, sealed, cipher->n);
    sodium_memzero(sealed, sizeof sealed);
    KITH_ASSERT(cipher->n == before);
    return err;
}
