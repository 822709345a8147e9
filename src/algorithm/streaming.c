/* Streaming DiLoCo: one fragment of the model at a time, while training goes
 * on.
 *
 *   round r, fragment p = r mod P:
 *   D = theta_p - mean_j x_j,p;   m_p <- mu m_p + D
 *   theta_p <- theta_p - alpha (D + mu m_p)
 *   x_p <- a x_p + (1 - a) theta_p
 *
 * P = `fragments`, a = `blend`, mu = `momentum`, alpha = `rate`; each fragment
 * has its turn every P `every` steps. A P-th of the model travels in a round,
 * and is merged when it is there, a step later or more (the paper's tau); means
 * are of all neighbours, so use a complete graph. With P = 1, a = 0 and tau = 0
 * it is DiLoCo.
 *
 * Source: Douillard et al., "Streaming DiLoCo with overlapping communication",
 * 2025, Alg. 2; a = 0.5 is its default.
 * Test: unit/test_rules_outer.c (T8.1, T13). */
#include "common.h"

enum { THETA, MOMENTUM, VECTORS };

struct fragment {
    size_t offset, count, trained; /* elements; of them that train */
};

static size_t most(const struct kith_algebra *algebra)
{
    const size_t parts = (size_t)algebra->coefficients[KITH_GOSSIP_FRAGMENTS];
    return (algebra->dim + parts - 1) / parts;
}

static struct fragment fragment_of(const struct kith_algebra *algebra)
{
    const uint64_t parts =
        (uint64_t)algebra->coefficients[KITH_GOSSIP_FRAGMENTS];
    const size_t each = most(algebra);
    const size_t first = each * (size_t)(algebra->round % parts);
    struct fragment fragment = {.offset = first < algebra->dim ? first
                                                               : algebra->dim};
    fragment.count = algebra->dim - fragment.offset;
    if (fragment.count > each)
        fragment.count = each;
    if (fragment.offset < algebra->trained)
        fragment.trained = algebra->trained - fragment.offset;
    if (fragment.trained > fragment.count)
        fragment.trained = fragment.count;
    return fragment;
}

static void *at(const struct kith_algebra *algebra, const void *vector,
                size_t element)
{
    return (char *)vector + element * algebra->backend->element_bytes;
}

static size_t bytes(const struct kith_algebra *algebra)
{
    return most(algebra) * algebra->backend->element_bytes;
}

static void start(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[THETA],
                           algebra->live);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct fragment fragment = fragment_of(algebra);
    (void)edge;
    algebra->backend->copy(fragment.count, algebra->sent,
                           at(algebra, algebra->live, fragment.offset));
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra;
    edge->delta_sum = 0;
}

/* theta <- (1 - alpha) theta + alpha mean - alpha mu m; x is blended with it.
 */
static void outer(struct kith_algebra *algebra, size_t n, size_t offset,
                  const void *mean)
{
    const struct kith_backend *backend = algebra->backend;
    const double mu = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    const double alpha = algebra->coefficients[KITH_GOSSIP_RATE];
    const double blend = algebra->coefficients[KITH_GOSSIP_BLEND];
    void *const theta = at(algebra, algebra->vectors[THETA], offset);
    void *const momentum = at(algebra, algebra->vectors[MOMENTUM], offset);
    void *const x = at(algebra, algebra->live, offset);
    backend->scale(n, mu, momentum);
    algorithm_add_difference(backend, n, theta, mean, momentum);
    backend->scale(n, 1 - alpha, theta);
    backend->add(n, alpha, mean, theta);
    backend->add(n, -alpha * mu, momentum, theta);
    backend->scale(n, blend, x);
    backend->add(n, 1 - blend, theta, x);
}

/* Running statistics move by what the mean adds. */
static double finish(struct kith_algebra *algebra,
                     const struct kith_work_edge *edges, uint32_t edge_count)
{
    const struct kith_backend *backend = algebra->backend;
    const struct fragment fragment = fragment_of(algebra);
    const size_t rest = fragment.count - fragment.trained;
    void *const mean = algebra->scratch;
    const double before = backend->sum(algebra->dim, algebra->live);
    backend->copy(fragment.count, mean, algebra->sent);
    for (uint32_t i = 0; i < edge_count; i++)
        (void)backend->mix(fragment.count, edges[i].weight, algebra->inboxes[i],
                           algebra->sent, mean);
    outer(algebra, fragment.trained, fragment.offset, mean);
    algorithm_add_difference(
        backend, rest, at(algebra, mean, fragment.trained),
        at(algebra, algebra->sent, fragment.trained),
        at(algebra, algebra->live, fragment.offset + fragment.trained));
    return backend->sum(algebra->dim, algebra->live) - before;
}

const struct kith_algorithm kith_algorithm_streaming = {
    .name = "streaming",
    .paper = "Douillard et al., 2025",
    .summary = "DiLoCo by fragments, one in each round, while training goes on",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_ROUND,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE) |
            KITH_GOSSIP_READS(FRAGMENTS) | KITH_GOSSIP_READS(BLEND),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9,
                [KITH_GOSSIP_RATE] = 0.7,
                [KITH_GOSSIP_FRAGMENTS] = 4,
                [KITH_GOSSIP_BLEND] = 0.5},
    .vectors = VECTORS,
    .payload = bytes,
    .scratch_bytes = bytes,
    .start = start,
    .make = make,
    .merge = merge,
    .finish = finish,
};
