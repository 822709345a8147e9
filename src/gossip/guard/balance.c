/* Guard balance: a model is let in where it is near, beside one's own norm.
 *
 *   w = 1 where |x_i - s_j| <= gamma e^(-kappa t / T) |x_i|, else 0
 *
 * gamma = `tolerance`, kappa = 1, t own steps of T; where nobody knows T it
 * stays 0. One pass over our snapshot beside the look at what came.
 *
 * Source: Fang et al., "Byzantine-Robust Decentralized Federated Learning"
 * (BALANCE), CCS 2024; alpha is the exchange's weight here.
 * Test: unit/test_guard_rounds.c. */
#include <math.h>

#include "kith/guard.h"

static double weigh(void *state, const struct kith_guard_model *model)
{
    (void)state;
    return model->distance <=
                   model->config->tolerance * exp(-model->elapsed) * model->norm
               ? 1
               : 0;
}

extern const struct kith_guard kith_guard_balance;
const struct kith_guard kith_guard_balance = {
    .name = "balance",
    .paper = "Fang et al., CCS 2024",
    .summary = "reject what is further than a share of one's own norm, which "
               "shrinks",
    .keys = KITH_GUARD_READS(TOLERANCE),
    .looks_at_norm = true,
    .weigh = weigh,
};
