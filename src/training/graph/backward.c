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

static void move(struct kith_planner *planner, enum kith_step_kind kind,
                 kith_tensor tensor, uint32_t from, uint32_t to)
{
    struct kith_step step = kith_step_of(kind, 0);
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

/* What stands in a piece of its own is the input's gradient, or added to it. */
static void give_or_add(struct kith_planner *planner, kith_tensor input,
                        uint32_t piece)
{
    if (!planner->tensors[input].wanted)
        return;
    if (planner->tensors[input].gradient == KITH_PIECE_NONE)
        give(planner, input, piece);
    else
        move(planner, KITH_STEP_ADD, input, piece, own(planner, input));
}

static void shared_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    if (op->activation != KITH_ACTIVATION_NONE) {
        struct kith_step step = kith_step_of(KITH_STEP_BACKWARD, index);
        step.y = planner->tensors[op->y].place;
        step.dy = own(planner, op->y);
        kith_planner_step(planner, step);
    }
    const uint32_t dy = planner->tensors[op->y].gradient;
    give_or_add(planner, op->a, dy);
    give_or_add(planner, op->b, dy);
}

/* Both parameters in one call, unless one adds and the other does not. */
static void tables_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    const uint32_t parameters[2] = {op->weight, op->bias};
    for (int i = 0; i < 2; i++) {
        if (!kith_planner_trains(planner->net, parameters[i]))
            continue;
        struct kith_step step = kith_step_of(KITH_STEP_BACKWARD, index);
        step.a = planner->tensors[op->a].place;
        step.dy = planner->tensors[op->y].gradient;
        step.weight = i == 0;
        step.bias = i == 1;
        step.add = planner->written[parameters[i]] ? KITH_ADD_WEIGHTS : 0;
        planner->written[parameters[i]] = true;
        kith_planner_step(planner, step);
    }
}

/* Where an operation that cannot add writes its input's gradient first. */
static uint32_t apart(struct kith_planner *planner, const struct kith_op *op)
{
    const uint32_t dy = planner->tensors[op->y].gradient;
    if (op->operation->passage == KITH_PASSAGE_IN_PLACE &&
        planner->err == KITH_OK && planner->owners[dy] == 1)
        return dy;
    return kith_planner_tensor(planner, op->a);
}

/* What is left of a step: the gradient of its weights is done before, so that
 * it can be sent while the other product is made. Both multiply dy by the
 * derivative of an activation, which of ReLU's is the same when done twice. */
static void weights_first(struct kith_planner *planner,
                          const struct kith_op *op, struct kith_step *step)
{
    if (!planner->how.weights_first || !step->weight ||
        op->operation->passage != KITH_PASSAGE_ADDS ||
        op->activation == KITH_ACTIVATION_GELU)
        return;
    kith_planner_step(planner, *step);
    step->weight = step->bias = false;
    step->add = 0;
}

/* One call, or two. */
static void call_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    const bool adds = op->operation->passage == KITH_PASSAGE_ADDS;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    struct kith_step step = kith_step_of(KITH_STEP_BACKWARD, index);
    step.dy = op->activation == KITH_ACTIVATION_NONE
                  ? planner->tensors[op->y].gradient
                  : own(planner, op->y);
    if (kith_planner_reads_x(planner->net, op))
        step.a = planner->tensors[op->a].place;
    if (relu || (op->operation->flags & KITH_OPERATION_READS_Y))
        step.y = planner->tensors[op->y].place;
    step.saved = planner->saved[index];
    step.scratch = kith_planner_scratch(planner, op);
    step.weight = kith_planner_trains(planner->net, op->weight);
    step.bias = kith_planner_trains(planner->net, op->bias);
    if (step.weight) {
        /* A tied table has no bias beside it (operations/linear.c). */
        step.add |= planner->written[op->weight] ? KITH_ADD_WEIGHTS : 0;
        planner->written[op->weight] = true;
    }
    if (step.bias)
        planner->written[op->bias] = true;
    if (planner->tensors[op->a].wanted)
        weights_first(planner, op, &step);
    if (planner->tensors[op->a].wanted)
        step.dx = adds ? target(planner, op->a, &step.add) : apart(planner, op);
    kith_planner_step(planner, step);
    if (!adds)
        give_or_add(planner, op->a, step.dx);
}

void kith_planner_backward(struct kith_planner *planner, uint32_t index)
{
    const struct kith_op *op = &planner->net->ops[index];
    struct kith_planned *y = &planner->tensors[op->y];
    if (planner->err != KITH_OK || !y->wanted || y->gradient == KITH_PIECE_NONE)
        return;
    switch (op->operation->passage) {
    case KITH_PASSAGE_SHARED:
        shared_backward(planner, index);
        break;
    case KITH_PASSAGE_TABLES:
        tables_backward(planner, index);
        break;
    case KITH_PASSAGE_ADDS:
    case KITH_PASSAGE_APART:
    case KITH_PASSAGE_IN_PLACE:
        call_backward(planner, index);
        break;
    }
    if (planner->err != KITH_OK)
        return;
    KITH_ASSERT(planner->owners[y->gradient] > 0);
    planner->owners[y->gradient]--;
}
