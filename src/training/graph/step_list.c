/* The list of steps.
 *
 *   training    forward of all blocks, loss, backward of all operations
 *   recompute   forward of all blocks, of which only what stands between them
 *               is kept; then, from the last block to the first, its forward
 *               steps again (the last one's are still there) and its backward
 *               steps. Chen et al., "Training deep nets with sublinear memory
 *               cost", 2016
 *   evaluation  forward, loss; dropout is no step at all
 *
 * A piece is a buffer of the arena; a sum or a dropout takes over the piece of
 * its input where nobody else wants that. */
#include <stdlib.h>

#include "graph_state.h"

static uint32_t piece_of(struct kith_planner *planner, size_t bytes)
{
    struct kith_plan *plan = planner->plan;
    if (planner->err == KITH_OK && bytes > KITH_PIECE_BYTES_MAX)
        planner->err = KITH_ELIMIT;
    if (planner->err != KITH_OK)
        return 0;
    if (plan->piece_count == plan->piece_room) {
        const uint32_t room = plan->piece_room * 2 + 64;
        void *pieces = realloc(plan->pieces, room * sizeof *plan->pieces);
        if (pieces != NULL)
            plan->pieces = pieces;
        void *owners = realloc(planner->owners, room * sizeof *planner->owners);
        if (owners != NULL)
            planner->owners = owners;
        if (pieces == NULL || owners == NULL) {
            planner->err = KITH_ENOMEM;
            return 0;
        }
        plan->piece_room = room;
    }
    plan->pieces[plan->piece_count] =
        (struct kith_piece){.bytes = bytes, .first = UINT32_MAX};
    planner->owners[plan->piece_count] = 0;
    return plan->piece_count++;
}

uint32_t kith_planner_tensor(struct kith_planner *planner, kith_tensor tensor)
{
    const struct kith_net_tensor *from = &planner->net->tensors[tensor];
    const bool padded =
        tensor == planner->net->scores && planner->how.scores_stride > 0;
    const size_t elements = padded
                                ? planner->how.rows * kith_net_rows(from) *
                                      planner->how.scores_stride
                                : planner->how.rows * kith_net_elements(from);
    return piece_of(planner, elements * kith_value_bytes(planner->how.backend));
}

uint32_t kith_planner_scratch(struct kith_planner *planner,
                              const struct kith_op *op)
{
    const size_t bytes = kith_kernel_scratch(
        planner->how.backend->ops->kernels[op->operation->kind], &op->as,
        planner->how.rows * op->rows);
    return bytes == 0 ? KITH_PIECE_NONE : piece_of(planner, bytes);
}

/* The piece is alive at this step. */
static void touch(struct kith_plan *plan, uint32_t piece, uint32_t step)
{
    if (piece == KITH_PIECE_NONE || piece == KITH_PIECE_INPUT)
        return;
    if (plan->pieces[piece].first == UINT32_MAX)
        plan->pieces[piece].first = step;
    plan->pieces[piece].last = step;
}

void kith_planner_step(struct kith_planner *planner, struct kith_step step)
{
    struct kith_plan *plan = planner->plan;
    if (planner->err != KITH_OK)
        return;
    if (plan->step_count == plan->step_room) {
        const uint32_t room = plan->step_room * 2 + 64;
        void *steps = realloc(plan->steps, room * sizeof *plan->steps);
        if (steps == NULL) {
            planner->err = KITH_ENOMEM;
            return;
        }
        plan->steps = steps;
        plan->step_room = room;
    }
    const uint32_t pieces[] = {step.a,       step.b,  step.y, step.saved,
                               step.scratch, step.dy, step.dx};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        touch(plan, pieces[i], plan->step_count);
    plan->steps[plan->step_count++] = step;
}

bool kith_planner_trains(const struct kith_net *net, uint32_t parameter)
{
    if (parameter == KITH_PARAMETER_NONE)
        return false;
    const struct kith_model_view *view = &net->parameters[parameter].view;
    return !view->frozen && view->kind != KITH_VIEW_MEAN &&
           view->kind != KITH_VIEW_VARIANCE;
}

static void raise_need(enum kith_need *need, enum kith_need to)
{
    *need = to > *need ? to : *need;
}

bool kith_planner_reads_x(const struct kith_net *net, const struct kith_op *op)
{
    return (op->operation->flags & KITH_OPERATION_READS_X) ||
           kith_planner_trains(net, op->weight);
}

