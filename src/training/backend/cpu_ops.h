/* The operations of backend cpu: each is declared where its file says, and
 * cpu_ops.c puts them into one table. */
#ifndef KITH_TRAINING_BACKEND_CPU_OPS_H
#define KITH_TRAINING_BACKEND_CPU_OPS_H

#include "cpu_image.h"
#include "cpu_text.h"
#include "kith/ops.h"

extern const struct kith_ops kith_cpu_ops;

/* kith_cpu_layer_norm or kith_cpu_norm, by op->kind. */
void kith_cpu_any_norm(const struct kith_norm *op, size_t rows, bool training,
                       const void *x, const void *scale, const void *shift,
                       void *buffers, void *saved, void *y);
void kith_cpu_any_norm_backward(const struct kith_norm *op, size_t rows,
                                const void *x, const void *scale, const void *y,
                                const void *saved, void *dy, void *dx,
                                void *dscale, void *dshift, unsigned add);

/* All but the linear layers. */
#define KITH_CPU_OPS                                                           \
    .conv_scratch = kith_cpu_conv_scratch, .conv = kith_cpu_conv,              \
    .conv_backward = kith_cpu_conv_backward, .norm = kith_cpu_any_norm,        \
    .norm_backward = kith_cpu_any_norm_backward,                               \
    .max_pool = kith_cpu_max_pool,                                             \
    .max_pool_backward = kith_cpu_max_pool_backward,                           \
    .mean_pool = kith_cpu_mean_pool,                                           \
    .mean_pool_backward = kith_cpu_mean_pool_backward, .sum = kith_cpu_sum,    \
    .sum_backward = kith_cpu_sum_backward, .dropout = kith_cpu_dropout,        \
    .embed = kith_cpu_embed, .embed_backward = kith_cpu_embed_backward,        \
    .attention_scratch = kith_cpu_attention_scratch,                           \
    .attention = kith_cpu_attention,                                           \
    .attention_backward = kith_cpu_attention_backward,                         \
    .cross_entropy = kith_cpu_cross_entropy, .adamw = kith_cpu_adamw

#endif
