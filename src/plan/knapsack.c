/* The multiple-choice knapsack by dynamic programming:
 *
 *   best_k(m) = min over ways l of  best_{k-1}(m - cells_kl) + seconds_kl
 *
 * with best_0 = 0 everywhere, so that best_k(m) is over all choices of at most
 * m cells. Two rows of it are kept, and of every (k, m) the way that was best,
 * from which the choice is read backwards.
 *
 * Source: Dudzinski, Walukiewicz, "Exact methods for the knapsack problem and
 * its generalizations", EJOR 1987. Test: unit/test_plan_batch.c (T2.4). */
#include <math.h>
#include <string.h>

#include "plan_range.h"

#include "kith/assert.h"
#include "kith/text.h"

enum { COLUMNS = KITH_PLAN_CELLS + 1 };

static enum kith_err check(const struct kith_plan_knapsack *problem,
                           char *error)
{
    const struct plan_range sizes[] = {
        {"layers", problem->layers, 1, KITH_PLAN_LAYERS_MAX, false},
        {"width", problem->width, 1, KITH_PLAN_WAYS_MAX, false},
        PLAN_BYTES("bound", problem->bound)};
    enum kith_err err = PLAN_CHECK(sizes, error);
    for (size_t i = 0;
         err == KITH_OK && i < (size_t)problem->layers * problem->width; i++) {
        const struct plan_range way[] = {
            {"seconds", problem->ways[i].seconds, 0, KITH_PLAN_SECONDS_MAX,
             false},
            {"bytes", problem->ways[i].bytes, 0, KITH_PLAN_BYTES_MAX, false}};
        err = PLAN_CHECK(way, error);
    }
    return err;
}

/* Bytes of a cell. */
static double cell_of(double bound)
{
    return bound > KITH_PLAN_CELLS ? bound / KITH_PLAN_CELLS : 1;
}

/* The fewest that hold it, to the last byte: fma() does not round what it
 * compares. More than all of them where it cannot fit. */
static uint32_t cells_of(double bytes, double cell)
{
    double cells = ceil(bytes / cell);
    if (fma(cells, cell, -bytes) < 0)
        cells++;
    else if (cells > 0 && fma(cells - 1, cell, -bytes) >= 0)
        cells--;
    return cells > KITH_PLAN_CELLS ? KITH_PLAN_CELLS + 1 : (uint32_t)cells;
}

/* One layer: `next` from `best`, and the way at each size. */
static void add_layer(const struct kith_plan_way *ways, uint32_t width,
                      double cell, const double *best, double *next,
                      uint8_t *taken)
{
    memset(taken, 0, COLUMNS);
    for (size_t m = 0; m < COLUMNS; m++)
        next[m] = (double)INFINITY;
    for (uint32_t way = 0; way < width; way++) {
        const uint32_t cells = cells_of(ways[way].bytes, cell);
        for (size_t m = cells; m < COLUMNS; m++) {
            const double seconds = best[m - cells] + ways[way].seconds;
            if (seconds < next[m]) {
                next[m] = seconds;
                taken[m] = (uint8_t)way;
            }
        }
    }
}

enum kith_err kith_plan_knapsack(const struct kith_plan_knapsack *problem,
                                 void *scratch, uint32_t *chosen,
                                 double *seconds, char *error)
{
    const enum kith_err err = check(problem, error);
    if (err != KITH_OK)
        return err;
    const double cell = cell_of(problem->bound);
    size_t m = (size_t)floor(problem->bound / cell);
    double *best = scratch, *next = best + COLUMNS;
    uint8_t *taken = (uint8_t *)(next + COLUMNS);
    KITH_ASSERT(m < COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        best[i] = 0;
    for (uint32_t k = 0; k < problem->layers; k++) {
        double *const last = best;
        add_layer(&problem->ways[(size_t)k * problem->width], problem->width,
                  cell, best, next, &taken[(size_t)k * COLUMNS]);
        best = next;
        next = last;
    }
    if (!isfinite(best[m]))
        return kith_text_fail(error, KITH_PLAN_ERROR_BYTES, KITH_ELIMIT,
                              "memory: no choice of algorithms fits %.4g bytes",
                              problem->bound);
    *seconds = best[m];
    for (uint32_t k = problem->layers; k-- > 0;) {
        chosen[k] = taken[(size_t)k * COLUMNS + m];
        m -= cells_of(
            problem->ways[(size_t)k * problem->width + chosen[k]].bytes, cell);
    }
    return KITH_OK;
}
