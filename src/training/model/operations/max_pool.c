/* A max-pool: kith_pool. */
#include "kith/net.h"

/* The place of the largest in its window, a byte a value. */
static size_t saved(const struct kith_op *op, size_t rows, size_t element,
                    size_t value)
{
    (void)element;
    (void)value;
    const struct kith_pool *pool = &op->as.pool;
    return rows * pool->out_height * pool->out_width * pool->channels;
}

static const struct kith_operation record = {.kind = KITH_OP_MAX_POOL,
                                             .saved = saved};

kith_tensor kith_net_max_pool(struct kith_net *net, kith_tensor x,
                              size_t kernel, size_t stride, size_t pad)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    const struct kith_net_tensor shape = {
        kith_net_windows(from.height, kernel, stride, pad),
        kith_net_windows(from.width, kernel, stride, pad), from.channels,
        false};
    struct kith_op *added = kith_net_add(net, "max pool", &record, x, shape);
    if (added == NULL)
        return 0;
    added->always_saves = true;
    added->as.pool = (struct kith_pool){.height = from.height,
                                        .width = from.width,
                                        .channels = from.channels,
                                        .kernel = kernel,
                                        .stride = stride,
                                        .pad = pad,
                                        .out_height = shape.height,
                                        .out_width = shape.width};
    return added->y;
}
