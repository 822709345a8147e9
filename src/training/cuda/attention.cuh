/* Causal attention, what both kernels share: where a head stands in qkv. */
#ifndef KITH_TRAINING_CUDA_ATTENTION_CUH
#define KITH_TRAINING_CUDA_ATTENTION_CUH

#include "common.cuh"

namespace gpu
{
/* Sizes of one call; qkv (rows, context, 3, heads, size). */
struct heads {
    size_t context, count, size, width; /* width = count * size */
    float scale;                        /* 1 / sqrt(size) */
};

static inline heads heads_of(const struct kith_attention *op)
{
    const size_t size = op->width / op->heads;
    return {op->context, op->heads, size, op->width,
            (float)(1 / sqrt((double)size))};
}

/* First element of q of (row, head) at token 0; k and v are width and 2 width
 * further, the next token 3 width. */
template <typename T>
static __device__ inline T *head_at(const heads &h, T *qkv, size_t pair)
{
    return qkv + pair / h.count * h.context * 3 * h.width +
           pair % h.count * h.size;
}
/* The same in y (rows, context, heads, size), a token `width` further. */
template <typename T>
static __device__ inline T *output_at(const heads &h, T *y, size_t pair)
{
    return y + pair / h.count * h.context * h.width + pair % h.count * h.size;
}

/* attention_mma.cu: bfloat16 on tensor cores; false: not this size. */
bool mma_forward(const heads &h, size_t rows, const bf16 *qkv, float *saved,
                 bf16 *y);
bool mma_backward(const heads &h, size_t rows, const bf16 *qkv,
                  const float *saved, const bf16 *dy, const float *own,
                  bf16 *dqkv);
} // namespace gpu

#endif
