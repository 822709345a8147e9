/* The arrays that the builders of operations/ fill. A net with an error
 * swallows the rest. */
#include "kith/net.h"

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

void kith_net_fail(struct kith_net *net, enum kith_err err, const char *name,
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
        kith_net_fail(net, KITH_EINVAL, "net", "it gives no scores");
    if (net->frozen[0] != '\0' && frozen == 0)
        kith_net_fail(net, KITH_EINVAL, "model.frozen",
                      "no view of the model has a name that begins so");
    if (frozen + buffers == net->parameter_count)
        kith_net_fail(net, KITH_EINVAL, "model.frozen",
                      "every view begins so, and nothing would train");
    return net->err;
}

struct kith_net_tensor kith_net_tensor_of(const struct kith_net *net,
                                          kith_tensor x)
{
    static const struct kith_net_tensor nothing = {1, 1, 1, false};
    return x < net->tensor_count ? net->tensors[x] : nothing;
}

kith_tensor kith_net_add_tensor(struct kith_net *net, const char *name,
                                struct kith_net_tensor tensor)
{
    const uint64_t bound = SIZE_OF_TENSOR_MAX;
    if (net->err != KITH_OK)
        return 0;
    if (tensor.height == 0 || tensor.width == 0 || tensor.channels == 0) {
        kith_net_fail(net, KITH_EINVAL, name, "nothing is left of its input");
        return 0;
    }
    if (tensor.height > bound || tensor.width > bound / tensor.height ||
        tensor.channels > bound / (tensor.height * tensor.width)) {
        kith_net_fail(net, KITH_ELIMIT, name,
                      "more than 2^31 values per example");
        return 0;
    }
    if (net->tensor_count == KITH_OPS_MAX + 1) {
        kith_net_fail(net, KITH_ELIMIT, name, "too many operations");
        return 0;
    }
    net->tensors[net->tensor_count] = tensor;
    return net->tensor_count++;
}

struct kith_op *kith_net_add(struct kith_net *net, const char *name,
                             const struct kith_operation *operation,
                             kith_tensor a, struct kith_net_tensor shape)
{
    const kith_tensor y = kith_net_add_tensor(net, name, shape);
    if (net->err != KITH_OK)
        return NULL;
    if (net->op_count == KITH_OPS_MAX) {
        kith_net_fail(net, KITH_ELIMIT, name, "too many operations");
        return NULL;
    }
    struct kith_op *op = &net->ops[net->op_count++];
    *op = (struct kith_op){.operation = operation,
                           .rows = 1,
                           .block = net->block_count,
                           .a = a,
                           .b = KITH_TENSOR_NONE,
                           .y = y,
                           .weight = KITH_PARAMETER_NONE,
                           .bias = KITH_PARAMETER_NONE,
                           .buffers = KITH_PARAMETER_NONE};
    return op;
}

uint32_t kith_net_add_parameter(struct kith_net *net,
                                const struct kith_net_naming *naming)
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
        kith_net_fail(net, KITH_ELIMIT, naming->layer,
                      "the model has more than 2^31 parameters");
        return KITH_PARAMETER_NONE;
    }
    if (net->parameter_count == KITH_OPS_MAX) {
        kith_net_fail(net, KITH_ELIMIT, naming->layer, "too many parameters");
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
        kith_net_fail(net, KITH_ELIMIT, naming->layer, "its name is too long");
    /* Buffers follow the batches that pass, whoever else stands still. */
    const size_t prefix = strlen(net->frozen);
    parameter->view.frozen =
        prefix > 0 && !is_buffer(naming->kind) &&
        memcmp(parameter->view.name, net->frozen, prefix) == 0;
    return net->parameter_count++;
}

uint32_t kith_net_add_matrix(struct kith_net *net, const char *layer,
                             enum kith_start start, double spread,
                             uint32_t rank, const uint32_t *shape)
{
    struct kith_net_naming naming = {
        layer, "weight", KITH_VIEW_WEIGHT, start, spread, rank, {0}};
    memcpy(naming.shape, shape, rank * sizeof *shape);
    return kith_net_add_parameter(net, &naming);
}

uint32_t kith_net_add_vector(struct kith_net *net, const char *layer,
                             const char *suffix, enum kith_start start,
                             size_t n)
{
    return kith_net_add_parameter(
        net, &(struct kith_net_naming){
                 layer, suffix, KITH_VIEW_VECTOR, start, 0, 1, {(uint32_t)n}});
}

kith_tensor kith_net_images(struct kith_net *net, size_t height, size_t width,
                            size_t channels)
{
    return kith_net_add_tensor(
        net, "input", (struct kith_net_tensor){height, width, channels, false});
}

size_t kith_net_windows(size_t size, size_t kernel, size_t stride, size_t pad)
{
    if (kernel == 0 || stride == 0 || pad >= kernel || size + 2 * pad < kernel)
        return 0;
    return (size + 2 * pad - kernel) / stride + 1;
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
    if (last == NULL || last->operation->kind != KITH_OP_LINEAR ||
        last->y != x) {
        kith_net_fail(net, KITH_EINVAL, "scores",
                      "a linear operation gives them");
        return;
    }
    if (last->activation != KITH_ACTIVATION_NONE)
        kith_net_fail(net, KITH_EINVAL, "scores", "as they are, no activation");
    net->parameters[last->weight].view.kind = KITH_VIEW_TABLE;
    net->scores = x;
}
