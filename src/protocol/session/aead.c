/* The table of AEAD providers, fastest first, and the names of suites. */
#include "src/protocol/session/aead.h"

#include "kith/assert.h"
#include "src/protocol/session/aegis.h"

/* A suite is one byte of the preface, and 0 is what an old or foreign peer
 * sends there. */
#define KITH_X(name, byte, text)                                               \
    _Static_assert((byte) > 0 && (byte) <= UINT8_MAX, "a suite is a byte");
KITH_SUITES(KITH_X)
#undef KITH_X

/* libcrypto leads: 2.5 times libsodium's AES-256-GCM where the processor has
 * wide AES instructions, and more than twice its ChaCha20. What is ours has one
 * suite, which neither library has. */
const struct kith_aead *const kith_aeads[] = {
#ifdef KITH_HAVE_LIBCRYPTO
    &kith_aead_libcrypto,
#endif
    &kith_aead_sodium,
#ifdef KITH_AEGIS_X86
    &kith_aead_aegis_vaes,
    &kith_aead_aegis_aesni,
#endif
    NULL,
};
_Static_assert(sizeof kith_aeads >= 2 * sizeof kith_aeads[0],
               "at least one provider before the terminator");

/* The names are Noise's own (revision 34, section 8; AEGIS256X2 is formed as
 * they are): they are hashed into the transcript, so two peers that spell one
 * differently cannot agree on keys. */
const char *kith_suite_name(enum kith_suite suite)
{
    switch (suite) {
#define KITH_X(name, byte, text)                                               \
    case KITH_SUITE_##name:                                                    \
        return text;
        KITH_SUITES(KITH_X)
#undef KITH_X
    }
    return "an unknown suite";
}

const char *kith_aead_name(const struct kith_aead *aead)
{
    KITH_ASSERT(aead->name != NULL && aead->name[0] != '\0');
    return aead->name;
}

bool kith_aead_has(const struct kith_aead *aead, enum kith_suite suite)
{
    return aead->has(suite);
}

const struct kith_aead *kith_aead_best(enum kith_suite suite)
{
    /* First match: the table is ordered by speed. */
    for (size_t i = 0; kith_aeads[i]; i++)
        if (kith_aeads[i]->has(suite))
            return kith_aeads[i];
    return NULL;
}
