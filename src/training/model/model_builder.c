/* Builders: each appends one operation with its parameters and derives the
 * shape of what it gives. A net with an error swallows the rest. */
#include "kith/model_operations.h"

#include <stdio.h>
#include <string.h>

/* Values of one example's tensor, and of one parameter: far above use, and no
 * product of sizes below can overflow. */
#define SIZE_OF_TENSOR_MAX (UINT64_C(1) << 31)

void kith_net_begin(struct kith_net *net, const char *frozen)
{
    memset(net, 0, offsetof(struct kith_net, ops));
    net->scores = KITH_TENSOR_NONE;
    memcpy(net->frozen, frozen, strlen(frozen) + 1);
}

static void net_fail(struct kith_net *net, enum kith_err err, const char *name,
                     const char *what)
{
    if (net->err != KITH_OK)
        return;
    net->err = err;
    (void)snprintf(net->error, sizeof net->error, "%s: %s", name, what);
}

static bool is_buffer(enum kith_view_kind kind)
{
    return kind == KITH_VIEW_MEAN || kind == KITH_VIEW_VARIANCE;
}

enum kith_err kith_net_finish(struct kith_net *net)
{
    uint32_t frozen = 0, buffers = 0;
    for (uint32_t i = 0; i < net->parameter_count; i++) {
        frozen += net->parameters[i].view.frozen;
        buffers += is_buffer(net->parameters[i].view.kind);
    }
    if (net->scores == KITH_TENSOR_NONE)
        net_fail(net, KITH_EINVAL, "net", "it gives no scores");
    if (net->frozen[0] != '\0' && frozen == 0)
        net_fail(net, KITH_EINVAL, "model.frozen",
                 "no view of the model has a name that begins so");
    if (frozen + buffers == net->parameter_count)
        net_fail(net, KITH_EINVAL, "model.frozen",
                 "every view begins so, and nothing would train");
    return net->err;
}

static const struct kith_net_tensor *tensor_of(const struct kith_net *net,
                                               kith_tensor x)
{
    static const struct kith_net_tensor nothing = {1, 1, 1, false};
    return x < net->tensor_count ? &net->tensors[x] : &nothing;
}

static kith_tensor add_tensor(struct kith_net *net, const char *name,
                              struct kith_net_tensor tensor)
{
    const uint64_t bound = SIZE_OF_TENSOR_MAX;
    if (net->err != KITH_OK)
        return 0;
    if (tensor.height == 0 || tensor.width == 0 || tensor.channels == 0) {
        net_fail(net, KITH_EINVAL, name, "nothing is left of its input");
        return 0;
    }
    if (tensor.height > bound || tensor.width > bound / tensor.height ||
        tensor.channels > bound / (tensor.height * tensor.width)) {
        net_fail(net, KITH_ELIMIT, name, "more than 2^31 values per example");
        return 0;
    }
    if (net->tensor_count == KITH_OPS_MAX + 1) {
        net_fail(net, KITH_ELIMIT, name, "too many operations");
        return 0;
    }
    net->tensors[net->tensor_count] = tensor;
    return net->tensor_count++;
}

/* The operation after the last one; NULL where there is no going on. */
static struct kith_op *add_op(struct kith_net *net, const char *name,
                              enum kith_op_kind kind, kith_tensor a,
                              struct kith_net_tensor shape)
{
    const kith_tensor y = add_tensor(net, name, shape);
    if (net->err != KITH_OK)
        return NULL;
    if (net->op_count == KITH_OPS_MAX) {
        net_fail(net, KITH_ELIMIT, name, "too many operations");
        return NULL;
    }
    struct kith_op *op = &net->ops[net->op_count++];
    *op = (struct kith_op){.kind = kind,
                           .block = net->block_count,
                           .a = a,
                           .b = KITH_TENSOR_NONE,
                           .y = y,
                           .weight = KITH_PARAMETER_NONE,
                           .bias = KITH_PARAMETER_NONE,
                           .buffers = KITH_PARAMETER_NONE};
    return op;
}

static kith_tensor output(const struct kith_op *op)
{
    return op == NULL ? 0 : op->y;
}

