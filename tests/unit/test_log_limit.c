/* Goal: a line that repeats is said at the 1st, 2nd, 4th, 8th time, another one
 * at once, and one that was not seen for a minute is new again; what strangers
 * invent takes no more room.
 * Method: pure; the clock is ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "src/peer/log_limit.h"

static struct kith_log_limit repeats;

static int setup(void **state)
{
    (void)state;
    memset(&repeats, 0, sizeof repeats);
    return 0;
}

static void powers_of_two_are_said(void **state)
{
    unsigned said = 0;
    (void)state;
    for (kith_ns i = 1; i <= 1000; i++) {
        const uint64_t times =
            kith_log_limit_count(&repeats, 7, i * 5 * KITH_S);
        assert_int_equal(times, i);
        said += kith_log_limit_passes(times);
    }
    assert_int_equal(said, 10); /* 1, 2, 4 ... 512 */
    assert_int_equal(kith_log_limit_count(&repeats, 8, 5000 * KITH_S), 1);
}

static void silence_starts_it_afresh(void **state)
{
    (void)state;
    assert_int_equal(kith_log_limit_count(&repeats, 7, 0), 1);
    assert_int_equal(
        kith_log_limit_count(&repeats, 7, KITH_LOG_LIMIT_FORGET_NS - 1), 2);
    assert_int_equal(
        kith_log_limit_count(&repeats, 7, 2 * KITH_LOG_LIMIT_FORGET_NS), 1);
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < KITH_LOG_LIMIT_ENTRIES; i++)
        assert_int_equal(kith_log_limit_count(&repeats, i, (kith_ns)i), 1);
    assert_int_equal(kith_log_limit_count(&repeats, 0, 1000), 2);
    assert_int_equal(kith_log_limit_count(&repeats, 5000, 1001),
                     1); /* in place of 1 */
    assert_int_equal(repeats.count, KITH_LOG_LIMIT_ENTRIES);
    assert_int_equal(kith_log_limit_count(&repeats, 0, 1002), 3);
    assert_int_equal(kith_log_limit_count(&repeats, 2, 1003), 2);
    assert_int_equal(kith_log_limit_count(&repeats, 1, 1004), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(powers_of_two_are_said, setup),
        cmocka_unit_test_setup(silence_starts_it_afresh, setup),
        cmocka_unit_test_setup(the_oldest_makes_room, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
