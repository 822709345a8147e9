/* Push-sum by running sums: exact whatever is lost.
 *
 *   send    S_ij <- S_ij + p x_i;  s_ij <- s_ij + p w_i;   keep the rest
 *           (S_ij, s_ij), all that i ever gave to j
 *   receive x_j <- x_j + S_ij - R_ij;  R_ij <- S_ij        likewise w
 *
 * A message that is lost is made up for by the next one, and one that comes
 * twice adds nothing. z = x / w; nobody waits. Memory: two vectors for each
 * neighbour. Totals grow with time, and with them their rounding.
 *
 * Own steps are those of z, as in sgp and for its reason. A peer that hears of
 * nobody for a while would give itself away: nobody's weight falls below
 * PUSH_SUM_LIGHT by giving, the total goes out as it was. Any share is exact.
 *
 * A total of weight that is less than before is that of a sender that starts
 * over: all of it is new.
 *
 * Source: Vaidya, Hadjicostis and Dominguez-Garcia, "Robust average consensus
 * over packet dropping links", 2011; as SGD: Assran et al., ICML 2019.
 * Test: unit/test_running_sums.c (T4), unit/test_rules_rounds.c. */
#include "push_sum.h"

enum { GIVEN, TAKEN, TOTALS };
/* Weights are below the number of peers, messages below 2^32. */
#define WEIGHT_MAX 4503599627370496.0

static void *total_of(const struct kith_algebra *algebra, unsigned index)
{
    return algebra->edges[algebra->edge_index * TOTALS + index];
}

static double *weight_of(const struct kith_algebra *algebra, unsigned index)
{
    return &algebra
                ->edge_scalars[algebra->edge_index * KITH_EDGE_SCALARS + index];
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    void *const given = total_of(algebra, GIVEN);
    const double fraction = kith_push_sum_fraction(algebra, edge);
    const double share = fraction * algebra->scalars[0];
    const struct kith_term gift = {fraction, algebra->live, NULL};
    const struct kith_term loss = {-fraction, algebra->live, NULL};
    const struct kith_term all = {1, given, NULL};
    const struct kith_update updates[] = {
        kith_one_term(given, 1, &gift, NULL),
        kith_one_term(algebra->live, 1, &loss, NULL),
        kith_one_term(algebra->sent, 0, &all, NULL)};
    if ((1 - fraction) * algebra->scalars[0] >= PUSH_SUM_LIGHT) {
        backend->combine(algebra->dim, 3, updates);
        algebra->scalars[0] -= share;
        *weight_of(algebra, GIVEN) += share;
    } else {
        backend->copy(algebra->dim, algebra->sent, given);
    }
    edge->scalars_sent[0] = *weight_of(algebra, GIVEN);
    edge->delta_sum = 0;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const double weight = edge->scalars_received[0];
    void *const taken = total_of(algebra, TAKEN);
    double *const before = weight_of(algebra, TAKEN);
    if (weight < *before) {
        backend->clear(algebra->dim, taken);
        *before = 0;
    }
    const struct kith_term more = {1, algebra->received, taken};
    const struct kith_term all = {1, algebra->received, NULL};
    const struct kith_update updates[] = {
        kith_one_term(algebra->live, 1, &more, &edge->delta_sum),
        kith_one_term(taken, 0, &all, NULL)};
    backend->combine(algebra->dim, 2, updates);
    algebra->scalars[0] += weight - *before;
    *before = weight;
}

const struct kith_algorithm kith_algorithm_running_sums = {
    .name = "running-sums",
    .paper = "Vaidya et al., 2011",
    .summary = "push-sum of totals: exact whatever is lost, nobody waits",
    .differs = "own steps are those of z = x / w: no paper has it as SGD "
               "without rounds",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_NO,
    .flags = KITH_ALLOWS_DIRECTED_LINKS | KITH_NEEDS_STATIC_GRAPH |
             KITH_NEEDS_STABLE_MEMBERS | KITH_SENDS_EDGE_MESSAGES |
             KITH_STEPS_AT_Z | KITH_NEEDS_EXACT_MESSAGES,
    .scalar_count = 1,
    .scalars_start = {1.0},
    .scalars_high = WEIGHT_MAX,
    .scalars_least = KITH_SHARE_LEAST,
    .edge_vectors = TOTALS,
    .make = make,
    .merge = merge,
    .factor = kith_push_sum_factor,
};
