/* D-PSGD: synchronous averaging with all neighbours, overlapped with training.
 *
 *   x_i(t+1) = sum_j W_ij x_j(t) - eta g_i(x_i(t))
 *
 * written as deltas against the snapshot s_i = x_i(t) of the round:
 *
 *   x_i <- x_i + sum_j W_ij (s_j - s_i)
 *
 * The gradient is taken while the snapshots travel ("combine then adapt"). A
 * neighbour that misses the deadline is left out on both ends.
 *
 * Source: Lian et al., "Can Decentralized Algorithms Outperform Centralized
 * Algorithms?", NIPS 2017, Alg. 1.
 * Test: unit/test_theory.c; unit/test_theory.c (T1, T13). */
#include "updates.h"

const struct kith_algorithm kith_algorithm_dpsgd = {
    .name = "dpsgd",
    .paper = "Lian et al., NIPS 2017",
    .summary = "averaging with all neighbours of a round: "
               "x += sum_j W_ij (s_j - s_i)",
    .differs = "the first round begins after the first step, which is taken "
               "at x(0) as it is",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_ROUND,
    .flags = KITH_CONSERVES_SUM | KITH_MERGES_BESIDE | KITH_TAKES_GUARD,
    .merge = kith_algorithm_mix,
};
