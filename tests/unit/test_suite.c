/* Suites by name, the authority's policy, and which suite a peer takes.
 *
 * Method: words of every length around the right ones; a policy's signature is
 * refused for another suite, cluster or authority and with any bit turned over;
 * sessions that the policy does not allow are not made, and peers of different
 * policies refuse each other by name; the choice is a table over file, policy
 * and machine, so that a machine without AES instructions is one of its rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/peer/choose_suite.h"
#include "src/protocol/session/aead.h"
#include "tests/support/sessions.h"

static const enum kith_suite all[] = {KITH_SUITE_AESGCM, KITH_SUITE_CHACHAPOLY,
                                      KITH_SUITE_AEGIS256X2};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static void test_words(void **state)
{
    enum kith_suite suite;
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        const char *word = kith_suite_word(all[i]);
        const size_t length = strlen(word);
        assert_ptr_equal(kith_suite_at((unsigned)i), kith_suite_facts(all[i]));
        suite = KITH_SUITE_ANY;
        assert_true(kith_suite_find(word, length, &suite));
        assert_int_equal(suite, all[i]);
        for (size_t n = 0; n < length; n++)
            assert_false(kith_suite_find(word, n, &suite));
        assert_false(kith_suite_find(word, length + 1, &suite)); /* its NUL */
        assert_non_null(strstr(kith_suite_name(all[i]), word));
    }
    assert_true(kith_suite_find("aegis256x2 and more", 10, &suite));
    assert_int_equal(suite, KITH_SUITE_AEGIS256X2);
    assert_false(kith_suite_find("auto", 4, &suite));
    assert_false(kith_suite_find("", 0, &suite));
    assert_null(kith_suite_at(COUNT(all)));
    assert_null(kith_suite_facts(KITH_SUITE_ANY));
    assert_null(kith_suite_facts((enum kith_suite)77));
    assert_string_equal("an unknown suite",
                        kith_suite_word((enum kith_suite)77));
}

static void test_only_aegis_is_unaudited(void **state)
{
    struct kith_trust trust = {.suite = KITH_SUITE_ANY};
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++) {
        const bool is_aegis = all[i] == KITH_SUITE_AEGIS256X2;
        assert_int_equal(is_aegis, kith_suite_facts(all[i])->unaudited);
        assert_int_equal(!is_aegis, kith_trust_allows(&trust, all[i]));
    }
    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t k = 0; k < COUNT(all); k++) {
            trust.suite = all[i];
            assert_int_equal(i == k, kith_trust_allows(&trust, all[k]));
        }
}

/* What this build has, whatever the processor. */
static void test_providers(void **state)
{
    (void)state;
    for (size_t p = 0; kith_aeads[p] != NULL; p++)
        for (size_t i = 0; i < COUNT(all); i++)
            assert_true(kith_aead_builds(kith_aeads[p], all[i]) ||
                        !kith_aead_has(kith_aeads[p], all[i]));
    assert_true(kith_aead_builds(&kith_aead_sodium, KITH_SUITE_AESGCM));
    assert_false(kith_aead_builds(&kith_aead_sodium, KITH_SUITE_AEGIS256X2));
    assert_false(kith_aead_builds(&kith_aead_sodium, (enum kith_suite)77));
}

static void test_trials(void **state)
{
    (void)state;
    uint8_t *memory = malloc(KITH_AEAD_TRIAL_BYTES);
    assert_non_null(memory);
    for (size_t p = 0; kith_aeads[p] != NULL; p++)
        for (size_t i = 0; i < COUNT(all); i++)
            for (int opens = 0; opens < 2; opens++) {
                /* It seals itself what it opens. */
                memset(memory, 0x55, KITH_AEAD_TRIAL_BYTES);
                assert_int_equal(
                    kith_aead_trial(kith_aeads[p], all[i], opens, memory, 2),
                    kith_aead_has(kith_aeads[p], all[i]) ? KITH_OK
                                                         : KITH_EUNSUPPORTED);
            }
    free(memory);
}

