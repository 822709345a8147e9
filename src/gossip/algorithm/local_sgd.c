/* Local SGD: H own steps, then the mean of all neighbours.
 *
 *   H times  x_i <- x_i - eta g_i(x_i);   then  x_i <- sum_j W_ij x_j
 *
 * H = `every`. On a complete graph all peers start every run alike; on a sparse
 * one this is local SGD with periodic gossip.
 *
 * Source: Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019;
 * on graphs: Li et al., "Communication-Efficient Local Decentralized SGD
 * Methods" (LD-SGD), 2019.
 * Test: unit/test_rules_rounds.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_local_sgd = {
    .name = "local-sgd",
    .paper = "Stich, ICLR 2019",
    .summary = "H local steps, then averaging with all neighbours",
    AVERAGING,
};
