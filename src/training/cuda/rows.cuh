/* Norms of rows: a warp per row, which its L1 cache keeps between the passes.
 * The layer norm, and the RMS norm, which is not centred: its mean counts as 0,
 * it has no shift and saves 1 / deviation alone. */
#ifndef KITH_TRAINING_CUDA_ROWS_CUH
#define KITH_TRAINING_CUDA_ROWS_CUH

#include "columns.cuh"

namespace gpu
{
enum { ROW_WARPS = 4 };

template <bool CENTRED, int N, typename T>
__global__ void row_kernel(size_t rows, unsigned width, float epsilon,
                           int activation, tensors<T> t)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const T *const in = t.x + row * width;
    float v[N], a[N], b[N], mean = 0, squares = 0;
    for (unsigned i = lane * N; CENTRED && i < width; i += 32 * N) {
        load(in, i, v);
        for (int k = 0; k < N; k++)
            mean += v[k];
    }
    mean = CENTRED ? warp_sum(mean) / (float)width : 0.0f;
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        for (int k = 0; k < N; k++)
            squares += (v[k] - mean) * (v[k] - mean);
    }
    const float variance = warp_sum(squares) / (float)width;
    const float inverse = 1 / sqrtf(variance + epsilon);
    if (t.saved != nullptr && lane == 0) {
        if (CENTRED)
            t.saved[row] = mean;
        t.saved[(CENTRED ? rows : 0) + row] = inverse;
    }
    for (unsigned i = lane * N; i < width; i += 32 * N) {
        load(in, i, v);
        load(t.weight, i, a);
        if (CENTRED)
            load(t.bias, i, b);
        for (int k = 0; k < N; k++) {
            const float hat = (v[k] - mean) * inverse;
            v[k] =
                CENTRED ? activate(activation, hat * a[k] + b[k]) : hat * a[k];
        }
        store(v, t.y + row * width, i);
    }
}

template <bool CENTRED, int N, typename T>
__global__ void row_back_kernel(size_t rows, unsigned width, bool masks,
                                tensors<T> t)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    if (row >= rows)
        return;
    const size_t from = row * width;
    const float mean = CENTRED ? t.saved[row] : 0.0f;
    const float inverse = t.saved[(CENTRED ? rows : 0) + row];
    float v[N], g[N], a[N], u[N] = {}, old[N] = {}, first = 0, second = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = lane * N; i < width; i += 32 * N) {
            load(t.x, from + i, v);
            load(t.dy, from + i, g);
            load(t.weight, i, a);
            if (masks)
                load(t.y, from + i, u);
            if (t.adds_data && pass == 1)
                load(t.dx, from + i, old);
            for (int k = 0; k < N; k++) {
                g[k] = masks && !(u[k] > 0) ? 0 : g[k] * a[k];
                v[k] = (v[k] - mean) * inverse;
                if (pass == 0) {
                    first += CENTRED ? g[k] : 0.0f;
                    second += g[k] * v[k];
                } else {
                    v[k] = old[k] + (g[k] - first - v[k] * second) * inverse;
                }
            }
            if (pass == 1)
                store(v, t.dx, from + i);
        }
        if (pass == 0) {
            first = CENTRED ? warp_sum(first) / (float)width : 0.0f;
            second = warp_sum(second) / (float)width;
        }
    }
}

/* Can a warp load 16 bytes of a row at once? */
static bool even_norm(size_t rows, size_t width, bool aligned)
{
    if (!aligned && rows * width >= SLOW_VALUES)
        took(SLOW_NORM,
             "a norm of %zu channels whose rows, scale or shift do not begin "
             "at multiples of 16 bytes: one at a time",
             width);
    return aligned;
}

static dim3 row_grid(size_t rows)
{
    return dim3((unsigned)((rows + ROW_WARPS - 1) / ROW_WARPS));
}

template <bool CENTRED, typename T>
static void rows_forward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const tensors<T> t(a);
    const bool even = even_norm(a->rows, op->channels,
                                even_rows(t.x, op->channels) &&
                                    all_aligned(t.y, t.weight, t.bias));
    launch(even ? row_kernel<CENTRED, wide<T>::value, T>
                : row_kernel<CENTRED, 1, T>,
           row_grid(a->rows), dim3(ROW_WARPS * 32), 0, stream(), a->rows,
           (unsigned)op->channels, (float)op->epsilon, (int)op->activation, t);
    launched("a norm of rows");
}

template <bool CENTRED, typename T>
static void rows_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = (const struct kith_norm *)a->shape;
    const bool masks = op->activation == KITH_ACTIVATION_RELU;
    const tensors<T> t(a);
    const bool even =
        even_norm(a->rows, op->channels,
                  even_rows(t.x, op->channels) &&
                      all_aligned(t.dy, t.dx, masks ? t.y : t.dy) &&
                      aligned(t.weight, 16));
    launch(even ? row_back_kernel<CENTRED, wide<T>::value, T>
                : row_back_kernel<CENTRED, 1, T>,
           row_grid(a->rows), dim3(ROW_WARPS * 32), 0, stream(), a->rows,
           (unsigned)op->channels, masks, t);
    launched("the way back of a norm of rows");
}
} // namespace gpu

#endif
