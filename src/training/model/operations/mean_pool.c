/* The mean over pixels: kith_mean. */
#include "kith/net.h"

static const struct kith_operation record = {.kind = KITH_OP_MEAN_POOL};

kith_tensor kith_net_mean_pool(struct kith_net *net, kith_tensor x)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    struct kith_op *added =
        kith_net_add(net, "mean pool", &record, x,
                     (struct kith_net_tensor){1, 1, from.channels, false});
    if (added != NULL)
        added->as.mean =
            (struct kith_mean){kith_net_positions(&from), from.channels};
    return kith_net_output(added);
}
