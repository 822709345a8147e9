/* Where coordinates go: polynomials modulo p = 2^61 - 1.
 *
 *   h(x) = floor(((a1 x + a0) mod p) c / 2^61)
 *   s(x) = -1 where (((b3 x + b2) x + b1) x + b0) mod p is odd
 *
 * A product of 61 by 32 bits is one of 128, or two of 64 where a compiler has
 * none. The halves could stand side by side in vectors, but with those that
 * every machine has they are slower (4.9 ns a place in place of 3.7, with AVX2
 * as fast, with AVX-512 2.7), and who hashes often keeps the places.
 * Carter and Wegman, "Universal Classes of Hash Functions", JCSS 1979. */
#ifndef KITH_GOSSIP_SKETCH_SKETCH_HASH_H
#define KITH_GOSSIP_SKETCH_SKETCH_HASH_H

#include "kith/sketch.h"

#define SKETCH_PRIME ((UINT64_C(1) << 61) - 1)
/* Coordinates looked at together. */
#define SKETCH_CHUNK 64u

/* A number congruent to state x + term, below 2^61 + 2^33; so is state. */
static inline uint64_t sketch_step_by_halves(uint64_t state, uint32_t x,
                                             uint64_t term)
{
    const uint64_t low = (uint64_t)(uint32_t)state * x;
    const uint64_t high = (state >> 32) * x; /* times 2^32; below 2^62 */
    const uint64_t sum = (low & SKETCH_PRIME) + (low >> 61) + (high >> 29) +
                         ((high & 0x1fffffff) << 32) + term;
    return (sum & SKETCH_PRIME) + (sum >> 61);
}

static inline uint64_t sketch_step(uint64_t state, uint32_t x, uint64_t term)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const wide sum = (wide)state * x + term;
    return ((uint64_t)sum & SKETCH_PRIME) + (uint64_t)(sum >> 61);
#else
    return sketch_step_by_halves(state, x, term);
#endif
}

static inline uint64_t sketch_residue(uint64_t state)
{
    return state >= SKETCH_PRIME ? state - SKETCH_PRIME : state;
}

/* The place of x in a row, without its block's turn. */
static inline uint32_t sketch_hash(const uint64_t bucket[2],
                                   const uint64_t sign[4], uint32_t columns,
                                   uint32_t x)
{
    const uint64_t h = sketch_residue(sketch_step(bucket[1], x, bucket[0]));
    uint64_t s = sketch_step(sign[3], x, sign[2]);
    s = sketch_step(s, x, sign[1]);
    s = sketch_residue(sketch_step(s, x, sign[0]));
    const uint64_t below = (uint64_t)(uint32_t)h * columns >> 32;
    const uint64_t column = ((h >> 32) * columns + below) >> 29;
    return (uint32_t)(column << 1 | (s & 1));
}

/* places (n) <- those of coordinates [from, from + n) in a row,
 * n <= SKETCH_CHUNK. */
void kith_sketch_places(const struct kith_sketch_family *family, uint32_t row,
                        uint64_t from, size_t n, uint32_t *places);
/* The same of coordinates in any order. */
uint32_t kith_sketch_place(const struct kith_sketch_family *family,
                           uint32_t row, uint64_t index);

/* What a value is multiplied by. */
static inline double sketch_sign(uint32_t place)
{
    static const double signs[2] = {1, -1};
    return signs[place & 1];
}

/* One unit of a cell. */
static inline double sketch_unit(const struct kith_sketch_config *config)
{
    return 1 / (double)(UINT64_C(1) << config->fraction);
}

static inline size_t sketch_cell_bytes(enum kith_sketch_cells cells)
{
    return cells == KITH_SKETCH_FLOAT32 ? sizeof(float) : sizeof(double);
}

static inline size_t sketch_cell_count(const struct kith_sketch_config *config)
{
    return (size_t)config->rows * config->columns;
}

/* A cell, as a number; `unit` is the configuration's. */
static inline double sketch_cell(const struct kith_sketch *sketch, size_t at,
                                 double unit)
{
    switch (sketch->family->config.cells) {
    case KITH_SKETCH_FLOAT32:
        return (double)((const float *)sketch->cells)[at];
    case KITH_SKETCH_FLOAT64:
        return ((const double *)sketch->cells)[at];
    case KITH_SKETCH_FIXED64:
        break;
    }
    return (double)((const int64_t *)sketch->cells)[at] * unit;
}

#endif
