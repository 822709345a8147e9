/* One step: the backend's kernel on pointers into the arena, the model's
 * vector and its gradient. */
#include "kith/assert.h"
#include "graph_state.h"

static void *piece(const struct kith_run *run, uint32_t index)
{
    if (index == KITH_PIECE_NONE)
        return NULL;
    if (index == KITH_PIECE_INPUT)
        return (void *)(uintptr_t)run->batch->inputs;
    return run->arena + run->plan->pieces[index].offset;
}

static void *parameter(const struct kith_run *run, char *vector, uint32_t index)
{
    if (index == KITH_PARAMETER_NONE)
        return NULL;
    return vector + run->offsets[index] * run->backend->element_bytes;
}

static void call(const struct kith_run *run, const struct kith_step *step)
{
    const struct kith_op *op = &run->ops[step->op];
    const struct kith_operation *operation = op->operation;
    const struct kith_kernel *kernel =
        run->backend->ops->kernels[operation->kind];
    union kith_shape shape = op->as;
    if (operation->prepare != NULL)
        operation->prepare(&shape, run->batch, step->kind == KITH_STEP_AGAIN);
    const struct kith_arguments arguments = {
        .shape = &shape,
        .rows = run->batch->rows * op->rows,
        .x = piece(run, step->a),
        .other = piece(run, step->b),
        .weight = parameter(run, run->x, op->weight),
        .bias = parameter(run, run->x, op->bias),
        .buffers = parameter(run, run->x, op->buffers),
        .saved = piece(run, step->saved),
        .scratch = piece(run, step->scratch),
        .y = piece(run, step->y),
        .dy = piece(run, step->dy),
        .dx = piece(run, step->dx),
        .dweight =
            step->weight ? parameter(run, run->gradient, op->weight) : NULL,
        .dbias = step->bias ? parameter(run, run->gradient, op->bias) : NULL,
        .flags = step->add | (run->add ? KITH_ADD_WEIGHTS : 0) |
                 (run->statistics ? KITH_STATISTICS : 0)};
    if (step->kind == KITH_STEP_BACKWARD)
        kernel->backward(&arguments);
    else
        kernel->forward(&arguments);
}

/* dx <- dx + dy of n values */
static void add(const struct kith_run *run, size_t n, void *dx, const void *dy)
{
    const struct kith_sum sum = {KITH_ACTIVATION_NONE};
    run->backend->ops->kernels[KITH_OP_SUM]->forward(&(struct kith_arguments){
        .shape = &sum, .rows = n, .x = dx, .other = dy, .y = dx});
}

/* dx <- dy of n values, in the backend's elements; pieces end at 64 bytes. */
static void copy(const struct kith_run *run, size_t n, void *dx, const void *dy)
{
    const size_t element = run->backend->element_bytes;
    const size_t bytes = n * kith_value_bytes(run->backend);
    run->backend->copy((bytes + element - 1) / element, dx, dy);
}

void kith_run_step(const struct kith_run *run, const struct kith_step *step)
{
    const size_t n =
        run->batch->rows * kith_net_elements(&run->tensors[step->tensor]);
    switch (step->kind) {
    case KITH_STEP_FORWARD:
    case KITH_STEP_AGAIN:
    case KITH_STEP_BACKWARD:
        call(run, step);
        break;
    case KITH_STEP_ADD:
        add(run, n, piece(run, step->dx), piece(run, step->dy));
        break;
    case KITH_STEP_COPY:
        copy(run, n, piece(run, step->dx), piece(run, step->dy));
        break;
    case KITH_STEP_LOSS:
        KITH_ASSERT(step->kind != KITH_STEP_LOSS);
        break;
    }
}
