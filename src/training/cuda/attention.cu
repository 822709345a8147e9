/* Causal attention, the plain kernels: float32, and the twin of the others.
 * A warp per token: each lane takes a key for its score, then a part of the
 * head for the sums. With s_ij = scale q_i . k_j, p_ij = e^(s_ij - L_i):
 *
 *   y_i = sum_j<=i p_ij v_j, L_i = log sum_j<=i e^s_ij, kept for the way back
 *   D_i = dy_i . y_i, ds_ij = p_ij (dy_i . v_j - D_i) scale
 *   dq_i = sum_j ds_ij k_j;  dk_j = sum_i ds_ij q_i;  dv_j = sum_i p_ij dy_i
 *
 * No (context, context) matrix is kept: Dao et al., NeurIPS 2022. */
#include "attention.cuh"
#include "state.cuh"

namespace gpu
{
enum { WARPS = 4, LANE_MAX = 8 }; /* heads of up to 256 */

template <typename T>
static __device__ inline float dot(size_t size, const T *a, const T *b)
{
    float sum = 0;
    for (size_t c = 0; c < size; c++)
        sum += to_float(a[c]) * to_float(b[c]);
    return sum;
}

/* What a lane holds of a head's row, out[c] being element 32 c + lane. */
template <typename T>
static __device__ inline void add_row(const heads &h, float factor,
                                      const T *row, float (&out)[LANE_MAX])
{
    const size_t lane = threadIdx.x % 32;
    for (int c = 0; c < LANE_MAX; c++)
        if (c * 32 + lane < h.size)
            out[c] += factor * to_float(row[c * 32 + lane]);
}
template <typename T>
static __device__ inline void put_row(const heads &h, float divisor,
                                      const float (&out)[LANE_MAX], T *row)
{
    const size_t lane = threadIdx.x % 32;
    for (int c = 0; c < LANE_MAX; c++)
        if (c * 32 + lane < h.size)
            from_float(out[c] / divisor, &row[c * 32 + lane]);
}

static __device__ inline float warp_most(float v)
{
    for (int bits = 16; bits > 0; bits /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, bits));
    return v;
}

/* The warp's (row, head) and token; false: past the end. */
static __device__ inline bool my_token(const heads &h, size_t pairs,
                                       size_t *pair, size_t *token)
{
    const size_t at = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    *pair = at / h.context;
    *token = at % h.context;
    return *pair < pairs;
}

template <typename T>
__global__ void attention_kernel(heads h, size_t pairs, const T *qkv,
                                 float *saved, T *y)
{
    size_t pair, i;
    if (!my_token(h, pairs, &pair, &i))
        return;
    const size_t lane = threadIdx.x % 32, stride = 3 * h.width;
    const T *const base = head_at(h, qkv, pair);
    const T *const q = base + i * stride, *const k = base + h.width;
    const T *const v = base + 2 * h.width;
    float top = -INFINITY, sum = 0, out[LANE_MAX] = {};
    for (size_t from = 0; from <= i; from += 32) {
        const size_t j = from + lane;
        const float s =
            j <= i ? h.scale * dot(h.size, q, k + j * stride) : -INFINITY;
        const float most = fmaxf(top, warp_most(s));
        const float shrink = expf(top - most), p = expf(s - most);
        sum = sum * shrink + warp_sum(p);
        top = most;
        for (int c = 0; c < LANE_MAX; c++)
            out[c] *= shrink;
        for (size_t t = 0; t < 32 && from + t <= i; t++) {
            const float share = __shfl_sync(0xffffffffu, p, (int)t);
            add_row(h, share, v + (from + t) * stride, out);
        }
    }
    put_row(h, sum, out, output_at(h, y, pair) + i * h.width);
    if (saved != nullptr && lane == 0)
        saved[pair * h.context + i] = top + logf(sum);
}

