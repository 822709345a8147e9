/* What a count sketch says of a vector: estimates, the norm, the largest
 * coordinates, and whether a sketch belongs to a vector. See kith/sketch.h.
 *
 * Medians of SKETCH_CHUNK coordinates are taken side by side: r passes of
 * compare and exchange between neighbouring rows sort each column (odd-even
 * transposition), without a branch. */
#include <math.h>

#include "kith/assert.h"
#include "sketch_hash.h"

/* What each row says of coordinates [from, from + n). */
static void row_estimates(const struct kith_sketch *sketch, uint64_t from,
                          size_t n, double of[][SKETCH_CHUNK])
{
    const struct kith_sketch_config *config = &sketch->family->config;
    const double unit = sketch_unit(config);
    uint32_t places[SKETCH_CHUNK];
    for (uint32_t row = 0; row < config->rows; row++) {
        const size_t first = (size_t)row * config->columns;
        kith_sketch_places(sketch->family, row, from, n, places);
        for (size_t i = 0; i < n; i++)
            of[row][i] = sketch_sign(places[i]) *
                         sketch_cell(sketch, first + (places[i] >> 1), unit);
    }
}

/* The lesser of each pair to `low`: a minimum and a maximum, which processors
 * have, where one comparison for both would become a branch. */
static void exchange(double *restrict low, double *restrict high)
{
    for (size_t i = 0; i < SKETCH_CHUNK; i++) {
        const double a = low[i], b = high[i];
        low[i] = a < b ? a : b;
        high[i] = a > b ? a : b;
    }
}

/* Sorts the columns of rows; a median is in the middle one then. */
static void sort_columns(uint32_t rows, double of[][SKETCH_CHUNK])
{
    for (uint32_t pass = 0; pass < rows; pass++)
        for (uint32_t row = pass % 2; row + 1 < rows; row += 2)
            exchange(of[row], of[row + 1]);
}

void kith_sketch_estimate(const struct kith_sketch *sketch, uint64_t from,
                          size_t n, double *estimates)
{
    const uint32_t rows = sketch->family->config.rows;
    double of[KITH_SKETCH_ROWS_MAX][SKETCH_CHUNK] = {{0}};
    KITH_ASSERT(from + n <= sketch->family->config.dim);
    for (size_t done = 0; done < n; done += SKETCH_CHUNK) {
        const size_t left = n - done;
        const size_t count = left < SKETCH_CHUNK ? left : SKETCH_CHUNK;
        row_estimates(sketch, from + done, count, of);
        sort_columns(rows, of);
        for (size_t i = 0; i < count; i++)
            estimates[done + i] = of[rows / 2][i];
    }
}

/* values (count + 1) stay sorted. */
static void insert(double *values, uint32_t count, double value)
{
    for (; count > 0 && values[count - 1] > value; count--)
        values[count] = values[count - 1];
    values[count] = value;
}

double kith_sketch_query(const struct kith_sketch *sketch, uint64_t index)
{
    const uint32_t rows = sketch->family->config.rows;
    double of[KITH_SKETCH_ROWS_MAX][SKETCH_CHUNK];
    double sorted[KITH_SKETCH_ROWS_MAX];
    KITH_ASSERT(index < sketch->family->config.dim);
    row_estimates(sketch, index, 1, of);
    for (uint32_t row = 0; row < rows; row++)
        insert(sorted, row, of[row][0]);
    return sorted[rows / 2];
}

/* norm^2: its root is not exact. */
static double median_energy(const struct kith_sketch *sketch)
{
    const struct kith_sketch_config *config = &sketch->family->config;
    const double unit = sketch_unit(config);
    double energy[KITH_SKETCH_ROWS_MAX];
    for (uint32_t row = 0; row < config->rows; row++) {
        double sum = 0;
        for (uint32_t i = 0; i < config->columns; i++) {
            const double cell =
                sketch_cell(sketch, (size_t)row * config->columns + i, unit);
            sum += cell * cell;
        }
        insert(energy, row, sum);
    }
    return energy[config->rows / 2];
}

double kith_sketch_norm(const struct kith_sketch *sketch)
{
    return sqrt(median_energy(sketch));
}

/* The largest of all, as a heap. */
static void offer_all(const struct kith_sketch *sketch,
                      struct kith_top_list *list)
{
    enum { TOGETHER = 8 * SKETCH_CHUNK };
    const uint64_t dim = sketch->family->config.dim;
    double estimates[TOGETHER];
    list->count = 0;
    for (uint64_t from = 0; from < dim; from += TOGETHER) {
        const uint64_t left = dim - from;
        const size_t n = left < TOGETHER ? (size_t)left : TOGETHER;
        kith_sketch_estimate(sketch, from, n, estimates);
        for (size_t i = 0; i < n; i++)
            kith_top_list_offer(list, (uint32_t)(from + i), estimates[i]);
    }
}

void kith_sketch_largest(const struct kith_sketch *sketch,
                         struct kith_top_list *list)
{
    offer_all(sketch, list);
    kith_top_list_finish(list);
}

void kith_sketch_heavy(const struct kith_sketch *sketch, uint32_t k,
                       struct kith_top_list *list)
{
    const double heavy = median_energy(sketch) / k;
    KITH_ASSERT(k >= 1 && k <= list->room);
    offer_all(sketch, list);
    while (list->count > k) {
        const double least = kith_top_list_least(list)->value;
        if (least * least >= heavy)
            break;
        kith_top_list_shorten(list);
    }
    kith_top_list_finish(list);
}

size_t kith_sketch_misses(const struct kith_sketch *sketch, size_t count,
                          const uint32_t *indices, const double *exact,
                          double tolerance)
{
    const uint32_t rows = sketch->family->config.rows;
    double of[KITH_SKETCH_ROWS_MAX][SKETCH_CHUNK];
    size_t misses = 0;
    for (size_t i = 0; i < count; i++) {
        KITH_ASSERT(indices[i] < sketch->family->config.dim);
        row_estimates(sketch, indices[i], 1, of);
        for (uint32_t row = 0; row < rows; row++)
            misses += !(fabs(of[row][0] - exact[i]) <= tolerance);
    }
    return misses;
}
