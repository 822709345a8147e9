/* Sums down the columns of a matrix (rows, columns), in a fixed order. What
 * biases, scales and shifts get.
 *
 * A thread takes N neighbouring columns, 16 bytes of a row at a time, and four
 * rows before it adds their float32 sum to a float64 one: a conversion for each
 * value would be the limit. A block's threads lie `lanes` across and 256 /
 * lanes down, and are added in pairs; blocks take a stretch of rows each, whose
 * sums are added stretch by stretch. */
#ifndef KITH_TRAINING_CUDA_COLUMNS_CUH
#define KITH_TRAINING_CUDA_COLUMNS_CUH

#include "common.cuh"

namespace gpu
{
enum { COLUMN_THREADS = 256, COLUMN_ROWS = 4 };

/* f.at<N>(row, column, sums) adds its terms to sums[S][N], of F::partial. Of
 * the last N columns some may lie beyond `columns`: what f reads there is
 * memory of the row, and is left out. */
template <int S, int N, typename F>
__global__ void columns_kernel(size_t rows, size_t columns, unsigned lanes,
                               size_t stretch, F f, double *partials)
{
    __shared__ double room[S * N][COLUMN_THREADS];
    const unsigned t = threadIdx.x, lane = t % lanes, line = t / lanes;
    const unsigned lines = COLUMN_THREADS / lanes;
    const size_t column = ((size_t)blockIdx.x * lanes + lane) * N;
    const size_t from = (size_t)blockIdx.y * stretch;
    const size_t to = from + stretch < rows ? from + stretch : rows;
    double sums[S][N] = {};
    size_t row = column < columns ? from + line : to;
    while (row < to) {
        typename F::partial four[S][N] = {};
        if (row + (COLUMN_ROWS - 1) * lines < to) {
            UNROLLED
            for (unsigned r = 0; r < COLUMN_ROWS; r++)
                f.template at<N>(row + r * lines, column, four);
            row += COLUMN_ROWS * lines;
        } else {
            f.template at<N>(row, column, four);
            row += lines;
        }
        for (int s = 0; s < S; s++)
            for (int k = 0; k < N; k++)
                sums[s][k] += (double)four[s][k];
    }
    for (int s = 0; s < S; s++)
        for (int k = 0; k < N; k++)
            room[s * N + k][t] = sums[s][k];
    for (unsigned half = lines / 2; half > 0; half /= 2) {
        __syncthreads();
        for (int k = 0; k < S * N && line < half; k++)
            room[k][t] += room[k][t + half * lanes];
    }
    for (int k = 0; k < N; k++) {
        if (line > 0 || column + k >= columns)
            continue;
        for (int s = 0; s < S; s++)
            partials[((size_t)blockIdx.y * columns + column + k) * S + s] =
                room[s * N + k][t];
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
    for (unsigned p = 0; p < stretches; p++)
        for (int s = 0; s < S; s++)
            sums[s] += partials[((size_t)p * columns + column) * S + s];
    g(column, sums);
}

/* even: f reads rows that begin at multiples of 16 bytes, N elements of the
 * narrowest. */
template <int S, int N, typename F, typename G>
static void columns(const char *name, size_t rows, size_t width, bool even,
                    const F &f, const G &g)
{
    if (width == 0)
        return;
    if (!even && rows * width >= SLOW_VALUES)
        took(SLOW_COLUMNS,
             "%s: %zu columns in rows that do not begin at multiples of 16 "
             "bytes: one at a time",
             name, width);
    const size_t step = even ? N : 1;
    unsigned lanes = 1;
    while (lanes < 32 && lanes * step < width)
        lanes *= 2;
    const size_t across = (width + lanes * step - 1) / (lanes * step);
    size_t many = (4 * (size_t)processors() + across - 1) / across;
    const size_t least = 8 * (COLUMN_THREADS / lanes); /* rows of a stretch */
    const size_t most = (rows + least - 1) / least;
    many = many > most ? most : many;
    many = many < 1 ? 1 : many > 1024 ? 1024 : many;
    const size_t stretch = rows == 0 ? 1 : (rows + many - 1) / many;
    double *const partials = (double *)scratch_of(
        SCRATCH_PARTIALS, many * width * S * sizeof(double));
    if (partials == nullptr)
        return;
    launch(even ? columns_kernel<S, N, F> : columns_kernel<S, 1, F>,
           dim3((unsigned)across, (unsigned)many), dim3(COLUMN_THREADS), 0,
           stream(), rows, width, lanes, stretch, f, partials);
    launch(columns_end_kernel<S, G>, dim3((unsigned)((width + 127) / 128)),
           dim3(128), 0, stream(), width, (unsigned)many, partials, g);
    launched(name);
}

/* Rows of `stride` elements. */
template <typename T> static bool even_rows(const T *x, size_t stride)
{
    return stride % wide<T>::value == 0 && aligned(x, 16);
}

/* Sums of one matrix's columns to a float32 vector. */
template <typename T> struct column_of {
    typedef float partial;
    const T *x;
    size_t stride;
    template <int N>
    __device__ void at(size_t row, size_t column, float (&sums)[1][N]) const
    {
        float v[N];
        load(x, row * stride + column, v);
        for (int k = 0; k < N; k++)
            sums[0][k] += v[k];
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

template <typename T>
static void bias_gradient(size_t rows, size_t width, size_t stride,
                          const void *dy, void *dbias, unsigned add)
{
    const T *const from = (const T *)dy;
    columns<1, wide<T>::value>(
        "a bias's gradient", rows, width, even_rows(from, stride),
        column_of<T>{from, stride},
        column_put{(float *)dbias, (add & KITH_ADD_WEIGHTS) != 0});
}
} // namespace gpu

#endif
