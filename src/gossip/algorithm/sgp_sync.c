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
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_CONSERVES_SUM |
             KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_STABLE_MEMBERS |
             KITH_SENDS_EDGE_MESSAGES | KITH_SPLITS_MASS,
    .scalar_count = 1,
    .scalars_start = {1.0},
    .make = kith_push_sum_make,
    .merge = kith_push_sum_merge,
    .factor = kith_push_sum_factor,
};
