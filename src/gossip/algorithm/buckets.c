/* Where each bucket of a gradient stands: see kith/bucket.h. */
#include "kith/bucket.h"

#include "kith/assert.h"

uint32_t kith_bucket_count(size_t dim, double asked)
{
    KITH_ASSERT(asked <= KITH_BUCKETS_MAX);
    if (asked < 2 || dim == 0)
        return 1;
    const size_t size = kith_bucket_size(dim, (uint32_t)asked);
    return (uint32_t)((dim + size - 1) / size);
}

size_t kith_bucket_size(size_t dim, uint32_t buckets)
{
    KITH_ASSERT(buckets > 0);
    return (dim + buckets - 1) / buckets;
}

struct kith_bucket kith_bucket_of(size_t dim, size_t weights, uint32_t buckets,
                                  uint32_t index, size_t from, size_t count)
{
    const size_t size = kith_bucket_size(dim, buckets);
    const size_t before = index * size;
    KITH_ASSERT(index < buckets && before < dim && weights <= dim);
    const size_t whole = dim - before < size ? dim - before : size;
    from = from < whole ? from : whole;
    count = count < whole - from ? count : whole - from;
    /* It ends `before` values before the weights do, modulo dim. */
    const size_t at = (weights + dim - before - whole + from) % dim;
    const size_t first = count < dim - at ? count : dim - at;
    return (struct kith_bucket){{{at, first}, {0, count - first}}};
}