struct naming {
    const char *layer, *suffix; /* "conv1" + ".weight" */
    enum kith_view_kind kind;
    enum kith_start start;
    double spread;
    uint32_t rank, shape[4];
};

static uint32_t add_parameter(struct kith_net *net, const struct naming *naming)
{
    if (net->err != KITH_OK)
        return KITH_PARAMETER_NONE;
    uint64_t elements = 1;
    for (uint32_t i = 0; i < naming->rank; i++) {
        /* 32-bit sizes times at most 2^31 */
        elements *= naming->shape[i];
        if (elements > KITH_PARAMETERS_MAX)
            break;
    }
    net->dim += elements;
    if (net->dim > KITH_PARAMETERS_MAX) {
        net_fail(net, KITH_ELIMIT, naming->layer,
                 "the model has more than 2^31 parameters");
        return KITH_PARAMETER_NONE;
    }
    if (net->parameter_count == KITH_OPS_MAX) {
        net_fail(net, KITH_ELIMIT, naming->layer, "too many parameters");
        return KITH_PARAMETER_NONE;
    }
    struct kith_net_parameter *parameter =
        &net->parameters[net->parameter_count];
    *parameter =
        (struct kith_net_parameter){.view = {.kind = naming->kind,
                                             .elements = (size_t)elements,
                                             .rank = naming->rank},
                                    .start = naming->start,
                                    .spread = naming->spread};
    memcpy(parameter->view.shape, naming->shape, sizeof naming->shape);
    const int length =
        snprintf(parameter->view.name, KITH_NAME_MAX, "%s%s%s", naming->layer,
                 naming->suffix[0] != '\0' ? "." : "", naming->suffix);
    if (length < 0 || length >= (int)KITH_NAME_MAX)
        net_fail(net, KITH_ELIMIT, naming->layer, "its name is too long");
    /* Buffers follow the batches that pass, whoever else stands still. */
    const size_t prefix = strlen(net->frozen);
    parameter->view.frozen =
        prefix > 0 && !is_buffer(naming->kind) &&
        memcmp(parameter->view.name, net->frozen, prefix) == 0;
    return net->parameter_count++;
}

kith_tensor kith_net_images(struct kith_net *net, size_t height, size_t width,
                            size_t channels)
{
    return add_tensor(net, "input",
                      (struct kith_net_tensor){height, width, channels, false});
}

kith_tensor kith_net_embed(struct kith_net *net, const char *token,
                           const char *position, struct kith_embed op,
                           double token_spread, double position_spread)
{
    /* The input: one token per position. */
    const kith_tensor tokens = add_tensor(
        net, "input", (struct kith_net_tensor){op.context, 1, 1, true});
    net->tokens = true;
    struct kith_op *added =
        add_op(net, token, KITH_OP_EMBED, tokens,
               (struct kith_net_tensor){op.context, 1, op.width, true});
    if (added == NULL)
        return 0;
    added->as.embed = op;
    const uint32_t width = (uint32_t)op.width;
    added->weight =
        add_parameter(net, &(struct naming){token,
                                            "weight",
                                            KITH_VIEW_TABLE,
                                            KITH_START_NORMAL,
                                            token_spread,
                                            2,
                                            {(uint32_t)op.vocabulary, width}});
    added->bias =
        add_parameter(net, &(struct naming){position,
                                            "weight",
                                            KITH_VIEW_TABLE,
                                            KITH_START_NORMAL,
                                            position_spread,
                                            2,
                                            {(uint32_t)op.context, width}});
    return added->y;
}

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
    net_fail(net, KITH_EINVAL, name, "no table of this name and shape");
    return KITH_PARAMETER_NONE;
}

