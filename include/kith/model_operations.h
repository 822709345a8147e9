/* What model_builder.h builds up: operations, tensors and parameters in fixed
 * arrays, because a model may not use the heap. The network floor owns one of
 * these (about 2 MB, most of it never touched) while it plans. */
#ifndef KITH_MODEL_OPERATIONS_H
#define KITH_MODEL_OPERATIONS_H

#include "kith/model_builder.h"

#define KITH_TENSOR_NONE UINT32_MAX
#define KITH_PARAMETER_NONE UINT32_MAX

enum kith_op_kind {
    KITH_OP_EMBED,
    KITH_OP_LINEAR,
    KITH_OP_CONV,
    KITH_OP_NORM,
    KITH_OP_MAX_POOL,
    KITH_OP_MEAN_POOL,
    KITH_OP_SUM,
    KITH_OP_DROPOUT,
    KITH_OP_ATTENTION,
};

/* y = op(a, b); parameters are indices into net.parameters. */
struct kith_op {
    enum kith_op_kind kind;
    uint32_t block; /* which block it belongs to */
    kith_tensor a, b, y;
    uint32_t weight;  /* linear, conv: W; norm: scale; embed: token */
    uint32_t bias;    /* linear, conv: bias; norm: shift; embed: position */
    uint32_t buffers; /* norm of kind BATCH: mean, the variance follows */
    union {
        struct kith_embed embed;
        struct kith_linear linear;
        struct kith_conv conv;
        struct kith_norm norm;
        struct kith_pool pool;
        struct kith_attention attention;
        enum kith_activation sum;
        struct {
            double rate;
            uint32_t place;
        } dropout;
    } as;
};

/* Per example: images (height, width, channels), flat (1, 1, channels), tokens
 * (context, 1, width). */
struct kith_net_tensor {
    size_t height, width, channels;
    bool tokens;
};

/* A parameter, in the order of naming, which is the order in which starting
 * weights are drawn; the view's offset is layout.c's to say. */
struct kith_net_parameter {
    struct kith_model_view view;
    enum kith_start start;
    double spread;
};

struct kith_net {
    enum kith_err err;
    char error[KITH_MODEL_ERROR_BYTES];
    char frozen[KITH_NAME_MAX];
    uint32_t op_count, tensor_count, parameter_count, block_count;
    kith_tensor scores; /* KITH_TENSOR_NONE until the end is named */
    uint64_t dim;
    bool tokens;
    struct kith_op ops[KITH_OPS_MAX];
    struct kith_net_tensor tensors[KITH_OPS_MAX + 1]; /* 0 is the input */
    struct kith_net_parameter parameters[KITH_OPS_MAX];
};

/* Empty, to be built. */
void kith_net_begin(struct kith_net *net, const char *frozen);
/* KITH_OK where the net is whole; else the first error, its text in error. */
enum kith_err kith_net_finish(struct kith_net *net);

static inline size_t kith_net_positions(const struct kith_net_tensor *tensor)
{
    return tensor->height * tensor->width;
}

/* Values per example. */
static inline size_t kith_net_elements(const struct kith_net_tensor *tensor)
{
    return kith_net_positions(tensor) * tensor->channels;
}

#endif
