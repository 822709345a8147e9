/* What the tests of count sketches share: a family with its memory, sketches,
 * and vectors whose sizes fall as a power of their rank. */
#ifndef KITH_TESTS_SKETCH_CASES_H
#define KITH_TESTS_SKETCH_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/rng.h"
#include "kith/sketch.h"

static inline struct kith_sketch_config
sketch_config(uint64_t dim, uint32_t columns, enum kith_sketch_cells cells)
{
    return (struct kith_sketch_config){
        .seed = 42,
        .dim = dim,
        .rows = 5,
        .columns = columns,
        .blocks = 1,
        .cells = cells,
        .fraction = cells == KITH_SKETCH_FIXED64 ? 30 : 0};
}

/* Its memory begins where its turns do. */
static inline struct kith_sketch_family
family_open(const struct kith_sketch_config *config, bool is_cached)
{
    struct kith_sketch_family family;
    void *memory = malloc(kith_sketch_family_size(config, is_cached));
    assert_non_null(memory);
    assert_int_equal(
        kith_sketch_family_init(memory, config, is_cached, &family), KITH_OK);
    return family;
}

static inline void family_close(struct kith_sketch_family *family)
{
    free(family->turns);
}

static inline struct kith_sketch
sketch_open(const struct kith_sketch_family *family)
{
    struct kith_sketch sketch;
    void *memory = malloc(kith_sketch_size(&family->config));
    assert_non_null(memory);
    kith_sketch_init(memory, family, &sketch);
    return sketch;
}

static inline void sketch_close(struct kith_sketch *sketch)
{
    free(sketch->cells);
}

/* |v| = rank^-exponent at random places with random signs. */
static inline void power_law(uint64_t seed, double exponent, size_t n,
                             double *values)
{
    struct kith_rng rng;
    uint32_t *order = malloc(n * sizeof order[0]);
    assert_non_null(order);
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    kith_rng_shuffle(&rng, order, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        values[order[i]] =
            (kith_rng_u32(&rng) & 1 ? 1 : -1) * pow((double)(i + 1), -exponent);
    free(order);
}

/* Marsaglia's polar method: values (n) of N(0, 1). */
static inline void normal(uint64_t seed, size_t n, double *values)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 1);
    for (size_t i = 0; i < n;) {
        const double a = 2 * kith_rng_double(&rng) - 1;
        const double b = 2 * kith_rng_double(&rng) - 1;
        const double square = a * a + b * b;
        if (square >= 1 || square == 0)
            continue;
        values[i++] = a * sqrt(-2 * log(square) / square);
    }
}

/* What a test expects, and what it measured. */
static inline void said(const char *what, const char *expected, double measured)
{
    print_message("  %-52s expected %s, measured %.4g\n", what, expected,
                  measured);
}

#endif
