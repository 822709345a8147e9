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
 * needs distances of pairs alone: no pass over the models in an iteration. It
 * starts about the model that is nearest to the others, and what bounds a
 * weight is the median distance: from the mean, or bounded by it, two models of
 * 3e38 are not left behind. Whose distance is a million times the median is
 * left out: beside its square nothing of others' is left in a double.
 *
 * Source: Pillutla, Kakade and Harchaoui, "Robust Aggregation for Federated
 * Learning", 2022 (smoothed Weiszfeld).
 * Test: unit/test_guard_rounds.c. */
#include "rounds.h"

#include <math.h>

#include "kith/assert.h"

enum { ITERATIONS = 32 };
#define FURTHEST 1e6
#define SMOOTH 1e-6 /* of the median distance: no weight is infinite */

struct point {
    double weights[GUARD_MODELS];
    double squared[GUARD_MODELS * GUARD_MODELS];
};

static size_t bytes(size_t coordinates)
{
    (void)coordinates;
    return sizeof(struct point);
}

/* The model whose distances to the others are least together. */
static uint32_t medoid(const struct point *point, uint32_t n)
{
    double least = (double)INFINITY;
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < n; j++)
            sum += sqrt(point->squared[i * n + j]);
        if (sum < least) {
            least = sum;
            found = i;
        }
    }
    return found;
}

/* a_i ~ 1 / from_i, which are not below a share of their median. 0 stays. */
static void weigh(struct point *point, uint32_t n, const double *from,
                  double share)
{
    double sorted[GUARD_MODELS], total = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        if (point->weights[i] > 0)
            sorted[count++] = from[i];
    kith_guard_sort(sorted, count);
    KITH_ASSERT(count > 0);
    const double least = fmax(share * sorted[(count - 1) / 2], 1e-150);
    for (uint32_t i = 0; i < n; i++) {
        if (point->weights[i] > 0)
            point->weights[i] = 1 / fmax(from[i], least);
        total += point->weights[i];
    }
    for (uint32_t i = 0; i < n; i++)
        point->weights[i] /= total;
}

/* About the medoid, without those that are too far from it. */
static void start(struct point *point, uint32_t n)
{
    const double *const squared = &point->squared[medoid(point, n) * n];
    double from[GUARD_MODELS], sorted[GUARD_MODELS];
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = from[i] = sqrt(squared[i]);
    kith_guard_sort(sorted, n);
    for (uint32_t i = 0; i < n; i++)
        point->weights[i] = from[i] <= FURTHEST * sorted[(n - 1) / 2] ? 1 : 0;
    weigh(point, n, from, 1);
}

static void iterate(struct point *point, uint32_t n)
{
    double from[GUARD_MODELS], within = 0;
    for (uint32_t i = 0; i < n; i++) {
        from[i] = 0;
        for (uint32_t j = 0; j < n; j++)
            from[i] += point->weights[j] * point->squared[i * n + j];
        within += point->weights[i] * from[i] / 2;
    }
    for (uint32_t i = 0; i < n; i++)
        from[i] = sqrt(fmax(0, from[i] - within));
    weigh(point, n, from, SMOOTH);
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
    start(point, n);
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
