/* Goal: what a search found in rounds stays mended.
 * Method: runs of `kith swarm --random --seed 13` that violated liveness, by
 * what was wrong, are simulated once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "kith/sim.h"
#include "kith/swarm.h"

#define SEED 13u

static void heals(uint64_t run)
{
    uint8_t claims[64];
    char error[SIM_ERROR_BYTES];
    struct kith_draw draw;
    struct kith_experiment experiment;
    struct kith_summary summary;
    struct sim_report report;
    kith_draw(SEED, run, KITH_WORLD_SIM, &draw, &experiment);
    assert_true(experiment.peers <= sizeof claims);
    assert_true(sim_claims_parse(draw.dishonest, experiment.peers, claims));
    const struct sim_options options = {
        .experiment = &experiment, .claims = claims, .watch = true};
    assert_int_equal(sim_run(&options, &summary, &report, error), KITH_OK);
    if (summary.violations > 0)
        print_message("kith swarm --random --seed 13 --run %llu: %s\n",
                      (unsigned long long)run, report.not_live);
    assert_int_equal(summary.violations, 0);
    kith_experiment_close(&experiment);
}

static void heal_all(const uint64_t runs[], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        heals(runs[i]);
}

/* It counted rounds as fast as it trained, and nobody believed them. */
static void test_alone(void **state)
{
    (void)state;
    static const uint64_t runs[] = {58, 175, 7364};
    heal_all(runs, 3);
}

/* Two rounds ahead, again and again, of one that is alive and slower. */
static void test_ahead(void **state)
{
    (void)state;
    static const uint64_t runs[] = {943, 3342, 1844};
    heal_all(runs, 3);
}

/* Who was suspected once is met again where neighbours change. */
static void test_suspected(void **state)
{
    (void)state;
    static const uint64_t runs[] = {101, 1090, 1654};
    heal_all(runs, 3);
}

/* Waiting for a liar, for those that wait for it, and so on: minutes. */
static void test_patience(void **state)
{
    (void)state;
    static const uint64_t runs[] = {420, 1117, 536, 695};
    heal_all(runs, 4);
}

/* The rounds of an all-reduce's cycle counted as one. */
static void test_cycle(void **state)
{
    (void)state;
    static const uint64_t runs[] = {888, 2662};
    heal_all(runs, 2);
}

/* A mailbox back from a crash says so to those that it only reads from. */
static void test_mailbox(void **state)
{
    (void)state;
    static const uint64_t runs[] = {8249, 6683};
    heal_all(runs, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),     cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_suspected), cmocka_unit_test(test_patience),
        cmocka_unit_test(test_cycle),     cmocka_unit_test(test_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
