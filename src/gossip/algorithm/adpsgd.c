/* AD-PSGD: asynchronous pairwise averaging.
 *
 *   x_i <- x_i + w (s_j - s_i)      x_j <- x_j + w (s_i - s_j)      w = 1/2
 *
 * s are the snapshots that were exchanged, so the two deltas are exact
 * negatives of each other and the sum of all models is kept although both
 * sides train on meanwhile. The paper's bipartite graph is not needed: a busy
 * peer answers BUSY at once and the initiator asks another one.
 *
 * Source: Lian et al., "Asynchronous Decentralized Parallel Stochastic Gradient
 * Descent", ICML 2018, Alg. 1.
 * Test: unit/test_theory.c (mean kept, spread shrinks). */
#include "updates.h"

const struct kith_algorithm kith_algorithm_adpsgd = {
    .name = "adpsgd",
    .paper = "Lian et al., ICML 2018",
    .summary = "pairwise averaging with a random neighbour: "
               "x += (s_j - s_i) / 2",
    .differs = "any graph will do: a busy peer refuses and another is "
               "asked, where the paper wants the graph bipartite",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .flags = KITH_CONSERVES_SUM | KITH_MERGES_BESIDE | KITH_TAKES_GUARD,
    .merge = kith_algorithm_mix,
    .undo = kith_algorithm_unmix,
};
