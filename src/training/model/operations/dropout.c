/* Dropout: kith_dropout. */
#include "kith/net.h"

static void prepare(union kith_shape *shape, const struct kith_batch *batch,
                    bool repeated)
{
    (void)repeated; /* the same mask */
    shape->dropout.seed = batch->seed;
    shape->dropout.entity = batch->entity;
    shape->dropout.step = batch->step;
}

static const struct kith_operation record = {
    .kind = KITH_OP_DROPOUT,
    .passage = KITH_PASSAGE_IN_PLACE,
    .flags = KITH_OPERATION_OVER_X | KITH_OPERATION_KEEPS_SIGN |
             KITH_OPERATION_TRAINING,
    .prepare = prepare};

kith_tensor kith_net_dropout(struct kith_net *net, kith_tensor x, double rate)
{
    if (!(rate > 0))
        return x;
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    struct kith_op *added = kith_net_add(net, "dropout", &record, x, from);
    if (added == NULL)
        return 0;
    added->rows = kith_net_elements(&from);
    added->as.dropout.rate = rate;
    added->as.dropout.place = net->op_count;
    return added->y;
}
