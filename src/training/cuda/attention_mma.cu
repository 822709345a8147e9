/* Causal attention in bfloat16 on tensor cores; the equations stand in
 * attention.cu. A block of four warps takes 64 tokens, 16 a warp, whose rows
 * stay in registers (key_tiles says where not), and walks over tiles of the
 * others in shared memory. Tokens past the end are zeros, which add nothing:
 *
 *   forward        rows q;     tiles k, v:   y += P v, P rescaled as the
 *                              maximum grows
 *   way back of q  rows q, dy; tiles k, v:   dq += dS k
 *   way back of k  rows k, v;  tiles q, dy:  dv += P^T dy, dk += dS^T q
 *
 * The registers that hold a product (16, 8 n) are, narrowed in pairs, the left
 * side of the next one, so scores never leave them. Two passes for the way
 * back cost 7 products where one would cost 5, and need no atomic additions:
 * the same bits each time. Dao, "FlashAttention-2", 2023. */
#include "attention.cuh"
#include "state.cuh"

namespace gpu
{
enum { ROWS = 64, THREADS = 128 };
static const float log2_e = 1.44269504f;

/* Shared rows are padded by 16 bytes, so that eight of them lie in different
 * banks. */
template <int D> struct tile_of {
    static const int stride = D + 8;
};

/* Tokens [from, from + count) of D values each to shared memory; 0 past the
 * end. `step` elements lie between two tokens. */
template <int D>
static __device__ inline void fetch(const bf16 *source, size_t from,
                                    size_t count, size_t end, size_t step,
                                    bf16 *target)
{
    struct alignas(16) eight {
        uint32_t w[4];
    };
    for (unsigned e = threadIdx.x; e < count * (D / 8); e += THREADS) {
        const unsigned token = e / (D / 8), part = e % (D / 8);
        eight v = {{0, 0, 0, 0}};
        if (from + token < end)
            v = *(const eight *)(const void *)(source + (from + token) * step +
                                               part * 8);
        *(eight *)(void *)(target + token * tile_of<D>::stride + part * 8) = v;
    }
}

/* The warp's 16 rows of a tile in shared memory as left sides, 16 of their D
 * values. */
template <int D>
static __device__ inline void rows_at(const bf16 *tile, unsigned first, int d,
                                      uint32_t (&a)[4])
{
    const unsigned lane = threadIdx.x % 32;
    load_matrices(a, tile + (first + lane % 16) * tile_of<D>::stride + d * 16 +
                         lane / 16 * 8);
}

/* All of them: kept in registers, or left where they are in shared memory. */
template <int D, bool KEPT> struct left_rows {
    uint32_t a[D / 16][4];
    __device__ left_rows(const bf16 *tile, unsigned first)
    {
        for (int d = 0; d < D / 16; d++)
            rows_at<D>(tile, first, d, a[d]);
    }
    __device__ void at(int d, uint32_t (&out)[4]) const
    {
        for (int e = 0; e < 4; e++)
            out[e] = a[d][e];
    }
};
template <int D> struct left_rows<D, false> {
    const bf16 *tile;
    unsigned first;
    __device__ left_rows(const bf16 *tile_, unsigned first_)
        : tile(tile_), first(first_)
    {
    }
    __device__ void at(int d, uint32_t (&out)[4]) const
    {
        rows_at<D>(tile, first, d, out);
    }
};

/* s (16, N) <- rows (16, D) tile (N, D)^T */
template <int D, int N, bool KEPT>
static __device__ inline void scores(const left_rows<D, KEPT> &rows,
                                     const bf16 *tile, float (&s)[N / 8][4])
{
    const unsigned lane = threadIdx.x % 32;
    for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 4; e++)
            s[n][e] = 0;
    for (int d = 0; d < D / 16; d++) {
        uint32_t a[4];
        rows.at(d, a);
        for (int n = 0; n < N / 16; n++) {
            /* Two tiles of 8 tokens, both halves of 16 values. */
            uint32_t b[4];
            load_matrices(b, tile +
                                 (n * 16 + lane % 8 + lane / 16 * 8) *
                                     tile_of<D>::stride +
                                 d * 16 + lane / 8 % 2 * 8);
            mma_bf16(s[2 * n], a, b);
            mma_bf16(s[2 * n + 1], a, b + 2);
        }
    }
}

