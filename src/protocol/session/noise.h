/* Noise XX over X25519 (revision 34): SymmetricState and HandshakeState.
 *
 *   -> e                     message 1:  32 + payload
 *   <- e, ee, s, es          message 2:  96 + payload  (tags included)
 *   -> s, se                 message 3:  64 + payload
 *
 * Writing and reading alternate, starting with the initiator's message 1. After
 * message 3 kith_noise_split() keys the two ciphers for transport. */
#ifndef KITH_PROTOCOL_SESSION_NOISE_H
#define KITH_PROTOCOL_SESSION_NOISE_H

#include <stdbool.h>

#include "src/protocol/session/cipher.h"
#include "src/protocol/session/digest.h"

/* What a message adds to its payload, by message 0..2. */
#define KITH_NOISE_OVERHEAD_1 32u
#define KITH_NOISE_OVERHEAD_2 96u
#define KITH_NOISE_OVERHEAD_3 64u

struct kith_noise {
    enum kith_digest digest;
    bool initiator;
    unsigned message; /* 0..3, the next one */
    bool keyed;       /* a key has been mixed */
    uint64_t n;       /* its next nonce */
    uint8_t k[KITH_KEY_BYTES];
    uint8_t chain[KITH_HASH_BYTES], hash[KITH_HASH_BYTES];
    uint8_t ephemeral[KITH_KEY_BYTES]; /* secret */
    uint8_t peer_ephemeral[KITH_KEY_BYTES], peer_key[KITH_KEY_BYTES];
    const uint8_t *secret, *key; /* our static pair; not kept past split */
    struct kith_cipher *send, *receive; /* created by the caller */
};

struct kith_noise_options {
    bool initiator;
    const char *protocol; /* "Noise_XX_25519_..." */
    enum kith_digest digest;
    const uint8_t *prologue;
    size_t prologue_bytes;
    const uint8_t *secret, *key;        /* (32) X25519, kept */
    const uint8_t *ephemeral;           /* (32) random, copied */
    struct kith_cipher *send, *receive; /* kept */
};

void kith_noise_init(struct kith_noise *noise,
                     const struct kith_noise_options *options);
/* `message` holds the payload and the overhead above. KITH_EINVAL: the key
 * exchange gave the all-zero secret of a low-order point. */
KITH_MUST_CHECK enum kith_err
kith_noise_write(struct kith_noise *noise, const uint8_t *payload,
                 size_t payload_bytes, uint8_t *message, size_t *message_bytes);
/* Decrypts into payload[message_bytes - overhead]. KITH_EPARSE: shorter than
 * the overhead. KITH_EINVAL as above. KITH_EAUTH: a tag is wrong. */
KITH_MUST_CHECK enum kith_err
kith_noise_read(struct kith_noise *noise, const uint8_t *message,
                size_t message_bytes, uint8_t *payload, size_t *payload_bytes);
/* Keys send and receive; wipes all but hash and peer_key. */
KITH_MUST_CHECK enum kith_err kith_noise_split(struct kith_noise *noise);

#endif
