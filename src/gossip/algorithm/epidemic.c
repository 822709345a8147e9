/* Epidemic learning, local: models go to a few random others, anew each round.
 *
 *   H own steps;  x_i to s random others;  x_i <- (x_i + sum_j x_j) / (1 + r_i)
 *
 * r_i is what came, a binomial number: nothing, and a peer keeps its own. s =
 * `degree`. A message that is lost is left out of the mean.
 *
 * Source: de Vos et al., "Epidemic Learning: Boosting Decentralized Learning
 * with Randomized Communication", NeurIPS 2023, Alg. 2 (EL-Local).
 * Test: unit/test_rules_rounds.c, unit/test_epidemic.c (T2). */
#include "updates.h"

static double finish(struct kith_algebra *algebra)
{
    struct kith_term terms[KITH_DEGREE_MAX];
    for (uint32_t i = 0; i < algebra->merged_count; i++)
        terms[i] = (struct kith_term){1 / (1.0 + algebra->merged_count),
                                      algebra->inboxes[i], algebra->sent};
    return algebra->merged_count == 0
               ? 0
               : kith_algorithm_combine(algebra->backend, algebra->dim, 1,
                                        algebra->live, algebra->merged_count,
                                        terms);
}

const struct kith_algorithm kith_algorithm_epidemic = {
    .name = "epidemic",
    .paper = "de Vos et al., NeurIPS 2023",
    .summary = "models go to random others: the plain mean of one's own and "
               "what came",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_ALLOWS_DIRECTED_LINKS,
    .schedule = "random-out",
    .merge = kith_algorithm_merge_later,
    .finish = finish,
};
