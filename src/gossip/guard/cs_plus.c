/* Guard cs+: the largest differences of a round are clipped to the next one.
 *
 *   tau = the (2 b + 1)-th largest |s_j - x_i|, 0 where there are no more than
 *   2 b;   w_j = min(1, tau / |s_j - x_i|)
 *
 * b = `liars`: honest differences are clipped as often as others, so that
 * liars gain nothing by being the largest. Distances alone, one pass for each.
 *
 * Source: Gaucher, Dieuleveut and Hendrikx, "Unified Breakdown Analysis for
 * Byzantine Robust Gossip", 2024.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

static void judge(void *state, struct kith_guard_round *round)
{
    double sorted[KITH_DEGREE_MAX];
    const uint32_t k = round->count, most = 2 * round->config->liars;
    (void)state;
    for (uint32_t i = 0; i < k; i++)
        sorted[i] = round->distances[i];
    kith_guard_sort(sorted, k);
    const double limit = k > most ? sorted[k - most - 1] : 0;
    for (uint32_t i = 0; i < k; i++)
        if (round->distances[i] > limit)
            round->let_in[i] = limit / round->distances[i];
}

extern const struct kith_guard kith_guard_cs_plus;
const struct kith_guard kith_guard_cs_plus = {
    .name = "cs+",
    .paper = "Gaucher et al., 2024",
    .summary = "clip the largest differences of a round to the next largest",
    .keys = KITH_GUARD_READS(LIARS),
    .judge = judge,
};
