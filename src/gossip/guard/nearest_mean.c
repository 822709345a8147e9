/* Guard nnm: every model of a round is mixed with its nearest ones, and of that
 * the trimmed mean is taken.
 *
 *   m_i = mean of the n - b models nearest to s_i, itself included
 *   y = mean of the middle n - 2 b of m in each coordinate
 *   x_i <- x_i + sum_j W_ij (y - x_i)
 *
 * b = `liars`, or as many as n bear. Distances of all pairs, and n - b times
 * the sums of a trimmed mean.
 *
 * Source: Allouah et al., "Fixing by Mixing", AISTATS 2023.
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

#include <string.h>

struct mixing {
    uint32_t cut;
    uint32_t nearest[GUARD_MODELS][GUARD_MODELS]; /* (n, n - cut) ascending */
    uint32_t first[GUARD_MODELS]; /* the first with the same nearest ones */
    double squared[GUARD_MODELS * GUARD_MODELS];
};

static size_t bytes(size_t coordinates)
{
    (void)coordinates;
    return sizeof(struct mixing);
}

/* Of equals the first. */
static void order(struct mixing *mixing, uint32_t n, uint32_t of)
{
    const double *const squared = &mixing->squared[of * n];
    uint32_t *const nearest = mixing->nearest[of];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && squared[nearest[at - 1]] > squared[i]; at--)
            nearest[at] = nearest[at - 1];
        nearest[at] = i;
    }
}

/* Honest models have the same nearest ones where liars are far: then one mean
 * is made for all of them. */
static void gather(struct mixing *mixing, uint32_t n)
{
    const uint32_t count = n - mixing->cut;
    for (uint32_t i = 0; i < n; i++) {
        bool is_near[GUARD_MODELS] = {false};
        uint32_t *const nearest = mixing->nearest[i];
        order(mixing, n, i);
        for (uint32_t j = 0; j < count; j++)
            is_near[nearest[j]] = true;
        for (uint32_t j = 0, at = 0; j < n; j++)
            if (is_near[j])
                nearest[at++] = j;
        uint32_t first = 0;
        while (memcmp(mixing->nearest[first], nearest,
                      count * sizeof *nearest) != 0)
            first++;
        mixing->first[i] = first;
    }
}

/* (GUARD_CHUNK) the sum of `count` models, a few coordinates at a time. */
static void add_up(kith_guard_values *values, const uint32_t *of,
                   uint32_t count, double *sums)
{
    enum { FEW = 8 };
    for (unsigned at = 0; at < GUARD_CHUNK; at += FEW) {
        double few[FEW] = {0};
        for (uint32_t j = 0; j < count; j++)
            for (unsigned k = 0; k < FEW; k++)
                few[k] += values[of[j]][at + k];
        memcpy(sums + at, few, sizeof few);
    }
}

static void rule(void *state, kith_guard_values *values, uint32_t n,
                 double *found)
{
    const struct mixing *mixing = state;
    const uint32_t count = n - mixing->cut;
    kith_guard_values means[GUARD_MODELS];
    for (uint32_t j = 0; j < n; j++)
        for (unsigned k = 0; k < GUARD_CHUNK; k++)
            values[j][k] /= count;
    for (uint32_t i = 0; i < n; i++)
        if (mixing->first[i] < i)
            memcpy(means[i], means[mixing->first[i]], sizeof means[i]);
        else
            add_up(values, mixing->nearest[i], count, means[i]);
    kith_guard_trimmed(means, n, mixing->cut, found);
}

static void judge(void *state, struct kith_guard_round *round)
{
    struct mixing *mixing = state;
    mixing->cut = kith_guard_liars(round);
    kith_guard_distances(round, mixing->squared);
    gather(mixing, round->count + 1);
    kith_guard_replace(round, rule, mixing);
}

extern const struct kith_guard kith_guard_nearest_mean;
const struct kith_guard kith_guard_nearest_mean = {
    .name = "nnm",
    .paper = "Allouah et al., AISTATS 2023",
    .summary = "the trimmed mean of models that are mixed with their nearest",
    .keys = KITH_GUARD_READS(LIARS),
    .bytes = bytes,
    .judge = judge,
    .replaces = true,
};
