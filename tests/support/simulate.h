/* Simulations from a few lines of YAML, for the tests of the simulator. */
#ifndef KITH_TESTS_SIMULATE_H
#define KITH_TESTS_SIMULATE_H

#include "kith/sim.h"

struct simulated {
    struct kith_summary summary;
    struct sim_report report;
};

/* The test fails where `yaml` is refused or the run does not end well. Options
 * may be NULL; their experiment is filled in here. */
struct simulated simulate(const char *yaml, const struct sim_options *options);

#endif
