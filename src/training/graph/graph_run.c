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

static struct kith_linear linear_of(const struct view *view)
{
    struct kith_linear linear = view->op->as.linear;
    linear.scratch = view->scratch;
    return linear;
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
    view->ops->norm(&norm, norm_rows(view), view->run->statistics, view->a,
                    value(view, op->weight), value(view, op->bias),
                    value(view, op->buffers), view->saved, view->y);
}

static size_t token_rows(const struct view *view)
{
    return kith_run_rows(&view->run->tensors[view->op->a], view->rows);
}

static void forward_embed(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->embed(&op->as.embed, view->rows, view->a,
                     value(view, op->weight), value(view, op->bias), view->y);
}

static void forward_linear(const struct view *view)
{
    const struct kith_op *op = view->op;
    const struct kith_linear linear = linear_of(view);
    view->ops->linear(&linear, token_rows(view), view->a,
                      value(view, op->weight), value(view, op->bias),
                      view->saved, view->y);
}

static void forward_conv(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->conv(&op->as.conv, view->rows, view->a, value(view, op->weight),
                    value(view, op->bias), view->y, view->scratch);
}

static void forward_mean(const struct view *view)
{
    const struct kith_net_tensor *from = &view->run->tensors[view->op->a];
    view->ops->mean_pool(view->rows, kith_net_positions(from), from->channels,
                         view->a, view->y);
}

/* x to y, or dy to dx: the same draws. */
static void drop(const struct view *view, const void *from, void *to)
{
    const struct kith_dropout dropout = dropout_of(view);
    view->ops->dropout(&dropout, elements(view, view->op->y), from, to);
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
        ops->max_pool(&op->as.pool, view->rows, view->a, view->y, view->saved);
        break;
    case KITH_OP_MEAN_POOL:
        forward_mean(view);
        break;
    case KITH_OP_SUM:
        ops->sum(elements(view, op->y), op->as.sum, view->a, view->b, view->y);
        break;
    case KITH_OP_DROPOUT:
        drop(view, view->a, view->y);
        break;
    case KITH_OP_ATTENTION:
        ops->attention(&op->as.attention, view->rows, view->a, view->saved,
                       view->y, view->scratch);
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
    const struct kith_linear linear = linear_of(view);
    view->ops->linear_backward(&linear, token_rows(view), view->a,
                               value(view, view->op->weight), view->saved,
                               view->y, view->dy, view->dx, weight_slope(view),
                               bias_slope(view), view->add);
}

static void backward_conv(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->conv_backward(&op->as.conv, view->rows, view->a,
                             value(view, op->weight), view->y, view->dy,
                             view->dx, weight_slope(view), bias_slope(view),
                             view->scratch, view->add);
}

static void backward_norm(const struct view *view)
{
    const struct kith_op *op = view->op;
    view->ops->norm_backward(&op->as.norm, norm_rows(view), view->a,
                             value(view, op->weight), view->y, view->saved,
                             view->dy, view->dx, weight_slope(view),
                             bias_slope(view), view->add);
}

static void backward_mean(const struct view *view)
{
    const struct kith_net_tensor *from = &view->run->tensors[view->op->a];
    view->ops->mean_pool_backward(view->rows, kith_net_positions(from),
                                  from->channels, view->dy, view->dx,
                                  view->add);
}

static void backward(const struct view *view)
{
    const struct kith_op *op = view->op;
    const struct kith_ops *ops = view->ops;
    switch (op->kind) {
    case KITH_OP_EMBED:
        ops->embed_backward(&op->as.embed, view->rows, view->a, view->dy,
                            weight_slope(view), bias_slope(view), view->add);
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
        ops->max_pool_backward(&op->as.pool, view->rows, view->saved, view->dy,
                               view->dx, view->add);
        break;
    case KITH_OP_MEAN_POOL:
        backward_mean(view);
        break;
    case KITH_OP_SUM:
        ops->sum_backward(elements(view, op->y), op->as.sum, view->y, view->dy,
                          NULL, NULL, 0);
        break;
    case KITH_OP_DROPOUT:
        drop(view, view->dy, view->dx);
        break;
    case KITH_OP_ATTENTION:
        ops->attention_backward(&op->as.attention, view->rows, view->a, view->y,
                                view->saved, view->dy, view->dx, view->scratch);
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
        run->backend->ops->sum(elements(&view, step->tensor),
                               KITH_ACTIVATION_NONE, view.dx, view.dy, view.dx);
        break;
    case KITH_STEP_COPY:
        run->backend->copy(copied(&view, step->tensor), view.dx, view.dy);
        break;
    case KITH_STEP_LOSS:
        KITH_ASSERT(step->kind != KITH_STEP_LOSS);
        break;
    }
}
