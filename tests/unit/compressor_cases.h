/* What the tests of compressors share: vectors on a backend, and one way
 * through a compressor. */
#ifndef KITH_TESTS_COMPRESSOR_CASES_H
#define KITH_TESTS_COMPRESSOR_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/compressor.h"

/* A vector, its C(v) and the wire between, with guards around it. */
struct trip {
    struct kith_compression how;
    size_t bytes;
    void *v, *out;
    uint8_t *memory, *wire;
};

#define GUARD_BYTES 64u
#define GUARD 0xa7

static inline struct kith_compression
compression(const char *compressor, const char *backend, size_t dim)
{
    const struct kith_compression how = {kith_compressor_find(compressor),
                                         kith_compressor_defaults(),
                                         kith_backend_find(backend), dim, NULL};
    assert_non_null(how.compressor);
    assert_non_null(how.backend);
    return how;
}

static inline struct trip trip_open(struct kith_compression how)
{
    struct trip trip = {.how = how, .bytes = kith_compression_bytes(&how)};
    const size_t size = how.dim * how.backend->element_bytes;
    trip.v = how.backend->alloc(size, false);
    trip.out = how.backend->alloc(size, false);
    trip.memory = malloc(trip.bytes + 2 * GUARD_BYTES);
    assert_true(trip.v != NULL && trip.out != NULL && trip.memory != NULL);
    memset(trip.memory, GUARD, trip.bytes + 2 * GUARD_BYTES);
    trip.wire = trip.memory + GUARD_BYTES;
    return trip;
}

static inline void trip_close(struct trip *trip)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(trip->memory[i], GUARD);
        assert_int_equal(trip->wire[trip->bytes + i], GUARD);
    }
    trip->how.backend->release(trip->v);
    trip->how.backend->release(trip->out);
    free(trip->memory);
}

static inline void trip_write(struct trip *trip, const double *values)
{
    trip->how.backend->write(trip->how.dim, values, trip->v);
}

static inline void trip_send(struct trip *trip, uint64_t key)
{
    assert_true(kith_compress(&trip->how, trip->v, key, trip->wire));
    assert_true(kith_decompress(&trip->how, trip->wire, key, trip->out));
}

/* |v - C(v)|^2 / |v|^2 */
static inline double trip_error(const struct trip *trip)
{
    const struct kith_backend *backend = trip->how.backend;
    const size_t n = trip->how.dim;
    return backend->distance_squared(n, trip->v, trip->out) /
           backend->distance_squared(n, trip->v, NULL);
}

/* Marsaglia's polar method: values (n) of N(0, 1). */
static inline void gaussian(uint64_t seed, size_t n, double *values)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < n;) {
        const double a = 2 * kith_rng_double(&rng) - 1;
        const double b = 2 * kith_rng_double(&rng) - 1;
        const double square = a * a + b * b;
        if (square >= 1 || square == 0)
            continue;
        values[i++] = a * sqrt(-2 * log(square) / square);
    }
}

#endif
