/* What a peer takes of memory with a batch, as kith_worker_open would take it,
 * and the largest batch that fits. Beside it stand the data set, a save while
 * it is written and what connections buffer.
 * Test: unit/test_plan_memory.c, integration/test_cli_plan.sh */
#include "kith/loader.h"
#include "plan_command.h"

static enum kith_err hold(const struct kith_worker_config *worker, size_t batch,
                          struct kith_worker_memory *held)
{
    struct kith_training training = *worker->task.training;
    struct kith_worker_config changed = *worker;
    training.batch = (uint32_t)batch;
    changed.task.training = &training;
    return kith_worker_measure(&changed, held);
}

double kith_cli_plan_held(const struct kith_worker_memory *held)
{
    return (double)held->slots + (double)held->wire + (double)held->algorithm +
           (double)held->training + (double)held->batch;
}

enum kith_err kith_cli_example_bytes(const struct kith_experiment *experiment,
                                     double *bytes)
{
    const struct kith_worker_config worker = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .peers = experiment->peers,
        .ahead = true};
    const size_t batch = experiment->train.batch;
    struct kith_worker_memory one, two;
    *bytes = 0;
    if (experiment->model->build == NULL || batch == 0)
        return KITH_OK;
    enum kith_err err = hold(&worker, batch, &one);
    if (err == KITH_OK)
        err = hold(&worker, 2 * batch, &two);
    if (err == KITH_OK)
        *bytes = ((double)two.batch - (double)one.batch) / (double)batch;
    return err;
}

static bool fits(const struct plan_facts *facts, size_t batch)
{
    struct kith_worker_memory held;
    return hold(&facts->worker, batch, &held) == KITH_OK &&
           kith_cli_plan_held(&held) <= facts->memory_bytes;
}

/* Whole rows of each part of a step. A loader that is ahead keeps fewer batches
 * the larger they are, so that what is taken may fall a little between two. */
double kith_cli_largest_batch(const struct plan_facts *facts)
{
    const uint32_t accumulate = facts->worker.task.training->accumulate;
    const size_t parts = accumulate > 0 ? accumulate : 1;
    const size_t most = KITH_BATCH_MAX / parts;
    size_t low = 0, high = most + 1;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (fits(facts, middle * parts))
            low = middle;
        else
            high = middle;
    }
    while (low < most && fits(facts, (low + 1) * parts))
        low++;
    return (double)(low * parts);
}
