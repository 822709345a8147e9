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
    const uint32_t kernel = (uint32_t)op.kernel, out = (uint32_t)op.out;
    added->weight = kith_net_add_parameter(
        net, &(struct kith_net_naming){
                 name,
                 "weight",
                 KITH_VIEW_WEIGHT,
                 op.start,
                 op.spread,
                 4,
                 {kernel, kernel, (uint32_t)from.channels, out}});
    if (op.bias)
        added->bias = kith_net_add_parameter(
            net,
            &(struct kith_net_naming){
                name, "bias", KITH_VIEW_VECTOR, KITH_START_ZERO, 0, 1, {out}});
    return added->y;
}
