/* Modular formats (src/gossip/format/modular.h) on a device: a warp for each
 * block of 256 values, value k on lane k % 32. Bit for bit the CPU's messages
 * and what is read of them (src/training/backend/residues.inc.h): products,
 * quotients and sums each rounded, all else whole numbers, maxima and sums of
 * which know no order. */
#include "reduce.cuh"
#include "state.cuh"
#include "warps.cuh"

#define KITH_GRID_FUNCTION static __device__ inline
#include "kith/grid.h"

namespace gpu
{
enum { BLOCK = KITH_RESIDUE_BLOCK, EACH = BLOCK / LANES };

/* Added to a number below 2^22 it leaves the nearest integer in the low bits.
 */
#define TO_INTEGER 0x1.8p23f
#define INFINITE __uint_as_float(0x7f800000u)

/* A lane's values of one block. */
struct held {
    float v[EACH];
    __device__ void load_from(const float *x, size_t at, size_t n,
                              unsigned lane)
    {
        for (unsigned i = 0; i < EACH; i++) {
            const size_t k = at + lane + i * LANES;
            v[i] = k < n ? x[k] : 0;
        }
    }
    __device__ void store_to(float *x, size_t at, size_t n, unsigned lane) const
    {
        for (unsigned i = 0; i < EACH; i++) {
            const size_t k = at + lane + i * LANES;
            if (k < n)
                x[k] = v[i];
        }
    }
    /* max |v - other| of the block, to all lanes; INFINITY: no number. */
    __device__ float furthest(const held *other) const
    {
        uint32_t most = 0;
        for (unsigned i = 0; i < EACH; i++) {
            const float off =
                other == nullptr ? v[i] : __fsub_rn(v[i], other->v[i]);
            const uint32_t size = __float_as_uint(off) & 0x7fffffffu;
            most = size > most ? size : most;
        }
        most = warp_fold(most, most_of());
        return most < 0x7f800000u ? __uint_as_float(most) : INFINITE;
    }
};

static __device__ inline int32_t number_of(float v, float inverse)
{
    const float shifted = __fadd_rn(__fmul_rn(v, inverse), TO_INTEGER);
    return (int32_t)(__float_as_uint(shifted) - 0x4b400000u);
}

static __device__ inline uint32_t weight_of(uint32_t k)
{
    uint32_t weight = k * 0x9e3779b1u;
    weight = (weight ^ weight >> 15) * 0x85ebca6bu;
    return (weight ^ weight >> 13) | 1u;
}

static __device__ inline uint32_t
hash_of(unsigned bits, const int32_t (&numbers)[EACH], unsigned lane)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < EACH; i++)
        sum += (uint32_t)(numbers[i] >> bits) * weight_of(lane + i * LANES);
    return warp_fold(sum, sum_of()) & KITH_RESIDUE_HASH_MASK;
}

/* Of 4 bits, values k and k + 128 share a byte: both are this lane's. */
static __device__ inline void write_rests(unsigned bits,
                                          const int32_t (&numbers)[EACH],
                                          unsigned lane, uint8_t *rests)
{
    for (unsigned i = 0; i < (bits == 8 ? EACH : EACH / 2); i++)
        rests[lane + i * LANES] =
            bits == 8 ? (uint8_t)numbers[i]
                      : (uint8_t)((numbers[i] & 15) |
                                  (numbers[i + EACH / 2] & 15) << 4);
}

static __device__ inline int32_t rest_at(unsigned bits, unsigned i,
                                         unsigned lane, const uint8_t *rests)
{
    if (bits == 8)
        return rests[lane + i * LANES];
    const uint8_t both = rests[lane + i % (EACH / 2) * LANES];
    return i < EACH / 2 ? both & 15 : both >> 4;
}

static size_t blocks_of(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

struct largest_each {
    size_t n;
    const float *x, *from;
    float *largest;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        held v, before;
        v.load_from(x, b * BLOCK, n, lane);
        if (from != nullptr)
            before.load_from(from, b * BLOCK, n, lane);
        const float most = v.furthest(from != nullptr ? &before : nullptr);
        if (lane == 0)
            largest[b] = most;
    }
};

static void residues_largest(size_t n, const void *v, const void *from,
                             float *largest)
{
    const call c;
    if (!c.well())
        return;
    end_segment();
    each_warp("measuring blocks", blocks_of(n),
              largest_each{n, (const float *)v, (const float *)from, largest});
    check(cudaStreamSynchronize(stream()), "measuring blocks");
}