/* out (16, D) += p (16, N) tile (N, D), p narrowed. */
template <int D, int N>
static __device__ inline void gather(const float (&p)[N / 8][4],
                                     const bf16 *tile, float (&out)[D / 8][4])
{
    const unsigned lane = threadIdx.x % 32;
    for (int n = 0; n < N / 16; n++) {
        const uint32_t a[4] = {bf16_pair(p[2 * n][0], p[2 * n][1]),
                               bf16_pair(p[2 * n][2], p[2 * n][3]),
                               bf16_pair(p[2 * n + 1][0], p[2 * n + 1][1]),
                               bf16_pair(p[2 * n + 1][2], p[2 * n + 1][3])};
        for (int d = 0; d < D / 16; d++) {
            uint32_t b[4];
            load_transposed(b, tile +
                                   (n * 16 + lane % 16) * tile_of<D>::stride +
                                   d * 16 + lane / 16 * 8);
            mma_bf16(out[2 * d], a, b);
            mma_bf16(out[2 * d + 1], a, b + 2);
        }
    }
}

/* The row of element e of a product (16, ...), and its column in tile n. */
static __device__ inline unsigned row_in(int e)
{
    return threadIdx.x % 32 / 4 + (e >= 2 ? 8 : 0);
}
static __device__ inline unsigned column_in(int n, int e)
{
    return (unsigned)n * 8 + threadIdx.x % 4 * 2 + (unsigned)e % 2;
}

