/* A sum of two tensors: kith_sum. */
#include "kith/net.h"

static const struct kith_operation record = {
    .kind = KITH_OP_SUM,
    .passage = KITH_PASSAGE_SHARED,
    .flags = KITH_OPERATION_OVER_X | KITH_OPERATION_OVER_OTHER};

kith_tensor kith_net_sum(struct kith_net *net, kith_tensor a, kith_tensor b,
                         enum kith_activation activation)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, a);
    const struct kith_net_tensor other = kith_net_tensor_of(net, b);
    if (a == b || from.height != other.height || from.width != other.width ||
        from.channels != other.channels)
        kith_net_fail(net, KITH_EINVAL, "sum", "of two tensors of one shape");
    struct kith_op *added = kith_net_add(net, "sum", &record, a, from);
    if (added == NULL)
        return 0;
    added->b = b;
    added->rows = kith_net_elements(&from);
    added->activation = activation;
    added->as.sum.activation = activation;
    return added->y;
}
