/* Loss and accuracy of a model over a set, in batches. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"

enum { BATCH_ROWS = 256 };
/* Peers whose loss is averaged where each has its own: enough for a mean. */
#define TARGETS_MAX 4096u

struct evaluation {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    void *x, *inputs, *scratch;
};

static struct kith_score score_examples(const struct evaluation *job,
                                        const struct kith_examples *examples)
{
    double loss = 0;
    uint64_t right = 0;
    for (size_t at = 0; at < examples->count; at += BATCH_ROWS) {
        const size_t left = examples->count - at;
        const struct kith_batch batch = {.inputs = job->inputs,
                                         .labels = examples->labels + at,
                                         .rows = left < BATCH_ROWS ? left
                                                                   : BATCH_ROWS,
                                         .seed = job->experiment->seed};
        uint32_t correct = 0;
        job->backend->from_bytes(batch.rows * examples->features,
                                 examples->images + at * examples->features,
                                 job->inputs);
        loss += (double)batch.rows *
                job->experiment->model->loss(&job->experiment->model_config,
                                             job->backend, job->x, &batch, NULL,
                                             &correct, job->scratch);
        right += correct;
    }
    return (struct kith_score){loss / (double)examples->count,
                               (double)right / (double)examples->count};
}

/* Models without data: the mean over peers of their own losses. */
static struct kith_score score_targets(const struct evaluation *job)
{
    const uint32_t peers = job->experiment->peers < TARGETS_MAX
                               ? job->experiment->peers
                               : TARGETS_MAX;
    double loss = 0;
    for (uint32_t peer = 0; peer < peers; peer++) {
        const struct kith_batch batch = {
            .rows = 1, .entity = peer, .seed = job->experiment->seed};
        loss += job->experiment->model->loss(&job->experiment->model_config,
                                             job->backend, job->x, &batch, NULL,
                                             NULL, job->scratch);
    }
    return (struct kith_score){loss / (double)peers, NAN};
}

enum kith_err kith_evaluate(const struct kith_experiment *experiment,
                            const struct kith_backend *backend,
                            const struct kith_examples *examples,
                            const double *z, struct kith_score *score)
{
    *score = (struct kith_score){NAN, NAN};
    const struct kith_model *model = experiment->model;
    if (model->loss == NULL)
        return KITH_OK;
    size_t features, classes;
    model->shape(&experiment->model_config, &features, &classes);
    if (model->needs_data &&
        (examples == NULL || examples->count == 0 ||
         examples->features != features || examples->classes > classes))
        return KITH_EINVAL;
    const size_t dim = model->dim(&experiment->model_config);
    const size_t element = backend->element_bytes;
    const size_t parameters = kith_aligned_size(dim * element);
    const size_t inputs = kith_aligned_size(BATCH_ROWS * features * element);
    void *owner = NULL;
    char *block = kith_aligned_zero(
        parameters + inputs +
            model->scratch(&experiment->model_config, backend, BATCH_ROWS),
        &owner);
    if (block == NULL)
        return KITH_ENOMEM;
    const struct evaluation job = {experiment, backend, block,
                                   block + parameters,
                                   block + parameters + inputs};
    backend->write(dim, z, job.x);
    *score = model->needs_data ? score_examples(&job, examples)
                               : score_targets(&job);
    free(owner);
    return KITH_OK;
}
