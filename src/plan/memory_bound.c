/* G6: memory less all that does not grow with the batch.
 *
 * Source: Zou et al., the bound of the minibatch procedure, with a method's own
 * vectors in it. Test: unit/test_plan.c. */
#include "plan_range.h"

#include "kith/text.h"

enum kith_err kith_plan_memory(const struct kith_plan_memory *memory,
                               struct kith_plan_bound *out, char *error)
{
    const struct plan_range ranges[] = {
        PLAN_BYTES("cap", memory->cap),
        PLAN_BYTES("model_bytes", memory->model_bytes),
        {"copies", memory->copies, 1, 64, false},
        {"state_bytes", memory->state_bytes, 0, KITH_PLAN_BYTES_MAX, false},
        {"slot_bytes", memory->slot_bytes, 0, KITH_PLAN_BYTES_MAX, false},
        {"sample_bytes", memory->sample_bytes, 0, KITH_PLAN_BYTES_MAX, false}};
    const enum kith_err err = PLAN_CHECK(ranges, error);
    if (err != KITH_OK)
        return err;
    const double models = memory->copies * memory->model_bytes;
    const double left =
        memory->cap - models - memory->state_bytes - memory->slot_bytes;
    if (left < memory->sample_bytes)
        return kith_text_fail(
            error, KITH_PLAN_ERROR_BYTES, KITH_ELIMIT,
            "memory: no batch fits %.4g bytes: %.4g of the model and its "
            "copies, %.4g of the method, %.4g of messages, %.4g an example",
            memory->cap, models, memory->state_bytes, memory->slot_bytes,
            memory->sample_bytes);
    out->bytes = left;
    out->batch = KITH_PLAN_COUNT_MAX;
    if (memory->sample_bytes > left / KITH_PLAN_COUNT_MAX)
        out->batch = kith_plan_whole_down(left / memory->sample_bytes);
    return KITH_OK;
}
