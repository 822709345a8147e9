/* One contract for an authenticated cipher, three libraries and our own AEGIS
 * behind it.
 *
 *   seal: (key, nonce, ad, plain[n]) -> sealed[n + 16]
 *   open: the inverse, or KITH_EAUTH with the target zeroed
 *
 * A state holds one key, expanded once by key() for many records; create() and
 * widen() are the only functions that may allocate. Sealing and opening in
 * place (equal pointers) is allowed, any other overlap is not.
 *
 * A state has one lane, and after widen() several: texts of different lanes may
 * be sealed, or opened, at once on different threads. */
#ifndef KITH_PROTOCOL_SESSION_AEAD_H
#define KITH_PROTOCOL_SESSION_AEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/session.h"

#define KITH_NONCE_BYTES 12u     /* AESGCM, ChaChaPoly */
#define KITH_NONCE_BYTES_MAX 32u /* AEGIS256X2 */

/* crypto_aead_aes256gcm_state is 512 bytes, aligned to 16. */
union kith_aead_state {
    _Alignas(16) uint8_t bytes[512];
    void *lanes[KITH_LANES_MAX];
};

enum kith_direction { KITH_SEAL, KITH_OPEN };

/* One text to seal or to open. `bytes` counts the plain text: the sealed one is
 * KITH_TAG_BYTES longer. `in` and `out` are equal or apart. */
struct kith_aead_text {
    const uint8_t *nonce; /* (KITH_NONCE_BYTES), AEGIS256X2: (.._MAX) */
    const uint8_t *ad;
    size_t ad_bytes;
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    unsigned lane; /* of those that the state has */
};

#define KITH_SUITE_BIT(suite) (UINT32_C(1) << (suite))

struct kith_aead {
    const char *name;
    uint32_t suites; /* KITH_SUITE_BIT: what it has where a processor can */
    bool (*has)(enum kith_suite suite);
    /* KITH_ENOMEM, KITH_EUNSUPPORTED; destroy() afterwards, only on success. */
    enum kith_err (*create)(union kith_aead_state *state,
                            enum kith_suite suite);
    void (*destroy)(union kith_aead_state *state); /* wipes */
    /* To so many lanes; the next thing is key(). NULL: what seal() and open()
     * use of the state is only read, so that it has all lanes at once.
     * KITH_ENOMEM, KITH_EUNSUPPORTED. */
    enum kith_err (*widen)(union kith_aead_state *state, enum kith_suite suite,
                           unsigned lanes);
    enum kith_err (*key)(union kith_aead_state *state, enum kith_suite suite,
                         const uint8_t key[KITH_KEY_BYTES],
                         enum kith_direction direction);
    enum kith_err (*seal)(union kith_aead_state *state, enum kith_suite suite,
                          const struct kith_aead_text *text);
    enum kith_err (*open)(union kith_aead_state *state, enum kith_suite suite,
                          const struct kith_aead_text *text);
};

extern const struct kith_aead kith_aead_sodium;
extern const struct kith_aead kith_aead_libcrypto;
extern const struct kith_aead kith_aead_ipsec_mb;
extern const struct kith_aead kith_aead_aegis_vaes;
extern const struct kith_aead kith_aead_aegis_aesni;

#endif
