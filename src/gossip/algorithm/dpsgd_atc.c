/* D-PSGD, adapt then combine: a step, then averaging with all neighbours.
 *
 *   x_i(t+1) = sum_j W_ij (x_j(t) - eta g_j(x_j(t)))
 *
 * The next step waits for the round. On a complete graph every peer takes the
 * step of synchronous SGD on all batches together; with `every: H` it is local
 * SGD with periodic gossip.
 *
 * Source: Lian et al., NIPS 2017; order: Sayed, "Adaptation, Learning, and
 * Optimization over Networks", 2014, section 7.
 * Test: unit/test_rules.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_dpsgd_atc = {
    .name = "dpsgd-atc",
    .paper = "Lian et al., NIPS 2017",
    .summary = "a step, then averaging with all neighbours: "
               "x = sum_j W_ij (x_j - eta g_j)",
    AVERAGING,
};
