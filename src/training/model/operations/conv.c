/* A convolution: kith_conv. */
#include "kith/net.h"

static double flops(const struct kith_op *op)
{
    const struct kith_conv *conv = &op->as.conv;
    return 2.0 * (double)(conv->out_height * conv->out_width) *
           (double)(conv->kernel * conv->kernel * conv->in) * (double)conv->out;
}

static const struct kith_operation record = {.kind = KITH_OP_CONV,
                                             .flops = flops};

kith_tensor kith_net_conv(struct kith_net *net, kith_tensor x, const char *name,
                          struct kith_net_conv op)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    const struct kith_net_tensor shape = {
        kith_net_windows(from.height, op.kernel, op.stride, op.pad),
        kith_net_windows(from.width, op.kernel, op.stride, op.pad), op.out,
        false};
    struct kith_op *added = kith_net_add(net, name, &record, x, shape);
    if (added == NULL)
        return 0;
    added->activation = op.activation;
    added->as.conv = (struct kith_conv){.height = from.height,
                                        .width = from.width,
                                        .in = from.channels,
                                        .out = op.out,
                                        .kernel = op.kernel,
                                        .stride = op.stride,
                                        .pad = op.pad,
                                        .out_height = shape.height,
                                        .out_width = shape.width,
                                        .activation = op.activation};
    const uint32_t kernel = (uint32_t)op.kernel, in = (uint32_t)from.channels;
    const uint32_t out = (uint32_t)op.out;
    added->weight = kith_net_add_matrix(net, name, op.start, op.spread, 4,
                                        (uint32_t[]){kernel, kernel, in, out});
    if (op.bias)
        added->bias =
            kith_net_add_vector(net, name, "bias", KITH_START_ZERO, op.out);
    return added->y;
}
