/* Suites: what there is to know of each, and the authority's policy, which of
 * them a cluster speaks.
 *
 *   policy = Ed25519("kith-policy-v1\0" || cluster (32) || suite (1))
 *
 * A policy is the cluster's: nobody negotiates it, peers that differ refuse
 * each other at the preface, and the suite is under the transcript's hash. */
#include <sodium.h>
#include <string.h>

#include "kith/assert.h"
#include "src/protocol/session/certificate.h"

/* A suite is one byte of the preface, and 0 is what an old or foreign peer
 * sends there. */
#define KITH_X(name, byte, word)                                               \
    _Static_assert((byte) > 0 && (byte) <= UINT8_MAX, "a suite is a byte");
KITH_SUITES(KITH_X)
#undef KITH_X

static const char context[] = "kith-policy-v1"; /* its zero byte included */
#define COVERED_BYTES (sizeof context + KITH_CLUSTER_BYTES + 1u)

static const struct kith_suite_facts facts[] = {
    {.suite = KITH_SUITE_AESGCM,
     .aead = "AES-256-GCM (NIST SP 800-38D)",
     .summary = "the default: a standard, by libraries in wide use",
     .choose = "wherever nothing speaks against it: fast on any processor with "
               "AES instructions"},
    {.suite = KITH_SUITE_CHACHAPOLY,
     .aead = "ChaCha20-Poly1305 (RFC 8439)",
     .summary = "a standard, by libraries in wide use; needs no AES "
                "instructions",
     .choose = "where a machine of the cluster has no AES instructions, or is "
               "faster with it"},
    {.suite = KITH_SUITE_AEGIS256X2,
     .aead = "AEGIS-256X2 (draft-irtf-cfrg-aegis-aead)",
     .summary = "several times faster; a draft, by kith's own code, unaudited",
     .choose =
         "where sealing limits the exchange, and a flaw in a young cipher, or "
         "in code that no auditor has read, can be borne",
     .unaudited = true},
};
#define FACTS_COUNT (sizeof facts / sizeof facts[0])

#define KITH_X(name, byte, word) +1
_Static_assert(FACTS_COUNT == 0 KITH_SUITES(KITH_X),
               "each suite has its facts");
#undef KITH_X

const struct kith_suite_facts *kith_suite_facts(enum kith_suite suite)
{
    for (size_t i = 0; i < FACTS_COUNT; i++)
        if (facts[i].suite == suite)
            return &facts[i];
    return NULL;
}

const struct kith_suite_facts *kith_suite_at(unsigned index)
{
    return index < FACTS_COUNT ? &facts[index] : NULL;
}

#define NOISE(word) "Noise_XX_25519_" word "_BLAKE2b"

/* The names are Noise's own (revision 34, section 8; AEGIS256X2 is formed as
 * they are): they are hashed into the transcript, so two peers that spell one
 * differently cannot agree on keys. */
const char *kith_suite_name(enum kith_suite suite)
{
    switch (suite) {
#define KITH_X(name, byte, word)                                               \
    case KITH_SUITE_##name:                                                    \
        return NOISE(word);
        KITH_SUITES(KITH_X)
#undef KITH_X
    }
    return "an unknown suite";
}

const char *kith_suite_word(enum kith_suite suite)
{
    switch (suite) {
#define KITH_X(name, byte, word)                                               \
    case KITH_SUITE_##name:                                                    \
        return word;
        KITH_SUITES(KITH_X)
#undef KITH_X
    }
    return "an unknown suite";
}

/* ASCII alone: the libc's depends on a locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] == '\0' || lower(text[i]) != lower(word[i]))
            return false;
    return word[length] == '\0';
}

bool kith_suite_find(const char *text, size_t length, enum kith_suite *suite)
{
    for (size_t i = 0; i < FACTS_COUNT; i++)
        if (is_word(text, length, kith_suite_word(facts[i].suite))) {
            *suite = facts[i].suite;
            return true;
        }
    return false;
}

/* The context keeps a signature of a policy from being one of anything else. */
static void cover(const uint8_t cluster[KITH_CLUSTER_BYTES],
                  enum kith_suite suite, uint8_t covered[COVERED_BYTES])
{
    KITH_ASSERT(kith_suite_facts(suite) != NULL);
    memcpy(covered, context, sizeof context);
    memcpy(covered + sizeof context, cluster, KITH_CLUSTER_BYTES);
    covered[COVERED_BYTES - 1] = (uint8_t)suite;
}

void kith_policy_sign(const uint8_t cluster[KITH_CLUSTER_BYTES],
                      enum kith_suite suite, const uint8_t secret[64],
                      uint8_t signature[KITH_SIGNATURE_BYTES])
{
    uint8_t covered[COVERED_BYTES];
    cover(cluster, suite, covered);
    crypto_sign_detached(signature, NULL, covered, sizeof covered, secret);
}

bool kith_policy_is_signed(const struct kith_trust *trust,
                           enum kith_suite suite,
                           const uint8_t signature[KITH_SIGNATURE_BYTES])
{
    uint8_t covered[COVERED_BYTES];
    cover(trust->cluster, suite, covered);
    return kith_trust_signed(trust, covered, sizeof covered, signature);
}

bool kith_trust_allows(const struct kith_trust *trust, enum kith_suite suite)
{
    const struct kith_suite_facts *known = kith_suite_facts(suite);
    if (trust->suite != KITH_SUITE_ANY)
        return trust->suite == suite;
    return known == NULL || !known->unaudited;
}