/* What the backward step of `op` reads of its input and its output. */
static void note_needs(struct kith_planner *planner, const struct kith_op *op)
{
    struct kith_planned *y = &planner->tensors[op->y];
    if (kith_planner_reads_x(planner->net, op))
        raise_need(&planner->tensors[op->a].need, KITH_NEED_VALUE);
    if (op->operation->flags & KITH_OPERATION_READS_Y)
        raise_need(&y->need, KITH_NEED_VALUE);
    if (op->activation == KITH_ACTIVATION_RELU)
        raise_need(&y->need, KITH_NEED_SIGN);
}

/* The block of the operation that gives a tensor; the input has none. */
static bool crosses(const struct kith_net *net, const struct kith_op *reader,
                    kith_tensor tensor)
{
    for (uint32_t i = 0; i < net->op_count; i++)
        if (net->ops[i].y == tensor)
            return net->ops[i].block < reader->block;
    return false;
}

static void note_reader(struct kith_planner *planner, uint32_t index,
                        kith_tensor tensor)
{
    if (tensor == KITH_TENSOR_NONE)
        return;
    struct kith_planned *planned = &planner->tensors[tensor];
    planned->reader_last = index;
    if (planner->how.recompute &&
        crosses(planner->net, &planner->net->ops[index], tensor))
        planned->kept = true;
}

static void look_ahead(struct kith_planner *planner)
{
    const struct kith_net *net = planner->net;
    for (uint32_t i = 0; i < net->op_count; i++) {
        const struct kith_op *op = &net->ops[i];
        struct kith_planned *y = &planner->tensors[op->y];
        note_reader(planner, i, op->a);
        note_reader(planner, i, op->b);
        if (!planner->how.training)
            continue;
        y->wanted =
            kith_planner_trains(net, op->weight) ||
            kith_planner_trains(net, op->bias) ||
            planner->tensors[op->a].wanted ||
            (op->b != KITH_TENSOR_NONE && planner->tensors[op->b].wanted);
        if (y->wanted)
            note_needs(planner, op);
    }
}

/* Bytes that an operation leaves for its own way back. */
static size_t saved_bytes(const struct kith_planner *planner,
                          const struct kith_op *op)
{
    return op->operation->saved == NULL
               ? 0
               : op->operation->saved(op, planner->how.rows * op->rows,
                                      planner->how.backend->element_bytes,
                                      kith_value_bytes(planner->how.backend));
}

/* May `op`, number `index`, write its result over its input's values? */
static bool may_take(const struct kith_planner *planner, uint32_t index,
                     const struct kith_op *op, kith_tensor input)
{
    const struct kith_planned *planned = &planner->tensors[input];
    if (planned->place == KITH_PIECE_INPUT || planned->reader_last != index)
        return false;
    return planned->hold == KITH_NEED_NONE ||
           (planned->hold == KITH_NEED_SIGN &&
            (op->operation->flags & KITH_OPERATION_KEEPS_SIGN));
}

static uint32_t place_output(struct kith_planner *planner, uint32_t index,
                             const struct kith_op *op)
{
    struct kith_planned *y = &planner->tensors[op->y];
    kith_tensor from = KITH_TENSOR_NONE;
    const unsigned flags = op->operation->flags;
    if ((flags & KITH_OPERATION_OVER_OTHER) &&
        may_take(planner, index, op, op->b))
        from = op->b;
    else if ((flags & KITH_OPERATION_OVER_X) &&
             may_take(planner, index, op, op->a))
        from = op->a;
    if (from == KITH_TENSOR_NONE)
        return kith_planner_tensor(planner, op->y);
    raise_need(&y->hold, planner->tensors[from].hold);
    return planner->tensors[from].place;
}

/* In evaluation dropout hands its input on, and is no step. */
static void pass_on(struct kith_planner *planner, const struct kith_op *op)
{
    struct kith_planned *a = &planner->tensors[op->a];
    struct kith_planned *y = &planner->tensors[op->y];
    y->place = a->place;
    const uint32_t last =
        a->reader_last > y->reader_last ? a->reader_last : y->reader_last;
    a->reader_last = y->reader_last = last;
}

/* One forward step. way_back: what it saves is for a backward step. */
static void forward(struct kith_planner *planner, uint32_t index,
                    enum kith_step_kind kind, bool way_back)
{
    const struct kith_op *op = &planner->net->ops[index];
    struct kith_planned *y = &planner->tensors[op->y];
    const bool again = kind == KITH_STEP_AGAIN;
    if ((op->operation->flags & KITH_OPERATION_TRAINING) &&
        !planner->how.training) {
        pass_on(planner, op);
        return;
    }
    y->hold = y->kept ? KITH_NEED_VALUE : way_back ? y->need : KITH_NEED_NONE;
    if (!(again && y->kept))
        y->place = place_output(planner, index, op);
    struct kith_step step = kith_step_of(kind, index);
    step.a = planner->tensors[op->a].place;
    if (op->b != KITH_TENSOR_NONE)
        step.b = planner->tensors[op->b].place;
    step.y = y->place;
    step.scratch = kith_planner_scratch(planner, op);
    const size_t bytes = saved_bytes(planner, op);
    if (bytes > 0 && ((way_back && y->wanted) || op->always_saves))
        step.saved = piece_of(planner, bytes);
    planner->saved[index] = step.saved;
    kith_planner_step(planner, step);
}