kith_tensor kith_net_linear(struct kith_net *net, kith_tensor x,
                            const char *name, struct kith_net_linear op)
{
    const struct kith_net_tensor *from = tensor_of(net, x);
    const size_t in = from->tokens ? from->channels : kith_net_elements(from);
    struct kith_net_tensor shape = {1, 1, op.out, false};
    if (from->tokens)
        shape = (struct kith_net_tensor){from->height, 1, op.out, true};
    struct kith_op *added = add_op(net, name, KITH_OP_LINEAR, x, shape);
    if (added == NULL)
        return 0;
    added->as.linear = (struct kith_linear){.in = in,
                                            .out = op.out,
                                            .in_out = op.in_out,
                                            .activation = op.activation};
    const uint32_t rows = (uint32_t)(op.in_out ? in : op.out);
    const uint32_t columns = (uint32_t)(op.in_out ? op.out : in);
    if (op.tied != NULL)
        added->weight = find_table(net, op.tied, op.out, in);
    else
        added->weight = add_parameter(net, &(struct naming){name,
                                                            "weight",
                                                            KITH_VIEW_WEIGHT,
                                                            op.start,
                                                            op.spread,
                                                            2,
                                                            {rows, columns}});
    if (op.tied != NULL && (op.in_out || op.bias))
        net_fail(net, KITH_EINVAL, name, "tied weights are (out, in), no bias");
    if (op.bias)
        added->bias = add_parameter(net, &(struct naming){name,
                                                          "bias",
                                                          KITH_VIEW_VECTOR,
                                                          KITH_START_ZERO,
                                                          0,
                                                          1,
                                                          {(uint32_t)op.out}});
    return added->y;
}

/* Windows along one side; 0 where none fits. */
static size_t windows(size_t size, size_t kernel, size_t stride, size_t pad)
{
    if (kernel == 0 || stride == 0 || pad >= kernel || size + 2 * pad < kernel)
        return 0;
    return (size + 2 * pad - kernel) / stride + 1;
}

kith_tensor kith_net_conv(struct kith_net *net, kith_tensor x, const char *name,
                          struct kith_net_conv op)
{
    const struct kith_net_tensor from = *tensor_of(net, x);
    const struct kith_net_tensor shape = {
        windows(from.height, op.kernel, op.stride, op.pad),
        windows(from.width, op.kernel, op.stride, op.pad), op.out, false};
    struct kith_op *added = add_op(net, name, KITH_OP_CONV, x, shape);
    if (added == NULL)
        return 0;
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
    added->weight = add_parameter(
        net, &(struct naming){name,
                              "weight",
                              KITH_VIEW_WEIGHT,
                              op.start,
                              op.spread,
                              4,
                              {kernel, kernel, (uint32_t)from.channels, out}});
    if (op.bias)
        added->bias = add_parameter(
            net,
            &(struct naming){
                name, "bias", KITH_VIEW_VECTOR, KITH_START_ZERO, 0, 1, {out}});
    return added->y;
}

kith_tensor kith_net_norm(struct kith_net *net, kith_tensor x, const char *name,
                          enum kith_norm_kind kind, size_t groups,
                          double epsilon, enum kith_activation activation)
{
    const struct kith_net_tensor from = *tensor_of(net, x);
    if (kind == KITH_NORM_GROUP && (groups == 0 || from.channels % groups != 0))
        net_fail(net, KITH_EINVAL, name, "channels do not divide into groups");
    /* Each position of a sequence is a row of its own. */
    const bool rows_apart = kind == KITH_NORM_LAYER && from.tokens;
    if (kind == KITH_NORM_LAYER && !rows_apart && kith_net_positions(&from) > 1)
        net_fail(net, KITH_EINVAL, name, "a layer norm of images");
    struct kith_op *added = add_op(net, name, KITH_OP_NORM, x, from);
    if (added == NULL)
        return 0;
    added->as.norm =
        (struct kith_norm){.kind = kind,
                           .pixels = rows_apart ? 1 : kith_net_positions(&from),
                           .channels = from.channels,
                           .groups = groups,
                           .epsilon = epsilon,
                           .momentum = KITH_BUFFER_MOMENTUM,
                           .activation = activation};
    const uint32_t channels = (uint32_t)from.channels;
    struct naming naming = {name, "weight", KITH_VIEW_VECTOR, KITH_START_ONE,
                            0,    1,        {channels}};
    added->weight = add_parameter(net, &naming);
    naming.suffix = "bias";
    naming.start = KITH_START_ZERO;
    added->bias = add_parameter(net, &naming);
    if (kind != KITH_NORM_BATCH)
        return added->y;
    naming.suffix = "running_mean";
    naming.kind = KITH_VIEW_MEAN;
    added->buffers = add_parameter(net, &naming);
    naming.suffix = "running_var";
    naming.kind = KITH_VIEW_VARIANCE;
    naming.start = KITH_START_ONE;
    (void)add_parameter(net, &naming);
    return added->y;
}

