/* The way back: who owns which gradient.
 *
 * A tensor's gradient is a piece; a sum hands its own to both inputs without a
 * copy, so that a piece may be the gradient of several tensors for a while.
 * owners[piece] counts those whose operation has not run backward yet. Only a
 * gradient with one owner is written to; the others read it, and operations
 * without an activation leave dy alone (kith/ops.h). A tensor with several
 * readers adds them up, last reader first. */
#include "kith/assert.h"
#include "graph_state.h"

static struct kith_step empty_step(enum kith_step_kind kind, uint32_t op)
{
    return (struct kith_step){.kind = kind,
                              .op = op,
                              .a = KITH_PIECE_NONE,
                              .b = KITH_PIECE_NONE,
                              .y = KITH_PIECE_NONE,
                              .saved = KITH_PIECE_NONE,
                              .scratch = KITH_PIECE_NONE,
                              .dy = KITH_PIECE_NONE,
                              .dx = KITH_PIECE_NONE};
}

static void move(struct kith_planner *planner, enum kith_step_kind kind,
                 kith_tensor tensor, uint32_t from, uint32_t to)
{
    struct kith_step step = empty_step(kind, 0);
    step.tensor = tensor;
    step.dy = from;
    step.dx = to;
    kith_planner_step(planner, step);
}

/* The tensor's gradient, to be written to: a copy where others share it. */
static uint32_t own(struct kith_planner *planner, kith_tensor tensor)
{
    struct kith_planned *planned = &planner->tensors[tensor];
    const uint32_t shared = planned->gradient;
    if (planner->err != KITH_OK || planner->owners[shared] == 1)
        return shared;
    const uint32_t copy = kith_planner_tensor(planner, tensor);
    move(planner, KITH_STEP_COPY, tensor, shared, copy);
    if (planner->err != KITH_OK)
        return copy;
    planner->owners[shared]--;
    planner->owners[copy] = 1;
    planned->gradient = copy;
    return copy;
}

static void give(struct kith_planner *planner, kith_tensor tensor,
                 uint32_t piece)
{
    if (planner->err != KITH_OK)
        return;
    planner->tensors[tensor].gradient = piece;
    planner->owners[piece]++;
}

/* Where an operation is to write its input's gradient, and whether to add. */
static uint32_t target(struct kith_planner *planner, kith_tensor input,
                       unsigned *add)
{
    if (planner->tensors[input].gradient != KITH_PIECE_NONE) {
        *add |= KITH_ADD_DATA;
        return own(planner, input);
    }
    const uint32_t piece = kith_planner_tensor(planner, input);
    give(planner, input, piece);
    return piece;
}

/* The same for an operation that cannot add: a piece of its own first. */
static void finish_apart(struct kith_planner *planner, kith_tensor input,
                         uint32_t piece)
{
    if (planner->tensors[input].gradient == KITH_PIECE_NONE)
        give(planner, input, piece);
    else
        move(planner, KITH_STEP_ADD, input, piece, own(planner, input));
}

static void sum_input(struct kith_planner *planner, kith_tensor input,
                      uint32_t dy)
{
    if (!planner->tensors[input].wanted)
        return;
    if (planner->tensors[input].gradient == KITH_PIECE_NONE)
        give(planner, input, dy);
    else
        move(planner, KITH_STEP_ADD, input, dy, own(planner, input));
}

static void sum_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    if (op->as.sum != KITH_ACTIVATION_NONE) {
        struct kith_step step = empty_step(KITH_STEP_BACKWARD, index);
        step.y = planner->tensors[op->y].place;
        step.dy = own(planner, op->y);
        kith_planner_step(planner, step);
    }
    const uint32_t dy = planner->tensors[op->y].gradient;
    sum_input(planner, op->a, dy);
    sum_input(planner, op->b, dy);
}

static void dropout_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    const uint32_t dy = planner->tensors[op->y].gradient;
    if (planner->err != KITH_OK)
        return;
    struct kith_step step = empty_step(KITH_STEP_BACKWARD, index);
    step.dy = dy;
    step.dx =
        planner->owners[dy] == 1 ? dy : kith_planner_tensor(planner, op->a);
    kith_planner_step(planner, step);
    finish_apart(planner, op->a, step.dx);
}

