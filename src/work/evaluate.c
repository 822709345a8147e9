/* Loss and accuracy of a model over a set, in batches. */
#include "private.h"

#include <math.h>
#include <stdlib.h>

/* Rows of one batch: images; sequences, whose scores are large. */
enum { BATCH_IMAGES = 256, BATCH_SEQUENCES = 8 };
/* Peers whose loss is averaged where each has its own: enough for a mean. */
#define TARGETS_MAX 4096u

struct evaluation {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    struct kith_network *network;
    struct kith_loader *loader; /* NULL without data */
    size_t labels;              /* of one example */
    void *x;
};

static struct kith_score score_examples(const struct evaluation *job,
                                        const struct kith_examples *examples)
{
    double loss = 0;
    uint64_t right = 0;
    for (size_t at = 0; at < examples->count;) {
        struct kith_batch batch = {.rows = 0};
        kith_loader_next(job->loader, &batch);
        batch.seed = job->experiment->seed;
        const struct kith_pass pass = {
            .x = job->x, .batch = &batch, .scale = 1};
        uint32_t correct = 0;
        loss += (double)batch.rows *
                kith_network_loss(job->network, &pass, &correct);
        right += correct;
        at += batch.rows;
    }
    const double count = (double)examples->count;
    return (struct kith_score){loss / count,
                               (double)right / (count * (double)job->labels)};
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
        const struct kith_pass pass = {
            .x = job->x, .batch = &batch, .scale = 1};
        loss += kith_network_loss(job->network, &pass, NULL);
    }
    return (struct kith_score){loss / (double)peers, NAN};
}

static enum kith_err open_job(struct evaluation *job,
                              const struct kith_examples *examples)
{
    const struct kith_experiment *experiment = job->experiment;
    const bool tokens = experiment->model->input == KITH_INPUT_TOKENS;
    const size_t rows = examples == NULL ? 1
                        : tokens         ? BATCH_SEQUENCES
                                         : BATCH_IMAGES;
    const struct kith_network_options options = {.backend = job->backend,
                                                 .rows = rows};
    char words[KITH_DATA_ERROR_BYTES];
    const enum kith_err err =
        kith_network_open(experiment->model, &experiment->model_config,
                          &options, &job->network, words);
    if (err != KITH_OK || examples == NULL)
        return err;
    job->labels = tokens ? examples->features : 1;
    const struct kith_loader_config loader = {.examples = examples,
                                              .backend = job->backend,
                                              .batch = rows,
                                              .seed = experiment->seed};
    return kith_loader_open(&loader, &job->loader, words);
}

static enum kith_err score_all(struct evaluation *job,
                               const struct kith_examples *examples,
                               const double *z, struct kith_score *score)
{
    const struct kith_backend *backend = job->backend;
    const size_t dim = kith_network_layout(job->network)->dim;
    job->x = backend->alloc(dim * backend->element_bytes, false);
    if (job->x == NULL)
        return KITH_ENOMEM;
    backend->write(dim, z, job->x);
    *score =
        examples == NULL ? score_targets(job) : score_examples(job, examples);
    backend->release(job->x);
    return KITH_OK;
}

enum kith_err kith_evaluate(const struct kith_experiment *experiment,
                            const struct kith_backend *backend,
                            const struct kith_examples *examples,
                            const double *z, struct kith_score *score)
{
    *score = (struct kith_score){NAN, NAN};
    const struct kith_model *model = experiment->model;
    if (!kith_model_learns(model))
        return KITH_OK;
    const struct kith_model_size size =
        kith_model_size_of(model, &experiment->model_config);
    if (model->input == KITH_INPUT_NONE)
        examples = NULL;
    else if (examples == NULL || examples->count == 0 ||
             examples->features != size.features ||
             examples->classes > size.classes)
        return KITH_EINVAL;
    struct evaluation job = {.experiment = experiment, .backend = backend};
    enum kith_err err = open_job(&job, examples);
    if (err == KITH_OK)
        err = score_all(&job, examples, z, score);
    if (backend->failed != NULL && backend->failed() != NULL)
        err = KITH_EDEVICE;
    if (err != KITH_OK)
        *score = (struct kith_score){NAN, NAN};
    kith_loader_close(job.loader);
    kith_network_close(job.network);
    return err;
}
