/* SWIFT: nobody waits; the newest model of each neighbour lies in a mailbox.
 *
 *   every H own steps   x_i to all neighbours, and
 *   x_i <- (1 - sum_j w_ij) x_i + sum_j w_ij (newest x_j)
 *
 * A model that is old is averaged again, that of a neighbour that was never
 * heard is not. Memory: two models for each neighbour. The sum is not kept;
 * where peers differ in speed the slow count for less, as the paper's weights
 * would make up for.
 *
 * Source: Bornstein et al., "SWIFT: Rapid Decentralized Federated Learning via
 * Wait-Free Model Communication", ICLR 2023, Alg. 1.
 * Test: unit/test_rules_rounds.c, unit/test_node_directed.c. */
#include "updates.h"

const struct kith_algorithm kith_algorithm_swift = {
    .name = "swift",
    .paper = "Bornstein et al., ICLR 2023",
    .summary = "averaging with what came last from each neighbour; nobody "
               "waits",
    .differs = "weights are those of the graph, not of the peers' speeds",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_NO,
    .flags = KITH_NEEDS_STATIC_GRAPH | KITH_MERGES_BESIDE,
    .merge = kith_algorithm_mix,
};
