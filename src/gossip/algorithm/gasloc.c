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
#include "outer.h"

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
    const double alpha = algebra->coefficients[KITH_GOSSIP_RATE];
    void *const x = algebra->live, *const sent = algebra->sent;
    const struct kith_term base = {1 - alpha, algebra->vectors[BASE], NULL};
    const struct kith_term y = {1, x, NULL};
    const struct kith_update updates[] = {kith_one_term(x, alpha, &base, NULL),
                                          kith_one_term(sent, 0, &y, NULL)};
    (void)edge;
    algebra->backend->combine(algebra->trained, 2, updates);
    kith_algorithm_copy_buffers(algebra, sent, x);
}

/* Running statistics are averaged plainly. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = algebra->backend->mix(
        algebra->trained,
        edge->weight * algebra->coefficients[KITH_GOSSIP_CONSENSUS],
        algebra->received, algebra->sent, algebra->live);
    edge->delta_sum += kith_algorithm_mix_buffers(algebra, edge->weight);
}

static double finish(struct kith_algebra *algebra)
{
    void *const x = algebra->live, *const sent = algebra->sent;
    void *const base = algebra->vectors[BASE];
    void *const y_before = algebra->vectors[Y_BEFORE];
    const struct kith_term step = {algebra->coefficients[KITH_GOSSIP_MOMENTUM],
                                   sent, y_before};
    const struct kith_term y = {1, sent, NULL}, all = {1, x, NULL};
    double added;
    const struct kith_update updates[] = {kith_one_term(x, 1, &step, &added),
                                          kith_one_term(y_before, 0, &y, NULL),
                                          kith_one_term(base, 0, &all, NULL)};
    algebra->backend->combine(algebra->trained, 3, updates);
    kith_algorithm_copy_buffers(algebra, y_before, sent);
    kith_algorithm_copy_buffers(algebra, base, x);
    return added;
}

const struct kith_algorithm kith_algorithm_gasloc = {
    .name = "gasloc",
    .paper = "Cagnasso et al., 2026",
    .summary = "H local steps, accelerated gossip on any graph",
    OUTER_CONSENSUS,
    .start = start,
};
