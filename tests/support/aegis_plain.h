/* AEGIS-256X2 once more, for tests only: plain C, slow, written from the
 * draft by itself and in its order, so that it can disagree with the kernels.
 * It is in no table of providers. */
#ifndef KITH_TESTS_AEGIS_PLAIN_H
#define KITH_TESTS_AEGIS_PLAIN_H

#include "src/protocol/session/aead.h"

/* V[block][half], bytes in the draft's order. */
struct aegis_plain {
    uint8_t v[6][2][16];
};

/* The draft's Init(key, nonce). */
void aegis_plain_init(struct aegis_plain *s, const uint8_t key[32],
                      const uint8_t nonce[32]);
extern const struct kith_aead aegis_plain;

#endif
