/* Sums, dropout and pools of activations. Each output element is one thread's:
 * a way back gathers what its windows chose, so that nothing is added
 * atomically. */
#include "philox.cuh"
#include "state.cuh"

#include "kith/rng.h"

/* The masks of the CPU, bit for bit. */
#define KITH_MASK_FUNCTION static __host__ __device__ inline
#define kith_philox gpu::philox
#include "kith/dropout.h"
#undef kith_philox

namespace gpu
{
/* ---- sums */

template <typename T> struct sum_two {
    int activation;
    const T *a, *b;
    T *y;
    template <int N> __device__ void at(size_t i) const
    {
        float u[N], v[N];
        load(a, i, u);
        load(b, i, v);
        for (int k = 0; k < N; k++)
            u[k] = activate(activation, u[k] + v[k]);
        store(u, y, i);
    }
};

template <typename T> static void sum(const struct kith_arguments *a)
{
    const struct kith_sum *op = (const struct kith_sum *)a->shape;
    const tensors<T> t(a);
    const call c;
    if (c.well())
        each<wide<T>::value>("a sum", a->rows, all_aligned(t.x, t.other, t.y),
                             sum_two<T>{op->activation, t.x, t.other, t.y});
}

template <typename T> static void sum_backward(const struct kith_arguments *a)
{
    const struct kith_sum *op = (const struct kith_sum *)a->shape;
    const call c;
    if (c.well() && op->activation == KITH_ACTIVATION_RELU)
        mask<T>("a sum's way back", a->rows, a->y, a->dy);
}
KITH_KERNEL(sum, nullptr, sum, sum_backward)

/* ---- dropout */

/* A thread draws for four elements at once. */
template <typename T>
static void drop(const struct kith_arguments *a, const void *from, void *to)
{
    const struct kith_dropout *op = (const struct kith_dropout *)a->shape;
    const struct kith_mask mask = kith_mask_of(op);
    const float grown = (float)(1 / (1 - op->rate));
    const size_t n = a->rows;
    const T *const x = (const T *)from;
    T *const y = (T *)to;
    const call c;
    if (!c.well())
        return;
    each_index("dropout", (n + 3) / 4, 256, [=] __device__(size_t i) {
        uint32_t word[4];
        kith_mask_block(&mask, i, word);
        for (size_t k = 0; k < 4 && 4 * i + k < n; k++) {
            const float v = to_float(x[4 * i + k]);
            from_float(word[k] >= mask.threshold ? v * grown : 0.0f,
                       &y[4 * i + k]);
        }
    });
}

template <typename T> static void dropout(const struct kith_arguments *a)
{
    drop<T>(a, a->x, a->y);
}

template <typename T>
static void dropout_backward(const struct kith_arguments *a)
{
    drop<T>(a, a->dy, a->dx);
}
KITH_KERNEL(dropout, nullptr, dropout, dropout_backward)

/* ---- pools */

/* The input place that output `at` reads through kernel place k. */
static __device__ bool tap(size_t at, size_t k, const struct kith_pool &op,
                           size_t size, size_t *place)
{
    const size_t from = at * op.stride + k;
    *place = from - op.pad;
    return from >= op.pad && from - op.pad < size;
}

template <typename T> static void max_pool(const struct kith_arguments *a)
{
    const struct kith_pool op = *(const struct kith_pool *)a->shape;
    const tensors<T> t(a);
    uint8_t *const which = (uint8_t *)a->saved;
    const size_t n = a->rows * op.out_height * op.out_width * op.channels;
    const call c;
    if (!c.well())
        return;
    each_index("max_pool", n, 256, [=] __device__(size_t i) {
        const size_t c = i % op.channels, pixel = i / op.channels;
        const size_t left = pixel % op.out_width;
        const size_t above = pixel / op.out_width % op.out_height;
        const size_t row = pixel / op.out_width / op.out_height;
        float best = 0;
        uint8_t place = 0;
        bool any = false;
        for (size_t k = 0; k < op.kernel * op.kernel; k++) {
            size_t h, w;
            if (!tap(above, k / op.kernel, op, op.height, &h) ||
                !tap(left, k % op.kernel, op, op.width, &w))
                continue;
            const float v = to_float(
                t.x[((row * op.height + h) * op.width + w) * op.channels + c]);
            /* Written so that a NaN wins, and stays. */
            if (!any || (best == best && !(v <= best))) {
                best = v;
                place = (uint8_t)k;
                any = true;
            }
        }
        from_float(best, &t.y[i]);
        which[i] = place;
    });
}

template <typename T>
static void max_pool_backward(const struct kith_arguments *a)
{
    const struct kith_pool op = *(const struct kith_pool *)a->shape;
    const tensors<T> t(a);
    uint8_t *const which = (uint8_t *)a->saved;
    const size_t n = a->rows * op.height * op.width * op.channels;
    const call c;
    if (!c.well())
        return;
    each_index("max_pool's way back", n, 256, [=] __device__(size_t i) {
        const size_t c = i % op.channels, pixel = i / op.channels;
        const size_t w = pixel % op.width, h = pixel / op.width % op.height;
        const size_t row = pixel / op.width / op.height;
        float sum = t.adds_data ? to_float(t.dx[i]) : 0.0f;
        for (size_t k = 0; k < op.kernel * op.kernel; k++) {
            const size_t down = h + op.pad, right = w + op.pad;
            const size_t ky = k / op.kernel, kx = k % op.kernel;
            if (down < ky || right < kx || (down - ky) % op.stride != 0 ||
                (right - kx) % op.stride != 0)
                continue;
            const size_t above = (down - ky) / op.stride;
            const size_t left = (right - kx) / op.stride;
            if (above >= op.out_height || left >= op.out_width)
                continue;
            const size_t out =
                ((row * op.out_height + above) * op.out_width + left) *
                    op.channels +
                c;
            sum += which[out] == k ? to_float(t.dy[out]) : 0.0f;
        }
        from_float(sum, &t.dx[i]);
    });
}

template <typename T> static void mean_pool(const struct kith_arguments *a)
{
    const struct kith_mean op = *(const struct kith_mean *)a->shape;
    const tensors<T> t(a);
    const call c;
    if (!c.well())
        return;
    each_index(
        "mean_pool", a->rows * op.channels, 128, [=] __device__(size_t i) {
            const size_t row = i / op.channels, c = i % op.channels;
            float sum = 0;
            for (size_t p = 0; p < op.pixels; p++)
                sum += to_float(t.x[(row * op.pixels + p) * op.channels + c]);
            from_float(sum / (float)op.pixels, &t.y[i]);
        });
}

template <typename T>
static void mean_pool_backward(const struct kith_arguments *a)
{
    const struct kith_mean op = *(const struct kith_mean *)a->shape;
    const tensors<T> t(a);
    const call c;
    if (!c.well())
        return;
    each_index(
        "mean_pool's way back", a->rows * op.pixels * op.channels, 256,
        [=] __device__(size_t i) {
            const size_t row = i / op.channels / op.pixels, c = i % op.channels;
            const float d =
                to_float(t.dy[row * op.channels + c]) / (float)op.pixels;
            from_float(t.adds_data ? to_float(t.dx[i]) + d : d, &t.dx[i]);
        });
}

KITH_KERNEL(max_pool, nullptr, max_pool, max_pool_backward)
KITH_KERNEL(mean_pool, nullptr, mean_pool, mean_pool_backward)
} // namespace gpu
