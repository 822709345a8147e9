/* GossipGraD: one partner a step, at distances that double.
 *
 *   x_i(t+1) = (x_i(t) + x_j(t)) / 2 - eta g_i(x_i(t))
 *
 * j stands 2^(t mod log2 n) places before i; places change every log2 n rounds.
 * Models travel while the gradient is taken.
 *
 * Source: Daily et al., "GossipGraD: Scalable Deep Learning using Gossip
 * Communication based Asynchronous Gradient Descent", 2018, section 5.
 * Test: unit/test_rules_rounds.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_gossipgrad = {
    .name = "gossipgrad",
    .paper = "Daily et al., 2018",
    .summary = "averaging with one other in each step, 2^k places on",
    .differs = "the first round begins after the first step, which is taken "
               "at x(0) as it is",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_ROUND,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_CONSERVES_SUM |
             KITH_MERGES_BESIDE | KITH_NEEDS_LOSSLESS_LINK,
    .schedule = "dissemination",
    .merge = kith_algorithm_mix,
};
