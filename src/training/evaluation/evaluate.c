/* Loss and accuracy of a model over a set, in batches. */
#include "evaluator.h"

#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/rng.h"
#include "kith/text.h"

/* Rows of one batch: images; sequences, whose scores are large. */
enum { BATCH_IMAGES = 256, BATCH_SEQUENCES = 8 };
/* Peers whose loss is averaged where each has its own: enough for a mean. */
#define TARGETS_MAX 4096u

#define REFUSE(err, ...)                                                       \
    kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,                          \
                   "evaluating the model: " __VA_ARGS__)

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

/* Of the next `rows` examples of a loader, which are all it has. */
static struct kith_score score_examples(const struct kith_evaluator *job,
                                        struct kith_loader *loader, size_t rows)
{
    const struct kith_examples *examples = job->examples;
    const size_t labels =
        examples->input == KITH_INPUT_TOKENS ? examples->features : 1;
    double loss = 0;
    uint64_t right = 0;
    for (size_t at = 0; at < rows;) {
        struct kith_batch batch = {.rows = 0};
        kith_loader_next(loader, &batch);
        batch.seed = job->experiment->seed;
        const struct kith_pass pass = {
            .x = job->x, .batch = &batch, .scale = 1};
        uint32_t correct = 0;
        loss +=
            (double)batch.rows * kith_graph_loss(job->network, &pass, &correct);
        right += correct;
        at += batch.rows;
    }
    const double count = (double)rows;
    return (struct kith_score){loss / count,
                               (double)right / (count * (double)labels)};
}

/* Models without data: the mean over peers of their own losses. */
static struct kith_score score_targets(const struct kith_evaluator *job,
                                       size_t rows)
{
    uint32_t peers = job->experiment->peers < TARGETS_MAX
                         ? job->experiment->peers
                         : TARGETS_MAX;
    if (rows > 0 && rows < peers)
        peers = (uint32_t)rows;
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

enum kith_err kith_evaluator_prepare(const struct kith_experiment *experiment,
                                     const struct kith_loader_config *loader,
                                     struct kith_evaluator *job, char *error)
{
    const struct kith_backend *backend = loader->backend;
    const struct kith_graph_options options = {.backend = backend,
                                               .rows = loader->batch};
    char words[KITH_MODEL_ERROR_BYTES] = "";
    job->experiment = experiment;
    job->backend = backend;
    job->examples = loader->examples;
    const enum kith_err err =
        kith_graph_open(experiment->model, &experiment->model_config, &options,
                        &job->network, words);
    if (err != KITH_OK)
        return REFUSE(err, "%s", words);
    const size_t dim = kith_graph_layout(job->network)->dim;
    job->x = backend->alloc(dim * backend->element_bytes, false);
    if (job->x == NULL)
        return REFUSE(KITH_ENOMEM, "no memory for a model of %zu parameters",
                      dim);
    return job->examples == NULL
               ? KITH_OK
               : kith_loader_open(loader, &job->loader, error);
}

static size_t batch_rows(const struct kith_examples *examples)
{
    return examples->input == KITH_INPUT_TOKENS ? BATCH_SEQUENCES
                                                : BATCH_IMAGES;
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
        return REFUSE(KITH_EINVAL, "the test set does not fit the model");
    struct kith_evaluator *job = calloc(1, sizeof *job);
    if (job == NULL)
        return REFUSE(KITH_ENOMEM, "no memory");
    const struct kith_loader_config loader = {
        .examples = data ? examples : NULL,
        .backend = backend,
        .batch = data ? batch_rows(examples) : 1,
        .seed = experiment->seed};
    enum kith_err err = KITH_OK;
    if (kith_model_learns(model))
        err = kith_evaluator_prepare(experiment, &loader, job, error);
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed != NULL) /* which has no memory, either */
        err = REFUSE(KITH_EDEVICE, "%s", failed);
    if (err != KITH_OK) {
        kith_evaluator_release(job);
        free(job);
        return err;
    }
    *out = job;
    return KITH_OK;
}

void kith_evaluator_release(struct kith_evaluator *job)
{
    if (job->x != NULL)
        job->backend->release(job->x);
    kith_loader_close(job->part);
    kith_loader_close(job->loader);
    kith_graph_close(job->network);
    free(job->part_rows);
}

void kith_evaluator_close(struct kith_evaluator *job)
{
    if (job != NULL)
        kith_evaluator_release(job);
    free(job);
}

/* rows (count) <- ascending places below `all`, each set of them as likely as
 * any other: selection sampling, Knuth, TAOCP 2, 3.4.2, algorithm S. */
static void draw_rows(size_t all, size_t count, uint32_t *rows)
{
    struct kith_rng rng;
    size_t taken = 0;
    kith_rng_init(&rng, 0, KITH_STREAM_TEST_PART, count);
    for (size_t i = 0; taken < count; i++) {
        KITH_ASSERT(i < all);
        if (kith_rng_double(&rng) * (double)(all - i) < (double)(count - taken))
            rows[taken++] = (uint32_t)i;
    }
}

enum kith_err kith_evaluator_part(struct kith_evaluator *job, size_t rows,
                                  char *error)
{
    KITH_ASSERT(job->part_count == 0);
    const struct kith_examples *examples = job->examples;
    if (job->network == NULL || rows == 0 ||
        (examples != NULL && rows >= examples->count))
        return KITH_OK;
    job->part_count = rows;
    if (examples == NULL)
        return KITH_OK;
    job->part_rows = malloc(rows * sizeof *job->part_rows);
    if (job->part_rows == NULL)
        return REFUSE(KITH_ENOMEM, "no memory for %zu rows", rows);
    draw_rows(examples->count, rows, job->part_rows);
    const size_t batch = batch_rows(examples);
    const struct kith_loader_config loader = {.examples = examples,
                                              .backend = job->backend,
                                              .rows = job->part_rows,
                                              .row_count = rows,
                                              .batch =
                                                  rows < batch ? rows : batch,
                                              .seed = job->experiment->seed};
    return kith_loader_open(&loader, &job->part, error);
}

static enum kith_err score_on(struct kith_evaluator *job, const double *z,
                              struct kith_loader *loader, size_t rows,
                              struct kith_score *score, char *error)
{
    const struct kith_backend *backend = job->backend;
    const struct kith_place start = {0, 0};
    *score = (struct kith_score){NAN, NAN};
    if (job->network == NULL) /* Nothing is learnt. */
        return KITH_OK;
    backend->write(kith_graph_layout(job->network)->dim, z, job->x);
    if (loader != NULL) {
        const enum kith_err err = kith_loader_seek(loader, start);
        KITH_ASSERT(err == KITH_OK);
    }
    const struct kith_score found = job->examples == NULL
                                        ? score_targets(job, rows)
                                        : score_examples(job, loader, rows);
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed != NULL)
        return REFUSE(KITH_EDEVICE, "%s", failed);
    failed = loader == NULL ? NULL : kith_loader_failed(loader);
    if (failed != NULL)
        return REFUSE(KITH_EPARSE, "%s", failed);
    *score = found;
    return KITH_OK;
}

enum kith_err kith_evaluator_score(struct kith_evaluator *job, const double *z,
                                   struct kith_score *score, char *error)
{
    const size_t all = job->examples == NULL ? 0 : job->examples->count;
    return score_on(job, z, job->loader, all, score, error);
}

enum kith_err kith_evaluator_score_part(struct kith_evaluator *job,
                                        const double *z,
                                        struct kith_score *score, char *error)
{
    return job->part_count == 0
               ? kith_evaluator_score(job, z, score, error)
               : score_on(job, z, job->part, job->part_count, score, error);
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
