/* One step: the backend's operation on pointers into the arena, the model's
 * vector and its gradient. */
#include "kith/assert.h"
#include "graph_state.h"

/* Where everything of one step stands. */
struct view {
    const struct kith_run *run;
    const struct kith_step *step;
    const struct kith_op *op;
    const struct kith_ops *ops;
    size_t rows;
    const void *a, *b;
    void *y, *saved, *scratch, *dy, *dx;
    unsigned add;
};

size_t kith_run_rows(const struct kith_net_tensor *from, size_t rows)
{
    return from->tokens ? rows * from->height : rows;
}

static void *piece(const struct kith_run *run, uint32_t index)
{
    if (index == KITH_PIECE_NONE)
        return NULL;
    if (index == KITH_PIECE_INPUT)
        return (void *)(uintptr_t)run->batch->inputs;
    return run->arena + run->plan->pieces[index].offset;
}

static void *parameter(const struct view *view, void *vector, uint32_t index)
{
    if (index == KITH_PARAMETER_NONE)
        return NULL;
    return (char *)vector +
           view->run->offsets[index] * view->run->backend->element_bytes;
}

/* A parameter in x, and where its gradient goes: NULL where it does not
 * train. */
static void *value(const struct view *view, uint32_t index)
{
    return parameter(view, view->run->x, index);
}

static void *slope(const struct view *view, bool wanted, uint32_t index)
{
    return wanted ? parameter(view, view->run->gradient, index) : NULL;
}

static size_t elements(const struct view *view, kith_tensor tensor)
{
    return view->rows * kith_net_elements(&view->run->tensors[tensor]);
}

/* The backend's elements that hold a tensor; pieces end at 64 bytes. */
static size_t copied(const struct view *view, kith_tensor tensor)
{
    const size_t element = view->run->backend->element_bytes;
    const size_t bytes =
        elements(view, tensor) * kith_value_bytes(view->run->backend);
    return (bytes + element - 1) / element;
}

static struct kith_dropout dropout_of(const struct view *view)
{
    const struct kith_batch *batch = view->run->batch;
    return (struct kith_dropout){.rate = view->op->as.dropout.rate,
                                 .seed = batch->seed,
                                 .entity = batch->entity,
                                 .step = batch->step,
                                 .place = view->op->as.dropout.place};
}

static size_t norm_rows(const struct view *view)
{
    const struct kith_net_tensor *from = &view->run->tensors[view->op->a];
    return view->op->as.norm.kind == KITH_NORM_LAYER
               ? kith_run_rows(from, view->rows)
               : view->rows;
}

static void forward_norm(const struct view *view)
{
    const struct kith_op *op = view->op;
    struct kith_norm norm = op->as.norm;
    /* Once more is not twice: the buffers have moved already. */
    if (view->step->kind == KITH_STEP_AGAIN)
        norm.momentum = 0;
    view->ops->kernels[KITH_OP_NORM]->forward(&(struct kith_arguments){
        .shape = &norm,
        .rows = norm_rows(view),
        .x = view->a,
        .weight = value(view, op->weight),
        .bias = value(view, op->bias),
        .buffers = value(view, op->buffers),
        .saved = view->saved,
        .y = view->y,
        .flags = view->run->statistics ? KITH_STATISTICS : 0});
}

static size_t token_rows(const struct view *view)
{
    return kith_run_rows(&view->run->tensors[view->op->a], view->rows);
}

static void forward_embed(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->kernels[KITH_OP_EMBED]->forward(
        &(struct kith_arguments){.shape = &op->as.embed,
                                 .rows = view->rows,
                                 .x = view->a,
                                 .weight = value(view, op->weight),
                                 .bias = value(view, op->bias),
                                 .y = view->y});
}

static void forward_linear(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &view->op->as.linear,
                                 .scratch = view->scratch,
                                 .rows = token_rows(view),
                                 .x = view->a,
                                 .weight = value(view, op->weight),
                                 .bias = value(view, op->bias),
                                 .saved = view->saved,
                                 .y = view->y});
}

static void forward_conv(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->kernels[KITH_OP_CONV]->forward(
        &(struct kith_arguments){.shape = &op->as.conv,
                                 .rows = view->rows,
                                 .x = view->a,
                                 .weight = value(view, op->weight),
                                 .bias = value(view, op->bias),
                                 .y = view->y,
                                 .scratch = view->scratch});
}

