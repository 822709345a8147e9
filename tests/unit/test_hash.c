/* Goal: the trace hash is the same everywhere and sees order, length and every
 * bit. Method: fixed values, and flips of single bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/hash.h"

/* Worked out with Python's whole numbers from the formula in hash.h. */
static void test_known_values(void **state)
{
    (void)state;
    const uint64_t one = kith_hash_word(KITH_HASH_START, 1);

    assert_int_equal(one, UINT64_C(0x96c8cbd2aebad3fc));
    assert_int_equal(kith_hash_bytes(KITH_HASH_START, "kith and kin", 12),
                     UINT64_C(0xca9ae29e6c6a1632));
}

static void test_order_and_length_matter(void **state)
{
    (void)state;
    const uint64_t start = KITH_HASH_START;
    const uint64_t ab = kith_hash_word(kith_hash_word(start, 1), 2);
    const uint64_t ba = kith_hash_word(kith_hash_word(start, 2), 1);
    const uint8_t zeros[17] = {0};

    assert_int_not_equal(ab, ba);
    for (size_t size = 0; size + 1 < sizeof zeros; size++)
        assert_int_not_equal(kith_hash_bytes(start, zeros, size),
                             kith_hash_bytes(start, zeros, size + 1));
}

static void test_every_bit_matters(void **state)
{
    (void)state;
    uint8_t bytes[21] = {0};
    const uint64_t before = kith_hash_bytes(7, bytes, sizeof bytes);

    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(kith_hash_bytes(7, bytes, sizeof bytes), before);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(kith_hash_bytes(7, bytes, sizeof bytes), before);
}

/* The inputs where a folded multiply would stick at zero. */
static void test_no_absorbing_word(void **state)
{
    (void)state;
    const uint64_t zero_a = UINT64_C(0xa0761d6478bd642f);
    const uint64_t zero_b = UINT64_C(0xe7037ed1a0b428db);

    assert_int_not_equal(kith_hash_word(zero_a, 1), 0);
    assert_int_not_equal(kith_hash_word(1, zero_b), kith_hash_word(2, zero_b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_order_and_length_matter),
        cmocka_unit_test(test_every_bit_matters),
        cmocka_unit_test(test_no_absorbing_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
