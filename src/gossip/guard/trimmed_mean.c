/* Guard trimmed-mean: of each coordinate of a round the b largest and b least
 * values are left out.
 *
 *   y = mean of the middle n - 2 b of {x_i, s_1, ... s_k};   x_i moves to y as
 *   to its neighbours:   x_i <- x_i + sum_j W_ij (y - x_i)
 *
 * b = `liars`, or as many as n bear. Needs 2 b + 1 neighbours to say much, and
 * all models of a round.
 *
 * Source: Yin et al., "Byzantine-Robust Distributed Learning", ICML 2018; in
 * networks: Fang, Yang and Bajwa, "BRIDGE", 2022.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

static void rule(void *state, kith_guard_values *values, uint32_t n,
                 double *found)
{
    kith_guard_trimmed(values, n, *(const uint32_t *)state, found);
}

static void judge(void *state, struct kith_guard_round *round)
{
    uint32_t cut = kith_guard_liars(round);
    (void)state;
    kith_guard_replace(round, rule, &cut);
}

extern const struct kith_guard kith_guard_trimmed_mean;
const struct kith_guard kith_guard_trimmed_mean = {
    .name = "trimmed-mean",
    .paper = "Yin et al., ICML 2018",
    .summary = "the mean of each coordinate without its largest and least",
    .keys = KITH_GUARD_READS(LIARS),
    .judge = judge,
    .replaces = true,
};
