/* Goal: numbers and units are read exactly or refused, and no text outgrows its
 * buffer. Method: tables of good and bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kith/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        kith_ns value;
    } good[] = {
        {"0s", 0},
        {"1ns", 1},
        {"200us", 200000},
        {"1.5ms", 1500000},
        {"1.1ms", 1100000},
        {"3 s", 3 * KITH_S},
        {"0.1min", 6 * KITH_S},
        {"2m", 120 * KITH_S},
        {"2 min", 120 * KITH_S},
        {"1h", 3600 * KITH_S},
        {"0.0000000019s", 1},
        {"1.999999999999h", INT64_C(7199999999996)},
        {"9223372036.854775806s", INT64_MAX - 1},
    };
    static const char *const bad[] = {
        "",      "5",      "ms",     "-1ms",  "+1ms", "1.ms", ".5s",
        "1 m s", "1S",     "1e3s",   "0x1s",  " 1s",  "1s ",  "1,5s",
        "nan",   "1.5.5s", "1.66 m", "1.66m", "2 m",  "m",    "1M",
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        kith_ns value = -1;
        assert_int_equal(kith_text_time(good[i].text, &value), KITH_OK);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        kith_ns value = -7;
        assert_int_equal(kith_text_time(bad[i], &value), KITH_EPARSE);
        assert_int_equal(value, -7);
    }
    kith_ns value;
    assert_int_equal(kith_text_time("9223372036.854775807s", &value),
                     KITH_ELIMIT);
    assert_int_equal(kith_text_time("99999999999999999999s", &value),
                     KITH_ELIMIT);
    assert_int_equal(kith_text_time("9999999999999h", &value), KITH_ELIMIT);
}

static void test_rates(void **state)
{
    (void)state;
    uint64_t rate = 0;

    assert_int_equal(kith_text_rate("10Gbit", &rate), KITH_OK);
    assert_int_equal(rate, UINT64_C(10000000000));
    assert_int_equal(kith_text_rate("2.5MB", &rate), KITH_OK);
    assert_int_equal(rate, 20000000);
    assert_int_equal(kith_text_rate("1bit", &rate), KITH_OK);
    assert_int_equal(rate, 1);

    assert_int_equal(kith_text_rate("0Gbit", &rate), KITH_EPARSE);
    assert_int_equal(kith_text_rate("10", &rate), KITH_EPARSE);
    assert_int_equal(kith_text_rate("10gbit", &rate), KITH_EPARSE);
    assert_int_equal(kith_text_rate("-1Gbit", &rate), KITH_EPARSE);
    assert_int_equal(kith_text_rate("99999999TB", &rate), KITH_ELIMIT);
}

static void test_whole(void **state)
{
    (void)state;
    uint64_t value = 0;

    assert_int_equal(kith_text_u64("18446744073709551615", &value), KITH_OK);
    assert_int_equal(value, UINT64_MAX);
    assert_int_equal(kith_text_u64("18446744073709551616", &value),
                     KITH_ELIMIT);
    assert_int_equal(kith_text_u64("", &value), KITH_EPARSE);
    assert_int_equal(kith_text_u64("-1", &value), KITH_EPARSE);
    assert_int_equal(kith_text_u64("1.0", &value), KITH_EPARSE);
    assert_int_equal(kith_text_u64("12 ", &value), KITH_EPARSE);
}

static void test_decimal(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    ".",   "e5",  "1e", "0x1",
                                      "inf", "nan", " 1",  "1 ", "1.2.3",
                                      "--1", "1e+", "1,5", "1f"};
    double value = 0;

    assert_int_equal(kith_text_double("-0.5", &value), KITH_OK);
    assert_true(value == -0.5);
    assert_int_equal(kith_text_double("1e-3", &value), KITH_OK);
    assert_true(value == 1e-3);
    assert_int_equal(kith_text_double(".25", &value), KITH_OK);
    assert_true(value == 0.25);
    assert_int_equal(kith_text_double("1e999", &value), KITH_ELIMIT);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(kith_text_double(bad[i], &value), KITH_EPARSE);
}

static void test_from_time(void **state)
{
    (void)state;
    static const struct {
        kith_ns span;
        const char *text;
    } cases[] = {
        {0, "0 ns"},
        {999, "999 ns"},
        {1500, "1.50 us"},
        {1500000, "1.50 ms"},
        {-1500000, "-1.50 ms"},
        {90 * KITH_S, "1.50 min"},
        {KITH_NEVER, "never"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[32];
        kith_text_from_time(cases[i].span, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    char text[6];
    memset(text, 'x', sizeof text);

    size_t at = kith_text_add(text, sizeof text, 0, "%s", "abc");
    assert_int_equal(at, 3);
    at = kith_text_add(text, sizeof text, at, "%d", 4567);
    assert_int_equal(at, 5);
    assert_string_equal(text, "abc45");
    assert_int_equal(kith_text_add(text, sizeof text, at, "more"), 5);

    assert_true(kith_text_copy(text, sizeof text, "12345"));
    assert_false(kith_text_copy(text, sizeof text, "123456"));
    assert_string_equal(text, "12345");
    assert_false(kith_text_copy(text, 1, "1"));
    assert_string_equal(text, "");
}

static void test_hex(void **state)
{
    (void)state;
    const uint8_t bytes[3] = {0x00, 0xab, 0xff};
    uint8_t back[3] = {0};
    char text[7];

    kith_text_hex(text, bytes, 3);
    assert_string_equal(text, "00abff");
    assert_int_equal(kith_text_unhex("00ABff", back, 3), KITH_OK);
    assert_memory_equal(back, bytes, 3);
    assert_int_equal(kith_text_unhex("00abf", back, 3), KITH_EPARSE);
    assert_int_equal(kith_text_unhex("00abfff", back, 3), KITH_EPARSE);
    assert_int_equal(kith_text_unhex("00abfg", back, 3), KITH_EPARSE);
    assert_int_equal(kith_text_unhex("", back, 3), KITH_EPARSE);
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"complete", "exponential", "ring",
                                        "random", NULL};
    char tall[200];
    memset(tall, 'a', sizeof tall - 1);
    tall[sizeof tall - 1] = '\0';

    assert_string_equal(kith_text_nearest("rign", names), "ring");
    assert_string_equal(kith_text_nearest("ring", names), "ring");
    assert_string_equal(kith_text_nearest("expnential", names), "exponential");
    assert_string_equal(kith_text_nearest("comlpet", names), "complete");
    assert_null(kith_text_nearest("star", names));
    assert_null(kith_text_nearest("", names));
    assert_null(kith_text_nearest(tall, names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),     cmocka_unit_test(test_rates),
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_decimal),
        cmocka_unit_test(test_from_time), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_hex),       cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
