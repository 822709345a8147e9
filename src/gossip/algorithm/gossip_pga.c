/* Gossip-PGA: gossip after every step, and now and then the mean of all.
 *
 *   x(t+1) = W_t (x(t) - eta g),   W_t = J where (t + 1) mod H_g = 0, else W
 *
 * W on the edges of `graph`, H_g = `period`, both of the topology.
 *
 * Source: Chen et al., "Accelerating Gossip SGD with Periodic Global
 * Averaging", ICML 2021, Alg. 1.
 * Test: unit/test_rules_rounds.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_gossip_pga = {
    .name = "gossip-pga",
    .paper = "Chen et al., ICML 2021",
    .summary = "averaging with neighbours, with everybody in every so many "
               "rounds",
    AVERAGING,
    .schedule = "global-rounds",
};
