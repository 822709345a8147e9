/* Which suite a peer speaks: the authority's policy, else what the experiment
 * says, else AES where this machine has it. Never a third thing: what does not
 * agree is refused at the start. */
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "src/peer/choose_suite.h"

static bool has(uint32_t here, enum kith_suite suite)
{
    KITH_ASSERT(suite != KITH_SUITE_ANY);
    return (here >> suite & 1) != 0;
}

/* The file says one thing, who signed ca.pub another: neither is guessed. */
static enum kith_err refuse_policy(enum kith_suite policy,
                                   enum kith_suite wanted, char *error)
{
    if (policy != KITH_SUITE_ANY)
        return kith_text_fail(
            error, KITH_PEER_ERROR_BYTES, KITH_EMISMATCH,
            "network.suite: the experiment says %s, the authority's policy in "
            "ca.pub says %s; write `suite: auto`, which takes the policy's",
            kith_suite_word(wanted), kith_suite_word(policy));
    return kith_text_fail(
        error, KITH_PEER_ERROR_BYTES, KITH_EMISMATCH,
        "network.suite: %s is unaudited, so that the authority's policy alone "
        "turns it on, and ca.pub has none; write `suite: auto`, or begin a "
        "cluster with it: kith keys new DIR --authority --suite %s",
        kith_suite_word(wanted), kith_suite_word(wanted));
}

static enum kith_err refuse_machine(enum kith_suite policy,
                                    enum kith_suite suite, char *error)
{
    if (suite == KITH_SUITE_AEGIS256X2)
        return kith_text_fail(
            error, KITH_PEER_ERROR_BYTES, KITH_EUNSUPPORTED,
            "the cluster's suite is %s, which needs a processor with AES "
            "instructions (x86-64), and this machine has none: run this peer "
            "elsewhere, or begin the cluster anew: kith keys new DIR "
            "--authority --suite ChaChaPoly",
            kith_suite_word(suite));
    return kith_text_fail(
        error, KITH_PEER_ERROR_BYTES, KITH_EUNSUPPORTED,
        "%s: this build has no %s here; use %s on all peers",
        policy != KITH_SUITE_ANY ? "the authority's policy in ca.pub"
                                 : "network.suite",
        kith_suite_word(suite),
        policy != KITH_SUITE_ANY ? "an authority made with --suite ChaChaPoly"
                                 : "`suite: ChaChaPoly`");
}

enum kith_err kith_suite_choose(const char *wanted_word, enum kith_suite policy,
                                uint32_t here, enum kith_suite *suite,
                                char *error)
{
    enum kith_suite wanted = KITH_SUITE_ANY;
    const struct kith_trust trust = {.suite = policy};
    if (!kith_suite_find(wanted_word, strlen(wanted_word), &wanted))
        wanted = KITH_SUITE_ANY; /* auto: the loader knows no other word */
    if (wanted != KITH_SUITE_ANY && !kith_trust_allows(&trust, wanted))
        return refuse_policy(policy, wanted, error);
    *suite = policy != KITH_SUITE_ANY       ? policy
             : wanted != KITH_SUITE_ANY     ? wanted
             : has(here, KITH_SUITE_AESGCM) ? KITH_SUITE_AESGCM
                                            : KITH_SUITE_CHACHAPOLY;
    KITH_ASSERT(kith_trust_allows(&trust, *suite));
    return has(here, *suite) ? KITH_OK : refuse_machine(policy, *suite, error);
}

enum kith_err kith_peer_suite(const struct kith_experiment *experiment,
                              const struct kith_trust *trust,
                              enum kith_suite *suite, char *error)
{
    uint32_t here = 0;
    const struct kith_suite_facts *facts;
    for (unsigned i = 0; (facts = kith_suite_at(i)) != NULL; i++)
        if (kith_aead_best(facts->suite) != NULL)
            here |= UINT32_C(1) << facts->suite;
    return kith_suite_choose(experiment->network.suite, trust->suite, here,
                             suite, error);
}
