/* Sums, dropout and pools of activations. Each output element is one thread's:
 * a way back gathers what its windows chose, so that nothing is added
 * atomically. */
#include "state.cuh"

#include "kith/rng.h"

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
    const call c;
    if (c.well())
        each<wide<T>::value>("a sum", a->rows,
                             aligned(a->x, 16) && aligned(a->other, 16) &&
                                 aligned(a->y, 16),
                             sum_two<T>{op->activation, (const T *)a->x,
                                        (const T *)a->other, (T *)a->y});
}

template <typename T> struct sum_back {
    const T *y;
    T *dy;
    template <int N> __device__ void at(size_t i) const
    {
        float d[N], v[N];
        load(dy, i, d);
        load(y, i, v);
        for (int k = 0; k < N; k++)
            d[k] = v[k] > 0 ? d[k] : 0.0f;
        store(d, dy, i);
    }
};

template <typename T> static void sum_backward(const struct kith_arguments *a)
{
    const struct kith_sum *op = (const struct kith_sum *)a->shape;
    const call c;
    if (c.well() && op->activation == KITH_ACTIVATION_RELU)
        each<wide<T>::value>("a sum's way back", a->rows,
                             aligned(a->dy, 16) && aligned(a->y, 16),
                             sum_back<T>{(const T *)a->y, (T *)a->dy});
}
KITH_KERNEL(sum, nullptr, sum, sum_backward)

/* ---- dropout: the masks of src/training/backend/dropout.h, bit for bit */

static __host__ __device__ void
philox(const uint32_t key[2], const uint32_t counter[4], uint32_t word[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

struct mask {
    uint32_t key[2], tail[2];
    uint64_t threshold;
};

static mask mask_of(const struct kith_dropout *op)
{
    const uint32_t seed[2] = {(uint32_t)op->seed, (uint32_t)(op->seed >> 32)};
    const uint32_t who[4] = {op->place, (uint32_t)op->entity,
                             (uint32_t)(op->entity >> 32),
                             (uint32_t)KITH_STREAM_DROPOUT};
    uint32_t peer[4], drawn[4];
    philox(seed, who, peer);
    const uint32_t when[4] = {(uint32_t)op->step, (uint32_t)(op->step >> 32),
                              peer[2], peer[3]};
    philox(peer, when, drawn);
    return {{drawn[0], drawn[1]},
            {drawn[2], drawn[3]},
            (uint64_t)(op->rate * 4294967296.0)};
}

/* A thread draws for four elements at once. */
template <typename T>
__global__ void dropout_kernel(size_t n, mask m, float grown, const T *x, T *y)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < (n + 3) / 4; i += step) {
        const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32),
                                     m.tail[0], m.tail[1]};
        uint32_t word[4];
        philox(m.key, counter, word);
        for (size_t k = 0; k < 4 && 4 * i + k < n; k++) {
            const float v = to_float(x[4 * i + k]);
            from_float(word[k] >= m.threshold ? v * grown : 0.0f,
                       &y[4 * i + k]);
        }
    }
}

template <typename T>
static void drop(const struct kith_arguments *a, const void *from, void *to)
{
    const struct kith_dropout *op = (const struct kith_dropout *)a->shape;
    const call c;
    const size_t n = a->rows;
    if (!c.well() || n == 0)
        return;
    launch(dropout_kernel<T>, dim3(blocks_for((n + 3) / 4, 256)), dim3(256), 0,
           stream(), n, mask_of(op), (float)(1 / (1 - op->rate)),
           (const T *)from, (T *)to);
    launched("dropout");
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

template <typename T>
__global__ void max_pool_kernel(size_t n, struct kith_pool op, const T *x, T *y,
                                uint8_t *which)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
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
                x[((row * op.height + h) * op.width + w) * op.channels + c]);
            /* Written so that a NaN wins, and stays. */
            if (!any || (best == best && !(v <= best))) {
                best = v;
                place = (uint8_t)k;
                any = true;
            }
        }
        from_float(best, &y[i]);
        which[i] = place;
    }
}

