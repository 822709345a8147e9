/* Gradient tracking: every peer follows the mean of all gradients.
 *
 *   y_i <- y_i + g_i(x_i) - g_i'          g' the gradient of the step before
 *   x_i <- sum_j W_ij (x_j - eta y_j);    y_i <- sum_j W_ij y_j
 *
 * sum_i y_i = sum_i g_i always, so there is no bias where the peers' data
 * differ. The optimiser sees y in the place of g. Two vectors travel; running
 * statistics are averaged plainly. A lost message leaves a bias behind.
 *
 * Source: Qu and Li, "Harnessing smoothness to accelerate distributed
 * optimization", 2018; Nedic et al. (DIGing), 2017.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "updates.h"

const struct kith_algorithm kith_algorithm_gt = {
    .name = "gt",
    .paper = "Qu and Li, 2018",
    .summary = "gradient tracking: steps along the mean gradient of all, "
               "no bias on unlike data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_CONSERVES_SUM | KITH_NEEDS_LOSSLESS_LINK |
             KITH_NEEDS_STABLE_MEMBERS | KITH_REMOVES_DATA_BIAS,
    .vectors = KITH_TRACKED_VECTORS,
    .payload = kith_algorithm_two_vectors,
    .direction = kith_algorithm_track,
    .make = kith_algorithm_make_two,
    .merge = kith_algorithm_mix_two,
};