/* ---- packing */

struct pack_each {
    unsigned bits;
    size_t n, count;
    const uint32_t *blocks; /* NULL: all */
    const float *x, *reach;
    uint32_t *heads;
    float *kept;
    numbers *found;
    __device__ void operator()(size_t j, unsigned lane) const
    {
        const size_t block = blocks == nullptr ? j : blocks[j];
        uint8_t *const rests =
            (uint8_t *)(heads + count) + j * (BLOCK * bits / 8);
        held v;
        int32_t n_[EACH];
        v.load_from(x, block * BLOCK, n, lane);
        const float here = v.furthest(nullptr);
        const float fine = kith_grid_step_of_reach(bits, reach[block]);
        const float least = 2 * here / KITH_RESIDUE_NUMBERS_BELOW;
        const float top = kith_grid_step(KITH_GRID_STEPS_MAX);
        const float wanted = fine < top ? fine : top;
        const uint32_t number =
            kith_grid_step_for(wanted > least ? wanted : least);
        const float step = kith_grid_step(number);
        const float inverse = __fdiv_rn(1, step);
        for (unsigned i = 0; i < EACH; i++) {
            n_[i] =
                number == KITH_GRID_NO_STEP ? 0 : number_of(v.v[i], inverse);
            v.v[i] = __fmul_rn((float)n_[i], step);
        }
        v.store_to(kept, block * BLOCK, n, lane);
        write_rests(bits, n_, lane, rests);
        const uint32_t hash = hash_of(bits, n_, lane);
        if (lane == 0)
            heads[j] = number << 24 | hash;
        /* Sizes, as whole numbers, are in the order of the values. */
        if (lane == 0 && here < INFINITE)
            (void)atomicMax(&found->most, __float_as_uint(here));
    }
};

static size_t message_bytes(unsigned bits, size_t count)
{
    return count * (sizeof(uint32_t) + BLOCK * bits / 8);
}

static float residues_pack(unsigned bits,
                           const struct kith_modular_cover *cover,
                           const void *v, const float *reach, void *wire,
                           void *kept)
{
    const call c;
    numbers got;
    if (!c.well())
        return (float)NAN;
    const size_t bytes = message_bytes(bits, cover->count);
    end_segment();
    forget_numbers();
    if (cover->blocks != nullptr)
        check(cudaMemcpyAsync(kept, v, cover->n * sizeof(float),
                              cudaMemcpyDefault, stream()),
              "packing");
    each_warp("packing", cover->count,
              pack_each{bits, cover->n, cover->count, cover->blocks,
                        (const float *)v, reach,
                        (uint32_t *)writable(wire, bytes), (float *)kept,
                        found()});
    wrote(wire, bytes);
    if (!collect(&got))
        return (float)NAN;
    float most;
    memcpy(&most, &got.most, sizeof most);
    return most;
}

/* ---- unpacking */

struct unpack_each {
    unsigned bits;
    size_t n, count;
    const uint32_t *blocks, *heads, *own;
    const float *kept;
    float *out, *apart;
    double *beyond; /* (count) */
    numbers *found;

    /* max |round(a / step) - round(b / step)| < half? */
    __device__ bool reads(const held &a, const held &b, float inverse) const
    {
        uint32_t most = 0;
        for (unsigned i = 0; i < EACH; i++) {
            const int32_t off = (int32_t)((uint32_t)number_of(a.v[i], inverse) -
                                          (uint32_t)number_of(b.v[i], inverse));
            const uint32_t size = off < 0 ? 0u - (uint32_t)off : (uint32_t)off;
            most = size > most ? size : most;
        }
        return warp_fold(most, most_of()) < 1u << (bits - 1);
    }

    /* theirs <- what the block says beside ours; false: it cannot be read. */
    __device__ bool read(const struct kith_residue_head &head,
                         const uint8_t *rests, const held &ours, float largest,
                         unsigned lane, held *theirs) const
    {
        const int32_t half = 1 << (bits - 1), mask = 2 * half - 1;
        const float inverse = __fdiv_rn(1, head.step);
        int32_t n_[EACH];
        uint32_t ties = 0;
        for (unsigned i = 0; i < EACH; i++) {
            const uint32_t own_number = (uint32_t)number_of(ours.v[i], inverse);
            const int32_t rest = rest_at(bits, i, lane, rests);
            const int32_t off =
                ((int32_t)((uint32_t)rest - own_number + (uint32_t)half) &
                 mask) -
                half;
            ties |= off == -half;
            n_[i] = (int32_t)(own_number + (uint32_t)off);
            theirs->v[i] = __fmul_rn((float)n_[i], head.step);
        }
        ties = warp_fold(ties, most_of());
        const uint32_t hash = hash_of(bits, n_, lane);
        return __fmul_rn(largest, inverse) < KITH_RESIDUE_NUMBERS_BELOW &&
               ties == 0 && hash == head.hash;
    }

