/* Count sketches: adding values, merging, and what may come in. See
 * kith/sketch.h.
 *
 * Rows are the outer loop: the cells of one row stay in the cache while the
 * vector streams by, r times. What is to be refused is found in a pass of its
 * own before the first cell changes. */
#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "sketch_hash.h"

/* Adding this and taking it away leaves the nearest integer, ties to even. */
#define ROUNDER 0x1.8p52
_Static_assert(2 * KITH_SKETCH_MASS_MAX <= INT64_MAX,
               "the sum of two cells is an int64");

size_t kith_sketch_size(const struct kith_sketch_config *config)
{
    KITH_ASSERT(kith_sketch_config_sound(config));
    return sketch_cell_count(config) * sketch_cell_bytes(config->cells);
}

void kith_sketch_init(void *memory, const struct kith_sketch_family *family,
                      struct kith_sketch *sketch)
{
    *sketch = (struct kith_sketch){.family = family, .cells = memory};
    memset(memory, 0, kith_sketch_size(&family->config));
}

static bool is_finite(double value)
{
    return value - value == 0;
}

/* In units of a fixed-point cell; |value| is at most FIXED_VALUE_MAX of them.
 */
static int64_t fixed_of(double value, double units)
{
    return (int64_t)(value * units + ROUNDER - ROUNDER);
}

/* May these values be added? The mass, if so, is with them. */
static enum kith_err admit(const struct kith_sketch *sketch, size_t n,
                           const double *values, uint64_t *mass)
{
    const struct kith_sketch_config *config = &sketch->family->config;
    const double units = 1 / sketch_unit(config);
    const double most = (double)KITH_SKETCH_FIXED_VALUE_MAX;
    for (size_t i = 0; i < n; i++) {
        const double value = values[i];
        const bool is_narrow = config->cells == KITH_SKETCH_FLOAT32;
        if (!is_finite(is_narrow ? (double)(float)value : value))
            return KITH_ENONFINITE;
        if (config->cells != KITH_SKETCH_FIXED64)
            continue;
        if (!(fabs(value * units) <= most))
            return KITH_ELIMIT;
        *mass += (uint64_t)fixed_of(fabs(value), units);
        if (*mass > KITH_SKETCH_MASS_MAX)
            return KITH_ELIMIT;
    }
    return KITH_OK;
}

static void add_chunk(struct kith_sketch *sketch, uint32_t row, size_t n,
                      const uint32_t *places, const double *values)
{
    const struct kith_sketch_config *config = &sketch->family->config;
    const double units = 1 / sketch_unit(config);
    const size_t first = (size_t)row * config->columns;
    void *const cells =
        (char *)sketch->cells + first * sketch_cell_bytes(config->cells);
    switch (config->cells) {
    case KITH_SKETCH_FLOAT32:
        for (size_t i = 0; i < n; i++)
            ((float *)cells)[places[i] >> 1] +=
                (float)(sketch_sign(places[i]) * values[i]);
        break;
    case KITH_SKETCH_FLOAT64:
        for (size_t i = 0; i < n; i++)
            ((double *)cells)[places[i] >> 1] +=
                sketch_sign(places[i]) * values[i];
        break;
    case KITH_SKETCH_FIXED64:
        for (size_t i = 0; i < n; i++)
            ((int64_t *)cells)[places[i] >> 1] +=
                fixed_of(sketch_sign(places[i]) * values[i], units);
        break;
    }
}

/* A vector of either type. */
struct source {
    const double *wide; /* or NULL */
    const float *narrow;
};

/* The next values from `from` on; returns how many, 0 at the end. */
static size_t read_chunk(const struct source *source, size_t n, size_t from,
                         double values[SKETCH_CHUNK])
{
    const size_t left = n - from;
    const size_t count = left < SKETCH_CHUNK ? left : SKETCH_CHUNK;
    for (size_t i = 0; i < count; i++)
        values[i] = source->wide != NULL ? source->wide[from + i]
                                         : (double)source->narrow[from + i];
    return count;
}

