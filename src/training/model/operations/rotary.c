/* Rotary positions: struct kith_attention says where q and k stand. Su et al.,
 * "RoFormer", 2021. A rotation keeps no values: its way back turns the other
 * way round. */
#include "kith/net.h"

static const struct kith_operation record = {.kind = KITH_OP_ROTARY,
                                             .passage = KITH_PASSAGE_IN_PLACE,
                                             .flags = KITH_OPERATION_OVER_X};

kith_tensor kith_net_rotary(struct kith_net *net, kith_tensor qkv, size_t heads)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, qkv);
    const size_t width = from.channels / 3;
    if (!from.tokens || from.channels % 3 != 0 || heads == 0 ||
        width % (2 * heads) != 0)
        kith_net_fail(net, KITH_EINVAL, "rotary", "heads of one even width");
    struct kith_op *added = kith_net_add(net, "rotary", &record, qkv, from);
    if (added == NULL)
        return 0;
    added->as.attention = (struct kith_attention){
        .context = from.height, .heads = heads, .width = width};
    return added->y;
}
