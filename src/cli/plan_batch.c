/* The batch of kith plan: of those that were measured, the least time of an
 * epoch within memory, by the minibatch procedure of kith/plan.h. Its one layer
 * has one way, the fastest threads of those that were measured at a batch. */
#include <math.h>
#include <stdlib.h>

#include "kith/optimiser.h"
#include "plan_command.h"

struct measured_batches {
    const struct kith_machine_step *steps[KITH_MACHINE_STEPS_MAX];
    struct kith_plan_way ways[KITH_MACHINE_STEPS_MAX];
    struct kith_plan_candidate candidates[KITH_MACHINE_STEPS_MAX];
    uint32_t count;
};

/* A line between other batches or threads would say what nobody saw. */
static void take_batches(const struct kith_machine *machine,
                         struct measured_batches *out)
{
    for (uint32_t i = 0; i < machine->step_count; i++) {
        const struct kith_machine_step *step = &machine->steps[i];
        uint32_t k = 0;
        while (k < out->count && out->steps[k]->batch != step->batch)
            k++;
        if (k < out->count && out->steps[k]->time_ns <= step->time_ns)
            continue;
        out->steps[k] = step;
        out->ways[k] = (struct kith_plan_way){(double)step->time_ns / 1e9, 0};
        out->candidates[k] =
            (struct kith_plan_candidate){step->batch, &out->ways[k]};
        out->count += k == out->count;
    }
}

/* Any number will do: batches are compared. */
#define EXAMPLES 1e6

enum kith_err kith_cli_plan_batch(const struct plan_facts *facts,
                                  struct plan_batch *out, char *error)
{
    const struct kith_experiment *experiment = facts->experiment;
    struct measured_batches *batches = calloc(1, sizeof *batches);
    void *scratch = malloc(KITH_PLAN_KNAPSACK_BYTES(1));
    struct kith_plan_epoch best;
    uint32_t chosen[1];
    enum kith_err err = KITH_ENOMEM;
    if (batches == NULL || scratch == NULL)
        goto out;
    take_batches(facts->machine, batches);
    const struct kith_plan_minibatch problem = {
        .cap =
            facts->memory_bytes > 0 ? facts->memory_bytes : KITH_PLAN_BYTES_MAX,
        .sample_bytes = facts->example_bytes,
        .fixed_bytes = kith_cli_plan_held(&facts->held) -
                       fmin((double)facts->held.batch,
                            experiment->train.batch * facts->example_bytes),
        .examples = EXAMPLES,
        .layers = 1,
        .width = 1,
        .candidates = batches->candidates,
        .candidate_count = batches->count};
    err = kith_plan_minibatch(&problem, scratch, chosen, &best, error);
    if (err == KITH_OK)
        *out = (struct plan_batch){batches->candidates[best.candidate].batch,
                                   batches->steps[best.candidate]->threads,
                                   best.step_s};
out:
    free(batches);
    free(scratch);
    return err;
}
