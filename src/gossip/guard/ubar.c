/* Guard ubar: near ones are let in where they are no worse than we are on our
 * own batch.
 *
 *   N = the k - b nearest of a round's k
 *   w_j = 1 where j in N and loss(s_j) <= loss(x_i), else 0; where none is, the
 *   nearest alone
 *
 * by the batch of the last step, evaluated; b = `liars`. In pairs, where a
 * model comes alone, N is that one, and it is not let in for want of others.
 * Costs a forward pass a model and one of our own, and a copy of a model.
 *
 * Ruins data that are unlike, where others are worse on our own: it is here to
 * be compared with.
 *
 * Source: Guo et al., "Byzantine-Resilient Decentralized Stochastic Gradient
 * Descent" (UBAR, once MOZI), IEEE TCSVT 2022; alpha and the mean are the
 * exchange's weights here.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

static double weigh(void *state, const struct kith_guard_model *model)
{
    (void)state;
    return model->loss <= model->own_loss ? 1 : 0;
}

static void judge(void *state, struct kith_guard_round *round)
{
    double sorted[KITH_DEGREE_MAX];
    const uint32_t k = round->count, liars = round->config->liars;
    const double own = round->losses[k];
    uint32_t nearest = 0, let_in = 0;
    (void)state;
    for (uint32_t i = 0; i < k; i++) {
        sorted[i] = round->distances[i];
        if (round->distances[i] < round->distances[nearest])
            nearest = i;
    }
    kith_guard_sort(sorted, k);
    const double limit = sorted[k > liars ? k - liars - 1 : 0];
    for (uint32_t i = 0; i < k; i++) {
        const bool good =
            round->distances[i] <= limit && round->losses[i] <= own;
        round->let_in[i] = good ? 1 : 0;
        let_in += good;
    }
    if (let_in == 0)
        round->let_in[nearest] = 1;
}

extern const struct kith_guard kith_guard_ubar;
const struct kith_guard kith_guard_ubar = {
    .name = "ubar",
    .paper = "Guo et al., IEEE TCSVT 2022",
    .summary = "near ones that are no worse than we are on our own batch",
    .keys = KITH_GUARD_READS(LIARS),
    .looks_at_loss = true,
    .weigh = weigh,
    .judge = judge,
};