/* own (pairs, context) <- D_i */
template <typename T>
__global__ void own_kernel(heads h, size_t pairs, const T *y, const T *dy,
                           float *own)
{
    size_t pair, i;
    if (!my_token(h, pairs, &pair, &i))
        return;
    const T *const a = output_at(h, y, pair) + i * h.width;
    const T *const b = output_at(h, dy, pair) + i * h.width;
    float sum = 0;
    for (size_t c = threadIdx.x % 32; c < h.size; c += 32)
        sum += to_float(a[c]) * to_float(b[c]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        own[pair * h.context + i] = sum;
}

template <typename T>
__global__ void query_back_kernel(heads h, size_t pairs, const T *qkv,
                                  const float *saved, const T *dy,
                                  const float *own, T *dqkv)
{
    size_t pair, i;
    if (!my_token(h, pairs, &pair, &i))
        return;
    const size_t lane = threadIdx.x % 32, stride = 3 * h.width;
    const T *const base = head_at(h, qkv, pair);
    const T *const q = base + i * stride, *const k = base + h.width;
    const T *const v = base + 2 * h.width;
    const T *const d = output_at(h, dy, pair) + i * h.width;
    const float log_sum = saved[pair * h.context + i];
    const float mine = own[pair * h.context + i];
    float out[LANE_MAX] = {};
    for (size_t from = 0; from <= i; from += 32) {
        const size_t j = from + lane;
        float ds = 0;
        if (j <= i) {
            const float s = h.scale * dot(h.size, q, k + j * stride);
            const float dp = dot(h.size, d, v + j * stride);
            ds = expf(s - log_sum) * (dp - mine) * h.scale;
        }
        for (size_t t = 0; t < 32 && from + t <= i; t++) {
            const float share = __shfl_sync(0xffffffffu, ds, (int)t);
            add_row(h, share, k + (from + t) * stride, out);
        }
    }
    put_row(h, 1, out, head_at(h, dqkv, pair) + i * stride);
}

template <typename T>
__global__ void key_back_kernel(heads h, size_t pairs, const T *qkv,
                                const float *saved, const T *dy,
                                const float *own, T *dqkv)
{
    size_t pair, j;
    if (!my_token(h, pairs, &pair, &j))
        return;
    const size_t lane = threadIdx.x % 32, stride = 3 * h.width;
    const T *const q = head_at(h, qkv, pair);
    const T *const k = q + h.width + j * stride;
    const T *const v = q + 2 * h.width + j * stride;
    const T *const d = output_at(h, dy, pair);
    float dk[LANE_MAX] = {}, dv[LANE_MAX] = {};
    for (size_t from = j; from < h.context; from += 32) {
        const size_t i = from + lane;
        float p = 0, ds = 0;
        if (i < h.context) {
            const float s = h.scale * dot(h.size, q + i * stride, k);
            const float dp = dot(h.size, d + i * h.width, v);
            p = expf(s - saved[pair * h.context + i]);
            ds = p * (dp - own[pair * h.context + i]) * h.scale;
        }
        for (size_t t = 0; t < 32 && from + t < h.context; t++) {
            const float share = __shfl_sync(0xffffffffu, p, (int)t);
            const float slope = __shfl_sync(0xffffffffu, ds, (int)t);
            add_row(h, share, d + (from + t) * h.width, dv);
            add_row(h, slope, q + (from + t) * stride, dk);
        }
    }
    T *const target = head_at(h, dqkv, pair) + j * stride;
    put_row(h, 1, dk, target + h.width);
    put_row(h, 1, dv, target + 2 * h.width);
}

/* Only bfloat16 has a faster way. */
static bool quick_forward(const heads &, size_t, const float *, float *,
                          float *)
{
    return false;
}
static bool quick_forward(const heads &h, size_t rows, const bf16 *qkv,
                          float *saved, bf16 *y)
{
    return mma_forward(h, rows, qkv, saved, y);
}
static bool quick_backward(const heads &, size_t, const float *, const float *,
                           const float *, const float *, float *)
{
    return false;
}
static bool quick_backward(const heads &h, size_t rows, const bf16 *qkv,
                           const float *saved, const bf16 *dy, const float *own,
                           bf16 *dqkv)
{
    return mma_backward(h, rows, qkv, saved, dy, own, dqkv);
}

static const char *why_slow(const float *)
{
    return "float32 has no faster kernel: take backend cuda-bf16";
}
static const char *why_slow(const bf16 *)
{
    return "tensor cores take heads of 32, 64, 96 or 128";
}

static void take_plain(const heads &h, const char *why)
{
    took(SLOW_ATTENTION,
         "attention, %zu heads of %zu, without tensor cores: %s", h.count,
         h.size, why);
}

static bool fits(const heads &h)
{
    if (h.size <= 32 * LANE_MAX)
        return true;
    fail("attention heads are wider than 256: take more heads");
    return false;
}

static dim3 warps_for(const heads &h, size_t pairs)
{
    return dim3((unsigned)((pairs * h.context + WARPS - 1) / WARPS));
}

static size_t attention_scratch(const void *shape, size_t rows)
{
    const struct kith_attention *op = (const struct kith_attention *)shape;
    return rows * op->heads * op->context * sizeof(float);
}

template <typename T> static void attention(const struct kith_arguments *a)
{
    const struct kith_attention *op = (const struct kith_attention *)a->shape;
    const call c;
    const heads h = heads_of(op);
    const size_t pairs = a->rows * op->heads;
    const tensors<T> t(a);
    if (!c.well() || pairs == 0 || !fits(h) ||
        quick_forward(h, a->rows, t.x, t.saved, t.y))
        return;
    take_plain(h, why_slow(t.x));
    launch(attention_kernel<T>, warps_for(h, pairs), dim3(WARPS * 32), 0,
           stream(), h, pairs, t.x, t.saved, t.y);
    launched("attention");
}

template <typename T>
static void attention_backward(const struct kith_arguments *a)
{
    const struct kith_attention *op = (const struct kith_attention *)a->shape;
    const call c;
    const heads h = heads_of(op);
    const size_t pairs = a->rows * op->heads;
    const tensors<T> t(a);
    float *const own = (float *)a->scratch;
    if (!c.well() || pairs == 0 || !fits(h))
        return;
    launch(own_kernel<T>, warps_for(h, pairs), dim3(WARPS * 32), 0, stream(), h,
           pairs, t.y, t.dy, own);
    launched("attention's way back");
    if (quick_backward(h, a->rows, t.x, t.saved, t.dy, own, t.dx))
        return;
    take_plain(h, why_slow(t.x));
    launch(query_back_kernel<T>, warps_for(h, pairs), dim3(WARPS * 32), 0,
           stream(), h, pairs, t.x, t.saved, t.dy, own, t.dx);
    launch(key_back_kernel<T>, warps_for(h, pairs), dim3(WARPS * 32), 0,
           stream(), h, pairs, t.x, t.saved, t.dy, own, t.dx);
    launched("attention's way back");
}

KITH_KERNEL(attention, attention_scratch, attention, attention_backward)
} // namespace gpu
