/* Sums over vectors: of each block, then of their partials, each in a fixed
 * order, in float64. */
#ifndef KITH_TRAINING_CUDA_REDUCE_CUH
#define KITH_TRAINING_CUDA_REDUCE_CUH

#include "common.cuh"

namespace gpu
{
template <int N, typename F>
__global__ void reduce_kernel(size_t n, F f, double *partials)
{
    __shared__ double room[32];
    double sum = 0;
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n / N; i += step)
        sum += f.template at<N>(i * N);
    if (N > 1 && thread_index() < n % N)
        sum += f.template at<1>(n - n % N + thread_index());
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

static __global__ void fold_kernel(unsigned count, const double *partials,
                                   double *out)
{
    __shared__ double room[32];
    double sum = 0;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        sum += partials[i];
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        *out = sum;
}

/* The sum of f over all elements, to found()->value. */
template <int N = 4, typename F>
static void reduce(const char *name, size_t n, bool even, const F &f)
{
    const unsigned threads = 256;
    const unsigned blocks = blocks_for(even ? (n + N - 1) / N : n, threads);
    double *const partials =
        (double *)scratch_of(SCRATCH_PARTIALS, blocks * sizeof *partials);
    if (partials == nullptr)
        return;
    if (even)
        launch(reduce_kernel<N, F>, dim3(blocks), dim3(threads), 0, stream(), n,
               f, partials);
    else
        launch(reduce_kernel<1, F>, dim3(blocks), dim3(threads), 0, stream(), n,
               f, partials);
    launch(fold_kernel, dim3(1), dim3(256), 0, stream(), blocks, partials,
           &found()->value);
    launched(name);
}

static inline double value()
{
    numbers got;
    return collect(&got) ? got.value : (double)NAN;
}
} // namespace gpu

#endif
