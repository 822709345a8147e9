/* Compressors (src/gossip/compressor/) on a device, whole messages at a time:
 * a host's bytes, and its values. Each product, sum, quotient and root is
 * rounded by itself, and what a host adds one after another is added in that
 * order, by a warp for each block: so a block of the whole vector is slow. */
#include "philox.cuh"
#include "state.cuh"
#include "wire.cuh"

#include "kith/rng.h"

namespace gpu
{
enum { NUMBER = sizeof(float) };

/* The largest |x|, of finite values: as bits, to all lanes. */
static __device__ inline uint32_t largest(const float *x, size_t n,
                                          unsigned lane)
{
    uint32_t most = 0;
    for (size_t i = lane; i < n; i += LANES) {
        const uint32_t size = __float_as_uint(x[i]) & 0x7fffffffu;
        most = size > most ? size : most;
    }
    return warp_fold(most, most_of());
}

/* The sum of f(x[i]) from the first to the last, to all lanes. */
template <typename F>
static __device__ inline double sum_in_order(const float *x, size_t n,
                                             unsigned lane, const F &f)
{
    double sum = 0;
    for (size_t at = 0; at < n; at += LANES) {
        const double mine = at + lane < n ? f((double)x[at + lane]) : 0;
        const int count = n - at < LANES ? (int)(n - at) : (int)LANES;
        for (int k = 0; k < count; k++)
            sum = __dadd_rn(sum, __shfl_sync(0xffffffffu, mine, k));
    }
    return sum;
}

/* A block's first number. */
static __device__ inline void put_first(float value, uint8_t *wire,
                                        unsigned lane, numbers *found)
{
    if (lane != 0)
        return;
    put_number(value, wire);
    note(!is_finite(value), found);
}

static void erase(size_t bytes, void *wire)
{
    const call c;
    if (!c.well() || bytes == 0)
        return;
    check(cudaMemsetAsync(writable(wire, bytes), 0, bytes, stream()),
          "clearing a message");
    wrote(wire, bytes);
}

/* A warp for each block: K packs one, or unpacks one. */
template <typename K>
static bool pack_each(const struct kith_cut *cut, const void *v, void *wire)
{
    return pack_by(
        cut->all, wire,
        [=](uint8_t *to) {
            each_warp("packing", blocks_of(*cut),
                      K{*cut, (const float *)v, to, found()});
        });
}

template <typename K>
static bool unpack_each(const struct kith_cut *cut, const void *wire, void *out)
{
    return unpack_by(
        cut->all, wire,
        [=](const uint8_t *from) {
            each_warp("unpacking", blocks_of(*cut),
                      K{*cut, from, (float *)out, found()});
        });
}

/* ---- sign */

struct size_of {
    __device__ double operator()(double v) const
    {
        return fabs(v);
    }
};

struct is_negative {
    const float *x;
    __device__ uint32_t operator()(size_t i) const
    {
        return x[i] < 0 ? 1u : 0u;
    }
};

struct sign_pack {
    kith_cut cut;
    const float *v;
    uint8_t *wire;
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        const float *const x = v + b * cut.block;
        uint8_t *const to = wire + b * cut.bytes;
        const double sum = sum_in_order(x, n, lane, size_of());
        put_first((float)__ddiv_rn(sum, (double)n), to, lane, found);
        for (size_t j = lane; j < fields_bytes(n, 1); j += LANES)
            to[NUMBER + j] = byte_of(j, n, 1, is_negative{x});
    }
};

struct sign_unpack {
    kith_cut cut;
    const uint8_t *wire;
    float *out;
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        const uint8_t *const from = wire + b * cut.bytes;
        const float mean = number_at(from);
        for (size_t i = lane; i < n; i += LANES)
            out[b * cut.block + i] =
                field_at(from + NUMBER, i, 1) ? -mean : mean;
        note(!(mean >= 0) || !ends_well(from + NUMBER, n, 1), found);
    }
};

/* ---- int8 */

enum { STEPS = 127 };

static __device__ inline int8_t step_of(double value, double scale)
{
    const double level = __ddiv_rn(value, scale);
    if (!(level < STEPS))
        return STEPS;
    if (!(level > -STEPS))
        return -STEPS;
    return (int8_t)__dadd_rn(level, level < 0 ? -0.5 : 0.5);
}

