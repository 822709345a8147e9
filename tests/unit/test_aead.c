/* The AEAD providers keep one contract.
 *
 * Method: for every suite and provider, seal at many sizes and open again, in
 * place too; where two providers have a suite, their bytes are equal; every
 * flipped bit of tag, text, nonce or associated data is refused and the target
 * zeroed; keys can be changed; nonces end where they must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/protocol/session/cipher.h"

static const enum kith_suite suites[] = {KITH_SUITE_AESGCM,
                                         KITH_SUITE_CHACHAPOLY};
static const size_t sizes[] = {0, 1, 15, 16, 17, 127, 128, 1000, 65472, 65519};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint8_t plain[65536], sealed[65536], other[65536], back[65536];
static const uint8_t key[KITH_KEY_BYTES] = {1, 2, 3, 4, 5};
static const uint8_t ad[7] = "header";

static void start(struct kith_cipher *c, const struct kith_aead *aead,
                  enum kith_suite suite, enum kith_direction direction)
{
    assert_int_equal(KITH_OK, kith_cipher_create(c, aead, suite, direction));
    assert_int_equal(KITH_OK, kith_cipher_key(c, key, 0));
}

static void round_trip(const struct kith_aead *aead, enum kith_suite suite)
{
    struct kith_cipher seal, open;
    start(&seal, aead, suite, KITH_SEAL);
    start(&open, aead, suite, KITH_OPEN);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const size_t n = sizes[i];

        assert_int_equal(KITH_OK, kith_cipher_seal(&seal, ad, i % 2 ? 7 : 0,
                                                   plain, n, sealed));
        assert_int_equal(KITH_OK, kith_cipher_open(&open, ad, i % 2 ? 7 : 0,
                                                   sealed, n, back));
        assert_memory_equal(plain, back, n);

        memcpy(other, plain, n);
        assert_int_equal(KITH_OK,
                         kith_cipher_seal(&seal, NULL, 0, other, n, other));
        assert_int_equal(KITH_OK,
                         kith_cipher_open(&open, NULL, 0, other, n, other));
        assert_memory_equal(plain, other, n);
    }
    kith_cipher_destroy(&seal);
    kith_cipher_destroy(&open);
}

static void test_round_trip(void **state)
{
    (void)state;
    int runs = 0;
    randombytes_buf_deterministic(plain, sizeof plain, key);
    for (size_t i = 0; kith_aeads[i]; i++)
        for (size_t j = 0; j < COUNT(suites); j++)
            if (kith_aead_has(kith_aeads[i], suites[j])) {
                printf("  %s: %s\n", kith_aead_name(kith_aeads[i]),
                       kith_suite_name(suites[j]));
                round_trip(kith_aeads[i], suites[j]);
                runs++;
            }
    assert_true(runs >= 1);
}

static void test_providers_agree(void **state)
{
    (void)state;
    for (size_t j = 0; j < COUNT(suites); j++)
        for (size_t i = 1; kith_aeads[0] && kith_aeads[i]; i++) {
            if (!kith_aead_has(kith_aeads[0], suites[j]) ||
                !kith_aead_has(kith_aeads[i], suites[j]))
                continue;
            struct kith_cipher a, b;
            start(&a, kith_aeads[0], suites[j], KITH_SEAL);
            start(&b, kith_aeads[i], suites[j], KITH_SEAL);
            for (size_t k = 0; k < COUNT(sizes); k++) {
                a.n = b.n = (uint64_t)k << 33 | k;
                assert_int_equal(KITH_OK, kith_cipher_seal(&a, ad, 7, plain,
                                                           sizes[k], sealed));
                assert_int_equal(KITH_OK, kith_cipher_seal(&b, ad, 7, plain,
                                                           sizes[k], other));
                assert_memory_equal(sealed, other, sizes[k] + KITH_TAG_BYTES);
                assert_int_equal(KITH_OK, kith_cipher_rekey(&a));
                assert_int_equal(KITH_OK, kith_cipher_rekey(&b));
                assert_memory_equal(a.key, b.key, KITH_KEY_BYTES);
            }
            kith_cipher_destroy(&a);
            kith_cipher_destroy(&b);
        }
}

static void refuse_flips(const struct kith_aead *aead, enum kith_suite suite)
{
    enum { N = 40 };
    static const uint8_t zeros[N] = {0};
    struct kith_cipher seal, open;
    start(&seal, aead, suite, KITH_SEAL);
    start(&open, aead, suite, KITH_OPEN);
    assert_int_equal(KITH_OK, kith_cipher_seal(&seal, ad, 7, plain, N, sealed));
    for (size_t bit = 0; bit < 8 * (N + KITH_TAG_BYTES); bit++) {
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        memset(back, 0xaa, N);
        assert_int_equal(KITH_EAUTH,
                         kith_cipher_open(&open, ad, 7, sealed, N, back));
        assert_memory_equal(zeros, back, N);
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(KITH_EAUTH,
                     kith_cipher_open(&open, ad, 6, sealed, N, back));
    assert_int_equal(KITH_EAUTH,
                     kith_cipher_open(&open, ad, 7, sealed, N - 1, back));
    open.n = 1;
    assert_int_equal(KITH_EAUTH,
                     kith_cipher_open(&open, ad, 7, sealed, N, back));

    open.n = 0;
    assert_int_equal(KITH_OK, kith_cipher_open(&open, ad, 7, sealed, N, back));
    assert_memory_equal(plain, back, N);
    assert_true(open.n == 1); /* A failed message took no nonce. */
    kith_cipher_destroy(&seal);
    kith_cipher_destroy(&open);
}

