/* SPARTA on pairs: a few coordinates of the model are averaged, often.
 *
 *   x_k <- x_k + (y_k - x_k) / 2     for k in a mask of share p, both sides
 *
 * p = `share`; mask.h says how the mask is drawn. The sum is kept. Loss and
 * churn cost nothing but exchanges.
 *
 * Source: Beton et al., "SPARTA", EXO Labs, 2025; on pairs, as its authors
 * suggest for more than 16 peers.
 * Test: unit/test_taxonomy_noise.c (T2: 1 - p in a step; T8),
 * property/test_matrix.c. */
#include "mask.h"

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = kith_mask_mix(algebra, edge->weight);
}

static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)kith_mask_mix(algebra, -edge->weight);
}

const struct kith_algorithm kith_algorithm_sparta = {
    .name = "sparta",
    .paper = "Beton et al., 2025",
    .summary = "pairwise averaging of a random share p of the coordinates",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .flags = KITH_CONSERVES_SUM,
    .keys = KITH_GOSSIP_READS(SHARE),
    .initial = {[KITH_GOSSIP_SHARE] = 0.005},
    .payload = kith_mask_payload,
    .places = kith_mask_places,
    .make = kith_mask_make,
    .merge = merge,
    .undo = undo,
};
