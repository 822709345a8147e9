/* The table of backend cpu's operations. */
#include "cpu_ops.h"
#include "cpu_image.h"

#include <math.h>

#define REAL float
static bool naive_finite(size_t n, const void *x)
{
    const float *v = x;
    for (size_t i = 0; i < n; i++) {
        if (!(v[i] - v[i] <= 0))
            return false;
    }
    return true;
}
#pragma GCC diagnostic ignored "-Wunused-function"
#include "naive_dense.inc.h"
#include "naive_image.inc.h"
#include "naive_text.inc.h"

const struct kith_ops kith_cpu_ops = {
    .linear = naive_linear,
    .linear_backward = naive_linear_backward,
    .conv_scratch = kith_cpu_conv_scratch,
    .conv = kith_cpu_conv,
    .conv_backward = kith_cpu_conv_backward,
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