kith_tensor kith_net_max_pool(struct kith_net *net, kith_tensor x,
                              size_t kernel, size_t stride, size_t pad)
{
    const struct kith_net_tensor from = *tensor_of(net, x);
    const struct kith_net_tensor shape = {
        windows(from.height, kernel, stride, pad),
        windows(from.width, kernel, stride, pad), from.channels, false};
    struct kith_op *added = add_op(net, "max pool", KITH_OP_MAX_POOL, x, shape);
    if (added == NULL)
        return 0;
    added->as.pool = (struct kith_pool){.height = from.height,
                                        .width = from.width,
                                        .channels = from.channels,
                                        .kernel = kernel,
                                        .stride = stride,
                                        .pad = pad,
                                        .out_height = shape.height,
                                        .out_width = shape.width};
    return added->y;
}

kith_tensor kith_net_mean_pool(struct kith_net *net, kith_tensor x)
{
    const struct kith_net_tensor from = *tensor_of(net, x);
    struct kith_op *added =
        add_op(net, "mean pool", KITH_OP_MEAN_POOL, x,
               (struct kith_net_tensor){1, 1, from.channels, false});
    return output(added);
}

kith_tensor kith_net_sum(struct kith_net *net, kith_tensor a, kith_tensor b,
                         enum kith_activation activation)
{
    const struct kith_net_tensor from = *tensor_of(net, a);
    const struct kith_net_tensor *other = tensor_of(net, b);
    if (a == b || from.height != other->height || from.width != other->width ||
        from.channels != other->channels)
        net_fail(net, KITH_EINVAL, "sum", "of two tensors of one shape");
    struct kith_op *added = add_op(net, "sum", KITH_OP_SUM, a, from);
    if (added == NULL)
        return 0;
    added->b = b;
    added->as.sum = activation;
    return added->y;
}

kith_tensor kith_net_dropout(struct kith_net *net, kith_tensor x, double rate)
{
    if (!(rate > 0))
        return x;
    struct kith_op *added =
        add_op(net, "dropout", KITH_OP_DROPOUT, x, *tensor_of(net, x));
    if (added == NULL)
        return 0;
    added->as.dropout.rate = rate;
    added->as.dropout.place = net->op_count;
    return added->y;
}

kith_tensor kith_net_attention(struct kith_net *net, kith_tensor qkv,
                               size_t heads)
{
    const struct kith_net_tensor from = *tensor_of(net, qkv);
    const size_t width = from.channels / 3;
    if (!from.tokens || from.channels % 3 != 0 || heads == 0 ||
        width % heads != 0)
        net_fail(net, KITH_EINVAL, "attention", "heads of one width each");
    struct kith_op *added =
        add_op(net, "attention", KITH_OP_ATTENTION, qkv,
               (struct kith_net_tensor){from.height, 1, width, true});
    if (added == NULL)
        return 0;
    added->as.attention = (struct kith_attention){
        .context = from.height, .heads = heads, .width = width};
    return added->y;
}

void kith_net_block(struct kith_net *net)
{
    net->block_count++;
}

void kith_net_cross_entropy(struct kith_net *net, kith_tensor x)
{
    if (net->err != KITH_OK)
        return;
    const struct kith_op *last =
        net->op_count == 0 ? NULL : &net->ops[net->op_count - 1];
    if (last == NULL || last->kind != KITH_OP_LINEAR || last->y != x) {
        net_fail(net, KITH_EINVAL, "scores", "a linear operation gives them");
        return;
    }
    if (last->as.linear.activation != KITH_ACTIVATION_NONE)
        net_fail(net, KITH_EINVAL, "scores", "as they are, no activation");
    net->parameters[last->weight].view.kind = KITH_VIEW_TABLE;
    net->scores = x;
}
