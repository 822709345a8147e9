/* A2CiD2: pairwise averaging with a copy that carries momentum.
 *
 *   own step      x <- x - eta u;  x~ <- x~ - eta u
 *   with a pair   x <- x + (s_j - s_i) / 2;  x~ <- x~ + alpha (s_j - s_i)
 *   then          (x, x~) <- exp [-e, e; e, -e] (x, x~)
 *
 * e = `mixing`, alpha = `strength`; 0: from the graph (kith_topology_mixing),
 * e = 1 / (2 sqrt(chi_1 chi_2)), alpha = sqrt(chi_1 / chi_2) / 2. On a ring
 * this is worth twice as many exchanges; on a complete graph nothing. The sum
 * of x and x~ is kept.
 *
 * The paper's mixing is a flow in time, scaled by the rate of exchanges; a
 * peer's clock here counts its own, one for each, so that busy and slow
 * neighbours do not make e too large for what takes place. Exchanges are drawn
 * by chance, one in `every` steps on average, and a peer takes part in one at a
 * time: two that overlap add up to more than either meant, and momentum keeps
 * that.
 *
 * Source: Nabli et al., "A2CiD2: Accelerating Asynchronous Communication in
 * Decentralized Deep Learning", NeurIPS 2023, Alg. 1.
 * Test: unit/test_acid.c, property/test_matrix.c. */
#include "updates.h"

#include <math.h>

enum { COPY, BEFORE };

static void before_step(struct kith_algebra *algebra)
{
    algebra->backend->copy(algebra->dim, algebra->vectors[BEFORE],
                           algebra->live);
}

static void after_step(struct kith_algebra *algebra)
{
    kith_algorithm_add_difference(algebra->backend, algebra->dim, algebra->live,
                                  algebra->vectors[BEFORE],
                                  algebra->vectors[COPY]);
}

/* Both are pulled, and then what a time of 1 does, in place:
 *   d = x~ - x;   x <- x + a d;   x~ <- x~ - a d, which is x + (1 - 2 a) d */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const double e = algebra->coefficients[KITH_GOSSIP_MIXING];
    const double a = (1 - exp(-2 * e)) / 2;
    void *const copy = algebra->vectors[COPY], *const x = algebra->live;
    const struct kith_term pull = {edge->weight, algebra->received,
                                   algebra->sent};
    const struct kith_term apart[] = {
        {algebra->coefficients[KITH_GOSSIP_STRENGTH], algebra->received,
         algebra->sent},
        {-1, x, NULL}};
    const struct kith_term draw = {a, copy, NULL};
    const struct kith_term drawn = {1, x, NULL};
    const struct kith_update updates[] = {
        kith_one_term(x, 1, &pull, &edge->delta_sum),
        {.y = copy, .own = 1, .count = 2, .terms = apart},
        kith_one_term(x, 1, &draw, NULL),
        kith_one_term(copy, 1 - 2 * a, &drawn, NULL)};
    algebra->backend->combine(algebra->dim, 4, updates);
}

static void undo(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    kith_algorithm_unmix(algebra, edge);
    (void)algebra->backend->mix(
        algebra->dim, -algebra->coefficients[KITH_GOSSIP_STRENGTH],
        algebra->received, algebra->sent, algebra->vectors[COPY]);
}

const struct kith_algorithm kith_algorithm_acid = {
    .name = "acid",
    .paper = "Nabli et al., NeurIPS 2023",
    .summary = "pairwise averaging, accelerated: a copy of x carries momentum",
    .differs = "each exchange mixes x and its copy for a time of 1, "
               "whatever time has passed; the paper's mixing runs with the "
               "clock",
    .pattern = KITH_PATTERN_SWAP,
    .wait = KITH_WAIT_NO,
    .flags = KITH_NEEDS_EXCLUSIVE_EXCHANGE,
    .keys = KITH_GOSSIP_READS(MIXING) | KITH_GOSSIP_READS(STRENGTH),
    .vectors = 2,
    .start = kith_algorithm_start,
    .before_step = before_step,
    .after_step = after_step,
    .merge = merge,
    .undo = undo,
};
