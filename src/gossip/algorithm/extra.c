/* EXTRA: averaging, then a step, with the drift between peers corrected.
 *
 *   x(t+1) = W x(t) + c(t) - eta g(x(t))
 *   c(t+1) = c(t) + (W - I) x(t) / 2               c(0) = 0
 *
 * the sum over time of x(t+2) = (I + W) x(t+1) - (I + W)/2 x(t)
 *                               - eta (g(t+1) - g(t)).
 * What travels is x before the step. No bias where the peers' data differ. The
 * graph must stay as it is; running statistics are averaged plainly.
 *
 * Source: Shi et al., "EXTRA: An exact first-order algorithm for decentralized
 * consensus optimization", 2015.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "updates.h"

enum { BEFORE, CORRECTION };

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    (void)edge;
    backend->copy(algebra->dim, algebra->sent, algebra->vectors[BEFORE]);
    backend->add(algebra->trained, 1.0, algebra->vectors[CORRECTION],
                 algebra->live);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_term all = {edge->weight, algebra->received,
                                  algebra->sent};
    const struct kith_term half = {edge->weight / 2, all.plus, all.minus};
    const struct kith_update updates[] = {
        kith_one_term(algebra->live, 1, &all, &edge->delta_sum),
        kith_one_term(algebra->vectors[CORRECTION], 1, &half, NULL)};
    algebra->backend->combine(algebra->trained, 2, updates);
    edge->delta_sum += kith_algorithm_mix_buffers(algebra, edge->weight);
}

const struct kith_algorithm kith_algorithm_extra = {
    .name = "extra",
    .paper = "Shi et al., 2015",
    .summary = "averaging, then a step, with a correction: no bias on unlike "
               "data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_STATIC_GRAPH | KITH_NEEDS_LOSSLESS_LINK |
             KITH_NEEDS_STABLE_MEMBERS | KITH_REMOVES_DATA_BIAS,
    .vectors = 2,
    .before_step = kith_algorithm_before_step,
    .make = make,
    .merge = merge,
};