static void forward_mean(const struct view *view)
{
    const struct kith_net_tensor *from = &view->run->tensors[view->op->a];
    view->ops->kernels[KITH_OP_MEAN_POOL]->forward(&(struct kith_arguments){
        .shape = &(struct kith_mean){kith_net_positions(from), from->channels},
        .rows = view->rows,
        .x = view->a,
        .y = view->y});
}

static void forward_dropout(const struct view *view)
{
    const struct kith_dropout dropout = dropout_of(view);
    view->ops->kernels[KITH_OP_DROPOUT]->forward(
        &(struct kith_arguments){.shape = &dropout,
                                 .rows = elements(view, view->op->y),
                                 .x = view->a,
                                 .y = view->y});
}

static void backward_dropout(const struct view *view)
{
    const struct kith_dropout dropout = dropout_of(view);
    view->ops->kernels[KITH_OP_DROPOUT]->backward(
        &(struct kith_arguments){.shape = &dropout,
                                 .rows = elements(view, view->op->y),
                                 .dy = view->dy,
                                 .dx = view->dx});
}

static void forward(const struct view *view)
{
    const struct kith_op *op = view->op;
    const struct kith_ops *ops = view->ops;
    switch (op->kind) {
    case KITH_OP_EMBED:
        forward_embed(view);
        break;
    case KITH_OP_LINEAR:
        forward_linear(view);
        break;
    case KITH_OP_CONV:
        forward_conv(view);
        break;
    case KITH_OP_NORM:
        forward_norm(view);
        break;
    case KITH_OP_MAX_POOL:
        ops->kernels[KITH_OP_MAX_POOL]->forward(
            &(struct kith_arguments){.shape = &op->as.pool,
                                     .rows = view->rows,
                                     .x = view->a,
                                     .y = view->y,
                                     .saved = view->saved});
        break;
    case KITH_OP_MEAN_POOL:
        forward_mean(view);
        break;
    case KITH_OP_SUM:
        ops->kernels[KITH_OP_SUM]->forward(
            &(struct kith_arguments){.rows = elements(view, op->y),
                                     .shape = &(struct kith_sum){op->as.sum},
                                     .x = view->a,
                                     .other = view->b,
                                     .y = view->y});
        break;
    case KITH_OP_DROPOUT:
        forward_dropout(view);
        break;
    case KITH_OP_ATTENTION:
        ops->kernels[KITH_OP_ATTENTION]->forward(
            &(struct kith_arguments){.shape = &op->as.attention,
                                     .rows = view->rows,
                                     .x = view->a,
                                     .saved = view->saved,
                                     .y = view->y,
                                     .scratch = view->scratch});
        break;
    }
}

/* Where the gradients of an operation's parameters go. */
static void *weight_slope(const struct view *view)
{
    return slope(view, view->step->weight, view->op->weight);
}

static void *bias_slope(const struct view *view)
{
    return slope(view, view->step->bias, view->op->bias);
}

static void backward_linear(const struct view *view)
{
    view->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &view->op->as.linear,
                                 .scratch = view->scratch,
                                 .rows = token_rows(view),
                                 .x = view->a,
                                 .weight = value(view, view->op->weight),
                                 .saved = view->saved,
                                 .y = view->y,
                                 .dy = view->dy,
                                 .dx = view->dx,
                                 .dweight = weight_slope(view),
                                 .dbias = bias_slope(view),
                                 .flags = view->add});
}

static void backward_conv(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->kernels[KITH_OP_CONV]->backward(
        &(struct kith_arguments){.shape = &op->as.conv,
                                 .rows = view->rows,
                                 .x = view->a,
                                 .weight = value(view, op->weight),
                                 .y = view->y,
                                 .dy = view->dy,
                                 .dx = view->dx,
                                 .dweight = weight_slope(view),
                                 .dbias = bias_slope(view),
                                 .scratch = view->scratch,
                                 .flags = view->add});
}