static void attention_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    struct kith_step step = empty_step(KITH_STEP_BACKWARD, index);
    step.a = planner->tensors[op->a].place;
    step.y = planner->tensors[op->y].place;
    step.saved = planner->saved[index];
    step.scratch = kith_planner_scratch(planner, op);
    step.dy = planner->tensors[op->y].gradient;
    step.dx = kith_planner_tensor(planner, op->a);
    kith_planner_step(planner, step);
    finish_apart(planner, op->a, step.dx);
}

/* Both parameters in one call, unless one adds and the other does not. */
static void embed_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    const uint32_t parameters[2] = {op->weight, op->bias};
    for (int i = 0; i < 2; i++) {
        if (!kith_planner_trains(planner->net, parameters[i]))
            continue;
        struct kith_step step = empty_step(KITH_STEP_BACKWARD, index);
        step.a = planner->tensors[op->a].place;
        step.dy = planner->tensors[op->y].gradient;
        step.weight = i == 0;
        step.bias = i == 1;
        step.add = planner->written[parameters[i]] ? KITH_ADD_WEIGHTS : 0;
        planner->written[parameters[i]] = true;
        kith_planner_step(planner, step);
    }
}

static enum kith_activation activation_of(const struct kith_op *op)
{
    switch (op->kind) {
    case KITH_OP_LINEAR:
        return op->as.linear.activation;
    case KITH_OP_CONV:
        return op->as.conv.activation;
    case KITH_OP_NORM:
        return op->as.norm.activation;
    case KITH_OP_EMBED:
    case KITH_OP_MAX_POOL:
    case KITH_OP_MEAN_POOL:
    case KITH_OP_SUM:
    case KITH_OP_DROPOUT:
    case KITH_OP_ATTENTION:
        break;
    }
    return KITH_ACTIVATION_NONE;
}

/* Linear, conv, norm, pools: one call that can add to everything. */
static void plain_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    const enum kith_activation activation = activation_of(op);
    struct kith_step step = empty_step(KITH_STEP_BACKWARD, index);
    step.dy = activation == KITH_ACTIVATION_NONE
                  ? planner->tensors[op->y].gradient
                  : own(planner, op->y);
    /* What is not read here need not live until here. */
    if (op->kind == KITH_OP_NORM ||
        kith_planner_trains(planner->net, op->weight))
        step.a = planner->tensors[op->a].place;
    if (activation == KITH_ACTIVATION_RELU)
        step.y = planner->tensors[op->y].place;
    step.saved = planner->saved[index];
    step.scratch = kith_planner_scratch(planner, op);
    step.weight = kith_planner_trains(planner->net, op->weight);
    step.bias = kith_planner_trains(planner->net, op->bias);
    if (step.weight) {
        /* A tied table has no bias beside it (net.c). */
        step.add |= planner->written[op->weight] ? KITH_ADD_WEIGHTS : 0;
        planner->written[op->weight] = true;
    }
    if (step.bias)
        planner->written[op->bias] = true;
    if (planner->tensors[op->a].wanted)
        step.dx = target(planner, op->a, &step.add);
    kith_planner_step(planner, step);
}

void kith_planner_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    struct kith_planned *y = &planner->tensors[op->y];
    if (planner->err != KITH_OK || !y->wanted || y->gradient == KITH_PIECE_NONE)
        return;
    switch (op->kind) {
    case KITH_OP_SUM:
        sum_backward(planner, index);
        break;
    case KITH_OP_DROPOUT:
        dropout_backward(planner, index);
        break;
    case KITH_OP_ATTENTION:
        attention_backward(planner, index);
        break;
    case KITH_OP_EMBED:
        embed_backward(planner, index);
        break;
    case KITH_OP_LINEAR:
    case KITH_OP_CONV:
    case KITH_OP_NORM:
    case KITH_OP_MAX_POOL:
    case KITH_OP_MEAN_POOL:
        plain_backward(planner, index);
        break;
    }
    if (planner->err != KITH_OK)
        return;
    KITH_ASSERT(planner->owners[y->gradient] > 0);
    planner->owners[y->gradient]--;
}
