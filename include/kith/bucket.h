/* Buckets: a gradient in equal pieces that are complete one after another.
 *
 *   weights of layers | vectors and buffers      the flat vector (kith/model.h)
 *   <- 1 <- 0           <- n - 1 ...             buckets, ceil(dim / n) each
 *
 * On the way back the last layer's gradient is complete first, so the first
 * bucket ends where the weights do, and each ends where the one before begins.
 * What is left of the weights, those of the input's layers, is in one bucket
 * with biases and running means: it is complete last, and needed first.
 *
 * Source: Das et al., 2016 (layer by layer); Li et al., "PyTorch distributed",
 * VLDB 2020 (buckets). Test: unit/test_buckets.c */
#ifndef KITH_BUCKET_H
#define KITH_BUCKET_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

KITH_BEGIN_DECLS

#define KITH_BUCKETS_MAX 64u

struct kith_range {
    size_t at, count;
};
/* Ranges of the flat vector, one behind the other in a message: the second one
 * is empty but where the bucket goes on behind the vector's end. */
struct kith_bucket {
    struct kith_range ranges[2];
};

/* Buckets that there are where `asked` for so many, of dim values: at most as
 * many, none of them empty, at least 1. */
uint32_t kith_bucket_count(size_t dim, double asked);
/* Values of each but the last. */
size_t kith_bucket_size(size_t dim, uint32_t buckets);
/* The one that is sent in place `place`: as they are complete, but for those of
 * the first layers. These are complete when the step is, and of the `urgent`
 * last the first layers' goes before all others: the next step needs it first.
 */
static inline uint32_t kith_bucket_at(uint32_t buckets, double urgent,
                                      uint32_t place)
{
    const uint32_t asked = urgent > 1 ? (uint32_t)urgent : 1;
    const uint32_t last = asked < buckets ? asked : buckets;
    return place < buckets - last ? place : 2 * buckets - last - 1 - place;
}
/* Values [from, from + count) of bucket `index`, in the order of its message;
 * cut off where it ends.
 *
 *   weights  where those of layers end, at most dim */
struct kith_bucket kith_bucket_of(size_t dim, size_t weights, uint32_t buckets,
                                  uint32_t index, size_t from, size_t count);

KITH_END_DECLS

#endif
