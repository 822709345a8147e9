/* D2 (exact diffusion): the drift between peers is corrected, step by step.
 *
 *   y_i = sum_j W_ij (x_j + u_j + c_j)        u_i = -eta g_i(x_i), the step
 *   c_i <- y_i - x_i - u_i;    x_i <- y_i     c_i = 0 at the start
 *
 * the correction form of x(t+1) = W (2 x(t) - x(t-1) - eta g(t) + eta g(t-1)),
 * which takes any optimiser's step and any schedule. No bias where the peers'
 * data differ. The graph must stay as it is and lambda_min(W) be above
 * -1 / (3 - 2 eta): an even ring with Metropolis weights has -1/3, so weights
 * are lazy, (W + I) / 2, unless the file names others. An edge that lapses
 * leaves its weight with both ends; running statistics are averaged plainly.
 *
 * Source: Tang et al., "D2: Decentralized Training over Decentralized Data",
 * ICML 2018; NIDS, Li et al., 2019.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6, T7). */
#include "updates.h"

enum { CORRECTION };

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    void *const x = algebra->live, *const sent = algebra->sent;
    const struct kith_term c = {1, algebra->vectors[CORRECTION], NULL};
    const struct kith_term all = {1, x, NULL};
    const struct kith_update updates[] = {kith_one_term(x, 1, &c, NULL),
                                          kith_one_term(sent, 0, &all, NULL)};
    (void)edge;
    algebra->backend->combine(algebra->trained, 2, updates);
    kith_algorithm_copy_buffers(algebra, sent, x);
}

/* y - (x + u) = (y - sent) + c. */
static double finish(struct kith_algebra *algebra)
{
    kith_algorithm_add_difference(algebra->backend, algebra->trained,
                                  algebra->live, algebra->sent,
                                  algebra->vectors[CORRECTION]);
    return 0;
}

const struct kith_algorithm kith_algorithm_d2 = {
    .name = "d2",
    .paper = "Tang et al., ICML 2018",
    .summary = "averaging with all neighbours that corrects their drift: "
               "no bias on unlike data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_STATIC_GRAPH | KITH_NEEDS_LOSSLESS_LINK |
             KITH_NEEDS_STABLE_MEMBERS | KITH_REMOVES_DATA_BIAS |
             KITH_NEEDS_LAZY_WEIGHTS | KITH_NEEDS_EXACT_MESSAGES,
    .vectors = 1,
    .make = make,
    .merge = kith_algorithm_mix,
    .finish = finish,
};
