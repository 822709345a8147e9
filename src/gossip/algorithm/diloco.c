/* DiLoCo: long local runs, an outer Nesterov step on their mean.
 *
 *   H own steps from theta;   D = mean_i (theta - theta_i)
 *   m <- mu m + D;   theta <- theta - alpha (D + mu m)
 *
 * mu = `momentum`, alpha = `rate`; the mean is of all neighbours, so on a
 * complete graph of all peers. The inner optimiser's state stays; alpha does
 * not decay.
 *
 * Source: Douillard et al., "DiLoCo", 2023, Alg. 1.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T14). */
#include "outer.h"

const struct kith_algorithm kith_algorithm_diloco = {
    .name = "diloco",
    .paper = "Douillard et al., 2023",
    .summary = "H local steps, an outer Nesterov step on their mean",
    .differs = "the mean is of neighbours: the paper's on a complete graph",
    OUTER_STEP,
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9, [KITH_GOSSIP_RATE] = 0.7},
    .finish = kith_outer_nesterov,
};
