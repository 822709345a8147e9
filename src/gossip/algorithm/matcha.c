/* MATCHA: after a step, averaging over some of the matchings of a graph.
 *
 *   x(t+1) = W_t (x(t) - eta g),   W_t = I - a sum_m B_m L_m
 *
 * B_m is drawn by all alike with the chance p_m that connects best for the
 * `budget`; chances and a are the topology's.
 *
 * Source: Wang et al., "MATCHA: Speeding Up Decentralized SGD via Matching
 * Decomposition Sampling", 2019.
 * Test: unit/test_rules_rounds.c, property/test_matrix.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_matcha = {
    .name = "matcha",
    .paper = "Wang et al., 2019",
    .summary = "averaging over random matchings of a graph, the ones that "
               "connect more often",
    AVERAGING,
    .schedule = "matcha",
};
