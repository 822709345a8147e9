/* Goal: a member that drips pieces delays a start by no more than a bound over
 * all of them, however many there are; one of a slow line, and one that was
 * slow once, go on being asked. Method: the rule alone, with answers that take
 * as long as each member likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/peer/piece_exchange.h"

enum { PIECES = 1000 };

/* Seconds that all pieces cost; *got: that came. */
static double start(double seconds, size_t size, unsigned *got)
{
    struct kith_piece_patience patience = {.waited_ns = 0};
    const kith_ns takes = (kith_ns)(seconds * (double)KITH_S);
    unsigned told = 0;
    *got = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        const kith_ns left = kith_piece_patience_left(&patience, size);
        if (left == 0)
            continue;
        const bool came = takes <= left;
        *got += came;
        told += kith_piece_patience_took(&patience, came ? takes : left,
                                         came ? size : 0);
    }
    assert_in_range(told, 0, 1);
    assert_int_equal(told, patience.is_over);
    return (double)patience.waited_ns / (double)KITH_S;
}

static void test_bound_over_all(void **state)
{
    static const struct {
        const char *what;
        double seconds; /* of a piece */
        size_t size;
        double most; /* in all */
    } cases[] = {
        {"4 KiB in 29 s", 29, 4096, 31},
        {"4 KiB in 4.9 s", 4.9, 4096, 36},
        {"512 KiB in 29 s", 29, 1u << 19, 60},
        {"AWAY after 4.9 s", 4.9, 0, 31},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned got;
        const double cost = start(cases[c].seconds, cases[c].size, &got);
        printf("  %d pieces, %s: expected up to %g s, measured %g s, %u "
               "pieces\n",
               PIECES, cases[c].what, cases[c].most, cost, got);
        assert_true(cost <= cases[c].most);
    }
}

static void test_slow_lines_are_used(void **state)
{
    unsigned got;
    (void)state;
    /* 1 Mbit/s, and a fast line. */
    (void)start(4.2, 1u << 19, &got);
    assert_int_equal(got, PIECES);
    (void)start(0.001, 4096, &got);
    assert_int_equal(got, PIECES);
    /* Slow once, for 20 s. */
    struct kith_piece_patience patience = {.waited_ns = 0};
    assert_false(kith_piece_patience_took(&patience, 20 * KITH_S, 4096));
    assert_true(kith_piece_patience_left(&patience, 4096) > 9 * KITH_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_over_all),
        cmocka_unit_test(test_slow_lines_are_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
