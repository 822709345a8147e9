/* Guard krum: of a round the one model that is nearest to most others.
 *
 *   score(i) = sum of the n - b - 2 least |s_i - s_j|^2, at least one;
 *   y = the model of the least score;   x_i <- x_i + sum_j W_ij (y - x_i)
 *
 * over received models and our own, n of them; b = `liars`. Distances of all
 * pairs: k (k + 1) / 2 passes over k received models.
 *
 * Source: Blanchard et al., "Machine Learning with Adversaries", NIPS 2017.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

#include <string.h>

#include "kith/assert.h"

static size_t bytes(size_t coordinates)
{
    (void)coordinates;
    return GUARD_MODELS * GUARD_MODELS * sizeof(double);
}

static double score(const double *squared, uint32_t n, uint32_t of,
                    uint32_t nearest)
{
    double others[GUARD_MODELS], sum = 0;
    uint32_t count = 0;
    for (uint32_t j = 0; j < n; j++)
        if (j != of)
            others[count++] = squared[of * n + j];
    kith_guard_sort(others, count);
    for (uint32_t j = 0; j < nearest; j++)
        sum += others[j];
    return sum;
}

static void chosen(void *state, kith_guard_values *values, uint32_t n,
                   double *found)
{
    const uint32_t best = *(const uint32_t *)state;
    KITH_ASSERT(best < n);
    memcpy(found, values[best], sizeof values[best]);
}

static void judge(void *state, struct kith_guard_round *round)
{
    double *const squared = state;
    const uint32_t n = round->count + 1, liars = kith_guard_liars(round);
    const uint32_t nearest = n > liars + 3 ? n - liars - 2 : 1;
    uint32_t best = round->count;
    kith_guard_distances(round, squared);
    double least = score(squared, n, best, nearest);
    for (uint32_t i = 0; i < round->count; i++) {
        const double found = score(squared, n, i, nearest);
        if (found < least) {
            least = found;
            best = i;
        }
    }
    kith_guard_replace(round, chosen, &best);
}

extern const struct kith_guard kith_guard_krum;
const struct kith_guard kith_guard_krum = {
    .name = "krum",
    .paper = "Blanchard et al., NIPS 2017",
    .summary = "the one model of a round that is nearest to most others",
    .keys = KITH_GUARD_READS(LIARS),
    .bytes = bytes,
    .judge = judge,
    .replaces = true,
};