    /* What kith_residues' unpack returns. */
    __device__ float judge(const struct kith_residue_head &head,
                           const struct kith_residue_head &sender,
                           const uint8_t *rests, const held &ours,
                           unsigned lane, held *theirs) const
    {
        const float largest = ours.furthest(nullptr);
        const bool is_read = read(head, rests, ours, largest, lane, theirs);
        const float other = theirs->furthest(nullptr);
        const float off = theirs->furthest(&ours);
        const float inverse = __fdiv_rn(1, sender.step);
        const bool back =
            reads(ours, *theirs, inverse) &&
            __fmul_rn(other, inverse) < KITH_RESIDUE_NUMBERS_BELOW;
        const float step = head.step > sender.step ? head.step : sender.step;
        return !is_read                         ? -INFINITE
               : largest < step && other < step ? KITH_RESIDUE_COARSE
               : back                           ? off
                                                : -off;
    }

    __device__ void operator()(size_t j, unsigned lane) const
    {
        const size_t block = blocks == nullptr ? j : blocks[j];
        const uint8_t *const rests =
            (const uint8_t *)(heads + count) + j * (BLOCK * bits / 8);
        const struct kith_residue_head head = kith_grid_head(heads[j]);
        const struct kith_residue_head sender = kith_grid_head(own[j]);
        held ours, theirs;
        double squared = 0;
        ours.load_from(kept, block * BLOCK, n, lane);
        const float verdict = judge(head, sender, rests, ours, lane, &theirs);
        const bool both = verdict >= 0;
        const bool is_read = verdict > KITH_RESIDUE_COARSE;
        for (unsigned i = 0; i < EACH; i++) {
            const double off = (double)theirs.v[i] - (double)ours.v[i];
            squared += off * off;
        }
        squared = warp_sum(squared);
        (both ? theirs : ours).store_to(out, block * BLOCK, n, lane);
        if (lane != 0)
            return;
        apart[block] =
            is_read ? verdict
                    : kith_grid_next(bits, verdict, sender.step, head.step);
        beyond[j] = is_read && !both ? squared : 0;
        if (is_read)
            (void)atomicAdd(&found->correct, 1u);
    }
};

static struct kith_modular_seen
residues_unpack(unsigned bits, const struct kith_modular_cover *cover,
                const struct kith_modular_pair *pair, float *apart)
{
    const call c;
    numbers got;
    struct kith_modular_seen seen = {0, 0};
    const size_t count = cover->count, bytes = message_bytes(bits, count);
    double *const beyond =
        c.well() ? (double *)scratch_of(SCRATCH_PARTIALS,
                                        (count + 1) * sizeof *beyond)
                 : nullptr;
    if (beyond == nullptr)
        return seen;
    end_segment();
    forget_numbers();
    if (cover->blocks != nullptr) {
        check(cudaMemcpyAsync(pair->out, pair->kept, cover->n * sizeof(float),
                              cudaMemcpyDefault, stream()),
              "unpacking");
        for (size_t b = 0; b < blocks_of(cover->n); b++)
            apart[b] = (float)NAN;
    }
    each_warp("unpacking", count,
              unpack_each{bits, cover->n, count, cover->blocks,
                          (const uint32_t *)readable(pair->received, bytes),
                          (const uint32_t *)readable(pair->sent, bytes),
                          (const float *)pair->kept, (float *)pair->out, apart,
                          beyond, found()});
    launch(fold_kernel, dim3(1), dim3(256), 0, stream(), (unsigned)count,
           (const double *)beyond, &found()->value);
    launched("unpacking");
    if (!collect(&got))
        return seen;
    seen.read = got.correct;
    seen.beyond = got.value;
    return seen;
}

const struct kith_residue_messages residue_messages = {
    residues_largest, residues_pack, residues_unpack};
} // namespace gpu