static void test_flips_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; kith_aeads[i]; i++)
        for (size_t j = 0; j < COUNT(suites); j++)
            if (kith_aead_has(kith_aeads[i], suites[j]))
                refuse_flips(kith_aeads[i], suites[j]);
}

static void test_nonces_end(void **state)
{
    (void)state;
    struct kith_cipher seal, open;
    start(&seal, kith_aead_best(KITH_SUITE_CHACHAPOLY), KITH_SUITE_CHACHAPOLY,
          KITH_SEAL);
    start(&open, kith_aead_best(KITH_SUITE_CHACHAPOLY), KITH_SUITE_CHACHAPOLY,
          KITH_OPEN);
    seal.n = open.n = UINT64_MAX - 1;
    assert_int_equal(KITH_OK,
                     kith_cipher_seal(&seal, NULL, 0, plain, 9, sealed));
    assert_int_equal(KITH_OK,
                     kith_cipher_open(&open, NULL, 0, sealed, 9, back));

    assert_int_equal(KITH_ELIMIT,
                     kith_cipher_seal(&seal, NULL, 0, plain, 9, sealed));
    assert_int_equal(KITH_ELIMIT,
                     kith_cipher_open(&open, NULL, 0, sealed, 9, back));
    kith_cipher_destroy(&seal);
    kith_cipher_destroy(&open);
}

static void test_choice_of_provider(void **state)
{
    (void)state;
    assert_non_null(kith_aead_best(KITH_SUITE_CHACHAPOLY));
    assert_null(kith_aead_best((enum kith_suite)77));
    assert_string_equal("an unknown suite",
                        kith_suite_name((enum kith_suite)77));
    for (size_t i = 0; kith_aeads[i]; i++) {
        struct kith_cipher c;
        assert_int_equal(KITH_EUNSUPPORTED,
                         kith_cipher_create(&c, kith_aeads[i],
                                            (enum kith_suite)77, KITH_SEAL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_providers_agree),
        cmocka_unit_test(test_flips_are_refused),
        cmocka_unit_test(test_nonces_end),
        cmocka_unit_test(test_choice_of_provider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