/* What of the operations [from, to) must run again: what saves something, and
 * what gives values that somebody wants. */
static void run_again(struct kith_planner *planner, uint32_t from, uint32_t to)
{
    const struct kith_net *net = planner->net;
    for (uint32_t i = to; i-- > from;) {
        const struct kith_op *op = &net->ops[i];
        const struct kith_planned *y = &planner->tensors[op->y];
        const bool saves = y->wanted && saved_bytes(planner, op) > 0;
        const bool values = !y->kept && (y->need != KITH_NEED_NONE || y->used);
        planner->saved[i] = saves || values;
        if (!saves && !values)
            continue;
        planner->tensors[op->a].used = true;
        if (op->b != KITH_TENSOR_NONE)
            planner->tensors[op->b].used = true;
    }
    for (uint32_t i = from; i < to; i++)
        if (planner->saved[i])
            forward(planner, i, KITH_STEP_AGAIN, true);
}

static void plan_loss(struct kith_planner *planner)
{
    const kith_tensor scores = planner->net->scores;
    const uint32_t place = planner->tensors[scores].place;
    planner->plan->scores = place;
    struct kith_step step = kith_step_of(KITH_STEP_LOSS, 0);
    step.y = place;
    kith_planner_step(planner, step);
    /* The gradient of the scores stands where they stood. */
    planner->tensors[scores].gradient = place;
    if (planner->err == KITH_OK)
        planner->owners[place] = 1;
}

/* First operation of the block that ends before `to`. */
static uint32_t block_start(const struct kith_planner *planner, uint32_t to)
{
    uint32_t from = to - 1;
    if (!planner->how.recompute)
        return 0;
    while (from > 0 &&
           planner->net->ops[from - 1].block == planner->net->ops[from].block)
        from--;
    return from;
}

static void plan_all(struct kith_planner *planner)
{
    const struct kith_net *net = planner->net;
    const uint32_t count = net->op_count;
    const uint32_t last = block_start(planner, count);
    look_ahead(planner);
    for (uint32_t i = 0; i < count; i++)
        forward(planner, i, KITH_STEP_FORWARD,
                planner->how.training && i >= last);
    plan_loss(planner);
    if (!planner->how.training)
        return;
    for (uint32_t to = count, from = last; planner->err == KITH_OK;
         to = from, from = block_start(planner, to)) {
        if (to < count)
            run_again(planner, from, to);
        for (uint32_t i = to; i-- > from;)
            kith_planner_backward(planner, i);
        if (from == 0)
            break;
    }
    for (uint32_t i = 0; i < net->parameter_count; i++)
        if (kith_planner_trains(net, i) && !planner->written[i] &&
            planner->err == KITH_OK)
            planner->err = KITH_EINVAL;
}

enum kith_err kith_plan_open(const struct kith_planning *how,
                             struct kith_plan *plan)
{
    const struct kith_net *net = how->net;
    *plan = (struct kith_plan){.scores = KITH_PIECE_NONE};
    struct kith_planner planner = {
        .how = *how,
        .net = net,
        .plan = plan,
        .tensors = calloc(net->tensor_count, sizeof *planner.tensors),
        .saved = calloc(net->op_count, sizeof *planner.saved),
        .written = calloc(net->parameter_count, sizeof *planner.written)};
    planner.how.recompute = how->recompute && how->training;
    if (planner.tensors == NULL || planner.saved == NULL ||
        planner.written == NULL) {
        planner.err = KITH_ENOMEM;
    } else {
        for (uint32_t t = 0; t < net->tensor_count; t++) {
            planner.tensors[t].place = KITH_PIECE_INPUT;
            planner.tensors[t].gradient = KITH_PIECE_NONE;
        }
        plan_all(&planner);
    }
    enum kith_err err = planner.err;
    if (err == KITH_OK)
        err = kith_arena_place(plan);
    free(planner.tensors);
    free(planner.saved);
    free(planner.written);
    free(planner.owners);
    if (err != KITH_OK)
        kith_plan_close(plan);
    return err;
}

void kith_plan_close(struct kith_plan *plan)
{
    free(plan->steps);
    free(plan->pieces);
    *plan = (struct kith_plan){.scores = KITH_PIECE_NONE};
}
