/* The table of backend cpu's operations. */
#include "cpu_ops.h"

#include "cpu_image.h"
#include "cpu_text.h"
#include "pool.h"

struct parts {
    void (*part)(const struct kith_arguments *a, size_t i);
    const struct kith_arguments *a;
};

static void one_part(void *context, size_t i)
{
    const struct parts *parts = context;
    parts->part(parts->a, i);
}

void kith_cpu_parts(size_t count,
                    void (*part)(const struct kith_arguments *a, size_t i),
                    const struct kith_arguments *a)
{
    struct parts parts = {part, a};
    kith_pool_run(count, one_part, &parts);
}

static bool is_layer(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    return op->kind == KITH_NORM_LAYER;
}

static void norm(const struct kith_arguments *a)
{
    (is_layer(a) ? kith_cpu_layer_norm : kith_cpu_norm)(a);
}

static void norm_backward(const struct kith_arguments *a)
{
    (is_layer(a) ? kith_cpu_layer_norm_backward : kith_cpu_norm_backward)(a);
}

const struct kith_kernel kith_cpu_norm_kernel = {.forward = norm,
                                                 .backward = norm_backward};

const struct kith_ops kith_cpu_ops = {
    KITH_OPERATIONS(KITH_CPU_KERNEL).cross_entropy = kith_cpu_cross_entropy,
    .adamw = kith_cpu_adamw,
};
