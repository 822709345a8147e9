/* Vectors of a caller whose own loop trains: their types, and how a backend
 * with memory of its own reads and writes those that lie in it.
 *
 *   take   x <- factor z        give   z <- factor x
 *
 * x (n) float32, z (n) of the caller's type, both on the device; one pass each,
 * 8 or 6 n bytes of traffic. Halves are widened exactly and rounded to the
 * nearest, ties to even: the host's bits (src/training/worker/outside.c).
 *
 * The caller computes on a stream of its own, the backend on another. enter():
 * what the backend is told from now on comes behind what that stream was told
 * so far; leave(): the other way round. Neither waits.
 * Test: unit/test_outside_device.c */
#ifndef KITH_OUTSIDE_H
#define KITH_OUTSIDE_H

#include <stddef.h>

enum kith_outside_dtype {
    KITH_OUTSIDE_FLOAT32,
    KITH_OUTSIDE_BFLOAT16,
    KITH_OUTSIDE_FLOAT16,
    KITH_OUTSIDE_COUNT
};

struct kith_outside_kernels {
    /* NULL: it lies on this backend's device; else where, and what to do. The
     * text stands until this thread calls again. */
    const char *(*misplaced)(const void *memory);
    void (*enter)(void *stream); /* a cudaStream_t; NULL: the default one */
    void (*leave)(void *stream);
    void (*take)(size_t n, enum kith_outside_dtype dtype, const void *z,
                 double factor, void *x);
    void (*give)(size_t n, enum kith_outside_dtype dtype, const void *x,
                 double factor, void *z);
};

#endif
