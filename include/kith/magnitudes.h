/* Passes over the sizes |x_i| of a vector, which need no sort and no memory:
 * what selections of the largest are made of (src/gossip/compressor/top_k.c,
 * ms_top_k.c). Kernels of a host's backend, the same results on every CPU; a
 * bound is rounded to the backend's element, so give ones that are.
 *
 * x (n) is finite and aligned to its elements.
 * Test: unit/test_ms_top_k.c, unit/test_cpu_variants.c */
#ifndef KITH_MAGNITUDES_H
#define KITH_MAGNITUDES_H

#include <stddef.h>
#include <stdint.h>

/* Bounds that one pass counts. */
#define KITH_MAGNITUDE_BOUNDS 16u

struct kith_magnitude_survey {
    double sum; /* of |x|, in 16 float64 lanes as a backend's sum */
    double most;
};

struct kith_magnitude_found {
    size_t within, beyond; /* how many are in [from, below), and above */
};

struct kith_magnitudes {
    struct kith_magnitude_survey (*survey)(size_t n, const void *x);
    /* counts_j <- how many are at least bounds_j: any order of bounds. */
    void (*count)(size_t n, const void *x,
                  const double bounds[KITH_MAGNITUDE_BOUNDS],
                  size_t counts[KITH_MAGNITUDE_BOUNDS]);
    /* out <- those in [from, below), in their order, `room` elements of it at
     * most. */
    struct kith_magnitude_found (*keep)(size_t n, const void *x, double from,
                                        double below, size_t room, void *out);
    /* places (n) <- where a size is at least `from`, ascending; returns how
     * many there are. */
    size_t (*find)(size_t n, const void *x, double from, uint32_t *places);
};

#endif
