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

static void before_step(struct kith_algebra *algebra)
{
    kith_algorithm_stash(algebra, BEFORE);
}

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
    const struct kith_backend *backend = algebra->backend;
    const size_t n = algebra->trained, at = n * backend->element_bytes;
    const char *const received = algebra->received, *const sent = algebra->sent;
    char *const x = algebra->live;
    const struct kith_term all = {edge->weight, received, sent};
    const struct kith_term half = {edge->weight / 2, received, sent};
    const struct kith_update updates[] = {{.y = x,
                                           .own = 1,
                                           .count = 1,
                                           .terms = &all,
                                           .change = &edge->delta_sum},
                                          {.y = algebra->vectors[CORRECTION],
                                           .own = 1,
                                           .count = 1,
                                           .terms = &half}};
    kith_algorithm_update(backend, n, 2, updates);
    edge->delta_sum += backend->mix(algebra->dim - n, edge->weight,
                                    received + at, sent + at, x + at);
}

const struct kith_algorithm kith_algorithm_extra = {
    .name = "extra",
    .paper = "Shi et al., 2015",
    .summary = "averaging, then a step, with a correction: no bias on unlike "
               "data",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .fixed_graph = true,
    .lossless = true,
    .no_churn = true,
    .exact = true,
    .vectors = 2,
    .before_step = before_step,
    .make = make,
    .merge = merge,
};
