/* Running statistics from scratch. An average of models has other activations
 * than any of them, and the average of their statistics describes nobody's.
 *
 *   buffer <- 1/N sum_b statistic(batch b)
 *
 * A pass adds momentum times a batch's statistic to a buffer of 0. */
#include "evaluator.h"

#include <stdlib.h>

/* sum <- sum + weight * the statistics of the next batch; `found` is scratch.
 */
static void add_batch(const struct kith_evaluator *job, double weight,
                      double *sum, double *found)
{
    const struct kith_backend *backend = job->backend;
    const struct kith_layout *layout = kith_graph_layout(job->network);
    const size_t n = layout->gossiped - layout->trained;
    void *buffers = (char *)job->x + layout->trained * backend->element_bytes;
    struct kith_batch batch = {.rows = 0};
    kith_loader_next(job->loader, &batch);
    batch.labels = NULL;
    batch.seed = job->experiment->seed;
    const struct kith_pass pass = {
        .x = job->x, .batch = &batch, .scale = 1, .estimate = true};
    backend->scale(n, 0, buffers);
    (void)kith_graph_loss(job->network, &pass, NULL);
    backend->read(n, buffers, found);
    for (size_t i = 0; i < n; i++)
        sum[i] += weight * found[i];
}

static enum kith_err estimate(const struct kith_evaluator *job,
                              uint32_t batches, double *z)
{
    const struct kith_layout *layout = kith_graph_layout(job->network);
    const size_t first = layout->trained;
    const size_t n = layout->gossiped - first;
    double *sum = calloc(2 * n, sizeof *sum);
    if (sum == NULL)
        return KITH_ENOMEM;
    /* What is there may be anything, even not finite. */
    for (size_t i = 0; i < n; i++)
        z[first + i] = 0;
    job->backend->write(layout->dim, z, job->x);
    for (uint32_t i = 0; i < batches; i++)
        add_batch(job, 1 / (KITH_BUFFER_MOMENTUM * batches), sum, sum + n);
    for (size_t i = 0; i < n; i++)
        z[first + i] = sum[i];
    free(sum);
    return KITH_OK;
}

enum kith_err kith_estimate(const struct kith_experiment *experiment,
                            const struct kith_backend *backend,
                            const struct kith_examples *train, uint32_t batches,
                            double *z)
{
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (size.gossiped == size.trained || batches == 0)
        return KITH_OK;
    if (train == NULL || train->count == 0 || train->features != size.features)
        return KITH_EINVAL;
    size_t rows = experiment->train.batch > KITH_ESTIMATE_ROWS
                      ? experiment->train.batch
                      : KITH_ESTIMATE_ROWS;
    rows = rows < train->count ? rows : train->count;
    const struct kith_loader_config loader = {
        .examples = train,
        .backend = backend,
        .batch = rows,
        .seed = experiment->seed,
        .entity = KITH_NOBODY,
        .augment = experiment->train.augment,
        .shuffle = true,
    };
    char words[KITH_DATA_ERROR_BYTES];
    struct kith_evaluator job = {.x = NULL};
    enum kith_err err =
        kith_evaluator_prepare(experiment, &loader, &job, words);
    if (err == KITH_OK)
        err = estimate(&job, batches, z);
    if (job.loader != NULL && kith_loader_failed(job.loader) != NULL)
        err = KITH_EPARSE;
    if (backend->failed != NULL && backend->failed() != NULL)
        err = KITH_EDEVICE;
    kith_evaluator_release(&job);
    return err;
}
