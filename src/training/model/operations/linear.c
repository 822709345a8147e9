/* A linear layer: kith_linear. */
#include "kith/net.h"

#include <string.h>

static double flops(const struct kith_op *op)
{
    const struct kith_linear *linear = &op->as.linear;
    return 2.0 * (double)op->rows * (double)linear->in * (double)linear->out;
}

/* GELU's slope needs its argument. */
static size_t saved(const struct kith_op *op, size_t rows, size_t element,
                    size_t value)
{
    (void)element;
    return op->activation == KITH_ACTIVATION_GELU
               ? rows * op->as.linear.out * value
               : 0;
}

static const struct kith_operation record = {
    .kind = KITH_OP_LINEAR, .flops = flops, .saved = saved};

/* An embedding's table of this name, for scores that share it. */
static uint32_t find_table(struct kith_net *net, const char *name, size_t out,
                           size_t in)
{
    for (uint32_t i = 0; i < net->parameter_count; i++) {
        const struct kith_model_view *view = &net->parameters[i].view;
        if (strcmp(view->name, name) == 0 && view->kind == KITH_VIEW_TABLE &&
            view->shape[0] == out && view->shape[1] == in)
            return i;
    }
    kith_net_fail(net, KITH_EINVAL, name, "no table of this name and shape");
    return KITH_PARAMETER_NONE;
}

kith_tensor kith_net_linear(struct kith_net *net, kith_tensor x,
                            const char *name, struct kith_net_linear op)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    const size_t in = from.tokens ? from.channels : kith_net_elements(&from);
    struct kith_net_tensor shape = {1, 1, op.out, false};
    if (from.tokens)
        shape = (struct kith_net_tensor){from.height, 1, op.out, true};
    struct kith_op *added = kith_net_add(net, name, &record, x, shape);
    if (added == NULL)
        return 0;
    added->rows = kith_net_rows(&from);
    added->activation = op.activation;
    added->as.linear = (struct kith_linear){.in = in,
                                            .out = op.out,
                                            .in_out = op.in_out,
                                            .activation = op.activation};
    const uint32_t rows = (uint32_t)(op.in_out ? in : op.out);
    const uint32_t columns = (uint32_t)(op.in_out ? op.out : in);
    if (op.tied != NULL)
        added->weight = find_table(net, op.tied, op.out, in);
    else
        added->weight = kith_net_add_matrix(net, name, op.start, op.spread, 2,
                                            (uint32_t[]){rows, columns});
    if (op.tied != NULL && (op.in_out || op.bias))
        kith_net_fail(net, KITH_EINVAL, name,
                      "tied weights are (out, in), no bias");
    if (op.bias)
        added->bias =
            kith_net_add_vector(net, name, "bias", KITH_START_ZERO, op.out);
    return added->y;
}
