/* The table of backend cpu's operations. */
#include "cpu_ops.h"

#include "cpu_image.h"
#include "cpu_text.h"

static void cpu_norm(const struct kith_norm *op, size_t rows, bool training,
                     const void *x, const void *scale, const void *shift,
                     void *buffers, void *saved, void *y)
{
    if (op->kind == KITH_NORM_LAYER)
        kith_cpu_layer_norm(op, rows, x, scale, shift, saved, y);
    else
        kith_cpu_norm(op, rows, training, x, scale, shift, buffers, saved, y);
}

static void cpu_norm_backward(const struct kith_norm *op, size_t rows,
                              const void *x, const void *scale, const void *y,
                              const void *saved, void *dy, void *dx,
                              void *dscale, void *dshift, unsigned add)
{
    if (op->kind == KITH_NORM_LAYER)
        kith_cpu_layer_norm_backward(op, rows, x, scale, y, saved, dy, dx,
                                     dscale, dshift, add);
    else
        kith_cpu_norm_backward(op, rows, x, scale, y, saved, dy, dx, dscale,
                               dshift, add);
}

const struct kith_ops kith_cpu_ops = {
    .linear = kith_cpu_linear,
    .linear_backward = kith_cpu_linear_backward,
    .conv_scratch = kith_cpu_conv_scratch,
    .conv = kith_cpu_conv,
    .conv_backward = kith_cpu_conv_backward,
    .norm = cpu_norm,
    .norm_backward = cpu_norm_backward,
    .max_pool = kith_cpu_max_pool,
    .max_pool_backward = kith_cpu_max_pool_backward,
    .mean_pool = kith_cpu_mean_pool,
    .mean_pool_backward = kith_cpu_mean_pool_backward,
    .sum = kith_cpu_sum,
    .sum_backward = kith_cpu_sum_backward,
    .dropout = kith_cpu_dropout,
    .embed = kith_cpu_embed,
    .embed_backward = kith_cpu_embed_backward,
    .attention_scratch = kith_cpu_attention_scratch,
    .attention = kith_cpu_attention,
    .attention_backward = kith_cpu_attention_backward,
    .cross_entropy = kith_cpu_cross_entropy,
    .adamw = kith_cpu_adamw,
};
