/* Messages of compressors (kith/compressed.h) as kernels read and write them:
 * blocks at any address, numbers and fields of some bits, little-endian. */
#ifndef KITH_TRAINING_CUDA_WIRE_CUH
#define KITH_TRAINING_CUDA_WIRE_CUH

#include "warps.cuh"

namespace gpu
{
static inline size_t blocks_of(const kith_cut &cut)
{
    return (cut.n + cut.block - 1) / cut.block;
}

/* Values of block b. */
static __device__ inline size_t values_of(const kith_cut &cut, size_t b)
{
    const size_t left = cut.n - b * cut.block;
    return left < cut.block ? left : cut.block;
}

static __device__ inline float number_at(const uint8_t *wire)
{
    return __uint_as_float((uint32_t)wire[0] | (uint32_t)wire[1] << 8 |
                           (uint32_t)wire[2] << 16 | (uint32_t)wire[3] << 24);
}

static __device__ inline void put_number(float value, uint8_t *wire)
{
    const uint32_t bits = __float_as_uint(value);
    for (int i = 0; i < 4; i++)
        wire[i] = (uint8_t)(bits >> 8 * i);
}

static __device__ inline void note(bool bad, numbers *found)
{
    if (bad)
        (void)atomicOr(&found->bad, 1u);
}

static __device__ inline bool is_finite(float v)
{
    return v - v <= 0;
}

/* ---- n fields of `width` bits one after another, the first in the lowest bits
 * of the first byte */

static __device__ __host__ inline size_t fields_bytes(size_t n, unsigned width)
{
    return (n * width + 7) / 8;
}

/* Byte j of them; field(i) is the i-th. */
template <typename F>
static __device__ inline uint8_t byte_of(size_t j, size_t n, unsigned width,
                                         const F &field)
{
    size_t i = 8 * j / width;
    int at = -(int)(8 * j - i * width); /* where it begins in the byte */
    uint32_t byte = 0;
    for (; at < 8 && i < n; i++, at += (int)width)
        byte |= at < 0 ? field(i) >> -at : field(i) << at;
    return (uint8_t)byte;
}

static __device__ inline uint32_t field_at(const uint8_t *fields, size_t i,
                                           unsigned width)
{
    const size_t first = i * width;
    const unsigned skip = first % 8;
    uint64_t held = 0;
    for (unsigned got = 0; got < skip + width; got += 8)
        held |= (uint64_t)fields[(first + got) / 8] << got;
    return (uint32_t)(held >> skip & (((uint64_t)1 << width) - 1));
}

/* Nothing stands behind the last of them. */
static __device__ inline bool ends_well(const uint8_t *fields, size_t n,
                                        unsigned width)
{
    const size_t bits = n * width;
    return bits % 8 == 0 || fields[bits / 8] >> bits % 8 == 0;
}

/* ---- the host's side: run(wire) on the device's copy; what it notes as bad is
 * false, and so is a device that has failed */

template <typename F>
static bool pack_by(size_t bytes, void *wire, const F &run)
{
    const call c;
    numbers got;
    if (!c.well())
        return false;
    end_segment();
    forget_numbers();
    run((uint8_t *)writable(wire, bytes));
    wrote(wire, bytes);
    return collect(&got) && got.bad == 0;
}

template <typename F>
static bool unpack_by(size_t bytes, const void *wire, const F &run)
{
    const call c;
    numbers got;
    if (!c.well())
        return false;
    end_segment();
    forget_numbers();
    run((const uint8_t *)readable(wire, bytes));
    return collect(&got) && got.bad == 0;
}

/* ---- sums before each of some counts, and of all of them behind the last: on
 * one block of threads, each with a run of its own */

enum { SCAN_THREADS = 256 };

static __global__ void scan_kernel(size_t count, uint64_t *counts)
{
    __shared__ uint64_t runs[SCAN_THREADS];
    const size_t each = (count + SCAN_THREADS - 1) / SCAN_THREADS;
    const size_t from = threadIdx.x * each;
    const size_t to = from + each < count ? from + each : count;
    uint64_t sum = 0;
    for (size_t i = from; i < to; i++)
        sum += counts[i];
    runs[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned k = 0; k < threadIdx.x; k++)
        sum += runs[k];
    for (size_t i = from; i < to; i++) {
        const uint64_t here = counts[i];
        counts[i] = sum;
        sum += here;
    }
    if (threadIdx.x == SCAN_THREADS - 1)
        counts[count] = sum;
}

/* counts (count + 1) */
static inline void scan(size_t count, uint64_t *counts)
{
    launch(scan_kernel, dim3(1), dim3(SCAN_THREADS), 0, stream(), count,
           counts);
    launched("adding up counts");
}
} // namespace gpu

#endif
