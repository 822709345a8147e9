/* Goal: what kith/channel_use.h says of each figure. Method: a few events by
 * hand, in seconds, against sums in one's head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kith/channel_use.h"

#define AT(seconds) ((kith_ns)(seconds)*KITH_S)

static struct kith_row row_at(const struct kith_channel_use *use, kith_ns now)
{
    struct kith_channel_use sum = {.passes = 0};
    struct kith_row row = kith_row_unknown(3);
    kith_channel_use_add(&sum, now, use);
    kith_channel_use_row(&sum, &row);
    return row;
}

/* Two bursts that overlap: 100 bytes from 1 to 4, 50 from 2 to 3. */
static void test_in_flight(void **state)
{
    (void)state;
    struct kith_channel_use use = {.passes = 0};

    kith_channel_use_sent(&use, AT(1), 100);
    kith_channel_use_sent(&use, AT(2), 50);
    kith_channel_use_left(&use, AT(3), 50);
    kith_channel_use_left(&use, AT(4), 100);

    const struct kith_row row = row_at(&use, AT(9));
    assert_true(row.in_flight_most == 150);
    assert_true(row.in_flight_byte_s == 350 && row.sending_s == 3);
    assert_true(row.exchange_s == 0 && row.idle_s == 0 && row.passes == 0);
}

/* An exchange from 1 to 10: a model leaves from 2 to 4 and one comes in from 3
 * to 7, so that 1 to 2 and 7 to 10 are idle; what moves outside of it is no
 * matter. */
static void test_idle(void **state)
{
    (void)state;
    struct kith_channel_use use = {.passes = 0};

    kith_channel_use_exchanges(&use, AT(1), true);
    kith_channel_use_sent(&use, AT(2), 8);
    kith_channel_use_receives(&use, AT(3), true);
    kith_channel_use_left(&use, AT(4), 8);
    kith_channel_use_receives(&use, AT(7), false);
    kith_channel_use_exchanges(&use, AT(8), true); /* as it was */
    kith_channel_use_exchanges(&use, AT(10), false);
    kith_channel_use_sent(&use, AT(12), 8);

    const struct kith_row row = row_at(&use, AT(13));
    assert_true(row.exchange_s == 9 && row.idle_s == 4);
    assert_true(row.sending_s == 3);
}

/* A look changes nothing, counts what is still going on, and an event of before
 * it is booked as if it came with it. */
static void test_looks(void **state)
{
    (void)state;
    struct kith_channel_use use = {.passes = 5};

    kith_channel_use_exchanges(&use, AT(2), true);
    assert_true(row_at(&use, AT(5)).idle_s == 3);
    assert_true(row_at(&use, AT(3)).idle_s == 1);
    kith_channel_use_sent(&use, AT(4), 10);
    kith_channel_use_receives(&use, AT(3), true);
    kith_channel_use_left(&use, AT(6), 10);

    const struct kith_row row = row_at(&use, AT(7));
    assert_true(row.idle_s == 2 && row.exchange_s == 5);
    assert_true(row.sending_s == 2 && row.passes == 5);
}

/* Peers: the most is of one of them, the rest are sums. */
static void test_peers(void **state)
{
    (void)state;
    const struct kith_channel_use one = {.in_flight_most = 7, .passes = 2},
                                  other = {.in_flight_most = 9, .passes = 3};
    struct kith_channel_use sum = {.passes = 0};
    struct kith_row row = kith_row_unknown(KITH_NOBODY);

    kith_channel_use_add(&sum, AT(1), &one);
    kith_channel_use_add(&sum, AT(1), &other);
    kith_channel_use_row(&sum, &row);
    assert_true(row.in_flight_most == 9 && row.passes == 5);

    struct kith_row rows = row_at(&one, AT(1)), more = row_at(&other, AT(1));
    kith_row_add_peer(&rows, &more);
    assert_true(rows.in_flight_most == 9 && rows.passes == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
