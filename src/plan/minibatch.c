/* The minibatch procedure: a larger batch computes faster per example until its
 * feature maps leave the fast algorithms no memory.
 *
 * Source: Zou et al., the procedure of its section on minibatches.
 * Test: unit/test_plan_batch.c. */
#include <math.h>
#include <string.h>

#include "plan_range.h"

#include "kith/text.h"

static enum kith_err check(const struct kith_plan_minibatch *problem,
                           char *error)
{
    const struct plan_range ranges[] = {
        PLAN_BYTES("cap", problem->cap),
        {"sample_bytes", problem->sample_bytes, 0, KITH_PLAN_BYTES_MAX, false},
        {"fixed_bytes", problem->fixed_bytes, 0, KITH_PLAN_BYTES_MAX, false},
        {"examples", problem->examples, 1, KITH_PLAN_COUNT_MAX, false},
        {"candidates", problem->candidate_count, 1, KITH_PLAN_COUNT_MAX,
         false}};
    enum kith_err err = PLAN_CHECK(ranges, error);
    for (uint32_t i = 0; err == KITH_OK && i < problem->candidate_count; i++) {
        const struct plan_range batch[] = {{"batch",
                                            problem->candidates[i].batch, 1,
                                            KITH_PLAN_COUNT_MAX, false}};
        err = PLAN_CHECK(batch, error);
    }
    return err;
}

/* The knapsack of one candidate; KITH_ELIMIT where it has no room. */
static enum kith_err try_batch(const struct kith_plan_minibatch *problem,
                               uint32_t index, void *scratch, uint32_t *chosen,
                               double *step_s, char *error)
{
    const struct kith_plan_candidate *candidate = &problem->candidates[index];
    const struct kith_plan_knapsack knapsack = {
        .ways = candidate->ways,
        .layers = problem->layers,
        .width = problem->width,
        .bound = problem->cap - candidate->batch * problem->sample_bytes -
                 problem->fixed_bytes};
    if (knapsack.bound < KITH_PLAN_LEAST)
        return KITH_ELIMIT;
    return kith_plan_knapsack(&knapsack, scratch, chosen, step_s, error);
}

enum kith_err kith_plan_minibatch(const struct kith_plan_minibatch *problem,
                                  void *scratch, uint32_t *chosen,
                                  struct kith_plan_epoch *best, char *error)
{
    enum kith_err err = check(problem, error);
    struct kith_plan_epoch found = {.epoch_s = (double)INFINITY};
    uint32_t batch = 0, tried[KITH_PLAN_LAYERS_MAX];
    uint32_t kept[KITH_PLAN_LAYERS_MAX];
    if (err != KITH_OK)
        return err;
    for (uint32_t i = 0; i < problem->candidate_count; i++) {
        const uint32_t x = problem->candidates[i].batch;
        double step_s;
        err = try_batch(problem, i, scratch, tried, &step_s, error);
        if (err == KITH_EINVAL)
            return err;
        if (err != KITH_OK)
            continue;
        const double epoch_s = step_s * ceil(problem->examples / x);
        if (epoch_s < found.epoch_s ||
            (epoch_s <= found.epoch_s && x < batch)) {
            found = (struct kith_plan_epoch){i, step_s, epoch_s};
            batch = x;
            memcpy(kept, tried, problem->layers * sizeof *kept);
        }
    }
    if (batch == 0)
        return kith_text_fail(error, KITH_PLAN_ERROR_BYTES, KITH_ELIMIT,
                              "memory: no candidate fits %.4g bytes",
                              problem->cap);
    *best = found;
    memcpy(chosen, kept, problem->layers * sizeof *chosen);
    return KITH_OK;
}
