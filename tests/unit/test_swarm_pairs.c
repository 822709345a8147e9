/* Goal: what a search found in two-party methods stays mended: one success in
 * 10 x degree attempts. Method: runs of `kith swarm --random` that violated
 * liveness, by what was wrong, are simulated once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/heals.h"

/* One exchange at a time, and one was in doubt with a peer that had crashed, or
 * lies: nobody else was served until that was settled. */
static void test_in_doubt(void **state)
{
    (void)state;
    heals(false, 17, 9536);
    heals(false, 13, 2219);
}

/* Two that a link cut from each other charged each other for that, and went on
 * to when it was whole again. */
static void test_cut(void **state)
{
    (void)state;
    heals(false, 17, 7304);
}

/* A packet that is sent again comes just after 200 ms, when its sender had just
 * been charged. */
static void test_sent_again(void **state)
{
    (void)state;
    heals(false, 17, 7533);
    heals(false, 13, 5283);
    heals(false, 13, 8966);
    heals(false, 17, 333);
}

/* What was under way with a peer that was charged lapsed, too, and the charge
 * began anew. */
static void test_charged_on(void **state)
{
    (void)state;
    heals(false, 59, 6105);
    heals(false, 47, 685);
    heals(false, 47, 1741);
    heals(false, 29, 2517);
}

/* Exchanges that overlap on a graph that changes weighed so much that models
 * grew until none was finite. */
static void test_swings(void **state)
{
    (void)state;
    heals(false, 59, 5220);
}

/* The middle of a star serves one after another, by chance, and some never. */
static void test_turn(void **state)
{
    (void)state;
    heals(false, 13, 6604);
    heals(false, 13, 8300);
    heals(false, 17, 2791);
    heals(false, 17, 4892);
    heals(false, 17, 6794);
    heals(false, 47, 7250);
    heals(false, 73, 1206);
    heals(false, 139, 393);
    heals(false, 139, 2991);
}

/* The same, and some of those who ask are silent then. */
static void test_turn_with_liars(void **state)
{
    (void)state;
    heals(false, 13, 545);
    heals(false, 17, 8176);
}

/* A turn ended before those that ask less often could have had it, and peers in
 * step had the next one in the same order. */
static void test_slower_turn(void **state)
{
    (void)state;
    heals(false, 163, 4073);
    heals(false, 151, 3926);
}

/* First in one turn and last in the next one. */
static void test_turn_in_thirds(void **state)
{
    (void)state;
    heals(false, 271, 2018);
    heals(false, 311, 9502);
}

/* It had its turn, and the word of that came too late. */
static void test_turn_lost(void **state)
{
    (void)state;
    heals(false, 202, 9191);
    heals(false, 201, 5225);
}

/* The middle of a star asks more often than it answers. */
static void test_asked_in_turn(void **state)
{
    (void)state;
    heals(false, 208, 5081);
    heals(false, 206, 9135);
    heals(false, 209, 7285);
}

/* Two that make one exchange at a time asked each other, and refused. */
static void test_both_ask(void **state)
{
    (void)state;
    heals(false, 157, 9241);
    heals(false, 206, 6167);
}

/* Who adopts refuses those that ask it, and its donor sent nothing. */
static void test_silent_donor(void **state)
{
    (void)state;
    heals(false, 202, 1619);
    heals(false, 213, 5844);
    heals(false, 216, 3538);
}

/* Charged for longer than it takes to settle, for a link that was cut. */
static void test_charged_long(void **state)
{
    (void)state;
    heals(false, 208, 5968);
    heals(false, 262, 4870);
    heals(false, 281, 947);
    heals(false, 281, 2258);
    heals(false, 281, 9816);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_doubt),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_charged_on),
        cmocka_unit_test(test_swings),
        cmocka_unit_test(test_sent_again),
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_turn_with_liars),
        cmocka_unit_test(test_slower_turn),
        cmocka_unit_test(test_turn_in_thirds),
        cmocka_unit_test(test_turn_lost),
        cmocka_unit_test(test_asked_in_turn),
        cmocka_unit_test(test_both_ask),
        cmocka_unit_test(test_silent_donor),
        cmocka_unit_test(test_charged_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
