/* SGP in rounds: a step, then shares of (x, w) to all out-neighbours.
 *
 *   x_i <- x_i - eta g_i(z_i),  z_i = x_i / w_i
 *   x_i <- sum_j p_ij x_j;      w_i <- sum_j p_ij w_j     columns of p sum to 1
 *
 * Any directed graph or schedule will do: z tends to the mean where w tells how
 * uneven it is. The next step waits for the round. A share whose round ran into
 * its deadline is written off.
 *
 * Source: Assran et al., "Stochastic Gradient Push for Distributed Deep
 * Learning", ICML 2019, Alg. 1.
 * Test: unit/test_rules_rounds.c (T4, T5, T8.1). */
#include "push_sum.h"

const struct kith_algorithm kith_algorithm_sgp_sync = {
    .name = "sgp-sync",
    .paper = "Assran et al., ICML 2019",
    .summary = "push-sum in rounds: a step, then shares of (x, w) to all "
               "out-neighbours",
    PUSH_SUM_ROUNDS,
    .wait = KITH_WAIT_STRICT,
};
