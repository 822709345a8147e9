/* Work of a warp each: a block of values, say, whose lanes find maxima and sums
 * of whole numbers together. */
#ifndef KITH_TRAINING_CUDA_WARPS_CUH
#define KITH_TRAINING_CUDA_WARPS_CUH

#include "common.cuh"

namespace gpu
{
enum { LANES = 32 };

template <typename F>
static __device__ inline uint32_t warp_fold(uint32_t v, const F &f)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        v = f(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
}

struct most_of {
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};
struct sum_of {
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a + b;
    }
};

/* f(j, lane) for every j < count, by a warp of its own. */
template <typename F> __global__ void warps_kernel(size_t count, F f)
{
    const size_t step = thread_count() / LANES;
    for (size_t j = thread_index() / LANES; j < count; j += step)
        f(j, threadIdx.x % LANES);
}
template <typename F>
static void each_warp(const char *name, size_t count, const F &f)
{
    const unsigned threads = 256;
    if (count == 0)
        return;
    launch(warps_kernel<F>, dim3(blocks_for(count * LANES, threads)),
           dim3(threads), 0, stream(), count, f);
    launched(name);
}
} // namespace gpu

#endif
