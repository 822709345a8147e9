/* Batch, group and layer norms: kith_norm. */
#include "kith/net.h"

static size_t saved(const struct kith_op *op, size_t rows, size_t element,
                    size_t value)
{
    (void)value;
    return kith_norm_saved(&op->as.norm, rows) * element;
}

/* Recomputation must not update running statistics again. */
static void prepare(union kith_shape *shape, const struct kith_batch *batch,
                    bool repeated)
{
    (void)batch;
    if (repeated)
        shape->norm.momentum = 0;
}

static const struct kith_operation record = {.kind = KITH_OP_NORM,
                                             .flags = KITH_OPERATION_READS_X,
                                             .saved = saved,
                                             .prepare = prepare};

kith_tensor kith_net_norm(struct kith_net *net, kith_tensor x, const char *name,
                          enum kith_norm_kind kind, size_t groups,
                          double epsilon, enum kith_activation activation)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    if (kind == KITH_NORM_GROUP && (groups == 0 || from.channels % groups != 0))
        kith_net_fail(net, KITH_EINVAL, name,
                      "channels do not divide into groups");
    /* Each position of a sequence is a row of its own. */
    const bool rows_apart = kind == KITH_NORM_LAYER && from.tokens;
    if (kind == KITH_NORM_LAYER && !rows_apart && kith_net_positions(&from) > 1)
        kith_net_fail(net, KITH_EINVAL, name, "a layer norm of images");
    struct kith_op *added = kith_net_add(net, name, &record, x, from);
    if (added == NULL)
        return 0;
    added->activation = activation;
    added->rows = rows_apart ? from.height : 1;
    added->always_saves = kind == KITH_NORM_BATCH;
    added->as.norm =
        (struct kith_norm){.kind = kind,
                           .pixels = rows_apart ? 1 : kith_net_positions(&from),
                           .channels = from.channels,
                           .groups = groups,
                           .epsilon = epsilon,
                           .momentum = KITH_BUFFER_MOMENTUM,
                           .activation = activation};
    const uint32_t channels = (uint32_t)from.channels;
    struct kith_net_naming naming = {
        name, "weight", KITH_VIEW_VECTOR, KITH_START_ONE, 0, 1, {channels}};
    added->weight = kith_net_add_parameter(net, &naming);
    naming.suffix = "bias";
    naming.start = KITH_START_ZERO;
    added->bias = kith_net_add_parameter(net, &naming);
    if (kind != KITH_NORM_BATCH)
        return added->y;
    naming.suffix = "running_mean";
    naming.kind = KITH_VIEW_MEAN;
    added->buffers = kith_net_add_parameter(net, &naming);
    naming.suffix = "running_var";
    naming.kind = KITH_VIEW_VARIANCE;
    naming.start = KITH_START_ONE;
    (void)kith_net_add_parameter(net, &naming);
    return added->y;
}
