/* The two kernels of AEGIS-256X2 behind the providers of aead_aegis.c; the
 * equations are in aegis.inc.h. Each may be called only where its instructions
 * are, which kith_aead's has() says. */
#ifndef KITH_PROTOCOL_SESSION_AEGIS_H
#define KITH_PROTOCOL_SESSION_AEGIS_H

#include "src/protocol/session/aead.h"

#ifdef __x86_64__
#define KITH_AEGIS_X86 1
#endif

/* text->out (bytes + KITH_TAG_BYTES). */
void kith_aegis_aesni_seal(const uint8_t key[KITH_KEY_BYTES],
                           const struct kith_aead_text *text);
void kith_aegis_vaes_seal(const uint8_t key[KITH_KEY_BYTES],
                          const struct kith_aead_text *text);
/* False: the tag is wrong and text->out holds what nobody may read. */
KITH_MUST_CHECK bool kith_aegis_aesni_open(const uint8_t key[KITH_KEY_BYTES],
                                           const struct kith_aead_text *text);
KITH_MUST_CHECK bool kith_aegis_vaes_open(const uint8_t key[KITH_KEY_BYTES],
                                          const struct kith_aead_text *text);

#endif
