/* A few threads that stand ready for the loops of one backend call.
 *
 * Work is cut into parts whose number does not depend on the number of threads;
 * whoever is free takes the next one. With one thread, or from within a part,
 * or while another thread of the process has the pool, the caller does every
 * part itself: the result is the same.
 * Test: unit/test_pool.c. */
#ifndef KITH_TRAINING_BACKEND_POOL_H
#define KITH_TRAINING_BACKEND_POOL_H

#include <stddef.h>

#include "kith/backend.h"

/* Threads a loop may use, the caller's included; 1 at first, and then none is
 * ever started. Bounded by KITH_POOL_THREADS_MAX. */
void kith_pool_set(unsigned threads);
unsigned kith_pool_threads(void);

/* Calls part(context, i) once for each i < count, in no order; returns when all
 * are done. */
void kith_pool_run(size_t count, void (*part)(void *context, size_t i),
                   void *context);

/* Parts of at most `part` of n. */
static inline size_t kith_part_count(size_t n, size_t part)
{
    return (n + part - 1) / part;
}

static inline size_t kith_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
