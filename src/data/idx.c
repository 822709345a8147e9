/* The IDX header: 0, 0, type, rank, then rank sizes of 32 bits, big-endian.
 * LeCun et al., "The MNIST database", http://yann.lecun.com/exdb/mnist. */
#include "kith/data.h"

#include <string.h>

enum { TYPE_UINT8 = 0x08, PREFIX_BYTES = 4, SIZE_BYTES = 4 };

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

enum kith_err kith_idx_parse(const uint8_t *bytes, size_t size,
                             struct kith_idx *idx)
{
    memset(idx, 0, sizeof *idx);
    if (size < PREFIX_BYTES)
        return KITH_EAGAIN;
    if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != TYPE_UINT8)
        return KITH_EPARSE;
    const uint32_t rank = bytes[3];
    if (rank == 0)
        return KITH_EPARSE;
    if (rank > KITH_IDX_RANK_MAX)
        return KITH_ELIMIT;
    const size_t offset = PREFIX_BYTES + rank * SIZE_BYTES;
    if (size < offset)
        return KITH_EAGAIN;
    uint64_t total = 1;
    uint32_t sizes[KITH_IDX_RANK_MAX] = {0};
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = big_endian(bytes + PREFIX_BYTES + i * SIZE_BYTES);
        if (sizes[i] == 0)
            return KITH_EPARSE;
        /* Below 2^31 * 2^32, so no overflow. */
        total *= sizes[i];
        if (total > KITH_IDX_BYTES_MAX)
            return KITH_ELIMIT;
    }
    idx->rank = rank;
    memcpy(idx->sizes, sizes, sizeof sizes);
    idx->offset = offset;
    idx->bytes = (size_t)total;
    if (size - offset < idx->bytes)
        return KITH_EAGAIN;
    return size - offset == idx->bytes ? KITH_OK : KITH_EPARSE;
}
