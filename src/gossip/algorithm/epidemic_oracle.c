/* Epidemic learning, oracle: a fresh regular graph in each round.
 *
 *   H own steps;   x_i <- (x_i + sum_j x_j) / (1 + s)   over the s neighbours
 *
 * s = `degree`. The paper's oracle is the shared seed here.
 *
 * Source: de Vos et al., "Epidemic Learning: Boosting Decentralized Learning
 * with Randomized Communication", NeurIPS 2023, Alg. 1 (EL-Oracle).
 * Test: unit/test_rules_rounds.c, unit/test_epidemic.c (T2). */
#include "updates.h"

const struct kith_algorithm kith_algorithm_epidemic_oracle = {
    .name = "epidemic-oracle",
    .paper = "de Vos et al., NeurIPS 2023",
    .summary = "averaging over a regular graph that changes in each round",
    AVERAGING,
    .schedule = "regular-rounds",
};
