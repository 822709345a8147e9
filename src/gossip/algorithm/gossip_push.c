/* Gossip SGD, push: a model goes to a random peer, who averages it with its
 * own. One way, without weights: the sum is not kept, but nobody waits, and a
 * message that is lost is only an average less.
 *
 *   H own steps;  x_i to a random j;  x_j <- (x_j + x_i) / 2
 *
 * Source: Jin et al., "How to scale distributed deep learning?", 2016, Alg. 2.
 * Test: property/test_matrix.c. */
#include "updates.h"

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = algebra->backend->mix(
        algebra->dim, 0.5, algebra->received, algebra->live, algebra->live);
}

/* The sender gave nothing away. */
static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra;
    (void)edge;
}

const struct kith_algorithm kith_algorithm_gossip_push = {
    .name = "gossip-push",
    .paper = "Jin et al., 2016",
    .summary = "a model goes to a random peer: x_j = (x_j + x_i) / 2",
    .pattern = KITH_PATTERN_PUSH,
    .wait = KITH_WAIT_NO,
    .flags = KITH_ALLOWS_DIRECTED_LINKS,
    .merge = merge,
    .undo = undo,
};
