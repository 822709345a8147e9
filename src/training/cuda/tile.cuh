/* Products by our own kernel: C (m, n) = A (m, k) B (k, n), where A, B and C
 * are functions of their indices, so that a convolution is a product whose A
 * finds its pixel when it is asked (an implicit product: nothing is unfolded).
 * The slow twin of what the libraries do, and what runs where they are not.
 *
 * A block of 256 threads holds a tile of 64 x 64, 4 x 4 a thread, and walks
 * along k in steps of 16. Where m and n are small and k is large (gradients of
 * weights), k is cut in parts whose tiles are added in order afterwards. */
#ifndef KITH_TRAINING_CUDA_TILE_CUH
#define KITH_TRAINING_CUDA_TILE_CUH

#include "common.cuh"

namespace gpu
{
enum { TILE = 64, DEPTH = 16 };

template <typename A, typename B, typename C>
__global__ void __launch_bounds__(256)
    tile_kernel(size_t m, size_t n, size_t k, size_t part, A a, B b, C c)
{
    __shared__ float left[DEPTH][TILE + 4], right[DEPTH][TILE + 4];
    const size_t row = (size_t)blockIdx.x * TILE;
    const size_t column = (size_t)blockIdx.y * TILE;
    const size_t from = (size_t)blockIdx.z * part;
    const size_t to = from + part < k ? from + part : k;
    const unsigned t = threadIdx.x, ti = t / 16 * 4, tj = t % 16 * 4;
    float sum[4][4] = {};
    for (size_t at = from; at < to; at += DEPTH) {
        __syncthreads();
        for (unsigned e = t; e < TILE * DEPTH; e += 256) {
            /* Neighbouring threads take neighbours along k of A, along n of
             * B: that is how both lie in memory most of the time. */
            const unsigned l = e % DEPTH, i = e / DEPTH;
            left[l][i] = row + i < m && at + l < to ? a(row + i, at + l) : 0.0f;
            const unsigned j = e % TILE, d = e / TILE;
            right[d][j] =
                column + j < n && at + d < to ? b(at + d, column + j) : 0.0f;
        }
        __syncthreads();
        for (unsigned l = 0; l < DEPTH; l++) {
            float u[4], v[4];
            for (int i = 0; i < 4; i++) {
                u[i] = left[l][ti + i];
                v[i] = right[l][tj + i];
            }
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += u[i] * v[j];
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned j = 0; j < 4; j++)
            if (row + ti + i < m && column + tj + j < n)
                c(row + ti + i, column + tj + j, sum[i][j]);
    }
}

/* Keeps the part of k that its block computed. */
struct keep_part {
    size_t m, n;
    float *parts;
    __device__ void operator()(size_t i, size_t j, float sum) const
    {
        parts[((size_t)blockIdx.z * m + i) * n + j] = sum;
    }
};

template <typename C>
__global__ void add_parts_kernel(size_t m, size_t n, unsigned count,
                                 const float *parts, C c)
{
    const size_t step = thread_count();
    for (size_t i = thread_index(); i < m * n; i += step) {
        float sum = 0;
        for (unsigned p = 0; p < count; p++)
            sum += parts[p * m * n + i];
        c(i / n, i % n, sum);
    }
}

/* Parts of k that fill the device, each at least 256 long. */
static inline unsigned parts_of(size_t tiles, size_t k)
{
    const size_t wanted = (2 * processors() + tiles - 1) / tiles;
    const size_t most = k / 256 < 1 ? 1 : k / 256;
    const size_t parts = wanted < most ? wanted : most;
    return (unsigned)(parts > 256 ? 256 : parts);
}

template <typename A, typename B, typename C>
static void tile_product(const char *name, size_t m, size_t n, size_t k,
                         const A &a, const B &b, const C &c)
{
    const size_t down = (m + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
    if (m == 0 || n == 0)
        return;
    const unsigned wanted = parts_of(down * across, k);
    const size_t length =
        ((k + wanted - 1) / wanted + DEPTH - 1) / DEPTH * DEPTH;
    const unsigned parts = k == 0 ? 1 : (unsigned)((k + length - 1) / length);
    const dim3 grid((unsigned)down, (unsigned)across, parts);
    if (across > 65535 || down > 0x7fffffff) {
        fail("a product is too large for this backend's own kernel");
        return;
    }
    if (parts <= 1) {
        launch(tile_kernel<A, B, C>, grid, dim3(256), 0, stream(), m, n, k,
               length, a, b, c);
        launched(name);
        return;
    }
    float *const sums =
        (float *)scratch_of(SCRATCH_SPLITS, parts * m * n * sizeof(float));
    if (sums == nullptr)
        return;
    launch(tile_kernel<A, B, keep_part>, grid, dim3(256), 0, stream(), m, n, k,
           length, a, b, keep_part{m, n, sums});
    launch(add_parts_kernel<C>, dim3(blocks_for(m * n, 256)), dim3(256), 0,
           stream(), m, n, parts, sums, c);
    launched(name);
}

/* ---- the plain functions of indices */

/* Element (i, j) at x[i * row + j * column]. */
template <typename T> struct matrix {
    const T *x;
    size_t row, column;
    __device__ float operator()(size_t i, size_t j) const
    {
        return to_float(x[i * row + j * column]);
    }
};

/* out[i * width + j] <- activation(factor v + bias_j) + kept out. */
template <typename T> struct put {
    T *out, *pre;
    const float *bias;
    size_t width;
    float factor, kept;
    int activation;
    __device__ void operator()(size_t i, size_t j, float v) const
    {
        const size_t at = i * width + j;
        v = factor * v + (bias == nullptr ? 0.0f : bias[j]);
        if (pre != nullptr)
            from_float(v, &pre[at]);
        v = activate(activation, v);
        if (kept != 0)
            v += kept * to_float(out[at]);
        from_float(v, &out[at]);
    }
};
} // namespace gpu

#endif
