/* The table of backend cpu's operations. */
#include "cpu_ops.h"

#include "cpu_image.h"
#include "cpu_text.h"

void kith_cpu_any_norm(const struct kith_norm *op, size_t rows, bool training,
                       const void *x, const void *scale, const void *shift,
                       void *buffers, void *saved, void *y)
{
    if (op->kind == KITH_NORM_LAYER)
        kith_cpu_layer_norm(op, rows, x, scale, shift, saved, y);
    else
        kith_cpu_norm(op, rows, training, x, scale, shift, buffers, saved, y);
}

void kith_cpu_any_norm_backward(const struct kith_norm *op, size_t rows,
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
    KITH_CPU_OPS,
    .linear = kith_cpu_linear,
    .linear_backward = kith_cpu_linear_backward,
};
