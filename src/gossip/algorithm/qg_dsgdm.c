/* QG-DSGDm: D-PSGD with a momentum that is nearly that of all peers.
 *
 *   u = g_i(x_i) + beta m;   x+ = sum_j W_ij (x_j - eta u_j)
 *   m+ = mu m + (1 - mu) (x_i - x_i+) / eta
 *
 * beta = `momentum`, mu = `decay`. On unlike data local momentum multiplies the
 * bias by 1 / (1 - beta); this one does not. Leave train.momentum at 0.
 *
 * Source: Lin et al., "Quasi-Global Momentum", ICML 2021, Alg. 1.
 * Test: unit/test_rules.c, unit/test_taxonomy_bias.c (T6). */
#include "quasi_global.h"

static void after_step(struct kith_algebra *algebra)
{
    kith_quasi_global_step(algebra,
                           algebra->coefficients[KITH_GOSSIP_MOMENTUM]);
}

const struct kith_algorithm kith_algorithm_qg_dsgdm = {
    .name = "qg-dsgdm",
    .paper = "Lin et al., ICML 2021",
    .summary = "averaging with all neighbours, momentum of what all did "
               "together",
    .differs = "the buffer is eta times the paper's, and so keeps the rate "
               "of its time where the rate changes",
    QUASI_GLOBAL,
    .after_step = after_step,
};
