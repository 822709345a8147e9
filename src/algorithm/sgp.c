/* SGP: stochastic gradient push, weights always sent.
 *
 *   z_i = x_i / w_i                       gradients are taken at z_i
 *   send (p x_i, p w_i);  x_i <- x_i - p x_i;  w_i <- w_i - p w_i
 *   on receipt   x_j <- x_j + p x_i;  w_j <- w_j + p w_i
 *
 * sum_i x_i and sum_i w_i are kept, messages under way included. The reference
 * code leaves w out on regular graphs; under loss, churn or asynchrony that
 * biases the mean, so here it always travels.
 *
 * Source: Assran et al., "Stochastic Gradient Push for Distributed Deep
 * Learning", ICML 2019, Alg. 1.
 * Test: unit/test_theory.c (T4, T5). */
#include "kith/algorithm.h"

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    backend->copy(algebra->dim, algebra->sent, algebra->live);
    backend->scale(algebra->dim, edge->weight, algebra->sent);
    backend->add(algebra->dim, -1.0, algebra->sent, algebra->live);
    edge->scalars_sent[0] = edge->weight * algebra->scalars[0];
    algebra->scalars[0] -= edge->scalars_sent[0];
    edge->delta_sum = -backend->sum(algebra->dim, algebra->sent);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->received, algebra->live);
    algebra->scalars[0] += edge->scalars_received[0];
    edge->delta_sum = algebra->backend->sum(algebra->dim, algebra->received);
}

/* The share never arrived: it comes home. */
static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->sent, algebra->live);
    algebra->scalars[0] += edge->scalars_sent[0];
}

static double factor(const double *scalars)
{
    /* The weight can shrink but never vanish; the guard is the paper's. */
    return 1.0 / (scalars[0] > 1e-6 ? scalars[0] : 1e-6);
}

const struct kith_algorithm kith_algorithm_sgp = {
    .name = "sgp",
    .paper = "Assran et al., ICML 2019",
    .summary = "push-sum: give a share of (x, w) away, train at x / w",
    .pattern = KITH_PATTERN_PUSH,
    .wait = KITH_WAIT_NO,
    .directed = true,
    .conserves_sum = true,
    .scalar_count = 1,
    .scalars_start = {1.0},
    .make = make,
    .merge = merge,
    .undo = undo,
    .factor = factor,
};
