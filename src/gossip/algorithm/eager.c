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
#include "updates.h"

enum { THETA, MOMENTUM, OTHERS, VECTORS };

/* Elements [from, from + n): OTHERS becomes D, and then 0. */
static void advance(struct kith_algebra *algebra, size_t from, size_t n,
                    double alpha, double mu)
{
    const size_t skip = from * algebra->backend->element_bytes;
    char *const x = (char *)algebra->live + skip;
    char *const sent = (char *)algebra->sent + skip;
    char *const theta = (char *)algebra->vectors[THETA] + skip;
    char *const momentum = (char *)algebra->vectors[MOMENTUM] + skip;
    char *const sum = (char *)algebra->vectors[OTHERS] + skip;
    const struct kith_term own = {1, theta, x};
    const struct kith_term share = {1.0 / algebra->peers, sent, NULL};
    const struct kith_term all = {1, sum, NULL}, none = {0, sum, NULL};
    const struct kith_term steps[] = {{-alpha, sum, NULL},
                                      {-alpha * mu, momentum, NULL}};
    const struct kith_term next = {1, theta, NULL};
    const struct kith_update updates[] = {
        kith_one_term(sent, 0, &own, NULL),
        kith_one_term(sum, 1, &share, NULL),
        kith_one_term(momentum, mu, &all, NULL),
        {.y = theta, .own = 1, .count = 2, .terms = steps},
        kith_one_term(x, 0, &next, NULL),
        kith_one_term(sum, 0, &none, NULL)};
    algebra->backend->combine(n, 6, updates);
}

/* Running statistics take D as it is. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const size_t n = algebra->trained;
    (void)edge;
    advance(algebra, 0, n, algebra->coefficients[KITH_GOSSIP_RATE],
            algebra->coefficients[KITH_GOSSIP_MOMENTUM]);
    advance(algebra, n, algebra->dim - n, 1, 0);
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
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_STABLE_MEMBERS |
             KITH_NEEDS_EXACT_MESSAGES,
    .schedule = "complete",
    .keys = KITH_GOSSIP_READS(MOMENTUM) | KITH_GOSSIP_READS(RATE),
    .initial = {[KITH_GOSSIP_MOMENTUM] = 0.9, [KITH_GOSSIP_RATE] = 0.7},
    .vectors = VECTORS,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
};
