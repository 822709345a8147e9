/* SlowMo: momentum over the averages of local SGD.
 *
 *   H own steps from x, then the mean xbar with all neighbours
 *   v <- beta v + (x - xbar);    x <- x - alpha v
 *
 * v = gamma times the paper's buffer: the same at a constant rate gamma.
 * beta = `momentum`, alpha = `rate`. On a complete graph all peers stay alike
 * between rounds; on others this is the paper's gossip variant.
 *
 * Source: Wang et al., "SlowMo", ICLR 2020, Alg. 1.
 * Test: unit/test_rules.c. */
#include "common.h"

enum { BEFORE, BUFFER };

static void before_step(struct kith_algebra *algebra)
{
    algorithm_stash(algebra, BEFORE);
}

static double finish(struct kith_algebra *algebra,
                     const struct kith_work_edge *edges, uint32_t edge_count)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t n = algebra->trained;
    const double before = backend->sum(n, algebra->live);
    (void)edges;
    (void)edge_count;
    backend->scale(n, algebra->coefficients[KITH_GOSSIP_MOMENTUM],
                   algebra->vectors[BUFFER]);
    algorithm_add_difference(backend, n, algebra->vectors[BEFORE],
                             algebra->live, algebra->vectors[BUFFER]);
    backend->copy(n, algebra->live, algebra->vectors[BEFORE]);
    backend->add(n, -algebra->coefficients[KITH_GOSSIP_RATE],
                 algebra->vectors[BUFFER], algebra->live);
    return backend->sum(n, algebra->live) - before;
}

const struct kith_algorithm kith_algorithm_slowmo = {
    .name = "slowmo",
    .paper = "Wang et al., ICLR 2020",
    .summary = "local SGD, averaging every H steps, momentum over the averages",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.5, [KITH_GOSSIP_RATE] = 1},
    .vectors = 2,
    .before_step = before_step,
    .merge = algorithm_mix,
    .finish = finish,
};
