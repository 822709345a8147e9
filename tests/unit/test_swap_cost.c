/* Goal: what kith plan --measure says of a step and a swap is what labs were
 * made of, whatever two of five were disturbed by. Method: labs whose times are
 * computed from a step and a swap, some of them slower or faster by more than
 * their swaps take. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/cli/swap_cost.h"

static const struct cli_peer_cost cost = {
    .handover_s = 2e-5, .message_s = 1e-5, .loop_s = 3e-6, .swap_link_s = 8e-5};
#define MODEL_BYTES 4e5
#define MESSAGE_BYTES 1e5
#define STEP_S 1e-3
#define LINK_S 4e-4  /* of a swap, beyond one of a few numbers */
#define ITEMS_S 6e-4 /* its items, likewise */
#define STEPS 800
#define DONE 100 /* swaps */

/* A lab on a machine that is `slow` times as slow. */
static struct cli_spent lab(double slow, bool swaps)
{
    const double done = swaps ? DONE : 0;
    const double fixed_s =
        CLI_SWAP_ENDS * cost.message_s + CLI_SWAP_ITEMS * cost.handover_s;
    return (struct cli_spent){
        .cpu_s = slow * (STEPS * (STEP_S + cost.handover_s) +
                         done * (fixed_s + LINK_S + ITEMS_S)),
        .link_s = STEPS * cost.loop_s + done * (cost.swap_link_s + LINK_S),
        .steps = STEPS,
        .done = done,
        .bytes = 2 * MESSAGE_BYTES * done};
}

static void fill(struct cli_spent labs[CLI_LABS_MAX],
                 const double slow[CLI_LABS_MAX], bool swaps)
{
    for (unsigned i = 0; i < CLI_LABS_MAX; i++)
        labs[i] = lab(slow[i], swaps);
}

static void near_to(double value, double expected)
{
    assert_true(fabs(value / expected - 1) < 1e-9);
}

static void check_swap(const double slow[CLI_LABS_MAX])
{
    struct cli_spent labs[CLI_LABS_MAX];
    struct cli_wire_cost wire;
    fill(labs, slow, true);
    near_to(kith_cli_take_swap(labs, CLI_LABS_MAX, MODEL_BYTES, STEP_S, &cost,
                               &wire) +
                1,
            1);
    near_to(wire.link, 4 * MESSAGE_BYTES / LINK_S);
    near_to(wire.merge, CLI_SWAP_ITEMS * MODEL_BYTES / ITEMS_S);
}

static void test_quiet(void **state)
{
    (void)state;
    const double slow[CLI_LABS_MAX] = {1, 1, 1, 1, 1};
    struct cli_spent labs[CLI_LABS_MAX];
    fill(labs, slow, false);
    near_to(kith_cli_step_of(labs, CLI_LABS_MAX, &cost), STEP_S);
    near_to(kith_cli_step_of(labs, 1, &cost), STEP_S);
    check_swap(slow);
}

/* A swap takes an eighth of a lab: two that are 15 % faster take less than
 * nothing for it, which no rate is. */
static void test_two_disturbed(void **state)
{
    (void)state;
    const double fast[CLI_LABS_MAX] = {.85, 1, .85, 1, 1};
    const double slow[CLI_LABS_MAX] = {1, 2, 1, 1, 1.3};
    const double both[CLI_LABS_MAX] = {1.15, 1, .85, 1, 1.2};
    struct cli_spent labs[CLI_LABS_MAX];
    fill(labs, both, false);
    near_to(kith_cli_step_of(labs, CLI_LABS_MAX, &cost), STEP_S);
    check_swap(fast);
    check_swap(slow);
    check_swap(both);
}

/* The steps alone were measured while the machine was slower: of both together
 * it is the labs that swap which are right. */
static void test_less_than_nothing(void **state)
{
    (void)state;
    const double slow[CLI_LABS_MAX] = {1, 1, 1, 1, 1};
    struct cli_spent alone[CLI_LABS_MAX], labs[CLI_LABS_MAX];
    struct cli_wire_cost wire;
    const double disturbed[CLI_LABS_MAX] = {1.3, 1.3, 1.3, 1.3, 1.3};
    fill(alone, disturbed, false);
    fill(labs, slow, true);
    double step_s = kith_cli_step_of(alone, CLI_LABS_MAX, &cost);
    const double over_s = kith_cli_take_swap(labs, CLI_LABS_MAX, MODEL_BYTES,
                                             step_s, &cost, &wire);
    assert_true(over_s > 0);
    assert_true(wire.merge == 0);
    near_to(wire.link, 4 * MESSAGE_BYTES / LINK_S);
    step_s -= over_s * DONE / STEPS;
    const double fixed_s =
        CLI_SWAP_ENDS * cost.message_s + CLI_SWAP_ITEMS * cost.handover_s;
    near_to(STEPS * (step_s + cost.handover_s) + DONE * (fixed_s + LINK_S),
            labs[0].cpu_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_two_disturbed),
        cmocka_unit_test(test_less_than_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
