/* The AEAD providers keep one contract.
 *
 * Method: for every suite and provider, seal at many sizes and open again, in
 * place too; where two providers have a suite, their bytes are equal, and each
 * opens what the other sealed; every flipped bit of tag, text, nonce or
 * associated data is refused and the target zeroed; keys can be changed; nonces
 * end where they must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "kith/rng.h"
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
    for (size_t j = 0; j < COUNT(suites); j++) {
        const struct kith_aead *const best = kith_aead_best(suites[j]);
        assert_non_null(best);
        for (size_t i = 0; kith_aeads[i]; i++) {
            if (kith_aeads[i] == best ||
                !kith_aead_has(kith_aeads[i], suites[j]))
                continue;
            struct kith_cipher a, b;
            start(&a, best, suites[j], KITH_SEAL);
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
}

/* One text of any length, in place or apart: the same bytes, opened by the
 * other. */
static void agree_on_one(struct kith_cipher *seal, struct kith_cipher *open,
                         struct kith_rng *rng)
{
    const size_t n = kith_rng_below(rng, 8) ? kith_rng_below(rng, 2100)
                                            : kith_rng_below(rng, 65473);
    const size_t ad_bytes = kith_rng_below(rng, 48);
    const size_t from = kith_rng_below(rng, (uint32_t)(sizeof plain - n));
    const bool is_in_place = kith_rng_below(rng, 2);
    uint8_t *const text = is_in_place ? sealed : plain + from;
    seal->n = open->n = kith_rng_u32(rng);
    if (is_in_place)
        memcpy(sealed, plain + from, n);
    if (kith_cipher_seal(seal, plain, ad_bytes, text, n, sealed) != KITH_OK ||
        kith_cipher_open(open, plain, ad_bytes, sealed, n, back) != KITH_OK ||
        memcmp(back, plain + from, n) != 0)
        fail_msg("%zu bytes, %zu of data, in place %d", n, ad_bytes,
                 is_in_place);
    sealed[kith_rng_below(rng, (uint32_t)n + KITH_TAG_BYTES)] ^= 1;
    open->n--;
    assert_int_equal(KITH_EAUTH,
                     kith_cipher_open(open, plain, ad_bytes, sealed, n, back));
    assert_true(sodium_is_zero(back, n));
}

/* AEAD_CASES, 4,000: what one provider seals, another opens, at any length. */
static void test_providers_open_each_other(void **state)
{
    (void)state;
    const char *given = getenv("AEAD_CASES");
    const long cases = given ? atol(given) : 4000;
    for (size_t i = 0; kith_aeads[i]; i++)
        for (size_t k = 0; kith_aeads[k]; k++) {
            struct kith_cipher seal, open;
            struct kith_rng rng;
            if (i == k || !kith_aead_has(kith_aeads[i], KITH_SUITE_AESGCM) ||
                !kith_aead_has(kith_aeads[k], KITH_SUITE_AESGCM))
                continue;
            start(&seal, kith_aeads[i], KITH_SUITE_AESGCM, KITH_SEAL);
            start(&open, kith_aeads[k], KITH_SUITE_AESGCM, KITH_OPEN);
            kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
            for (long n = 0; n < cases; n++)
                agree_on_one(&seal, &open, &rng);
            printf("  %ld texts of %s, opened by %s\n", cases,
                   kith_aead_name(kith_aeads[i]),
                   kith_aead_name(kith_aeads[k]));
            kith_cipher_destroy(&seal);
            kith_cipher_destroy(&open);
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
        cmocka_unit_test(test_providers_open_each_other),
        cmocka_unit_test(test_flips_are_refused),
        cmocka_unit_test(test_nonces_end),
        cmocka_unit_test(test_choice_of_provider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
