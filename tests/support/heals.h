/* Runs of a search that violated liveness once, simulated again.
 * Include after what cmocka needs. */
#ifndef KITH_TESTS_HEALS_H
#define KITH_TESTS_HEALS_H

#include <cmocka.h>

#include "kith/sim.h"
#include "kith/swarm.h"

/* `rounds`: of a round-based method, else of a two-party one. */
static inline void heals(bool rounds, uint64_t seed, uint64_t run)
{
    uint8_t claims[64];
    char error[SIM_ERROR_BYTES];
    struct kith_draw draw;
    struct kith_experiment experiment;
    struct kith_summary summary;
    struct sim_report report;
    kith_draw(seed, run, KITH_WORLD_SIM, &draw, &experiment);
    assert_true((experiment.gossip.algorithm->pattern == KITH_PATTERN_ROUND) ==
                rounds);
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

#endif
