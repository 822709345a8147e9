/* What formats are made of (kith/format.h), whole messages at a time, straight
 * into the pinned slot's copy on the device and out of it. Bit for bit what a
 * CPU writes and reads: bytes are between peers, whatever they compute on. So
 * each product and sum is rounded, and a number that is none keeps its bits. */
#include "state.cuh"

namespace gpu
{
/* out <- of in, by `run` on the device's copies of both. */
template <typename F>
static void transform(const void *in, size_t in_bytes, void *out,
                      size_t out_bytes, const F &run)
{
    const call c;
    if (!c.well() || in_bytes == 0)
        return;
    const bool waits = of_the_host(in);
    if (waits)
        end_segment();
    const void *const from = readable(in, in_bytes);
    void *const to = writable(out, out_bytes);
    run(from, to);
    wrote(out, out_bytes);
    if (waits)
        check(cudaStreamSynchronize(stream()), "packing");
}

/* ---- bfloat16 */

struct to_bf16_each {
    const float *x;
    bf16 *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        pack<bf16, N> p;
        load(x, i, v);
        for (int k = 0; k < N; k++)
            p.v[k].bits = nearest_half(v[k]);
        *reinterpret_cast<pack<bf16, N> *>(y + i) = p;
    }
};

struct from_bf16_each {
    const bf16 *x;
    float *y;
    template <int N> __device__ void at(size_t i) const
    {
        float v[N];
        load(x, i, v);
        store(v, y, i);
    }
};

void to_bf16(size_t n, const void *x, uint16_t *y)
{
    transform(
        x, n * sizeof(float), y, n * sizeof *y,
        [n](const void *from, void *to) {
            each<8>("packing", n, all_aligned(from, to),
                    to_bf16_each{(const float *)from, (bf16 *)to});
        });
}

void from_bf16(size_t n, const uint16_t *x, void *y)
{
    transform(
        x, n * sizeof *x, y, n * sizeof(float),
        [n](const void *from, void *to) {
            each<8>("unpacking", n, all_aligned(from, to),
                    from_bf16_each{(const bf16 *)from, (float *)to});
        });
}

/* ---- int8: the scales of all blocks, then the levels */

enum { LANES = 32, EACH = KITH_INT8_BLOCK / LANES };

static size_t blocks_of(size_t n)
{
    return (n + KITH_INT8_BLOCK - 1) / KITH_INT8_BLOCK;
}

static size_t int8_bytes(size_t n)
{
    return n + blocks_of(n) * sizeof(float);
}

/* Of all lanes. Sizes compared as whole numbers: what is not finite is larger
 * than what is. */
static __device__ inline uint32_t warp_most(uint32_t size)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, size, step);
        size = other > size ? other : size;
    }
    return size;
}

/* A warp for each block. To the nearest whole number: from 2^23 to 2^24 floats
 * are whole. */
__global__ void to_int8_kernel(size_t n, size_t blocks, const float *x,
                               float *scales, int8_t *levels)
{
    const float whole = 0x1.8p23f;
    const unsigned lane = threadIdx.x % LANES;
    const size_t step = thread_count() / LANES;
    for (size_t b = thread_index() / LANES; b < blocks; b += step) {
        const size_t first = b * KITH_INT8_BLOCK + lane;
        float v[EACH];
        uint32_t most = 0;
        for (int k = 0; k < EACH; k++) {
            const size_t i = first + k * LANES;
            v[k] = i < n ? x[i] : 0;
            const uint32_t size = __float_as_uint(v[k]) & 0x7fffffffu;
            most = size > most ? size : most;
        }
        most = warp_most(most);
        const float largest = __uint_as_float(most);
        const float scale = __fdiv_rn(largest, 127);
        const float inverse = __fdiv_rn(127, largest);
        const bool scales_well = most < 0x7f800000u && scale >= 0x1p-126f;
        for (int k = 0; k < EACH; k++) {
            const float level =
                __fsub_rn(__fadd_rn(__fmul_rn(v[k], inverse), whole), whole);
            if (first + k * LANES < n)
                levels[first + k * LANES] =
                    scales_well ? (int8_t)(int32_t)level : (int8_t)0;
        }
        if (lane == 0)
            scales[b] = most >= 0x7f800000u ? __uint_as_float(0x7f800000u)
                        : scales_well       ? scale
                                            : 0;
    }
}

struct from_int8_each {
    const float *scales;
    const int8_t *levels;
    float *y;
    __device__ void operator()(size_t i) const
    {
        y[i] = __fmul_rn(scales[i / KITH_INT8_BLOCK], (float)levels[i]);
    }
};

void pack_int8(size_t n, const void *x, void *wire)
{
    const size_t blocks = blocks_of(n);
    transform(x, n * sizeof(float), wire, int8_bytes(n),
              [n, blocks](const void *from, void *to) {
                  float *const scales = (float *)to;
                  launch(to_int8_kernel, dim3(blocks_for(blocks * LANES, 256)),
                         dim3(256), 0, stream(), n, blocks, (const float *)from,
                         scales, (int8_t *)(scales + blocks));
                  launched("packing");
              });
}

void unpack_int8(size_t n, const void *wire, void *y)
{
    const size_t blocks = blocks_of(n);
    transform(wire, int8_bytes(n), y, n * sizeof(float),
              [n, blocks](const void *from, void *to) {
                  const float *const scales = (const float *)from;
                  each_index("unpacking", n, 256,
                             from_int8_each{scales,
                                            (const int8_t *)(scales + blocks),
                                            (float *)to});
              });
}
} // namespace gpu
