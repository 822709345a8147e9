/* The k largest values of each block by size (src/gossip/compressor/top_k.c,
 * whose bytes these are, as sparse.h there says), the first where sizes are
 * equal.
 *
 *   threshold   the k-th largest size, four bits at a time: how many sizes that
 *               begin with what is known have each next digit
 *   ranks       sizes above it, and equal ones, before each run of values
 *   message     values and indices by rank; then the bytes of both parts of the
 *               indices, each by a thread that looks up what falls into it
 *
 * Runs belong to one block each and to a warp; all counts are whole numbers, so
 * no order of adding shows. How many kernels that takes is the same for every
 * length. */
#include "state.cuh"
#include "wire.cuh"

namespace gpu
{
enum {
    NUMBER = sizeof(float),
    RUN = 4096, /* values that a warp looks at */
    DIGIT_BITS = 4,
    DIGITS = 1 << DIGIT_BITS,
    SIZE_BITS = 31,
    TOP_SHIFT = (SIZE_BITS - 1) / DIGIT_BITS * DIGIT_BITS
};

/* What is kept of a block: sizes above `size`, and the first `ties` of those
 * that equal it. While digits are missing, of those that begin with them. */
struct threshold {
    uint32_t size, ties;
};

/* A vector's blocks, in runs. */
struct sparse_blocks {
    kith_cut cut;
    kith_sparse whole, last;
    size_t runs; /* of a block; in the last some may be empty */
    __host__ __device__ size_t count() const
    {
        return (cut.n + cut.block - 1) / cut.block;
    }
    __device__ const kith_sparse &of(size_t b) const
    {
        return b + 1 == count() ? last : whole;
    }
    __device__ size_t first_rank(size_t b) const
    {
        return b * whole.kept;
    }
};

/* In runs of `items` of a block at most. */
static sparse_blocks blocks_in(const kith_cut *cut, const kith_sparse sparse[2],
                               size_t items)
{
    return {*cut, sparse[0], cut->n % cut->block == 0 ? sparse[0] : sparse[1],
            (items + RUN - 1) / RUN};
}

static __device__ inline uint32_t size_at(const float *x, size_t i)
{
    return __float_as_uint(x[i]) & 0x7fffffffu;
}

/* Lanes before this one that say so. */
static __device__ inline unsigned before(unsigned votes, unsigned lane)
{
    return (unsigned)__popc(votes & ((1u << lane) - 1));
}

/* ---- threshold */

struct begin_blocks {
    sparse_blocks blocks;
    threshold *thresholds;
    uint32_t *digits; /* (blocks, DIGITS) */
    __device__ void operator()(size_t b) const
    {
        thresholds[b] = {0, (uint32_t)blocks.of(b).kept};
        for (unsigned d = 0; d < DIGITS; d++)
            digits[b * DIGITS + d] = 0;
    }
};

/* Counts of a lane fit 8 bits: it sees RUN / LANES values. */
static_assert(RUN / LANES < 256, "a lane's counts fit a byte each");

struct count_digits {
    sparse_blocks blocks;
    const float *v;
    const threshold *thresholds;
    uint32_t *digits;
    unsigned shift;
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        const uint32_t known = thresholds[b].size;
        uint64_t counts[2] = {0, 0};
        for (size_t i = from + lane; i < from + RUN && i < n; i += LANES) {
            const uint32_t digits_so_far = size_at(x, i) >> shift;
            const unsigned digit = digits_so_far % DIGITS;
            const uint64_t one = (uint64_t)1 << digit % 8 * 8;
            if (digits_so_far / DIGITS == known) {
                counts[0] += digit < 8 ? one : 0;
                counts[1] += digit < 8 ? 0 : one;
            }
        }
        for (unsigned d = 0; d < DIGITS && from < n; d++) {
            const uint32_t own =
                (uint32_t)((d < 8 ? counts[0] : counts[1]) >> d % 8 * 8 & 255);
            const uint32_t all = warp_fold(own, sum_of());
            if (lane == 0 && all > 0)
                (void)atomicAdd(&digits[b * DIGITS + d], all);
        }
    }
};

/* The next digit of each block's threshold; counts begin again. */
struct next_digit {
    threshold *thresholds;
    uint32_t *digits;
    __device__ void operator()(size_t b) const
    {
        threshold at = thresholds[b];
        uint32_t *const counts = digits + b * DIGITS;
        unsigned digit = DIGITS - 1;
        for (; digit > 0 && counts[digit] < at.ties; digit--)
            at.ties -= counts[digit];
        at.size = at.size << DIGIT_BITS | digit;
        thresholds[b] = at;
        for (unsigned d = 0; d < DIGITS; d++)
            counts[d] = 0;
    }
};

