/* Causal self-attention: kith_attention. */
#include "kith/net.h"

/* Scores and their products with v; the half that the causal mask leaves out is
 * counted, as is the custom. */
static double flops(const struct kith_op *op)
{
    const struct kith_attention *attention = &op->as.attention;
    return 4.0 * (double)attention->context * (double)attention->context *
           (double)attention->width;
}

static size_t saved(const struct kith_op *op, size_t rows, size_t element,
                    size_t value)
{
    (void)value;
    return rows * op->as.attention.heads * op->as.attention.context * element;
}

static const struct kith_operation record = {.kind = KITH_OP_ATTENTION,
                                             .passage = KITH_PASSAGE_APART,
                                             .flags = KITH_OPERATION_READS_X |
                                                      KITH_OPERATION_READS_Y,
                                             .flops = flops,
                                             .saved = saved};

kith_tensor kith_net_attention(struct kith_net *net, kith_tensor qkv,
                               size_t heads)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, qkv);
    const size_t width = from.channels / 3;
    if (!from.tokens || from.channels % 3 != 0 || heads == 0 ||
        width % heads != 0)
        kith_net_fail(net, KITH_EINVAL, "attention", "heads of one width each");
    struct kith_op *added =
        kith_net_add(net, "attention", &record, qkv,
                     (struct kith_net_tensor){from.height, 1, width, true});
    if (added == NULL)
        return 0;
    added->always_saves = true;
    added->as.attention = (struct kith_attention){
        .context = from.height, .heads = heads, .width = width};
    return added->y;
}
