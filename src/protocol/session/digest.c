/* HASH, HMAC and HKDF over libsodium's BLAKE2b (64-byte output) and SHA-512.
 *
 *   HMAC(k, m)  = H(k ^ opad || H(k ^ ipad || m))          RFC 2104
 *   HKDF(ck, i) : t = HMAC(ck, i); o1 = HMAC(t, 1); o2 = HMAC(t, o1 || 2)
 *
 * Keyed BLAKE2b is not HMAC; Noise wants HMAC for every hash. */
#include "src/protocol/session/digest.h"

#include <sodium.h>
#include <string.h>

#include "kith/assert.h"

_Static_assert(KITH_HASH_BYTES == crypto_generichash_BYTES_MAX,
               "BLAKE2b's longest output");
_Static_assert(KITH_HASH_BYTES == crypto_hash_sha512_BYTES, "SHA-512's");
_Static_assert(KITH_HASH_BYTES <= KITH_BLOCK_BYTES,
               "a key of one hash is padded, never hashed (RFC 2104)");

/* Both states, not a union: 600 bytes of stack, and no aliasing of what
 * libsodium aligns differently. */
struct hasher {
    enum kith_digest digest;
    crypto_generichash_state blake2b;
    crypto_hash_sha512_state sha512;
};

static void hasher_start(struct hasher *h, enum kith_digest digest)
{
    h->digest = digest;
    switch (digest) {
    case KITH_DIGEST_BLAKE2B:
        crypto_generichash_init(&h->blake2b, NULL, 0, KITH_HASH_BYTES);
        break;
    case KITH_DIGEST_SHA512:
        crypto_hash_sha512_init(&h->sha512);
        break;
    }
}

static void hasher_add(struct hasher *h, const uint8_t *bytes, size_t size)
{
    KITH_ASSERT(bytes != NULL || size == 0);
    switch (h->digest) {
    case KITH_DIGEST_BLAKE2B:
        crypto_generichash_update(&h->blake2b, bytes, size);
        break;
    case KITH_DIGEST_SHA512:
        crypto_hash_sha512_update(&h->sha512, bytes, size);
        break;
    }
}

static void hasher_end(struct hasher *h, uint8_t hash[KITH_HASH_BYTES])
{
    switch (h->digest) {
    case KITH_DIGEST_BLAKE2B:
        crypto_generichash_final(&h->blake2b, hash, KITH_HASH_BYTES);
        break;
    case KITH_DIGEST_SHA512:
        crypto_hash_sha512_final(&h->sha512, hash);
        break;
    }
    /* Its state is a function of what may be a secret. */
    sodium_memzero(h, sizeof *h);
}

void kith_digest_two(enum kith_digest digest, uint8_t hash[KITH_HASH_BYTES],
                     const uint8_t *left, size_t left_bytes,
                     const uint8_t *right, size_t right_bytes)
{
    struct hasher h;
    KITH_ASSERT(hash != right);
    hasher_start(&h, digest);
    hasher_add(&h, left, left_bytes);
    hasher_add(&h, right, right_bytes);
    hasher_end(&h, hash);
}

/* mac <- HMAC(key, left || right); a key here is always one hash long. */
static void hmac(enum kith_digest digest, const uint8_t key[KITH_HASH_BYTES],
                 const uint8_t *left, size_t left_bytes, const uint8_t *right,
                 size_t right_bytes, uint8_t mac[KITH_HASH_BYTES])
{
    uint8_t inner[KITH_BLOCK_BYTES], outer[KITH_BLOCK_BYTES];
    KITH_ASSERT(mac != left && mac != right);
    memset(inner, 0x36, sizeof inner);
    memset(outer, 0x5c, sizeof outer);
    for (size_t i = 0; i < KITH_HASH_BYTES; i++) {
        inner[i] ^= key[i];
        outer[i] ^= key[i];
    }

    struct hasher h;
    uint8_t hash[KITH_HASH_BYTES];
    hasher_start(&h, digest);
    hasher_add(&h, inner, sizeof inner);
    hasher_add(&h, left, left_bytes);
    hasher_add(&h, right, right_bytes);
    hasher_end(&h, hash);
    kith_digest_two(digest, mac, outer, sizeof outer, hash, sizeof hash);
    sodium_memzero(inner, sizeof inner);
    sodium_memzero(outer, sizeof outer);
    sodium_memzero(hash, sizeof hash);
}

void kith_digest_hkdf(enum kith_digest digest,
                      const uint8_t chain[KITH_HASH_BYTES],
                      const uint8_t *input, size_t input_bytes,
                      uint8_t first[KITH_HASH_BYTES],
                      uint8_t second[KITH_HASH_BYTES])
{
    static const uint8_t one = 1, two = 2;
    KITH_ASSERT(first != second && second != chain);
    uint8_t temporary[KITH_HASH_BYTES];
    /* The chain is read here for the last time: `first` may take its place. */
    hmac(digest, chain, input, input_bytes, NULL, 0, temporary);
    hmac(digest, temporary, NULL, 0, &one, 1, first);
    hmac(digest, temporary, first, KITH_HASH_BYTES, &two, 1, second);
    sodium_memzero(temporary, sizeof temporary);
}
