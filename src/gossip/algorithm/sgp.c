/* SGP: stochastic gradient push, asynchronous, weights always sent.
 *
 *   z_i = x_i / w_i;  z_i <- z_i - eta g_i(z_i)         x_i <- w_i z_i
 *   send (p x_i, p w_i);  x_i <- x_i - p x_i;  w_i <- w_i - p w_i
 *   on receipt   x_j <- x_j + p x_i;  w_j <- w_j + p w_i
 *
 * A push is acknowledged, so a share that did not arrive comes home. The
 * reference code leaves w out on regular graphs; under loss, churn or
 * asynchrony that biases the mean, so here it always travels. In rounds, as
 * published: sgp-sync.
 *
 * Published is x_i <- x_i - eta g_i, a step of eta / w_i for z_i. Rounds bound
 * w_i from below; where nobody waits, who pushes ten times as often as others
 * has a tenth of their weight, or next to nothing where it hears of nobody for
 * a while, and diverges. Here a step counts by its weight, as GoSGD's does:
 * who pushes more often weighs less, so each peer's data count alike whatever
 * its speed. On a graph that gives some more weight than others at equal speed,
 * theirs count for more: sgp-sync has no such bias.
 *
 * Source: Assran et al., "Stochastic Gradient Push for Distributed Deep
 * Learning", ICML 2019, Alg. 1.
 * Test: unit/test_theory.c (T4, T5). */
#include "push_sum.h"

/* The share never arrived: it comes home. */
static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0, algebra->sent, algebra->live);
    algebra->scalars[0] += edge->scalars_sent[0];
}

const struct kith_algorithm kith_algorithm_sgp = {
    .name = "sgp",
    .paper = "Assran et al., ICML 2019",
    .summary = "push-sum: give a share of (x, w) away, train at x / w",
    .differs = "nobody waits, and own steps are those of z = x / w, where "
               "the paper's are of x; sgp-sync is the paper's",
    .pattern = KITH_PATTERN_PUSH,
    .wait = KITH_WAIT_NO,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_CONSERVES_SUM | KITH_STEPS_AT_Z |
             KITH_TAKES_GUARD,
    .scalar_count = 1,
    .scalars_start = {1.0},
    .make = kith_push_sum_make,
    .merge = kith_push_sum_merge,
    .undo = undo,
    .factor = kith_push_sum_factor,
};