template <typename T> static void max_pool(const struct kith_arguments *a)
{
    const struct kith_pool *op = (const struct kith_pool *)a->shape;
    const call c;
    const size_t n = a->rows * op->out_height * op->out_width * op->channels;
    if (!c.well() || n == 0)
        return;
    launch(max_pool_kernel<T>, dim3(blocks_for(n, 256)), dim3(256), 0, stream(),
           n, *op, (const T *)a->x, (T *)a->y, (uint8_t *)a->saved);
    launched("max_pool");
}

template <typename T>
__global__ void max_pool_back_kernel(size_t n, struct kith_pool op, bool adds,
                                     const uint8_t *which, const T *dy, T *dx)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        const size_t c = i % op.channels, pixel = i / op.channels;
        const size_t w = pixel % op.width, h = pixel / op.width % op.height;
        const size_t row = pixel / op.width / op.height;
        float sum = adds ? to_float(dx[i]) : 0.0f;
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
            sum += which[out] == k ? to_float(dy[out]) : 0.0f;
        }
        from_float(sum, &dx[i]);
    }
}

template <typename T>
static void max_pool_backward(const struct kith_arguments *a)
{
    const struct kith_pool *op = (const struct kith_pool *)a->shape;
    const call c;
    const size_t n = a->rows * op->height * op->width * op->channels;
    if (!c.well() || n == 0)
        return;
    launch(max_pool_back_kernel<T>, dim3(blocks_for(n, 256)), dim3(256), 0,
           stream(), n, *op, (a->flags & KITH_ADD_DATA) != 0,
           (uint8_t *)a->saved, (const T *)a->dy, (T *)a->dx);
    launched("max_pool's way back");
}

template <typename T>
__global__ void mean_pool_kernel(size_t n, size_t pixels, size_t channels,
                                 const T *x, T *y)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        const size_t row = i / channels, c = i % channels;
        float sum = 0;
        for (size_t p = 0; p < pixels; p++)
            sum += to_float(x[(row * pixels + p) * channels + c]);
        from_float(sum / (float)pixels, &y[i]);
    }
}

template <typename T> static void mean_pool(const struct kith_arguments *a)
{
    const struct kith_mean *op = (const struct kith_mean *)a->shape;
    const call c;
    const size_t n = a->rows * op->channels;
    if (!c.well() || n == 0)
        return;
    launch(mean_pool_kernel<T>, dim3(blocks_for(n, 128)), dim3(128), 0,
           stream(), n, op->pixels, op->channels, (const T *)a->x, (T *)a->y);
    launched("mean_pool");
}

template <typename T>
__global__ void mean_pool_back_kernel(size_t n, size_t pixels, size_t channels,
                                      bool adds, const T *dy, T *dx)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < n; i += step) {
        const size_t row = i / channels / pixels, c = i % channels;
        const float d = to_float(dy[row * channels + c]) / (float)pixels;
        from_float(adds ? to_float(dx[i]) + d : d, &dx[i]);
    }
}

template <typename T>
static void mean_pool_backward(const struct kith_arguments *a)
{
    const struct kith_mean *op = (const struct kith_mean *)a->shape;
    const call c;
    const size_t n = a->rows * op->pixels * op->channels;
    if (!c.well() || n == 0)
        return;
    launch(mean_pool_back_kernel<T>, dim3(blocks_for(n, 256)), dim3(256), 0,
           stream(), n, op->pixels, op->channels,
           (a->flags & KITH_ADD_DATA) != 0, (const T *)a->dy, (T *)a->dx);
    launched("mean_pool's way back");
}

KITH_KERNEL(max_pool, nullptr, max_pool, max_pool_backward)
KITH_KERNEL(mean_pool, nullptr, mean_pool, mean_pool_backward)
} // namespace gpu