static enum kith_err add(struct kith_sketch *sketch, uint64_t from, size_t n,
                         const struct source *source)
{
    const struct kith_sketch_family *family = sketch->family;
    uint32_t places[SKETCH_CHUNK];
    double values[SKETCH_CHUNK];
    uint64_t mass = sketch->mass;
    size_t count;
    KITH_ASSERT(from + n <= family->config.dim);
    for (size_t done = 0; done < n; done += count) {
        count = read_chunk(source, n, done, values);
        const enum kith_err err = admit(sketch, count, values, &mass);
        if (err != KITH_OK)
            return err;
    }
    sketch->mass = mass;
    for (uint32_t row = 0; row < family->config.rows; row++)
        for (size_t done = 0; done < n; done += count) {
            count = read_chunk(source, n, done, values);
            kith_sketch_places(family, row, from + done, count, places);
            add_chunk(sketch, row, count, places, values);
        }
    return KITH_OK;
}

enum kith_err kith_sketch_add(struct kith_sketch *sketch, uint64_t from,
                              size_t n, const double *values)
{
    const struct source source = {.wide = values};
    return add(sketch, from, n, &source);
}

enum kith_err kith_sketch_add_float32(struct kith_sketch *sketch, uint64_t from,
                                      size_t n, const float *values)
{
    const struct source source = {.narrow = values};
    return add(sketch, from, n, &source);
}

enum kith_err kith_sketch_add_list(struct kith_sketch *sketch,
                                   const struct kith_top_list *list)
{
    const struct kith_sketch_family *family = sketch->family;
    uint64_t mass = sketch->mass;
    for (uint32_t i = 0; i < list->count; i++) {
        KITH_ASSERT(list->entries[i].index < family->config.dim);
        const enum kith_err err =
            admit(sketch, 1, &list->entries[i].value, &mass);
        if (err != KITH_OK)
            return err;
    }
    sketch->mass = mass;
    for (uint32_t row = 0; row < family->config.rows; row++)
        for (uint32_t i = 0; i < list->count; i++) {
            const struct kith_top_entry *entry = &list->entries[i];
            const uint32_t place = kith_sketch_place(family, row, entry->index);
            add_chunk(sketch, row, 1, &place, &entry->value);
        }
    return KITH_OK;
}

enum kith_err kith_sketch_merge(struct kith_sketch *into,
                                const struct kith_sketch *from)
{
    const struct kith_sketch_config *config = &into->family->config;
    const size_t count = sketch_cell_count(config);
    if (kith_sketch_fingerprint(config) !=
        kith_sketch_fingerprint(&from->family->config))
        return KITH_EMISMATCH;
    if (from->mass > KITH_SKETCH_MASS_MAX - into->mass)
        return KITH_ELIMIT;
    into->mass += from->mass;
    switch (config->cells) {
    case KITH_SKETCH_FLOAT32:
        for (size_t i = 0; i < count; i++)
            ((float *)into->cells)[i] += ((const float *)from->cells)[i];
        break;
    case KITH_SKETCH_FLOAT64:
        for (size_t i = 0; i < count; i++)
            ((double *)into->cells)[i] += ((const double *)from->cells)[i];
        break;
    case KITH_SKETCH_FIXED64:
        for (size_t i = 0; i < count; i++)
            ((int64_t *)into->cells)[i] += ((const int64_t *)from->cells)[i];
        break;
    }
    return KITH_OK;
}

/* Do the sizes of a row add up to no more than the mass? */
static bool fits_mass(const struct kith_sketch *sketch, uint32_t row)
{
    const uint32_t columns = sketch->family->config.columns;
    const int64_t *cells =
        (const int64_t *)sketch->cells + (size_t)row * columns;
    uint64_t left = sketch->mass;
    for (uint32_t i = 0; i < columns; i++) {
        const uint64_t bits = (uint64_t)cells[i];
        const uint64_t size = cells[i] < 0 ? 0 - bits : bits;
        if (size > left)
            return false;
        left -= size;
    }
    return true;
}

bool kith_sketch_sane(const struct kith_sketch *sketch, double bound)
{
    const struct kith_sketch_config *config = &sketch->family->config;
    const bool is_fixed = config->cells == KITH_SKETCH_FIXED64;
    if (sketch->mass > (is_fixed ? KITH_SKETCH_MASS_MAX : 0))
        return false;
    for (uint32_t row = 0; is_fixed && row < config->rows; row++)
        if (!fits_mass(sketch, row))
            return false;
    for (size_t i = 0; i < sketch_cell_count(config); i++) {
        const double cell = sketch_cell(sketch, i, sketch_unit(config));
        if (!is_finite(cell) || !(fabs(cell) <= bound))
            return false;
    }
    return true;
}