struct int8_pack {
    kith_cut cut;
    const float *v;
    uint8_t *wire;
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        const float *const x = v + b * cut.block;
        uint8_t *const to = wire + b * cut.bytes;
        const double most = (double)__uint_as_float(largest(x, n, lane));
        const float scale = (float)__ddiv_rn(most, STEPS);
        /* 127 rounded steps may be beyond the largest number. */
        note(!is_finite((float)__dmul_rn((double)scale, STEPS)), found);
        put_first(scale, to, lane, found);
        for (size_t i = lane; i < n; i += LANES)
            to[NUMBER + i] =
                (uint8_t)(scale > 0 ? step_of((double)x[i], (double)scale)
                                    : (int8_t)0);
    }
};

struct int8_unpack {
    kith_cut cut;
    const uint8_t *wire;
    float *out;
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const uint8_t *const from = wire + b * cut.bytes;
        const float scale = number_at(from);
        bool bad = !(scale >= 0);
        for (size_t i = lane; i < values_of(cut, b); i += LANES) {
            const int8_t level = (int8_t)from[NUMBER + i];
            bad = bad || level < -STEPS;
            out[b * cut.block + i] = __fmul_rn(scale, (float)level);
        }
        note(bad, found);
    }
};

/* ---- qsgd: a norm first, which says whether its block draws */

struct square_of {
    double most;
    __device__ double operator()(double v) const
    {
        const double part = __ddiv_rn(v, most);
        return __dmul_rn(part, part);
    }
};

struct qsgd_norm {
    kith_cut cut;
    const float *v;
    uint8_t *wire;
    uint64_t *draws; /* (blocks) 1: it does */
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        const float *const x = v + b * cut.block;
        const double most = (double)__uint_as_float(largest(x, n, lane));
        const double sum =
            most > 0 ? sum_in_order(x, n, lane, square_of{most}) : 0;
        const float norm = (float)__dmul_rn(most, __dsqrt_rn(sum));
        put_first(norm, wire + b * cut.bytes, lane, found);
        if (lane == 0)
            draws[b] = norm > 0;
    }
};

/* Level and sign of the i-th value of a block. */
struct qsgd_field {
    kith_levels levels;
    uint64_t key, first; /* first: draws before this block */
    double norm;
    const float *x;
    /* kith_rng_double of a stream from its beginning, for the k-th time. */
    __device__ double draw(uint64_t k) const
    {
        const uint32_t seed[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
        const uint32_t counter[4] = {(uint32_t)(k / 2), 0, 0,
                                     KITH_STREAM_COMPRESS};
        uint32_t word[4];
        philox(seed, counter, word);
        const uint64_t bits = k % 2 == 0 ? (uint64_t)word[1] << 32 | word[0]
                                         : (uint64_t)word[3] << 32 | word[2];
        return (double)(bits >> 11) * 0x1p-53;
    }
    __device__ uint32_t operator()(size_t i) const
    {
        const double value = (double)x[i];
        if (!(norm > 0))
            return 0;
        const double exact =
            __dmul_rn(__ddiv_rn(fabs(value), norm), (double)levels.most);
        uint32_t field = exact < levels.most ? (uint32_t)exact : levels.most;
        if (draw(first + i) < __dadd_rn(exact, -(double)field))
            field++;
        return value < 0 && field > 0 ? field | 1u << levels.width : field;
    }
};

struct qsgd_pack {
    kith_cut cut;
    kith_levels levels;
    uint64_t key;
    const float *v;
    const uint64_t *before; /* (blocks) that draw */
    uint8_t *wire;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        uint8_t *const to = wire + b * cut.bytes;
        const unsigned width = levels.width + 1;
        const qsgd_field field{levels, key, before[b] * cut.block,
                               (double)number_at(to), v + b * cut.block};
        for (size_t j = lane; j < fields_bytes(n, width); j += LANES)
            to[NUMBER + j] = byte_of(j, n, width, field);
    }
};

