/* Sums down the columns of a matrix (rows, columns), in a fixed order: blocks
 * take 32 columns of a stretch of rows, eight rows at a time; their partial
 * sums are added stretch by stretch. What biases, scales and shifts get. */
#ifndef KITH_TRAINING_CUDA_COLUMNS_CUH
#define KITH_TRAINING_CUDA_COLUMNS_CUH

#include "common.cuh"

namespace gpu
{
/* f(row, column, sums) adds its S terms. */
template <int S, typename F>
__global__ void columns_kernel(size_t rows, size_t columns, size_t stretch, F f,
                               double *partials)
{
    __shared__ double room[8][32][S];
    const unsigned lane = threadIdx.x % 32, line = threadIdx.x / 32;
    const size_t column = (size_t)blockIdx.x * 32 + lane;
    const size_t from = (size_t)blockIdx.y * stretch;
    const size_t to = from + stretch < rows ? from + stretch : rows;
    double sums[S] = {};
    if (column < columns) {
        for (size_t row = from + line; row < to; row += 8)
            f(row, column, sums);
    }
    for (int s = 0; s < S; s++)
        room[line][lane][s] = sums[s];
    __syncthreads();
    if (line != 0 || column >= columns)
        return;
    for (int s = 0; s < S; s++) {
        double sum = 0;
        for (int l = 0; l < 8; l++)
            sum += room[l][lane][s];
        partials[((size_t)blockIdx.y * columns + column) * S + s] = sum;
    }
}

/* g(column, sums): what becomes of them. */
template <int S, typename G>
__global__ void columns_end_kernel(size_t columns, unsigned stretches,
                                   const double *partials, G g)
{
    const size_t column = thread_index();
    double sums[S] = {};
    if (column >= columns)
        return;
    for (unsigned p = 0; p < stretches; p++) {
        for (int s = 0; s < S; s++)
            sums[s] += partials[((size_t)p * columns + column) * S + s];
    }
    g(column, sums);
}

template <int S, typename F, typename G>
static void columns(const char *name, size_t rows, size_t width, const F &f,
                    const G &g)
{
    if (width == 0)
        return;
    const size_t across = (width + 31) / 32;
    size_t many = (4 * (size_t)processors() + across - 1) / across;
    const size_t most = (rows + 63) / 64;
    many = many > most ? most : many;
    many = many < 1 ? 1 : many > 1024 ? 1024 : many;
    const size_t stretch = rows == 0 ? 1 : (rows + many - 1) / many;
    double *const partials = (double *)scratch_of(
        SCRATCH_PARTIALS, many * width * S * sizeof(double));
    if (partials == nullptr)
        return;
    launch(columns_kernel<S, F>, dim3((unsigned)across, (unsigned)many),
           dim3(256), 0, stream(), rows, width, stretch, f, partials);
    launch(columns_end_kernel<S, G>, dim3((unsigned)((width + 127) / 128)),
           dim3(128), 0, stream(), width, (unsigned)many, partials, g);
    launched(name);
}

/* Sums of one matrix's columns to a float32 vector. */
template <typename T> struct column_of {
    const T *x;
    size_t width;
    __device__ void operator()(size_t row, size_t column, double *sums) const
    {
        sums[0] += (double)to_float(x[row * width + column]);
    }
};
struct column_put {
    float *out;
    bool adds;
    __device__ void operator()(size_t column, const double *sums) const
    {
        out[column] = (adds ? out[column] : 0.0f) + (float)sums[0];
    }
};
} // namespace gpu

#endif
