/* Goal: what a search found in two-party methods stays mended: one success in
 * 10 x degree attempts. Method: runs of `kith swarm --random` that violated
 * liveness, by what was wrong, are simulated once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "kith/sim.h"
#include "kith/swarm.h"

static void heals(uint64_t seed, uint64_t run)
{
    uint8_t claims[64];
    char error[SIM_ERROR_BYTES];
    struct kith_draw draw;
    struct kith_experiment experiment;
    struct kith_summary summary;
    struct sim_report report;
    kith_draw(seed, run, KITH_WORLD_SIM, &draw, &experiment);
    assert_int_not_equal(experiment.gossip.algorithm->pattern,
                         KITH_PATTERN_ROUND);
    assert_true(experiment.peers <= sizeof claims);
    assert_true(sim_claims_parse(draw.dishonest, experiment.peers, claims));
    const struct sim_options options = {
        .experiment = &experiment, .claims = claims, .watch = true};
    assert_int_equal(sim_run(&options, &summary, &report, error), KITH_OK);
    if (summary.violations > 0)
        fail_msg("kith swarm --random --seed %llu --run %llu: %s",
                 (unsigned long long)seed, (unsigned long long)run,
                 report.not_live);
    kith_experiment_close(&experiment);
}

/* One exchange at a time, and one was in doubt with a peer that had crashed, or
 * lies: nobody else was served until that was settled. */
static void test_in_doubt(void **state)
{
    (void)state;
    heals(17, 9536);
    heals(13, 2219);
}

/* Two that a link cut from each other charged each other for that, and went on
 * to when it was whole again. */
static void test_cut(void **state)
{
    (void)state;
    heals(17, 7304);
}

/* A packet that is sent again comes just after 200 ms, when its sender had just
 * been charged. */
static void test_sent_again(void **state)
{
    (void)state;
    heals(17, 7533);
    heals(13, 5283);
    heals(13, 8966);
    heals(17, 333);
}

/* The middle of a star serves one after another, by chance, and some never. */
static void test_turn(void **state)
{
    (void)state;
    heals(13, 6604);
    heals(13, 8300);
    heals(17, 2791);
    heals(17, 4892);
    heals(17, 6794);
}

/* The same, and some of those who ask are silent then. */
static void test_turn_with_liars(void **state)
{
    (void)state;
    heals(13, 545);
    heals(17, 8176);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_doubt),        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_sent_again),      cmocka_unit_test(test_turn),
        cmocka_unit_test(test_turn_with_liars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