struct qsgd_unpack {
    kith_cut cut;
    kith_levels levels;
    const uint8_t *wire;
    float *out;
    numbers *found;
    __device__ void operator()(size_t b, unsigned lane) const
    {
        const size_t n = values_of(cut, b);
        const uint8_t *const from = wire + b * cut.bytes;
        const unsigned width = levels.width + 1;
        const uint32_t negative = 1u << levels.width;
        const double norm = (double)number_at(from);
        const double factor = levels.factor[n < cut.block];
        bool bad = !(norm >= 0) || !ends_well(from + NUMBER, n, width);
        for (size_t i = lane; i < n; i += LANES) {
            const uint32_t field = field_at(from + NUMBER, i, width);
            const uint32_t level = field & (negative - 1);
            const double part = __ddiv_rn(__dmul_rn(factor, (double)level),
                                          (double)levels.most);
            const double size = __dmul_rn(norm, part);
            bad = bad || level > levels.most || field == negative;
            out[b * cut.block + i] = (float)(field & negative ? -size : size);
        }
        note(bad, found);
    }
};

static bool pack_qsgd(const struct kith_cut *cut,
                      const struct kith_levels *levels, uint64_t key,
                      const void *v, void *wire)
{
    const size_t blocks = blocks_of(*cut);
    const float *const x = (const float *)v;
    return pack_by(cut->all, wire, [=](uint8_t *to) {
        uint64_t *const draws = (uint64_t *)scratch_of(
            SCRATCH_BLOCKS, (blocks + 1) * sizeof *draws);
        if (draws == nullptr)
            return;
        each_warp("measuring blocks", blocks,
                  qsgd_norm{*cut, x, to, draws, found()});
        scan(blocks, draws);
        each_warp("packing", blocks,
                  qsgd_pack{*cut, *levels, key, x, draws, to});
    });
}

static bool unpack_qsgd(const struct kith_cut *cut,
                        const struct kith_levels *levels, const void *wire,
                        void *out)
{
    return unpack_by(
        cut->all, wire,
        [=](const uint8_t *from) {
            each_warp("unpacking", blocks_of(*cut),
                      qsgd_unpack{*cut, *levels, from, (float *)out, found()});
        });
}

/* ---- random-k: the host has drawn the places, as for gather */

struct random_k_pack {
    const uint32_t *at;
    double factor;
    const float *v;
    uint8_t *wire;
    numbers *found;
    __device__ void operator()(size_t i) const
    {
        const float value = (float)__dmul_rn(factor, (double)v[at[i]]);
        put_number(value, wire + i * NUMBER);
        note(!is_finite(value), found);
    }
};

struct random_k_unpack {
    const uint32_t *at;
    const uint8_t *wire;
    float *out;
    __device__ void operator()(size_t i) const
    {
        out[at[i]] = number_at(wire + i * NUMBER);
    }
};

static const uint32_t *places_on(const struct kith_places *places)
{
    return (const uint32_t *)readable(places->at,
                                      places->kept * sizeof *places->at);
}

static bool pack_random_k(const struct kith_places *places, const void *v,
                          void *wire)
{
    return pack_by(
        places->kept * NUMBER, wire,
        [=](uint8_t *to) {
            each_index("packing", places->kept, 256,
                       random_k_pack{places_on(places), places->factor,
                                     (const float *)v, to, found()});
        });
}

static bool unpack_random_k(const struct kith_places *places, const void *wire,
                            size_t n, void *out)
{
    return unpack_by(
        places->kept * NUMBER, wire,
        [=](const uint8_t *from) {
            check(cudaMemsetAsync(out, 0, n * sizeof(float), stream()),
                  "unpacking");
            each_index("unpacking", places->kept, 256,
                       random_k_unpack{places_on(places), from, (float *)out});
        });
}

const struct kith_compressed compressed = {
    erase,
    pack_top_k,
    unpack_top_k,
    pack_ms_top_k,
    pack_random_k,
    unpack_random_k,
    pack_each<sign_pack>,
    unpack_each<sign_unpack>,
    pack_each<int8_pack>,
    unpack_each<int8_unpack>,
    pack_qsgd,
    unpack_qsgd,
};
} // namespace gpu