static void test_signature(void **state)
{
    struct sessions_cluster home, other;
    uint8_t signature[KITH_SIGNATURE_BYTES];
    (void)state;
    sessions_cluster(&home, "home");
    sessions_cluster(&other, "other");
    kith_policy_sign(home.trust.cluster, KITH_SUITE_AEGIS256X2, home.secret,
                     signature);
    for (size_t i = 0; i < COUNT(all); i++)
        assert_int_equal(all[i] == KITH_SUITE_AEGIS256X2,
                         kith_policy_is_signed(&home.trust, all[i], signature));
    assert_false(
        kith_policy_is_signed(&other.trust, KITH_SUITE_AEGIS256X2, signature));
    struct kith_trust moved = home.trust; /* the same key, another cluster */
    memcpy(moved.cluster, other.trust.cluster, sizeof moved.cluster);
    assert_false(
        kith_policy_is_signed(&moved, KITH_SUITE_AEGIS256X2, signature));
    for (size_t bit = 0; bit < 8 * sizeof signature; bit++) {
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(kith_policy_is_signed(&home.trust, KITH_SUITE_AEGIS256X2,
                                           signature));
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(
        kith_policy_is_signed(&home.trust, KITH_SUITE_AEGIS256X2, signature));
}

/* One end's policy is not the other's. */
static void test_policies_differ(void **state)
{
    struct sessions pair;
    (void)state;
    if (kith_aead_best(KITH_SUITE_AEGIS256X2) == NULL)
        skip();
    sessions_setup(&pair, KITH_SUITE_AEGIS256X2, NULL, 5);
    pair.ends[1].trust.suite = KITH_SUITE_CHACHAPOLY;
    assert_false(sessions_start(&pair)); /* a session against the policy */
    assert_int_equal(pair.ends[1].error, KITH_EINVAL);
    sessions_close(&pair);

    sessions_setup(&pair, KITH_SUITE_AEGIS256X2, NULL, 6);
    pair.ends[1].trust.suite = KITH_SUITE_ANY; /* nor without one */
    assert_false(sessions_start(&pair));
    assert_int_equal(pair.ends[1].error, KITH_EINVAL);
    sessions_close(&pair);

    sessions_setup(&pair, KITH_SUITE_AEGIS256X2, NULL, 7);
    pair.ends[1].trust.suite = KITH_SUITE_CHACHAPOLY;
    pair.ends[1].config.suite = KITH_SUITE_CHACHAPOLY;
    assert_true(sessions_start(&pair));
    assert_false(sessions_connect(&pair));
    assert_int_equal(pair.ends[1].error, KITH_EVERSION);
    assert_non_null(strstr(kith_session_reason(pair.ends[1].session),
                           "suite differs: peer offers "
                           "Noise_XX_25519_AEGIS256X2_BLAKE2b, we use "
                           "Noise_XX_25519_ChaChaPoly_BLAKE2b"));
    sessions_close(&pair);
}

#define AES KITH_SUITE_BIT(KITH_SUITE_AESGCM)
#define CHACHA KITH_SUITE_BIT(KITH_SUITE_CHACHAPOLY)
#define AEGIS KITH_SUITE_BIT(KITH_SUITE_AEGIS256X2)

static void test_choice(void **state)
{
    static const struct {
        const char *wanted;
        enum kith_suite policy;
        uint32_t here;
        enum kith_err err;
        enum kith_suite suite;
        const char *words[2];
    } rows[] = {
        {"auto", 0, AES | CHACHA | AEGIS, KITH_OK, KITH_SUITE_AESGCM, {""}},
        {"auto", 0, CHACHA, KITH_OK, KITH_SUITE_CHACHAPOLY, {""}},
        {"ChaChaPoly", 0, AES | CHACHA, KITH_OK, KITH_SUITE_CHACHAPOLY, {""}},
        {"AESGCM",
         0,
         CHACHA,
         KITH_EUNSUPPORTED,
         0,
         {"no AESGCM here", "suite: ChaChaPoly"}},
        {"AEGIS256X2",
         0,
         AES | CHACHA | AEGIS,
         KITH_EMISMATCH,
         0,
         {"unaudited", "--authority --suite AEGIS256X2"}},
        {"auto",
         KITH_SUITE_AEGIS256X2,
         AES | CHACHA | AEGIS,
         KITH_OK,
         KITH_SUITE_AEGIS256X2,
         {""}},
        {"AEGIS256X2",
         KITH_SUITE_AEGIS256X2,
         AEGIS,
         KITH_OK,
         KITH_SUITE_AEGIS256X2,
         {""}},
        {"AESGCM",
         KITH_SUITE_AEGIS256X2,
         AES | CHACHA | AEGIS,
         KITH_EMISMATCH,
         0,
         {"the experiment says AESGCM", "ca.pub says AEGIS256X2"}},
        {"AEGIS256X2",
         KITH_SUITE_AESGCM,
         AES | CHACHA | AEGIS,
         KITH_EMISMATCH,
         0,
         {"the experiment says AEGIS256X2", "ca.pub says AESGCM"}},
        {"auto",
         KITH_SUITE_AEGIS256X2,
         AES | CHACHA,
         KITH_EUNSUPPORTED,
         0,
         {"suite is AEGIS256X2", "AES instructions"}},
        {"auto",
         KITH_SUITE_AESGCM,
         CHACHA,
         KITH_EUNSUPPORTED,
         0,
         {"the authority's policy", "--suite ChaChaPoly"}},
        {"auto",
         KITH_SUITE_CHACHAPOLY,
         AES | CHACHA,
         KITH_OK,
         KITH_SUITE_CHACHAPOLY,
         {""}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum kith_suite suite = KITH_SUITE_ANY;
        char error[KITH_PEER_ERROR_BYTES] = "";
        assert_int_equal(rows[i].err,
                         kith_suite_choose(rows[i].wanted, rows[i].policy,
                                           rows[i].here, &suite, error));
        if (rows[i].err == KITH_OK)
            assert_int_equal(rows[i].suite, suite);
        for (size_t k = 0; rows[i].err != KITH_OK && k < 2; k++)
            if (!strstr(error, rows[i].words[k]))
                fail_msg("row %zu: \"%s\" lacks \"%s\"", i, error,
                         rows[i].words[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_only_aegis_is_unaudited),
        cmocka_unit_test(test_providers),
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_signature),
        cmocka_unit_test(test_policies_differ),
        cmocka_unit_test(test_choice),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
