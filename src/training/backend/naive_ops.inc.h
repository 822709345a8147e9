/* The table of ops.h over the plain loops. REAL is float or double. */
#include "naive_dense.inc.h"
#include "naive_image.inc.h"
#include "naive_text.inc.h"

static const struct kith_ops naive_ops = {
    .linear = naive_linear,
    .linear_backward = naive_linear_backward,
    .conv_scratch = naive_conv_scratch,
    .conv = naive_conv,
    .conv_backward = naive_conv_backward,
    .norm = naive_norm,
    .norm_backward = naive_norm_backward,
    .max_pool = naive_max_pool,
    .max_pool_backward = naive_max_pool_backward,
    .mean_pool = naive_mean_pool,
    .mean_pool_backward = naive_mean_pool_backward,
    .sum = naive_add_up,
    .sum_backward = naive_sum_backward,
    .dropout = naive_dropout,
    .embed = naive_embed,
    .embed_backward = naive_embed_backward,
    .attention_scratch = naive_attention_scratch,
    .attention = naive_attention,
    .attention_backward = naive_attention_backward,
    .cross_entropy = naive_cross_entropy,
    .adamw = naive_adamw,
};
