/* NoLoCo: an outer step on pairs, without a collective.
 *
 *   H own steps from f_i to theta_i;   D_i = theta_i - f_i
 *   d_i <- a d_i + b mean(D) + c (mean(f) - f_i);   f_i <- f_i + d_i
 *
 * means over the pair (the neighbours of this round), a = `momentum`,
 * b = `rate`, c = `consensus`; stable for 0 < c < 2 (1 - a^2) / (1 + a - 2 a
 * q), q = n / (2 (n - 1)). Two vectors travel, f and D. Use random-matching;
 * with all peers in a group it is DiLoCo with heavy-ball momentum. Who sits out
 * takes its own step.
 *
 * Source: Kolehmainen et al., "NoLoCo", 2025; constants of its code.
 * Test: unit/test_rules.c (T13), unit/test_taxonomy_consensus.c (T3). */
#include "outer.h"

enum { SLOW, MOMENTUM, VECTORS };

/* Elements [from, from + n) of the first `count` vectors. */
static void make_part(struct kith_algebra *algebra, size_t from, size_t n,
                      unsigned count)
{
    const double *coefficients = algebra->coefficients;
    const size_t skip = from * algebra->backend->element_bytes;
    const char *const x = (char *)algebra->live + skip;
    const char *const slow = (char *)algebra->vectors[SLOW] + skip;
    char *const sent = (char *)algebra->sent + skip;
    const struct kith_term all = {1, slow, NULL}, difference = {1, x, slow};
    const struct kith_term step = {coefficients[KITH_GOSSIP_RATE], x, slow};
    const struct kith_update updates[] = {
        kith_one_term(sent, 0, &all, NULL),
        kith_one_term(kith_algorithm_second(algebra, sent), 0, &difference,
                      NULL),
        kith_one_term((char *)algebra->vectors[MOMENTUM] + skip,
                      coefficients[KITH_GOSSIP_MOMENTUM], &step, NULL)};
    algebra->backend->combine(n, count, updates);
}

/* (f, D), and d <- a d + b D of one's own. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)edge;
    make_part(algebra, 0, algebra->trained, 3);
    make_part(algebra, algebra->trained, algebra->dim - algebra->trained, 2);
}

/* Running statistics are averaged plainly, f and then D. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const double *coefficients = algebra->coefficients;
    void *const momentum = algebra->vectors[MOMENTUM];
    const struct kith_term terms[] = {
        {edge->weight * coefficients[KITH_GOSSIP_CONSENSUS], algebra->received,
         algebra->sent},
        {edge->weight * coefficients[KITH_GOSSIP_RATE],
         kith_algorithm_second(algebra, algebra->received),
         kith_algorithm_second(algebra, algebra->sent)}};
    kith_algorithm_combine_only(backend, algebra->trained, 1, momentum, 2,
                                terms);
    for (unsigned part = 0; part < 2; part++) {
        const size_t at = algebra->trained + part * algebra->dim;
        (void)backend->mix(
            algebra->dim - algebra->trained, edge->weight,
            kith_algorithm_at(algebra, algebra->received, at),
            kith_algorithm_at(algebra, algebra->sent, at),
            kith_algorithm_at(algebra, algebra->live, algebra->trained));
    }
    edge->delta_sum = 0;
}

static double finish(struct kith_algebra *algebra)
{
    void *const slow = algebra->vectors[SLOW], *const x = algebra->live;
    const struct kith_term step = {1, algebra->vectors[MOMENTUM], NULL};
    const struct kith_term all = {1, slow, NULL};
    double added;
    const struct kith_update updates[] = {kith_one_term(slow, 1, &step, NULL),
                                          kith_one_term(x, 0, &all, &added)};
    algebra->backend->combine(algebra->trained, 2, updates);
    kith_algorithm_copy_buffers(algebra, slow, x);
    return added;
}

const struct kith_algorithm kith_algorithm_noloco = {
    .name = "noloco",
    .paper = "Kolehmainen et al., 2025",
    .summary = "H local steps, an outer step on pairs that draws them together",
    OUTER_CONSENSUS,
    .payload = kith_algorithm_two_vectors,
    .start = kith_algorithm_start,
};
