/* Goal: what a search found in all-reduces stays mended.
 * Method: runs of `kith swarm --random` that violated liveness, by what was
 * wrong, are simulated once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/heals.h"

/* Who is alone went through cycles of which nothing came, and was soon many
 * ahead of those that were on their way to it. */
static void test_in_vain(void **state)
{
    (void)state;
    heals(true, 163, 7791);
    heals(true, 202, 2418);
}

/* Such a cycle counts where one of the others is past it. */
static void test_one_further(void **state)
{
    (void)state;
    heals(true, 204, 1276);
    heals(true, 205, 1195);
}

/* A sender asked whether its reader still comes, and heard that there is no
 * model for it. */
static void test_is_read(void **state)
{
    (void)state;
    heals(true, 201, 2438);
    heals(true, 202, 805);
    heals(true, 205, 752);
}

/* One that goes on without the others, for it takes one between them for a
 * liar: whoever followed it parted from all others, again and again. */
static void test_chased(void **state)
{
    (void)state;
    heals(true, 201, 8451);
    heals(true, 207, 2489);
}

/* An honest peer that had turned back once was believed no more. */
static void test_believed_again(void **state)
{
    (void)state;
    heals(true, 207, 353);
    heals(true, 208, 526);
}

/* A donor had taken more steps than it had gone through cycles. */
static void test_place(void **state)
{
    (void)state;
    heals(true, 208, 1376);
    heals(true, 208, 6862);
}

/* Late again and again by less than a cycle, and waited for half as long each
 * time; then left out for minutes, whatever it said. */
static void test_desynchronised(void **state)
{
    (void)state;
    heals(true, 205, 1632);
    heals(true, 222, 1115);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_one_further),
        cmocka_unit_test(test_is_read),
        cmocka_unit_test(test_chased),
        cmocka_unit_test(test_believed_again),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_desynchronised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
