/* Overlap SGP: push-sum whose messages travel while the next step is taken.
 *
 *   send (p x_i, p w_i), keep the rest;  step at z_i = x_i / w_i
 *   x_i <- x_i + sum of what came;  w_i likewise
 *
 * tau = 1: the step after the next waits for what is under way. A share whose
 * round ran into its deadline is written off.
 *
 * Source: Assran et al., "Stochastic Gradient Push for Distributed Deep
 * Learning", ICML 2019, Alg. 2 (OSGP).
 * Test: unit/test_rules_rounds.c (T8.1). */
#include "push_sum.h"

const struct kith_algorithm kith_algorithm_overlap_sgp = {
    .name = "overlap-sgp",
    .paper = "Assran et al., ICML 2019",
    .summary = "push-sum in rounds, shares of (x, w) travel during the next "
               "step",
    PUSH_SUM_ROUNDS,
    .wait = KITH_WAIT_ROUND,
};
