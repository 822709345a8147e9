/* Loss and accuracy of a model over a set, in batches. */
#include "kith/evaluation.h"
#include "kith/loader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kith/assert.h"

/* Rows of one batch: images; sequences, whose scores are large. */
enum { BATCH_IMAGES = 256, BATCH_SEQUENCES = 8 };
/* Peers whose loss is averaged where each has its own: enough for a mean. */
#define TARGETS_MAX 4096u

struct kith_evaluator {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    struct kith_graph *network;
    struct kith_loader *loader; /* NULL without data */
    const struct kith_examples *examples;
    size_t labels; /* of one example */
    void *x;
};

static enum kith_err refuse(char *error, enum kith_err err, const char *format,
                            ...) KITH_PRINTF(3, 4);
static enum kith_err refuse(char *error, enum kith_err err, const char *format,
                            ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length =
        snprintf(error, KITH_DATA_ERROR_BYTES, "evaluating the model: ");
    (void)vsnprintf(error + length, KITH_DATA_ERROR_BYTES - (size_t)length,
                    format, arguments);
    va_end(arguments);
    return err;
}

double kith_correlation(const double *mean, size_t dim,
                        double consensus_distance, uint32_t peers)
{
    if (peers < 2)
        return NAN;
    double average = 0, variance = 0;
    for (size_t k = 0; k < dim; k++)
        average += mean[k] / (double)dim;
    for (size_t k = 0; k < dim; k++)
        variance += (mean[k] - average) * (mean[k] - average);
    const double apart = consensus_distance * consensus_distance;
    return (variance - apart / (double)(peers - 1)) / (variance + apart);
}

static struct kith_score score_examples(const struct kith_evaluator *job)
{
    const struct kith_examples *examples = job->examples;
    double loss = 0;
    uint64_t right = 0;
    for (size_t at = 0; at < examples->count;) {
        struct kith_batch batch = {.rows = 0};
        kith_loader_next(job->loader, &batch);
        batch.seed = job->experiment->seed;
        const struct kith_pass pass = {
            .x = job->x, .batch = &batch, .scale = 1};
        uint32_t correct = 0;
        loss +=
            (double)batch.rows * kith_graph_loss(job->network, &pass, &correct);
        right += correct;
        at += batch.rows;
    }
    const double count = (double)examples->count;
    return (struct kith_score){loss / count,
                               (double)right / (count * (double)job->labels)};
}

/* Models without data: the mean over peers of their own losses. */
static struct kith_score score_targets(const struct kith_evaluator *job)
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
        loss += kith_graph_loss(job->network, &pass, NULL);
    }
    return (struct kith_score){loss / (double)peers, NAN};
}

static enum kith_err open_job(struct kith_evaluator *job, char *error)
{
    const struct kith_experiment *experiment = job->experiment;
    const struct kith_backend *backend = job->backend;
    const struct kith_examples *examples = job->examples;
    const bool tokens = experiment->model->input == KITH_INPUT_TOKENS;
    const size_t rows = examples == NULL ? 1
                        : tokens         ? BATCH_SEQUENCES
                                         : BATCH_IMAGES;
    const struct kith_graph_options options = {.backend = backend,
                                               .rows = rows};
    char words[KITH_MODEL_ERROR_BYTES] = "";
    const enum kith_err err =
        kith_graph_open(experiment->model, &experiment->model_config, &options,
                        &job->network, words);
    if (err != KITH_OK)
        return refuse(error, err, "%s", words);
    const size_t dim = kith_graph_layout(job->network)->dim;
    job->x = backend->alloc(dim * backend->element_bytes, false);
    if (job->x == NULL)
        return refuse(error, KITH_ENOMEM,
                      "no memory for a model of %zu parameters", dim);
    if (examples == NULL)
        return KITH_OK;
    job->labels = tokens ? examples->features : 1;
    const struct kith_loader_config loader = {.examples = examples,
                                              .backend = backend,
                                              .batch = rows,
                                              .seed = experiment->seed};
    return kith_loader_open(&loader, &job->loader, error);
}

static enum kith_err check_examples(const struct kith_experiment *experiment,
                                    const struct kith_examples *examples)
{
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    return examples == NULL || examples->count == 0 ||
                   examples->features != size.features ||
                   examples->classes > size.classes
               ? KITH_EINVAL
               : KITH_OK;
}

enum kith_err kith_evaluator_open(const struct kith_experiment *experiment,
                                  const struct kith_backend *backend,
                                  const struct kith_examples *examples,
                                  struct kith_evaluator **out, char *error)
{
    const struct kith_model *model = experiment->model;
    const bool data = model->input != KITH_INPUT_NONE;
    *out = NULL;
    if (data && check_examples(experiment, examples) != KITH_OK)
        return refuse(error, KITH_EINVAL,
                      "the test set does not fit the model");
    struct kith_evaluator *job = calloc(1, sizeof *job);
    if (job == NULL)
        return refuse(error, KITH_ENOMEM, "no memory");
    job->experiment = experiment;
    job->backend = backend;
    job->examples = data ? examples : NULL;
    enum kith_err err =
        kith_model_learns(model) ? open_job(job, error) : KITH_OK;
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed != NULL) /* which has no memory, either */
        err = refuse(error, KITH_EDEVICE, "%s", failed);
    if (err != KITH_OK) {
        kith_evaluator_close(job);
        return err;
    }
    *out = job;
    return KITH_OK;
}

void kith_evaluator_close(struct kith_evaluator *job)
{
    if (job == NULL)
        return;
    if (job->x != NULL)
        job->backend->release(job->x);
    kith_loader_close(job->loader);
    kith_graph_close(job->network);
    free(job);
}

enum kith_err kith_evaluator_score(struct kith_evaluator *job, const double *z,
                                   struct kith_score *score, char *error)
{
    const struct kith_backend *backend = job->backend;
    const struct kith_place start = {0, 0};
    *score = (struct kith_score){NAN, NAN};
    if (job->network == NULL) /* Nothing is learnt. */
        return KITH_OK;
    backend->write(kith_graph_layout(job->network)->dim, z, job->x);
    if (job->loader != NULL) {
        const enum kith_err err = kith_loader_seek(job->loader, start);
        KITH_ASSERT(err == KITH_OK);
    }
    const struct kith_score found =
        job->examples == NULL ? score_targets(job) : score_examples(job);
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed != NULL)
        return refuse(error, KITH_EDEVICE, "%s", failed);
    failed = job->loader == NULL ? NULL : kith_loader_failed(job->loader);
    if (failed != NULL)
        return refuse(error, KITH_EPARSE, "%s", failed);
    *score = found;
    return KITH_OK;
}

enum kith_err kith_evaluate(const struct kith_experiment *experiment,
                            const struct kith_backend *backend,
                            const struct kith_examples *examples,
                            const double *z, struct kith_score *score)
{
    struct kith_evaluator *job;
    char error[KITH_DATA_ERROR_BYTES];
    *score = (struct kith_score){NAN, NAN};
    enum kith_err err =
        kith_evaluator_open(experiment, backend, examples, &job, error);
    if (err == KITH_OK)
        err = kith_evaluator_score(job, z, score, error);
    kith_evaluator_close(job);
    return err;
}
