/* Eager DiLoCo: one's own update at once, those of the others a round later.
 *
 *   H own steps from theta_i;   D_i = theta_i - x_i
 *   D = D_i / n + sum_(j != i) D_j / n of the round before
 *   m <- mu m + D;   theta_i <- theta_i - alpha (D + mu m);   x_i <- theta_i
 *
 * mu = `momentum`, alpha = `rate`. Nobody waits for what was just sent: it
 * travels during the next H steps. Over time every D_i reaches all, so that the
 * theta_i differ by what is under way alone; what is lost leaves them apart.
 *
 * Source: Kale et al., "Eager Updates For Overlapped Communication and
 * Computation in DiLoCo", 2025, Alg. 2.
 * Test: unit/test_rules_outer.c (T8.1). */
#include "common.h"

enum { THETA, MOMENTUM, OTHERS, VECTORS };

static void start(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[THETA],
                           algebra->live);
}

/* OTHERS becomes D; running statistics take it as it is. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t n = algebra->trained, skip = n * backend->element_bytes;
    const double mu = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double alpha = algebra->coefficients[KITH_GOSSIP_RATE];
    void *const theta = algebra->vectors[THETA];
    void *const momentum = algebra->vectors[MOMENTUM];
    void *const sum = algebra->vectors[OTHERS];
    (void)edge;
    backend->copy(algebra->dim, algebra->sent, theta);
    backend->add(algebra->dim, -1.0, algebra->live, algebra->sent);
    backend->add(algebra->dim, 1.0 / algebra->peers, algebra->sent, sum);
    backend->scale(n, mu, momentum);
    backend->add(n, 1.0, sum, momentum);
    backend->add(n, -alpha, sum, theta);
    backend->add(n, -alpha * mu, momentum, theta);
    backend->add(algebra->dim - n, -1.0, (char *)sum + skip,
                 (char *)theta + skip);
    backend->copy(algebra->dim, algebra->live, theta);
    backend->scale(algebra->dim, 0, sum);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0 / algebra->peers, algebra->received,
                          algebra->vectors[OTHERS]);
    edge->delta_sum = 0;
}

const struct kith_algorithm kith_algorithm_eager = {
    .name = "eager",
    .paper = "Kale et al., 2025",
    .summary = "DiLoCo with one's own update at once and the others' a round "
               "later",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_ROUND,
    .elementwise = true,
    .lossless = true,
    .no_churn = true,
    .schedule = "complete",
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9, [KITH_GOSSIP_RATE] = 0.7},
    .vectors = VECTORS,
    .start = start,
    .make = make,
    .merge = merge,
};
