/* SPARTA + DiLoCo: a few coordinates are averaged in every round, and the whole
 * model has DiLoCo's outer step in every K-th.
 *
 *   x_k <- x_k + sum_j W_ij (x_j,k - x_i,k)   for k in the round's mask
 *   every K rounds  D = theta - mean_j x_j;  m <- mu m + D
 *                   theta <- theta - alpha (D + mu m);  x <- theta
 *
 * K = `outer_every`, the mask's share p = `share`, mu = `momentum`, alpha =
 * `rate`. The slices keep the replicas alike, so that outer steps may be far
 * apart; means are of all neighbours, so use a complete graph.
 *
 * Source: Beton et al., "SPARTA", EXO Labs, 2025; Douillard et al., "DiLoCo",
 * 2023.
 * Test: unit/test_rules_outer.c, property/test_matrix.c. */
#include "mask.h"
#include "outer.h"

static uint64_t period(const struct kith_algebra *algebra)
{
    return (uint64_t)algebra->coefficients[KITH_GOSSIP_OUTER_EVERY];
}

extern const struct kith_algorithm kith_algorithm_sparta_diloco;

static bool is_whole(const struct kith_algebra *algebra)
{
    return kith_algorithm_is_whole(&kith_algorithm_sparta_diloco,
                                   algebra->graph, period(algebra),
                                   algebra->round);
}

static size_t payload(const struct kith_algebra *algebra)
{
    return algebra->dim * algebra->backend->element_bytes;
}

/* theta, where an outer step has just been. */
static void before_step(struct kith_algebra *algebra)
{
    if (algebra->step / algebra->every % period(algebra) == 0)
        kith_algorithm_before_step(algebra);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    if (is_whole(algebra))
        algebra->backend->copy(algebra->dim, algebra->sent, algebra->live);
    else
        kith_mask_make(algebra, edge);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    if (is_whole(algebra))
        kith_algorithm_mix(algebra, edge);
    else
        edge->delta_sum = kith_mask_mix(algebra, edge->weight);
}

static double finish(struct kith_algebra *algebra)
{
    return is_whole(algebra) ? kith_outer_nesterov(algebra) : 0;
}

const struct kith_algorithm kith_algorithm_sparta_diloco = {
    .name = "sparta-diloco",
    .paper = "Beton et al., 2025",
    .summary = "averaging of a random share p in each round, DiLoCo's outer "
               "step now and then",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE) |
            KITH_GOSSIP_READS(SHARE) | KITH_GOSSIP_READS(OUTER_EVERY),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9,
                [KITH_GOSSIP_RATE] = 0.7,
                [KITH_GOSSIP_SHARE] = 0.005,
                [KITH_GOSSIP_OUTER_EVERY] = 500},
    .vectors = OUTER_VECTORS,
    .payload = payload,
    .slice = kith_mask_payload,
    .places = kith_mask_places,
    .start = kith_algorithm_start,
    .before_step = before_step,
    .make = make,
    .merge = merge,
    .finish = finish,
};