static void backward_norm(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->kernels[KITH_OP_NORM]->backward(
        &(struct kith_arguments){.shape = &op->as.norm,
                                 .rows = norm_rows(view),
                                 .x = view->a,
                                 .weight = value(view, op->weight),
                                 .y = view->y,
                                 .saved = view->saved,
                                 .dy = view->dy,
                                 .dx = view->dx,
                                 .dweight = weight_slope(view),
                                 .dbias = bias_slope(view),
                                 .flags = view->add});
}

static void backward_mean(const struct view *view)
{
    const struct kith_net_tensor *from = &view->run->tensors[view->op->a];
    view->ops->kernels[KITH_OP_MEAN_POOL]->backward(&(struct kith_arguments){
        .shape = &(struct kith_mean){kith_net_positions(from), from->channels},
        .rows = view->rows,
        .dy = view->dy,
        .dx = view->dx,
        .flags = view->add});
}

static void backward(const struct view *view)
{
    const struct kith_op *op = view->op;
    const struct kith_ops *ops = view->ops;
    switch (op->kind) {
    case KITH_OP_EMBED:
        ops->kernels[KITH_OP_EMBED]->backward(
            &(struct kith_arguments){.shape = &op->as.embed,
                                     .rows = view->rows,
                                     .x = view->a,
                                     .dy = view->dy,
                                     .dweight = weight_slope(view),
                                     .dbias = bias_slope(view),
                                     .flags = view->add});
        break;
    case KITH_OP_LINEAR:
        backward_linear(view);
        break;
    case KITH_OP_CONV:
        backward_conv(view);
        break;
    case KITH_OP_NORM:
        backward_norm(view);
        break;
    case KITH_OP_MAX_POOL:
        ops->kernels[KITH_OP_MAX_POOL]->backward(
            &(struct kith_arguments){.shape = &op->as.pool,
                                     .rows = view->rows,
                                     .saved = view->saved,
                                     .dy = view->dy,
                                     .dx = view->dx,
                                     .flags = view->add});
        break;
    case KITH_OP_MEAN_POOL:
        backward_mean(view);
        break;
    case KITH_OP_SUM:
        ops->kernels[KITH_OP_SUM]->backward(
            &(struct kith_arguments){.rows = elements(view, op->y),
                                     .shape = &(struct kith_sum){op->as.sum},
                                     .y = view->y,
                                     .dy = view->dy});
        break;
    case KITH_OP_DROPOUT:
        backward_dropout(view);
        break;
    case KITH_OP_ATTENTION:
        ops->kernels[KITH_OP_ATTENTION]->backward(
            &(struct kith_arguments){.shape = &op->as.attention,
                                     .rows = view->rows,
                                     .x = view->a,
                                     .y = view->y,
                                     .saved = view->saved,
                                     .dy = view->dy,
                                     .dx = view->dx,
                                     .scratch = view->scratch});
        break;
    }
}

void kith_run_step(const struct kith_run *run, const struct kith_step *step)
{
    const struct view view = {.run = run,
                              .step = step,
                              .op = &run->ops[step->op],
                              .ops = run->backend->ops,
                              .rows = run->batch->rows,
                              .a = piece(run, step->a),
                              .b = piece(run, step->b),
                              .y = piece(run, step->y),
                              .saved = piece(run, step->saved),
                              .scratch = piece(run, step->scratch),
                              .dy = piece(run, step->dy),
                              .dx = piece(run, step->dx),
                              .add = step->add |
                                     (run->add ? KITH_ADD_WEIGHTS : 0)};
    switch (step->kind) {
    case KITH_STEP_FORWARD:
    case KITH_STEP_AGAIN:
        forward(&view);
        break;
    case KITH_STEP_BACKWARD:
        backward(&view);
        break;
    case KITH_STEP_ADD:
        run->backend->ops->kernels[KITH_OP_SUM]->forward(
            &(struct kith_arguments){
                .rows = elements(&view, step->tensor),
                .shape = &(struct kith_sum){KITH_ACTIVATION_NONE},
                .x = view.dx,
                .other = view.dy,
                .y = view.dx});
        break;
    case KITH_STEP_COPY:
        run->backend->copy(copied(&view, step->tensor), view.dx, view.dy);
        break;
    case KITH_STEP_LOSS:
        KITH_ASSERT(step->kind != KITH_STEP_LOSS);
        break;
    }
}
