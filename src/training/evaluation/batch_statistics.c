/* Running statistics from scratch. An average of models has other activations
 * than any of them, and the average of their statistics describes nobody's.
 *
 *   buffer <- 1/N sum_b statistic(batch b)
 *
 * A pass adds momentum times a batch's statistic to a buffer of 0. */
#include "kith/evaluation.h"
#include "kith/loader.h"

#include <stdlib.h>

/* Smaller batches than that say little about a variance. */
enum { ROWS_MIN = 64 };

struct estimation {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    struct kith_graph *network;
    struct kith_loader *loader;
    const struct kith_layout *layout;
    void *x;     /* (dim) */
    double *sum; /* (buffers), and as much for what was read */
};

static void add_batch(struct estimation *job, double weight)
{
    const struct kith_backend *backend = job->backend;
    const size_t n = job->layout->gossiped - job->layout->trained;
    void *buffers =
        (char *)job->x + job->layout->trained * backend->element_bytes;
    double *found = job->sum + n;
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
        job->sum[i] += weight * found[i];
}

static enum kith_err estimate(struct estimation *job, uint32_t batches,
                              double *z)
{
    const struct kith_backend *backend = job->backend;
    const size_t first = job->layout->trained;
    const size_t n = job->layout->gossiped - first;
    job->x = backend->alloc(job->layout->dim * backend->element_bytes, false);
    job->sum = calloc(2 * n, sizeof *job->sum);
    if (job->x == NULL || job->sum == NULL)
        return KITH_ENOMEM;
    /* What is there may be anything, even not finite. */
    for (size_t i = 0; i < n; i++)
        z[first + i] = 0;
    backend->write(job->layout->dim, z, job->x);
    for (uint32_t i = 0; i < batches; i++)
        add_batch(job, 1 / (KITH_BUFFER_MOMENTUM * batches));
    for (size_t i = 0; i < n; i++)
        z[first + i] = job->sum[i];
    return KITH_OK;
}

static enum kith_err open_job(struct estimation *job,
                              const struct kith_examples *train)
{
    const struct kith_experiment *experiment = job->experiment;
    char words[KITH_DATA_ERROR_BYTES];
    size_t rows =
        experiment->train.batch > ROWS_MIN ? experiment->train.batch : ROWS_MIN;
    rows = rows < train->count ? rows : train->count;
    const struct kith_graph_options options = {.backend = job->backend,
                                               .rows = rows};
    enum kith_err err =
        kith_graph_open(experiment->model, &experiment->model_config, &options,
                        &job->network, words);
    if (err != KITH_OK)
        return err;
    job->layout = kith_graph_layout(job->network);
    const struct kith_loader_config loader = {.examples = train,
                                              .backend = job->backend,
                                              .batch = rows,
                                              .seed = experiment->seed,
                                              .entity = KITH_NOBODY,
                                              .augment =
                                                  experiment->train.augment,
                                              .shuffle = true};
    return kith_loader_open(&loader, &job->loader, words);
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
    struct estimation job = {.experiment = experiment, .backend = backend};
    enum kith_err err = open_job(&job, train);
    if (err == KITH_OK)
        err = estimate(&job, batches, z);
    if (job.loader != NULL && kith_loader_failed(job.loader) != NULL)
        err = KITH_EPARSE;
    if (backend->failed != NULL && backend->failed() != NULL)
        err = KITH_EDEVICE;
    free(job.sum);
    if (job.x != NULL)
        backend->release(job.x);
    kith_loader_close(job.loader);
    kith_graph_close(job.network);
    return err;
}
