/* How far a step has come: which of the gradient is final after some steps of
 * the list, and what share of the step's products they are.
 *
 *   complete  the last backward step that writes a parameter within the range
 *   share     forward 1, back 1 for each of the two products that it makes
 *
 * Only products are counted, as everywhere (measure.c). Where there are none
 * all steps are alike. */
#include "kith/assert.h"
#include "graph_state.h"

static bool meets(const struct kith_progress *progress, uint32_t parameter,
                  size_t at, size_t count)
{
    if (parameter == KITH_PARAMETER_NONE)
        return false;
    const size_t from = progress->offsets[parameter];
    const size_t to = from + progress->parameters[parameter].view.elements;
    return from < at + count && at < to;
}

uint32_t kith_progress_complete(const struct kith_progress *progress, size_t at,
                                size_t count)
{
    const struct kith_plan *plan = progress->plan;
    for (uint32_t i = plan->step_count; i > 0; i--) {
        const struct kith_step *step = &plan->steps[i - 1];
        if (step->kind == KITH_STEP_LOSS)
            return i; /* buffers, which move before it */
        if (step->kind != KITH_STEP_BACKWARD)
            continue;
        const struct kith_op *op = &progress->ops[step->op];
        if ((step->weight && meets(progress, op->weight, at, count)) ||
            (step->bias && meets(progress, op->bias, at, count)))
            return i;
    }
    return 0;
}

static double products(const struct kith_progress *progress,
                       const struct kith_step *step)
{
    const bool back = step->kind == KITH_STEP_BACKWARD;
    if (!back && step->kind != KITH_STEP_FORWARD &&
        step->kind != KITH_STEP_AGAIN)
        return 0;
    const struct kith_op *op = &progress->ops[step->op];
    if (op->operation->flops == NULL)
        return 0;
    const double flops = op->operation->flops(op);
    if (!back)
        return flops;
    const bool data = step->dx != KITH_PIECE_NONE;
    /* Without a weight both factors are inputs. */
    return flops * (op->weight == KITH_PARAMETER_NONE
                        ? 2 * (double)data
                        : (double)step->weight + (double)data);
}

double kith_progress_share(const struct kith_progress *progress, uint32_t steps)
{
    const struct kith_plan *plan = progress->plan;
    double all = 0, done = 0;
    KITH_ASSERT(steps <= plan->step_count && plan->step_count > 0);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        all += products(progress, &plan->steps[i]);
        done = i + 1 == steps ? all : done;
    }
    return all > 0 ? done / all : (double)steps / plan->step_count;
}
