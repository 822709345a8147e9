/* ClippedGossip: what a neighbour can do to a model is bounded.
 *
 *   x_i = y_i + sum_j W_ij clip(y_j - y_i, tau)    y_i = x_i - eta u_i
 *   clip(v, tau) = v min(1, tau / |v|)
 *
 * tau = `radius`; 0: the distance of the second-farthest neighbour of the round
 * (of the farthest where there is one alone). A neighbour moves x by at most
 * W_ij tau in a round. The mean is not kept where clips differ.
 *
 * Source: He et al., "Byzantine-Robust Decentralized Learning via
 * ClippedGossip", 2022, Alg. 1; the adaptive radius is its code's.
 * Test: unit/test_rules.c (T13), unit/test_taxonomy_clipped.c (T15). */
#include "updates.h"

#include <math.h>

static double distance(const struct kith_algebra *algebra, const void *y)
{
    return sqrt(
        algebra->backend->distance_squared(algebra->dim, y, algebra->sent));
}

static double radius_of(const struct kith_algebra *algebra,
                        const double *distances, uint32_t count)
{
    double first = 0, second = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (distances[i] > first) {
            second = first;
            first = distances[i];
        } else if (distances[i] > second) {
            second = distances[i];
        }
    }
    const double given = algebra->coefficients[KITH_GOSSIP_RADIUS];
    return given > 0 ? given : count >= 2 ? second : first;
}

/* The radius depends on every neighbour. */
static double finish(struct kith_algebra *algebra)
{
    double distances[KITH_DEGREE_MAX];
    struct kith_term terms[KITH_DEGREE_MAX];
    for (uint32_t i = 0; i < algebra->merged_count; i++)
        distances[i] = distance(algebra, algebra->inboxes[i]);
    const double radius = radius_of(algebra, distances, algebra->merged_count);
    for (uint32_t i = 0; i < algebra->merged_count; i++) {
        const double share = distances[i] > radius ? radius / distances[i] : 1;
        terms[i] = (struct kith_term){algebra->merged[i].weight * share,
                                      algebra->inboxes[i], algebra->sent};
    }
    return algebra->merged_count == 0
               ? 0
               : kith_algorithm_combine(algebra->backend, algebra->dim, 1,
                                        algebra->live, algebra->merged_count,
                                        terms);
}

const struct kith_algorithm kith_algorithm_clipped = {
    .name = "clipped",
    .paper = "He et al., 2022",
    .summary = "averaging with neighbours whose differences are clipped",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .keys = KITH_GOSSIP_READS(RADIUS),
    .merge = kith_algorithm_merge_later,
    .finish = finish,
};
