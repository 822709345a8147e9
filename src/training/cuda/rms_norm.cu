/* Root-mean-square norm: a warp per row, and sums down the columns for the
 * gradient of the scale. With r = 1 / sqrt(mean x^2 + epsilon), g = dy scale
 * and h = x r: dx = r (g - h mean(g h)); dscale = sum dy h. */
#include "columns.cuh"
#include "state.cuh"

namespace gpu
{
enum { ROW_WARPS = 4 };

template <int N, typename T>
__global__ void rms_kernel(size_t rows, unsigned width, float epsilon,
                           const T *x, const float *scale, float *saved, T *y)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const T *const in = x + row * width;
    float v[N], a[N], squares = 0;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        for (int k = 0; k < N; k++)
            squares += v[k] * v[k];
    }
    const float inverse = 1 / sqrtf(warp_sum(squares) / (float)width + epsilon);
    if (saved != nullptr && lane == 0)
        saved[row] = inverse;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        load(scale, i, a);
        for (int k = 0; k < N; k++)
            v[k] = v[k] * inverse * a[k];
        store(v, y + row * width, i);
    }
}

template <int N, typename T>
__global__ void rms_back_kernel(size_t rows, unsigned width, bool adds,
                                const T *x, const float *scale,
                                const float *saved, const T *dy, T *dx)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const size_t from = row * width;
    const float inverse = saved[row];
    float v[N], g[N], a[N], old[N] = {}, product = 0;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(x, from + i, v);
        load(dy, from + i, g);
        load(scale, i, a);
        for (int k = 0; k < N; k++)
            product += g[k] * a[k] * v[k];
    }
    const float share = warp_sum(product) * inverse * inverse / (float)width;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(x, from + i, v);
        load(dy, from + i, g);
        load(scale, i, a);
        if (adds)
            load(dx, from + i, old);
        for (int k = 0; k < N; k++)
            v[k] = old[k] + (g[k] * a[k] - v[k] * share) * inverse;
        store(v, dx, from + i);
    }
}

template <typename T> struct rms_sums {
    typedef float partial;
    const T *x, *dy;
    const float *saved;
    size_t width;
    template <int N>
    __device__ void at(size_t row, size_t column, float (&sums)[1][N]) const
    {
        float v[N], d[N];
        load(x, row * width + column, v);
        load(dy, row * width + column, d);
        for (int k = 0; k < N; k++)
            sums[0][k] += d[k] * (v[k] * saved[row]);
    }
};

static dim3 rms_grid(size_t rows)
{
    return dim3((unsigned)((rows + ROW_WARPS - 1) / ROW_WARPS));
}

static void told(bool even, size_t rows, size_t width)
{
    if (!even && rows * width >= SLOW_VALUES)
        took(SLOW_NORM,
             "an RMS norm of %zu channels whose rows or scale do not begin at "
             "multiples of 16 bytes: one at a time",
             width);
}

template <typename T> static void rms_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0)
        return;
    const int N = wide<T>::value;
    const bool even = even_rows((const T *)a->x, op->channels) &&
                      aligned(a->y, 16) && aligned(a->weight, 16);
    told(even, a->rows, op->channels);
    launch(even ? rms_kernel<N, T> : rms_kernel<1, T>, rms_grid(a->rows),
           dim3(ROW_WARPS * 32), 0, stream(), a->rows, (unsigned)op->channels,
           (float)op->epsilon, (const T *)a->x, (const float *)a->weight,
           (float *)a->saved, (T *)a->y);
    launched("an RMS norm");
}

template <typename T>
static void rms_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const call c;
    if (!c.well() || a->rows == 0)
        return;
    const int N = wide<T>::value;
    const bool even =
        even_rows((const T *)a->x, op->channels) && aligned(a->dy, 16);
    if (a->dweight != nullptr)
        columns<1, wide<T>::value>(
            "an RMS norm's gradient", a->rows, op->channels, even,
            rms_sums<T>{(const T *)a->x, (const T *)a->dy,
                        (const float *)a->saved, op->channels},
            column_put{(float *)a->dweight,
                       (a->flags & KITH_ADD_WEIGHTS) != 0});
    if (a->dx == nullptr)
        return;
    const bool whole = even && aligned(a->dx, 16) && aligned(a->weight, 16);
    told(whole, a->rows, op->channels);
    launch(whole ? rms_back_kernel<N, T> : rms_back_kernel<1, T>,
           rms_grid(a->rows), dim3(ROW_WARPS * 32), 0, stream(), a->rows,
           (unsigned)op->channels, (a->flags & KITH_ADD_DATA) != 0,
           (const T *)a->x, (const float *)a->weight, (const float *)a->saved,
           (const T *)a->dy, (T *)a->dx);
    launched("an RMS norm's way back");
}
KITH_KERNEL(rms_norm, nullptr, rms_norm, rms_norm_backward)
} // namespace gpu
