/* Guard geometric-median: the point whose distances to all models of a round
 * are least together.
 *
 *   y = argmin_z sum_i |z - s_i|;   x_i <- x_i + sum_j W_ij (y - x_i)
 *
 * by Weiszfeld's iteration, y = sum_i a_i s_i with a_i ~ 1 / |y - s_i|, own
 * model included. y is a mean with weights a, so that
 *
 *   |y - s_k|^2 = sum_j a_j D_kj - sum_ij a_i a_j D_ij / 2
 *
 * needs distances of pairs alone: no pass over the models in an iteration.
 *
 * Source: Pillutla, Kakade and Harchaoui, "Robust Aggregation for Federated
 * Learning", 2022 (smoothed Weiszfeld).
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

#include <math.h>

enum { ITERATIONS = 32 };
#define SMOOTH 1e-6 /* of the mean distance: no weight is infinite */

struct point {
    double weights[GUARD_MODELS];
    double squared[GUARD_MODELS * GUARD_MODELS];
};

static size_t bytes(size_t coordinates)
{
    (void)coordinates;
    return sizeof(struct point);
}

static void iterate(struct point *point, uint32_t n)
{
    double from[GUARD_MODELS], within = 0, mean = 0, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        from[i] = 0;
        for (uint32_t j = 0; j < n; j++)
            from[i] += point->weights[j] * point->squared[i * n + j];
        within += point->weights[i] * from[i] / 2;
    }
    for (uint32_t i = 0; i < n; i++) {
        from[i] = sqrt(fmax(0, from[i] - within));
        mean += from[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        point->weights[i] = 1 / fmax(from[i], fmax(SMOOTH * mean, 1e-150));
        total += point->weights[i];
    }
    for (uint32_t i = 0; i < n; i++)
        point->weights[i] /= total;
}

static void rule(void *state, kith_guard_values *values, uint32_t n,
                 double *found)
{
    const struct point *point = state;
    for (unsigned k = 0; k < GUARD_CHUNK; k++)
        found[k] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (unsigned k = 0; k < GUARD_CHUNK; k++)
            found[k] += point->weights[i] * values[i][k];
}

static void judge(void *state, struct kith_guard_round *round)
{
    struct point *point = state;
    const uint32_t n = round->count + 1;
    kith_guard_distances(round, point->squared);
    for (uint32_t i = 0; i < n; i++)
        point->weights[i] = 1.0 / n;
    for (unsigned i = 0; i < ITERATIONS; i++)
        iterate(point, n);
    kith_guard_replace(round, rule, point);
}

extern const struct kith_guard kith_guard_geometric_median;
const struct kith_guard kith_guard_geometric_median = {
    .name = "geometric-median",
    .paper = "Pillutla et al., 2022",
    .summary = "the point that is nearest to all models of a round together",
    .bytes = bytes,
    .judge = judge,
    .replaces = true,
};
