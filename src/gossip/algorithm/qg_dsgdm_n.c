/* QG-DSGDm-N: quasi-global momentum, taken as Nesterov's.
 *
 *   n = beta m + g_i(x_i);  u = g_i(x_i) + beta n = (1 + beta) g + beta^2 m
 *   x+ = sum_j W_ij (x_j - eta u_j);   m+ = mu m + (1 - mu) (x_i - x_i+) / eta
 *
 * beta = `momentum`, mu = `decay`. Leave train.momentum at 0.
 *
 * Source: Lin et al., "Quasi-Global Momentum", ICML 2021, Alg. 1.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "quasi_global.h"

static void direction(struct kith_algebra *algebra)
{
    algebra->backend->scale(algebra->trained,
                            1 + algebra->coefficients[KITH_GOSSIP_MOMENTUM],
                            algebra->gradient);
}

static void after_step(struct kith_algebra *algebra)
{
    const double beta = algebra->coefficients[KITH_GOSSIP_MOMENTUM];
    kith_quasi_global_step(algebra, beta * beta);
}

const struct kith_algorithm kith_algorithm_qg_dsgdm_n = {
    .name = "qg-dsgdm-n",
    .paper = "Lin et al., ICML 2021",
    .summary = "qg-dsgdm with Nesterov's look ahead",
    .differs = "the buffer is eta times the paper's, and so keeps the rate "
               "of its time where the rate changes",
    QUASI_GLOBAL,
    .direction = direction,
    .after_step = after_step,
};