/* Over the four lanes that share a row. */
static __device__ inline float row_most(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
static __device__ inline float row_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

/* The warp's rows of a product to tokens first + 0 .. 15 of a tensor. */
template <int D>
static __device__ inline void put_rows(const float (&out)[D / 8][4],
                                       const float (&factor)[2], size_t first,
                                       size_t end, size_t step, bf16 *target)
{
    for (int half = 0; half < 2; half++) {
        const size_t token = first + row_in(2 * half);
        if (token >= end)
            continue;
        for (int d = 0; d < D / 8; d++)
            *(uint32_t *)(void *)(target + token * step + column_in(d, 0)) =
                bf16_pair(out[d][2 * half] * factor[half],
                          out[d][2 * half + 1] * factor[half]);
    }
}

template <int D>
__global__ void __launch_bounds__(THREADS)
    mma_kernel(heads h, const bf16 *qkv, float *saved, bf16 *y)
{
    DYNAMIC_SHARED(room);
    bf16 *const keys = (bf16 *)(void *)room;
    bf16 *const values = keys + ROWS * tile_of<D>::stride;
    const size_t pair = blockIdx.y, step = 3 * h.width;
    /* The longest rows of tiles begin first. */
    const size_t first = (size_t)(gridDim.x - 1 - blockIdx.x) * ROWS;
    const unsigned warp = threadIdx.x / 32;
    const bf16 *const q = head_at(h, qkv, pair);
    fetch<D>(q, first, ROWS, h.context, step, keys);
    __syncthreads();
    const left_rows<D, true> a(keys, warp * 16);
    float out[D / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    const float factor = h.scale * log2_e;
    for (size_t at = 0; at <= first; at += ROWS) {
        float s[ROWS / 8][4];
        __syncthreads();
        fetch<D>(q + h.width, at, ROWS, h.context, step, keys);
        fetch<D>(q + 2 * h.width, at, ROWS, h.context, step, values);
        __syncthreads();
        scores<D, ROWS>(a, keys, s);
        /* Only on the diagonal are there later tokens. */
        for (int n = 0; n < ROWS / 8 && at == first; n++) {
            for (int e = 0; e < 4; e++)
                if (column_in(n, e) > warp * 16 + row_in(e))
                    s[n][e] = -INFINITY;
        }
        float most[2] = {top[0], top[1]};
        for (int n = 0; n < ROWS / 8; n++) {
            for (int e = 0; e < 4; e++) {
                s[n][e] *= factor;
                most[e / 2] = fmaxf(most[e / 2], s[n][e]);
            }
        }
        for (int half = 0; half < 2; half++) {
            most[half] = row_most(most[half]);
            const float shrink = fast_exp2(top[half] - most[half]);
            float add = 0;
            top[half] = most[half];
            for (int n = 0; n < ROWS / 8; n++) {
                for (int e = 2 * half; e < 2 * half + 2; e++) {
                    s[n][e] = fast_exp2(s[n][e] - most[half]);
                    add += s[n][e];
                }
            }
            sum[half] = sum[half] * shrink + row_sum(add);
            for (int d = 0; d < D / 8; d++) {
                out[d][2 * half] *= shrink;
                out[d][2 * half + 1] *= shrink;
            }
        }
        gather<D, ROWS>(s, values, out);
    }
    const float inverse[2] = {1 / sum[0], 1 / sum[1]};
    put_rows<D>(out, inverse, first + warp * 16, h.context, h.width,
                output_at(h, y, pair));
    for (int half = 0; half < 2 && saved != nullptr; half++) {
        const size_t i = first + warp * 16 + row_in(2 * half);
        if (i < h.context && threadIdx.x % 4 == 0)
            saved[pair * h.context + i] = top[half] / log2_e + logf(sum[half]);
    }
}

/* ---- the way back of q */

template <int D>
__global__ void __launch_bounds__(THREADS)
    mma_query_kernel(heads h, const bf16 *qkv, const float *saved,
                     const bf16 *dy, const float *own, bf16 *dqkv)
{
    const int N = D > 64 ? 32 : 64;
    DYNAMIC_SHARED(room);
    bf16 *const keys = (bf16 *)(void *)room;
    bf16 *const values = keys + ROWS * tile_of<D>::stride;
    const size_t pair = blockIdx.y, step = 3 * h.width;
    const size_t first = (size_t)(gridDim.x - 1 - blockIdx.x) * ROWS;
    const unsigned warp = threadIdx.x / 32;
    const bf16 *const q = head_at(h, qkv, pair);
    fetch<D>(q, first, ROWS, h.context, step, keys);
    fetch<D>(output_at(h, dy, pair), first, ROWS, h.context, h.width, values);
    __syncthreads();
    const left_rows<D, true> a(keys, warp * 16), d(values, warp * 16);
    float log_sum[2], mine[2], out[D / 8][4] = {};
    for (int half = 0; half < 2; half++) {
        const size_t i = first + warp * 16 + row_in(2 * half);
        const bool real = i < h.context;
        log_sum[half] = real ? saved[pair * h.context + i] * log2_e : 0.0f;
        mine[half] = real ? own[pair * h.context + i] : 0.0f;
    }
    const size_t last = first + ROWS < h.context ? first + ROWS : h.context;
    for (size_t at = 0; at < last; at += N) {
        float s[N / 8][4], dp[N / 8][4];
        __syncthreads();
        fetch<D>(q + h.width, at, N, h.context, step, keys);
        fetch<D>(q + 2 * h.width, at, N, h.context, step, values);
        __syncthreads();
        scores<D, N>(a, keys, s);
        scores<D, N>(d, values, dp);
        for (int n = 0; n < N / 8; n++) {
            for (int e = 0; e < 4; e++) {
                const float p =
                    fast_exp2(s[n][e] * h.scale * log2_e - log_sum[e / 2]);
                s[n][e] = p * (dp[n][e] - mine[e / 2]) * h.scale;
            }
        }
        /* Only on the diagonal are there later tokens. */
        for (int n = 0; n < N / 8 && at >= first; n++) {
            for (int e = 0; e < 4; e++)
                if ((unsigned)(at - first) + column_in(n, e) >
                    warp * 16 + row_in(e))
                    s[n][e] = 0;
        }
        gather<D, N>(s, keys, out);
    }
    const float one[2] = {1, 1};
    put_rows<D>(out, one, first + warp * 16, h.context, step,
                head_at(h, dqkv, pair));
}

/* ---- the way back of k and v */

/* Larger heads leave the block's own keys and values in shared memory: with
 * both gradients they are more than the registers hold. Tiles are then 32
 * queries long. */
template <int D> struct key_tiles {
    static const bool kept = D <= 64;
    static const int length = kept ? 64 : 32;
    static const int rows = kept ? 2 * ROWS : 2 * ROWS + 2 * length;
    static size_t room()
    {
        return rows * tile_of<D>::stride * sizeof(bf16) +
               2 * length * sizeof(float);
    }
};

template <int D>
__global__ void __launch_bounds__(THREADS)
    mma_key_kernel(heads h, const bf16 *qkv, const float *saved, const bf16 *dy,
                   const float *own, bf16 *dqkv)
{
    const bool kept = key_tiles<D>::kept;
    const int N = key_tiles<D>::length;
    const int stride = tile_of<D>::stride;
    DYNAMIC_SHARED(room);
    bf16 *const keys = (bf16 *)(void *)room;
    bf16 *const values = keys + ROWS * stride;
    bf16 *const queries = kept ? keys : values + ROWS * stride;
    bf16 *const slopes = kept ? values : queries + N * stride;
    float *const log_sums = (float *)(void *)(slopes + N * stride);
    float *const mine = log_sums + N;
    const size_t pair = blockIdx.y, step = 3 * h.width;
    const size_t first = (size_t)blockIdx.x * ROWS;
    const unsigned warp = threadIdx.x / 32;
    const bf16 *const q = head_at(h, qkv, pair);
    fetch<D>(q + h.width, first, ROWS, h.context, step, keys);
    fetch<D>(q + 2 * h.width, first, ROWS, h.context, step, values);
    __syncthreads();
    const left_rows<D, kept> k(keys, warp * 16), v(values, warp * 16);
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    for (size_t at = first; at < h.context; at += N) {
        float s[N / 8][4], dp[N / 8][4];
        __syncthreads();
        fetch<D>(q, at, N, h.context, step, queries);
        fetch<D>(output_at(h, dy, pair), at, N, h.context, h.width, slopes);
        for (unsigned i = threadIdx.x; i < N; i += THREADS) {
            const bool real = at + i < h.context;
            log_sums[i] =
                real ? saved[pair * h.context + at + i] * log2_e : 0.0f;
            mine[i] = real ? own[pair * h.context + at + i] : 0.0f;
        }
        __syncthreads();
        scores<D, N>(k, queries, s);
        scores<D, N>(v, slopes, dp);
        for (int n = 0; n < N / 8; n++) {
            for (int e = 0; e < 4; e++) {
                const unsigned i = column_in(n, e);
                const float p =
                    fast_exp2(s[n][e] * h.scale * log2_e - log_sums[i]);
                s[n][e] = p;
                dp[n][e] = p * (dp[n][e] - mine[i]) * h.scale;
            }
        }
        /* Only on the diagonal are there earlier tokens. */
        for (int n = 0; n < N / 8 && at < first + ROWS; n++) {
            for (int e = 0; e < 4; e++)
                if ((unsigned)(at - first) + column_in(n, e) <
                    warp * 16 + row_in(e))
                    s[n][e] = dp[n][e] = 0;
        }
        gather<D, N>(s, slopes, dv);
        gather<D, N>(dp, queries, dk);
    }
    const float one[2] = {1, 1};
    bf16 *const target = head_at(h, dqkv, pair);
    put_rows<D>(dk, one, first + warp * 16, h.context, step, target + h.width);
    put_rows<D>(dv, one, first + warp * 16, h.context, step,
                target + 2 * h.width);
}

/* ---- by size of a head */

template <int D> static size_t room_of()
{
    return 2 * ROWS * tile_of<D>::stride * sizeof(bf16);
}

template <typename K> static bool allow(K kernel, size_t bytes)
{
    return bytes <= 48 * 1024 ||
           check(cudaFuncSetAttribute(
                     kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                     (int)bytes),
                 "attention");
}

static dim3 grid_of(const heads &h, size_t rows)
{
    return dim3((unsigned)((h.context + ROWS - 1) / ROWS),
                (unsigned)(rows * h.count));
}

template <int D> struct head_size {
    static const int value = D;
};

/* f(head_size<D>) where there is a kernel for heads of that size, and for what
 * its loads, 16 bytes wide, read and write; the grid's second side counts
 * heads. */
template <typename F>
static bool by_size(const heads &h, size_t rows, bool aligned, const F &f)
{
    if (h.width % 8 != 0 || !aligned || rows * h.count > 65535)
        return false;
    switch (h.size) {
    case 32:
        f(head_size<32>());
        return true;
    case 64:
        f(head_size<64>());
        return true;
    case 96:
        f(head_size<96>());
        return true;
    case 128:
        f(head_size<128>());
        return true;
    default:
        return false;
    }
}

bool mma_forward(const heads &h, size_t rows, const bf16 *qkv, float *saved,
                 bf16 *y)
{
    return by_size(
        h, rows, all_aligned(qkv, y),
        [&](auto size) {
            const int D = decltype(size)::value;
            if (!allow(mma_kernel<D>, room_of<D>()))
                return;
            launch(mma_kernel<D>, grid_of(h, rows), dim3(THREADS), room_of<D>(),
                   stream(), h, qkv, saved, y);
            launched("attention");
        });
}

bool mma_backward(const heads &h, size_t rows, const bf16 *qkv,
                  const float *saved, const bf16 *dy, const float *own,
                  bf16 *dqkv)
{
    return by_size(
        h, rows, all_aligned(qkv, dqkv, dy),
        [&](auto size) {
            const int D = decltype(size)::value;
            if (!allow(mma_query_kernel<D>, room_of<D>()) ||
                !allow(mma_key_kernel<D>, key_tiles<D>::room()))
                return;
            launch(mma_query_kernel<D>, grid_of(h, rows), dim3(THREADS),
                   room_of<D>(), stream(), h, qkv, saved, dy, own, dqkv);
            launch(mma_key_kernel<D>, grid_of(h, rows), dim3(THREADS),
                   key_tiles<D>::room(), stream(), h, qkv, saved, dy, own,
                   dqkv);
            launched("attention's way back");
        });
}
} // namespace gpu
