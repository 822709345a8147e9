/* Root-mean-square norm, a row at a time: struct kith_norm's channels and
 * epsilon. Zhang and Sennrich, NeurIPS 2019. */
#include "kith/net.h"

/* 1 / root of each row. */
static size_t saved(const struct kith_op *op, size_t rows, size_t element,
                    size_t value)
{
    (void)op;
    (void)value;
    return rows * element;
}

static const struct kith_operation record = {
    .kind = KITH_OP_RMS_NORM, .flags = KITH_OPERATION_READS_X, .saved = saved};

kith_tensor kith_net_rms_norm(struct kith_net *net, kith_tensor x,
                              const char *name, double epsilon)
{
    const struct kith_net_tensor from = kith_net_tensor_of(net, x);
    const size_t rows = kith_net_rows(&from);
    if (kith_net_positions(&from) != rows)
        kith_net_fail(net, KITH_EINVAL, name, "an RMS norm of images");
    struct kith_op *added = kith_net_add(net, name, &record, x, from);
    if (added == NULL)
        return 0;
    added->rows = rows;
    added->as.norm = (struct kith_norm){.kind = KITH_NORM_LAYER,
                                        .pixels = 1,
                                        .channels = from.channels,
                                        .groups = 1,
                                        .epsilon = epsilon};
    added->weight =
        kith_net_add_vector(net, name, "weight", KITH_START_ONE, from.channels);
    return added->y;
}
