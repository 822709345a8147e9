/* GASLoC: accelerated gossip over outer steps.
 *
 *   H own steps from theta to theta';   y = theta + alpha (theta' - theta)
 *   theta+ = y - a L y + c (y - y_before)
 *
 * L the weighted Laplacian of the round (I - W), alpha = `rate`,
 * a = `consensus`, c = `momentum` (0: not accelerated). Any graph; H may differ
 * between peers. On random pairs without gradients its recursion is NoLoCo's.
 *
 * Source: Cagnasso et al., "GASLoC", 2026.
 * Test: unit/test_rules.c, unit/test_taxonomy_consensus.c (T3). */
#include "updates.h"

enum { BASE, Y_BEFORE, VECTORS };

static void start(struct kith_algebra *algebra)
{
    for (unsigned i = 0; i < VECTORS; i++)
        algebra->backend->copy(algebra->dim, algebra->vectors[i],
                               algebra->live);
}

/* x becomes y, and y travels. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const double alpha = algebra->coefficients[KITH_GOSSIP_RATE];
    const size_t n = algebra->trained, at = n * backend->element_bytes;
    char *const x = algebra->live, *const sent = algebra->sent;
    const struct kith_term base = {1 - alpha, algebra->vectors[BASE], NULL};
    const struct kith_term y = {1, x, NULL};
    const struct kith_update updates[] = {
        {.y = x, .own = alpha, .count = 1, .terms = &base},
        {.y = sent, .count = 1, .terms = &y}};
    (void)edge;
    kith_algorithm_update(backend, n, 2, updates);
    backend->copy(algebra->dim - n, sent + at, x + at);
}

/* Running statistics are averaged plainly. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t at = algebra->trained * backend->element_bytes;
    edge->delta_sum = backend->mix(
        algebra->trained,
        edge->weight * algebra->coefficients[KITH_GOSSIP_CONSENSUS],
        algebra->received, algebra->sent, algebra->live);
    edge->delta_sum += backend->mix(
        algebra->dim - algebra->trained, edge->weight,
        (const char *)algebra->received + at, (const char *)algebra->sent + at,
        (char *)algebra->live + at);
}

static double finish(struct kith_algebra *algebra,
                     const struct kith_work_edge *edges, uint32_t edge_count)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t n = algebra->trained, at = n * backend->element_bytes;
    const size_t rest = algebra->dim - n;
    char *const x = algebra->live, *const sent = algebra->sent;
    char *const base = algebra->vectors[BASE];
    char *const y_before = algebra->vectors[Y_BEFORE];
    const struct kith_term step = {algebra->coefficients[KITH_GOSSIP_MOMENTUM],
                                   sent, y_before};
    const struct kith_term y = {1, sent, NULL}, all = {1, x, NULL};
    double added;
    const struct kith_update updates[] = {
        {.y = x, .own = 1, .count = 1, .terms = &step, .change = &added},
        {.y = y_before, .count = 1, .terms = &y},
        {.y = base, .count = 1, .terms = &all}};
    (void)edges;
    (void)edge_count;
    kith_algorithm_update(backend, n, 3, updates);
    backend->copy(rest, y_before + at, sent + at);
    backend->copy(rest, base + at, x + at);
    return added;
}

const struct kith_algorithm kith_algorithm_gasloc = {
    .name = "gasloc",
    .paper = "Cagnasso et al., 2026",
    .summary = "H local steps, accelerated gossip on any graph",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE) |
            KITH_GOSSIP_READS(CONSENSUS),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.5,
                [KITH_GOSSIP_RATE] = 0.7,
                [KITH_GOSSIP_CONSENSUS] = 0.7},
    .vectors = VECTORS,
    .start = start,
    .make = make,
    .merge = merge,
    .finish = finish,
};
