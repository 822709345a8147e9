/* The hash functions of a handshake: HASH, HMAC and HKDF (Noise revision 34,
 * section 4.3). SHA512 exists for test vectors; no suite uses it. */
#ifndef KITH_PROTOCOL_SESSION_DIGEST_H
#define KITH_PROTOCOL_SESSION_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum kith_digest { KITH_DIGEST_BLAKE2B, KITH_DIGEST_SHA512 };

/* HASHLEN and BLOCKLEN, the same for both. */
#define KITH_HASH_BYTES 64u
#define KITH_BLOCK_BYTES 128u

/* hash <- HASH(left || right). `hash` may be `left`. */
void kith_digest_two(enum kith_digest digest, uint8_t hash[KITH_HASH_BYTES],
                     const uint8_t *left, size_t left_bytes,
                     const uint8_t *right, size_t right_bytes);
/* (first, second) <- HKDF(chain, input, 2). `first` may be `chain`. */
void kith_digest_hkdf(enum kith_digest digest,
                      const uint8_t chain[KITH_HASH_BYTES],
                      const uint8_t *input, size_t input_bytes,
                      uint8_t first[KITH_HASH_BYTES],
                      uint8_t second[KITH_HASH_BYTES]);

#endif
