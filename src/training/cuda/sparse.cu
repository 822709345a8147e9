/* The message of values that are kept (src/gossip/compressor/sparse.h), for any
 * choice of them.
 *
 *   ranks     sizes that are sure, and those of the window, before each run
 *   message   values and indices by rank; then the bytes of both parts of the
 *             indices, each by a thread that looks up what falls into it
 *
 * Runs belong to one block each and to a warp; all counts are whole numbers, so
 * no order of adding shows. */
#include "sparse.cuh"

namespace gpu
{
/* ---- ranks */

/* Sizes that are sure in the upper half, those of the window in the lower. */
struct count_chosen {
    sparse_blocks blocks;
    const float *v;
    const choice *choices;
    uint64_t *counts; /* (runs) */
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        const choice of = choices[b];
        uint32_t sure = 0, window = 0;
        for (size_t i = from + lane; i < from + RUN && i < n; i += LANES) {
            const uint32_t size = size_at(x, i);
            sure += size >= of.sure;
            window += size >= of.from && size < of.sure;
        }
        sure = warp_fold(sure, sum_of());
        window = warp_fold(window, sum_of());
        if (lane == 0)
            counts[r] = (uint64_t)sure << 32 | window;
    }
};

static __device__ inline uint32_t above(uint64_t a, uint64_t b)
{
    return a > b ? (uint32_t)(a - b) : 0;
}

/* How many of the first `seen` of the window are kept: from the first-th on,
 * and what of them goes round. */
static __device__ inline uint32_t kept_before(const choice &of, uint32_t seen)
{
    const uint32_t behind = above(seen, of.first);
    const uint32_t round = above((uint64_t)of.first + of.count, of.of);
    return (behind < of.count ? behind : of.count) +
           (seen < round ? seen : round);
}

/* ---- message */

struct write_chosen {
    sparse_blocks blocks;
    const float *v;
    const choice *choices;
    const uint64_t *counts; /* (runs) before each */
    uint32_t *indices;      /* by rank, block after block */
    uint8_t *wire;
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        const choice of = choices[b];
        const uint64_t seen = counts[r] - counts[b * blocks.runs];
        uint32_t sure = (uint32_t)(seen >> 32), window = (uint32_t)seen;
        for (size_t k = from; k < from + RUN && k < n; k += LANES) {
            const size_t i = k + lane;
            const uint32_t size = i < n ? size_at(x, i) : 0;
            const bool is_sure = i < n && size >= of.sure;
            const bool is_in = i < n && size >= of.from && size < of.sure;
            const unsigned higher = __ballot_sync(0xffffffffu, is_sure);
            const unsigned inside = __ballot_sync(0xffffffffu, is_in);
            const uint32_t place = window + before(inside, lane);
            const uint32_t kept = kept_before(of, place);
            if (is_sure || (is_in && kept_before(of, place + 1) > kept)) {
                const uint32_t rank = sure + before(higher, lane) + kept;
                indices[blocks.first_rank(b) + rank] = (uint32_t)i;
                put_number(x[i],
                           wire + b * blocks.cut.bytes + (size_t)rank * NUMBER);
            }
            sure += (uint32_t)__popc(higher);
            window += (uint32_t)__popc(inside);
        }
    }
};

struct low_of {
    const uint32_t *indices;
    uint32_t mask;
    __device__ uint32_t operator()(size_t rank) const
    {
        return indices[rank] & mask;
    }
};

/* Behind the values of a block, byte by byte. */
struct write_indices {
    sparse_blocks blocks;
    const uint32_t *indices;
    uint8_t *wire;
    /* Index i sets bit (i >> low) + rank. */
    __device__ uint8_t high_byte(const kith_sparse &sparse, size_t j,
                                 const uint32_t *index) const
    {
        const size_t from = 8 * j;
        size_t rank = 0, most = sparse.kept;
        uint32_t byte = 0;
        while (rank < most) { /* the first with a bit from there on */
            const size_t middle = (rank + most) / 2;
            if ((index[middle] >> sparse.low) + middle < from)
                rank = middle + 1;
            else
                most = middle;
        }
        for (; rank < sparse.kept; rank++) {
            const size_t bit = (index[rank] >> sparse.low) + rank;
            if (bit >= from + 8)
                break;
            byte |= 1u << (bit - from);
        }
        return (uint8_t)byte;
    }
    __device__ void operator()(size_t k) const
    {
        const size_t each = blocks.whole.bytes - blocks.whole.low_at;
        const size_t guess = k / each, most = blocks.count() - 1;
        const size_t b = guess < most ? guess : most;
        const kith_sparse &sparse = blocks.of(b);
        const size_t j = sparse.low_at + (k - b * each);
        const uint32_t *const index = indices + blocks.first_rank(b);
        wire[b * blocks.cut.bytes + j] =
            j < sparse.high_at
                ? byte_of(j - sparse.low_at, sparse.kept, sparse.low,
                          low_of{index, (1u << sparse.low) - 1})
                : high_byte(sparse, j - sparse.high_at, index);
    }
};

void pack_chosen(const sparse_blocks &blocks, const float *v,
                 const choice *choices, uint8_t *wire)
{
    const size_t count = blocks.count(), runs = count * blocks.runs;
    const size_t kept = (count - 1) * blocks.whole.kept + blocks.last.kept;
    const size_t behind =
        blocks.cut.all - (count - 1) * blocks.whole.low_at - blocks.last.low_at;
    uint64_t *const counts = (uint64_t *)scratch_of(
        SCRATCH_PLACES, (runs + 1) * sizeof *counts + kept * sizeof(uint32_t));
    if (counts == nullptr)
        return;
    uint32_t *const indices = (uint32_t *)(void *)(counts + runs + 1);
    each_warp("ranking", runs, count_chosen{blocks, v, choices, counts});
    scan(runs, counts);
    each_warp("packing", runs,
              write_chosen{blocks, v, choices, counts, indices, wire});
    each_index("packing", behind, 256, write_indices{blocks, indices, wire});
}
} // namespace gpu
