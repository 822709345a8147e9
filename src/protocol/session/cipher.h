/* Noise's CipherState (revision 34, section 5.1) over one AEAD provider. */
#ifndef KITH_PROTOCOL_SESSION_CIPHER_H
#define KITH_PROTOCOL_SESSION_CIPHER_H

#include "src/protocol/session/aead.h"

struct kith_cipher {
    const struct kith_aead *aead;
    enum kith_suite suite;
    enum kith_direction direction;
    uint8_t key[KITH_KEY_BYTES]; /* kept for Rekey() */
    uint64_t n;                  /* the next nonce */
    union kith_aead_state state;
};

KITH_MUST_CHECK enum kith_err kith_cipher_create(struct kith_cipher *cipher,
                                                 const struct kith_aead *aead,
                                                 enum kith_suite suite,
                                                 enum kith_direction direction);
void kith_cipher_destroy(struct kith_cipher *cipher);
KITH_MUST_CHECK enum kith_err kith_cipher_key(struct kith_cipher *cipher,
                                              const uint8_t key[KITH_KEY_BYTES],
                                              uint64_t n);
/* To so many lanes (aead.h), which have the key that it has. */
KITH_MUST_CHECK enum kith_err kith_cipher_widen(struct kith_cipher *cipher,
                                                unsigned lanes);
/* KITH_ELIMIT: the nonces of this key are used up. */
KITH_MUST_CHECK enum kith_err
kith_cipher_seal(struct kith_cipher *cipher, const uint8_t *ad, size_t ad_bytes,
                 const uint8_t *plain, size_t bytes, uint8_t *sealed);
KITH_MUST_CHECK enum kith_err
kith_cipher_open(struct kith_cipher *cipher, const uint8_t *ad, size_t ad_bytes,
                 const uint8_t *sealed, size_t bytes, uint8_t *plain);
/* The same without associated data for the record that is `ahead` of the next
 * one; n stays, and lanes may run at once. Then kith_cipher_spend() for all of
 * them, on one thread. */
KITH_MUST_CHECK enum kith_err
kith_cipher_seal_ahead(struct kith_cipher *cipher, unsigned lane,
                       uint64_t ahead, const uint8_t *plain, size_t bytes,
                       uint8_t *sealed);
KITH_MUST_CHECK enum kith_err
kith_cipher_open_ahead(struct kith_cipher *cipher, unsigned lane,
                       uint64_t ahead, const uint8_t *sealed, size_t bytes,
                       uint8_t *plain);
void kith_cipher_spend(struct kith_cipher *cipher, uint64_t records);
/* k <- the first 32 bytes of ENCRYPT(k, 2^64 - 1, "", 0^32); n goes on. */
KITH_MUST_CHECK enum kith_err kith_cipher_rekey(struct kith_cipher *cipher);

#endif
