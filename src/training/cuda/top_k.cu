/* The k largest values of each block by size (src/gossip/compressor/top_k.c,
 * whose bytes these are, as sparse.h there says), the first where sizes are
 * equal.
 *
 *   threshold   the k-th largest size, four bits at a time: how many sizes that
 *               begin with what is known have each next digit
 *   message     sizes above it, and the first of equal ones (sparse.cu)
 *
 * Runs belong to one block each and to a warp; all counts are whole numbers, so
 * no order of adding shows. How many kernels that takes is the same for every
 * length. */
#include "sparse.cuh"

namespace gpu
{
enum {
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

/* Sizes above the threshold, and the first of those that equal it: as many as
 * ties, wherever the window ends. */
struct choose_largest {
    const threshold *thresholds;
    choice *choices;
    __device__ void operator()(size_t b) const
    {
        const threshold at = thresholds[b];
        choices[b] = {at.size, at.size + 1, 0, at.ties, UINT32_MAX};
    }
};

/* What is found of the blocks, in memory that lasts for the call. */
struct findings {
    choice *choices;
    threshold *thresholds;
    uint32_t *digits;
};

static bool take(const sparse_blocks &blocks, findings *to)
{
    const size_t count = blocks.count();
    to->choices = (choice *)scratch_of(
        SCRATCH_BLOCKS, count * (sizeof *to->choices + sizeof *to->thresholds +
                                 DIGITS * sizeof *to->digits));
    if (to->choices == nullptr)
        return false;
    to->thresholds = (threshold *)(void *)(to->choices + count);
    to->digits = (uint32_t *)(void *)(to->thresholds + count);
    return true;
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
    each_index("searching", count, 256,
               choose_largest{f.thresholds, f.choices});
}

bool pack_top_k(const struct kith_cut *cut, const struct kith_sparse sparse[2],
                const void *v, void *wire)
{
    const sparse_blocks blocks = blocks_in(cut, sparse, cut->block);
    const float *const x = (const float *)v;
    return pack_by(cut->all, wire, [=](uint8_t *to) {
        findings f;
        if (!take(blocks, &f))
            return;
        find_thresholds(blocks, x, f);
        pack_chosen(blocks, x, f.choices, to);
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
