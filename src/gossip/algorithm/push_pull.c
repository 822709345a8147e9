/* Push-Pull: gradient tracking on directed graphs.
 *
 *   x_i <- sum_j R_ij (x_j - eta y_j)       rows of R sum to 1: models, pulled
 *   y_i <- sum_j C_ij y_j + g_i+ - g_i      columns of C do: gradients, pushed
 *
 * sum_i y_i = sum_i g_i always, so there is no bias where the peers' data
 * differ. The optimiser sees y in the place of g; running statistics are
 * averaged like x. A lost message leaves a bias behind.
 *
 * Source: Pu et al., "Push-Pull Gradient Methods for Distributed Optimization
 * in Networks", 2018, Alg. 1.
 * Test: unit/test_rules_rounds.c (T6, T8.1). */
#include "push_sum.h"

/* (x, C_ji y); y keeps the rest. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const double fraction = kith_push_sum_fraction(algebra, edge);
    void *const y = algebra->vectors[KITH_TRACKED];
    const struct kith_term x = {1, algebra->live, NULL};
    const struct kith_term gift = {fraction, y, NULL},
                           loss = {-fraction, y, NULL};
    const struct kith_update updates[] = {
        kith_one_term(algebra->sent, 0, &x, NULL),
        kith_one_term(kith_algorithm_second(algebra, algebra->sent), 0, &gift,
                      NULL),
        kith_one_term(y, 1, &loss, NULL)};
    algebra->backend->combine(algebra->dim, 3, updates);
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    algebra->backend->add(algebra->dim, 1.0,
                          kith_algorithm_second(algebra, algebra->received),
                          algebra->vectors[KITH_TRACKED]);
    edge->delta_sum = 0;
}

/* Weights of what did not come stay with x. */
static double finish(struct kith_algebra *algebra)
{
    struct kith_term terms[KITH_DEGREE_MAX];
    double own = 1;
    for (uint32_t i = 0; i < algebra->merged_count; i++) {
        own -= algebra->merged[i].weight;
        terms[i] = (struct kith_term){algebra->merged[i].weight,
                                      algebra->inboxes[i], NULL};
    }
    return kith_algorithm_combine(algebra->backend, algebra->dim, own,
                                  algebra->live, algebra->merged_count, terms);
}

const struct kith_algorithm kith_algorithm_push_pull = {
    .name = "push-pull",
    .paper = "Pu et al., 2018",
    .summary = "gradient tracking on directed graphs: models are pulled, "
               "gradients pushed",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_NEEDS_LOSSLESS_LINK |
             KITH_NEEDS_STABLE_MEMBERS | KITH_REMOVES_DATA_BIAS |
             KITH_SENDS_EDGE_MESSAGES | KITH_NEEDS_EXACT_MESSAGES,
    .vectors = KITH_TRACKED_VECTORS,
    .payload = kith_algorithm_two_vectors,
    .direction = kith_algorithm_track,
    .make = make,
    .merge = merge,
    .finish = finish,
};
