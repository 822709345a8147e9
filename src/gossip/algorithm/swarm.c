/* SwarmSGD, non-blocking: peers average copies that they have published.
 *
 *   X_i   the model that trains      Y_i   what was published last
 *   every H steps: Y_i <- X_i, and with a random neighbour j
 *   d = (Y_j - Y_i) / 2;   Y_i <- Y_i + d;   X_i <- X_i + d
 *
 * A peer takes part in one exchange at a time: two that overlap add up to more
 * than the way to either, and in step they drive all apart.
 *
 * j answers with its own Y_j, though it may be in the midst of its H steps, and
 * keeps its progress X_j - Y_j. Both sums are kept.
 *
 * Source: Nadiradze et al., "Asynchronous Decentralized SGD with Quantized and
 * Local Updates", NeurIPS 2021; that j applies the mean to Y_j and keeps its
 * progress is our reading of the non-blocking variant.
 * Test: unit/test_rules.c, property/test_matrix.c. */
#include "updates.h"

enum { PUBLISHED };

/* Who initiates is at the end of its H steps. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    void *const published = algebra->vectors[PUBLISHED];
    if (kith_slot_is(KITH_SLOT_INITIATED_SENT, edge->sent))
        kith_algorithm_copy_twice(algebra->backend, algebra->dim, algebra->live,
                                  published, algebra->sent);
    else
        algebra->backend->copy(algebra->dim, algebra->sent, published);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_term pull = {edge->weight, algebra->received,
                                   algebra->sent};
    const struct kith_update updates[] = {
        kith_one_term(algebra->live, 1, &pull, &edge->delta_sum),
        kith_one_term(algebra->vectors[PUBLISHED], 1, &pull, NULL)};
    algebra->backend->combine(algebra->dim, 2, updates);
}

static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    kith_algorithm_unmix(algebra, edge);
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->vectors[PUBLISHED]);
}

const struct kith_algorithm kith_algorithm_swarm = {
    .name = "swarm",
    .paper = "Nadiradze et al., NeurIPS 2021",
    .summary = "pairwise averaging of published copies: "
               "x += (y_j - y_i) / 2, every H steps",
    .differs = "how an answering peer keeps its progress is our reading of "
               "the non-blocking variant",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .flags = KITH_CONSERVES_SUM | KITH_NEEDS_EXCLUSIVE_EXCHANGE,
    .vectors = 1,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
    .undo = undo,
};
