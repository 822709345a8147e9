/* Elastic gossip: two peers move a little towards each other.
 *
 *   d = 2 a w (x_i - x_k);   x_i <- x_i - d;   x_k <- x_k + d    0 < a <= 1/2
 *
 * a = `elasticity`; 1/2 is plain averaging. w is the exchange's weight, 1/2
 * unless others overlap with it: the force is shared among them. The sum is
 * kept.
 *
 * Source: Pramod, "Elastic Gossip", 2018; after Zhang et al., "Deep learning
 * with Elastic Averaging SGD", NIPS 2015.
 * Test: unit/test_rules.c, property/test_matrix.c. */
#include "updates.h"

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->weight *= 2 * algebra->coefficients[KITH_GOSSIP_ELASTICITY];
    kith_algorithm_mix(algebra, edge);
}

const struct kith_algorithm kith_algorithm_elastic = {
    .name = "elastic",
    .paper = "Pramod, 2018",
    .summary = "two peers move towards each other: x += a (s_j - s_i)",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .flags = KITH_CONSERVES_SUM | KITH_MERGES_BESIDE,
    .keys = KITH_GOSSIP_READS(ELASTICITY),
    .initial = {[KITH_GOSSIP_ELASTICITY] = 0.25},
    .merge = merge,
    .undo = kith_algorithm_unmix,
};
