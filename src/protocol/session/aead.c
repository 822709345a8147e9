/* The table of AEAD providers, fastest first, and what one of them is worth. */
#include "src/protocol/session/aead.h"

#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/aegis.h"

/* ipsec-mb leads where the processor has wide AES instructions: 2.6 times the
 * AES-256-GCM of libcrypto 3.0. That is 2.5 times libsodium's, and more than
 * twice its ChaCha20. What is ours has one suite, which no library has. */
const struct kith_aead *const kith_aeads[] = {
#ifdef KITH_HAVE_IPSEC_MB
    &kith_aead_ipsec_mb,
#endif
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

const char *kith_aead_name(const struct kith_aead *aead)
{
    KITH_ASSERT(aead->name != NULL && aead->name[0] != '\0');
    return aead->name;
}

bool kith_aead_has(const struct kith_aead *aead, enum kith_suite suite)
{
    return aead->has(suite);
}

bool kith_aead_builds(const struct kith_aead *aead, enum kith_suite suite)
{
    return suite < 32 && (aead->suites & KITH_SUITE_BIT(suite)) != 0;
}

const struct kith_aead *kith_aead_best(enum kith_suite suite)
{
    /* First match: the table is ordered by speed. */
    for (size_t i = 0; kith_aeads[i]; i++)
        if (kith_aeads[i]->has(suite))
            return kith_aeads[i];
    return NULL;
}

/* One record of `memory`: plain bytes, then sealed ones. */
static enum kith_err trial_run(const struct kith_aead *aead,
                               enum kith_suite suite,
                               union kith_aead_state *state, bool opens,
                               uint8_t *memory)
{
    static const uint8_t nonce[KITH_NONCE_BYTES_MAX];
    uint8_t *const sealed = memory + KITH_BULK_BYTES;
    const struct kith_aead_text text = {
        .nonce = nonce,
        .in = opens ? sealed : memory,
        .out = opens ? memory : sealed,
        .bytes = KITH_BULK_BYTES,
    };
    return (opens ? aead->open : aead->seal)(state, suite, &text);
}

enum kith_err kith_aead_trial(const struct kith_aead *aead,
                              enum kith_suite suite, bool opens,
                              uint8_t *memory, unsigned records)
{
    static const uint8_t key[KITH_KEY_BYTES];
    union kith_aead_state state;
    enum kith_err err = aead->create(&state, suite);
    if (err != KITH_OK)
        return err;
    memset(memory, 0, KITH_BULK_BYTES);
    err = aead->key(&state, suite, key, KITH_SEAL);
    if (err == KITH_OK && opens) {
        err = trial_run(aead, suite, &state, false, memory);
        if (err == KITH_OK)
            err = aead->key(&state, suite, key, KITH_OPEN);
    }
    for (unsigned i = 0; i < records && err == KITH_OK; i++)
        err = trial_run(aead, suite, &state, opens, memory);
    aead->destroy(&state);
    return err;
}