/* ---- ranks */

/* Values above the threshold in the upper half, equal ones in the lower. */
struct count_kept {
    sparse_blocks blocks;
    const float *v;
    const threshold *thresholds;
    uint64_t *counts; /* (runs) */
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        const uint32_t size = thresholds[b].size;
        uint32_t above = 0, equal = 0;
        for (size_t i = from + lane; i < from + RUN && i < n; i += LANES) {
            above += size_at(x, i) > size;
            equal += size_at(x, i) == size;
        }
        above = warp_fold(above, sum_of());
        equal = warp_fold(equal, sum_of());
        if (lane == 0)
            counts[r] = (uint64_t)above << 32 | equal;
    }
};

/* ---- message */

struct write_kept {
    sparse_blocks blocks;
    const float *v;
    const threshold *thresholds;
    const uint64_t *counts; /* (runs) before each */
    uint32_t *indices;      /* by rank, block after block */
    uint8_t *wire;
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const size_t n = values_of(blocks.cut, b);
        const float *const x = v + b * blocks.cut.block;
        const threshold at = thresholds[b];
        const uint64_t seen = counts[r] - counts[b * blocks.runs];
        uint32_t above = (uint32_t)(seen >> 32), equal = (uint32_t)seen;
        for (size_t k = from; k < from + RUN && k < n; k += LANES) {
            const size_t i = k + lane;
            const uint32_t size = i < n ? size_at(x, i) : 0;
            const bool is_above = i < n && size > at.size;
            const bool is_equal = i < n && size == at.size;
            const unsigned higher = __ballot_sync(0xffffffffu, is_above);
            const unsigned same = __ballot_sync(0xffffffffu, is_equal);
            const uint32_t ties = equal + before(same, lane);
            if (is_above || (is_equal && ties < at.ties)) {
                const uint32_t rank = above + before(higher, lane) +
                                      (ties < at.ties ? ties : at.ties);
                indices[blocks.first_rank(b) + rank] = (uint32_t)i;
                put_number(x[i],
                           wire + b * blocks.cut.bytes + (size_t)rank * NUMBER);
            }
            above += (uint32_t)__popc(higher);
            equal += (uint32_t)__popc(same);
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

/* What is found of the blocks, in memory that lasts for the call. */
struct findings {
    threshold *thresholds;
    uint32_t *digits;
    uint64_t *counts; /* (runs + 1) */
    uint32_t *indices;
};

static bool take(const sparse_blocks &blocks, findings *to)
{
    const size_t count = blocks.count(), runs = count * blocks.runs;
    const size_t kept = (count - 1) * blocks.whole.kept + blocks.last.kept;
    const size_t bytes =
        (runs + 1) * sizeof *to->counts +
        count * (sizeof *to->thresholds + DIGITS * sizeof *to->digits);
    to->counts = (uint64_t *)scratch_of(SCRATCH_BLOCKS, bytes);
    to->indices =
        (uint32_t *)scratch_of(SCRATCH_PLACES, kept * sizeof *to->indices);
    to->thresholds = (threshold *)(void *)(to->counts + runs + 1);
    to->digits = (uint32_t *)(void *)(to->thresholds + count);
    return to->counts != nullptr && to->indices != nullptr;
}

static void find_thresholds(const sparse_blocks &blocks, const float *v,
                            const findings &f)
{
    const size_t count = blocks.count();
    each_index("searching", count, 256,
               begin_blocks{blocks, f.thresholds, f.digits});
    for (int shift = TOP_SHIFT; shift >= 0; shift -= DIGIT_BITS) {
        each_warp(
            "searching", count * blocks.runs,
            count_digits{blocks, v, f.thresholds, f.digits, (unsigned)shift});
        each_index("searching", count, 256, next_digit{f.thresholds, f.digits});
    }
}

bool pack_top_k(const struct kith_cut *cut, const struct kith_sparse sparse[2],
                const void *v, void *wire)
{
    const sparse_blocks blocks = blocks_in(cut, sparse, cut->block);
    const size_t runs = blocks.count() * blocks.runs;
    const size_t behind = cut->all -
                          (blocks.count() - 1) * blocks.whole.low_at -
                          blocks.last.low_at;
    const float *const x = (const float *)v;
    return pack_by(cut->all, wire, [=](uint8_t *to) {
        findings f;
        if (!take(blocks, &f))
            return;
        find_thresholds(blocks, x, f);
        each_warp("ranking", runs,
                  count_kept{blocks, x, f.thresholds, f.counts});
        scan(runs, f.counts);
        each_warp("packing", runs,
                  write_kept{blocks, x, f.thresholds, f.counts, f.indices, to});
        each_index("packing", behind, 256,
                   write_indices{blocks, f.indices, to});
    });
}

/* ---- unpacking: the rank of a bit of the high part is how many are set before
 * it */

static __host__ __device__ inline size_t high_bits(const kith_sparse &sparse)
{
    return (sparse.bytes - sparse.high_at) * 8;
}

static __device__ inline bool bit_at(const uint8_t *bytes, size_t bit)
{
    return (bytes[bit / 8] >> bit % 8 & 1) != 0;
}

struct count_bits {
    sparse_blocks blocks;
    const uint8_t *wire;
    uint64_t *counts; /* (runs) */
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const kith_sparse &sparse = blocks.of(b);
        const uint8_t *const high =
            wire + b * blocks.cut.bytes + sparse.high_at;
        const size_t bits = high_bits(sparse);
        uint32_t set = 0;
        for (size_t i = from + lane; i < from + RUN && i < bits; i += LANES)
            set += bit_at(high, i);
        set = warp_fold(set, sum_of());
        if (lane == 0)
            counts[r] = set;
    }
};

struct read_kept {
    sparse_blocks blocks;
    const uint8_t *wire;
    const uint64_t *counts; /* (runs + 1) before each */
    float *out;
    numbers *found;
    /* The value of this rank, at bit i; false: it cannot stand there. */
    __device__ bool place(size_t b, size_t i, size_t rank) const
    {
        const kith_sparse &sparse = blocks.of(b);
        const uint8_t *const from = wire + b * blocks.cut.bytes;
        const uint8_t *const low = from + sparse.low_at;
        if (rank >= sparse.kept)
            return false;
        const uint32_t below = field_at(low, rank, sparse.low);
        const size_t index = (i - rank) << sparse.low | below;
        if (index >= values_of(blocks.cut, b))
            return false;
        /* One that shares its high part stands just before. */
        if (i > 0 && bit_at(from + sparse.high_at, i - 1) &&
            below <= field_at(low, rank - 1, sparse.low))
            return false;
        out[b * blocks.cut.block + index] = number_at(from + rank * NUMBER);
        return true;
    }
    __device__ void operator()(size_t r, unsigned lane) const
    {
        const size_t b = r / blocks.runs, from = r % blocks.runs * RUN;
        const kith_sparse &sparse = blocks.of(b);
        const uint8_t *const at = wire + b * blocks.cut.bytes;
        const size_t bits = high_bits(sparse);
        const uint64_t first = counts[b * blocks.runs];
        uint64_t rank = counts[r] - first;
        bool bad = from == 0 &&
                   (counts[(b + 1) * blocks.runs] - first != sparse.kept ||
                    !ends_well(at + sparse.low_at, sparse.kept, sparse.low));
        for (size_t k = from; k < from + RUN && k < bits; k += LANES) {
            const size_t i = k + lane;
            const bool is_set = i < bits && bit_at(at + sparse.high_at, i);
            const unsigned set = __ballot_sync(0xffffffffu, is_set);
            if (is_set)
                bad = !place(b, i, rank + before(set, lane)) || bad;
            rank += (unsigned)__popc(set);
        }
        note(bad, found);
    }
};

bool unpack_top_k(const struct kith_cut *cut,
                  const struct kith_sparse sparse[2], const void *wire,
                  void *out)
{
    const size_t whole = high_bits(sparse[0]), last = high_bits(sparse[1]);
    const sparse_blocks blocks =
        blocks_in(cut, sparse, whole > last ? whole : last);
    const size_t runs = blocks.count() * blocks.runs;
    return unpack_by(cut->all, wire, [=](const uint8_t *from) {
        uint64_t *const counts =
            (uint64_t *)scratch_of(SCRATCH_BLOCKS, (runs + 1) * sizeof *counts);
        if (counts == nullptr)
            return;
        check(cudaMemsetAsync(out, 0, cut->n * sizeof(float), stream()),
              "unpacking");
        each_warp("unpacking", runs, count_bits{blocks, from, counts});
        scan(runs, counts);
        each_warp("unpacking", runs,
                  read_kept{blocks, from, counts, (float *)out, found()});
    });
}
} // namespace gpu
