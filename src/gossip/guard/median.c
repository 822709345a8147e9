/* Guard median: of each coordinate of a round, own value included.
 *
 *   y = coordinate-wise median;   x_i <- x_i + sum_j W_ij (y - x_i)
 *
 * Of an even number the mean of the two in the middle.
 *
 * Source: Yin et al., "Byzantine-Robust Distributed Learning", ICML 2018; in
 * networks: Fang, Yang and Bajwa, "BRIDGE", 2022.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

static void rule(void *state, kith_guard_values *values, uint32_t n,
                 double *found)
{
    (void)state;
    kith_guard_trimmed(values, n, (n - 1) / 2, found);
}

static void judge(void *state, struct kith_guard_round *round)
{
    kith_guard_replace(round, rule, state);
}

extern const struct kith_guard kith_guard_median;
const struct kith_guard kith_guard_median = {
    .name = "median",
    .paper = "Yin et al., ICML 2018",
    .summary = "the median of each coordinate",
    .judge = judge,
    .replaces = true,
};
