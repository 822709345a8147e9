/* The batch of kith plan: of those that were measured, the least time of an
 * epoch within memory, by the minibatch procedure of kith/plan.h. Threads are
 * the ways in which its one layer can be computed. */
#include <stdlib.h>

#include "kith/optimiser.h"
#include "plan_command.h"

struct measured_batches {
    uint32_t threads[KITH_PLAN_WAYS_MAX], widths;
    struct kith_plan_way ways[KITH_MACHINE_STEPS_MAX][KITH_PLAN_WAYS_MAX];
    struct kith_plan_candidate candidates[KITH_MACHINE_STEPS_MAX];
    uint32_t count;
};

static void take_threads(const struct kith_machine *machine,
                         struct measured_batches *out)
{
    for (uint32_t i = 0; i < machine->step_count; i++) {
        uint32_t k = 0;
        while (k < out->widths && out->threads[k] != machine->steps[i].threads)
            k++;
        if (k == out->widths && k < KITH_PLAN_WAYS_MAX)
            out->threads[out->widths++] = machine->steps[i].threads;
    }
}

static void take_batches(const struct kith_machine *machine,
                         struct measured_batches *out)
{
    for (uint32_t i = 0; i < machine->step_count; i++) {
        const uint32_t batch = machine->steps[i].batch;
        struct kith_plan_way *ways = out->ways[out->count];
        uint32_t k = 0;
        while (k < out->count && out->candidates[k].batch != batch)
            k++;
        if (k < out->count)
            continue;
        for (uint32_t l = 0; l < out->widths; l++)
            ways[l] = (struct kith_plan_way){
                kith_machine_step_s(machine, batch, out->threads[l]), 0};
        out->candidates[out->count++] =
            (struct kith_plan_candidate){batch, ways};
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
    take_threads(facts->machine, batches);
    take_batches(facts->machine, batches);
    const struct kith_plan_minibatch problem = {
        .cap =
            facts->memory_bytes > 0 ? facts->memory_bytes : KITH_PLAN_BYTES_MAX,
        .sample_bytes = facts->example_bytes,
        .fixed_bytes = (2 + experiment->train.optimiser->state_vectors) *
                           facts->exchange.model_bytes +
                       (double)(facts->held.algorithm + facts->held.slots +
                                facts->held.wire),
        .examples = EXAMPLES,
        .layers = 1,
        .width = batches->widths,
        .candidates = batches->candidates,
        .candidate_count = batches->count};
    err = kith_plan_minibatch(&problem, scratch, chosen, &best, error);
    if (err == KITH_OK)
        *out = (struct plan_batch){batches->candidates[best.candidate].batch,
                                   batches->threads[chosen[0]], best.step_s};
out:
    free(batches);
    free(scratch);
    return err;
}
