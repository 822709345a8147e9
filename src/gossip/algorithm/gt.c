/* Gradient tracking: every peer follows the mean of all gradients.
 *
 *   y_i <- y_i + g_i(x_i) - g_i'          g' the gradient of the step before
 *   x_i <- sum_j W_ij (x_j - eta y_j);    y_i <- sum_j W_ij y_j
 *
 * sum_i y_i = sum_i g_i always, so there is no bias where the peers' data
 * differ. The optimiser sees y in the place of g. Two vectors travel; running
 * statistics are averaged plainly. A lost message leaves a bias behind.
 *
 * That is x+ = W (x - eta y), y+ = W y + g+ - g: NEXT with linear surrogates,
 * and Push-Pull with both matrices W. The better known forms are x+ = W x - eta
 * y with the same y (Qu and Li, 2018; DIGing, Nedic et al., 2017), and both
 * after the step, y+ = W (y + g+ - g) (Aug-DGM, Xu et al., 2015).
 *
 * Source: Di Lorenzo and Scutari, "NEXT: In-Network Nonconvex Optimization",
 * IEEE Trans. Signal and Information Processing over Networks, 2016.
 * Test: tests/oracle, unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "updates.h"

/* (x, y) */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)edge;
    algebra->backend->copy(algebra->dim, algebra->sent, algebra->live);
    algebra->backend->copy(algebra->dim,
                           kith_algorithm_second(algebra, algebra->sent),
                           algebra->vectors[KITH_TRACKED]);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    kith_algorithm_mix(algebra, edge);
    (void)algebra->backend->mix(
        algebra->dim, edge->weight,
        kith_algorithm_second(algebra, algebra->received),
        kith_algorithm_second(algebra, algebra->sent),
        algebra->vectors[KITH_TRACKED]);
}

const struct kith_algorithm kith_algorithm_gt = {
    .name = "gt",
    .paper = "Di Lorenzo and Scutari, 2016",
    .summary = "gradient tracking: steps along the mean gradient of all, "
               "no bias on unlike data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_CONSERVES_SUM | KITH_NEEDS_LOSSLESS_LINK |
             KITH_NEEDS_STABLE_MEMBERS | KITH_REMOVES_DATA_BIAS,
    .vectors = KITH_TRACKED_VECTORS,
    .payload = kith_algorithm_two_vectors,
    .direction = kith_algorithm_track,
    .make = make,
    .merge = merge,
};
