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
 * Test: property/test_algorithms.c (mean kept, spread shrinks). */
#include "kith/algorithm.h"

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum =
        algebra->backend->mix(algebra->dim, edge->weight, algebra->received,
                              algebra->sent, algebra->live);
}

/* The passive side: snapshot and merge in one pass over x. */
static void swap_merge(struct kith_algebra *algebra,
                       struct kith_work_edge *edge)
{
    edge->delta_sum = algebra->backend->swap_mix(algebra->dim, edge->weight,
                                                 algebra->received,
                                                 algebra->sent, algebra->live);
}

static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->live);
}

const struct kith_algorithm kith_algorithm_adpsgd = {
    .name = "adpsgd",
    .paper = "Lian et al., ICML 2018",
    .summary = "pairwise averaging with a random neighbour: "
               "x += (s_j - s_i) / 2",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .conserves_sum = true,
    .merge = merge,
    .swap_merge = swap_merge,
    .undo = undo,
};
