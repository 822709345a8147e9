/* kith eval: loss and accuracy of a checkpoint on its test set. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kith/checkpoint.h"
#include "kith/evaluation.h"
#include "kith/json.h"
#include "kith/text.h"
#include "kith/worker.h"
#include "checkpoint_open.h"

struct evaluating {
    struct cli_model model;
    struct kith_dataset dataset; /* empty: the model needs none */
    uint64_t estimate;           /* batches; 0: statistics as stored */
    struct kith_score score;
    double wall_s;
};

static bool needs_data(const struct evaluating *job)
{
    return job->model.experiment.model->input != KITH_INPUT_NONE;
}

static bool is_text(const struct evaluating *job)
{
    return job->model.experiment.model->input == KITH_INPUT_TOKENS;
}

/* The same characters, or the tokens mean something else. */
static int check_alphabet(const struct evaluating *job)
{
    const struct cli_model *model = &job->model;
    const char *here = job->dataset.test.alphabet;
    char *there, error[KITH_CHECKPOINT_ERROR_BYTES];
    const enum kith_err err =
        kith_checkpoint_text(model->path, "alphabet", &there, error);
    if (err != KITH_OK)
        return kith_cli_check(model->arguments, err, error);
    const bool differs =
        there != NULL && here != NULL && strcmp(there, here) != 0;
    free(there);
    return differs
               ? kith_cli_fail(model->arguments, KITH_EXIT_DATA,
                               "%.300s has other characters than the text that "
                               "%.300s was trained on: their tokens differ",
                               model->experiment.data.config.path, model->path)
               : KITH_EXIT_OK;
}

static int check_fit(const struct evaluating *job)
{
    const struct cli_model *model = &job->model;
    const struct kith_experiment *experiment = &model->experiment;
    const struct kith_examples *test = &job->dataset.test;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    if (test->features == size.features && test->classes <= size.classes)
        return KITH_EXIT_OK;
    return kith_cli_fail(model->arguments, KITH_EXIT_DATA,
                         "%.300s has examples of %zu values and %" PRIu32
                         " classes; the model takes %zu and %zu",
                         experiment->data.config.path, test->features,
                         test->classes, size.features, size.classes);
}

static int open_data(struct evaluating *job)
{
    const struct kith_experiment *experiment = &job->model.experiment;
    const struct cli_arguments *arguments = job->model.arguments;
    char error[KITH_DATA_ERROR_BYTES];
    if (!needs_data(job))
        return KITH_EXIT_OK;
    if (kith_dataset_open(&experiment->data.config, &job->dataset, error) !=
        KITH_OK)
        return kith_cli_fail(arguments, KITH_EXIT_DATA, "%s%s", error,
                             kith_cli_given(arguments, CLI_DATA)
                                 ? ""
                                 : "; --data PATH names another place");
    int code = check_alphabet(job);
    if (code == KITH_EXIT_OK)
        code = check_fit(job);
    if (code != KITH_EXIT_OK)
        kith_dataset_close(&job->dataset);
    return code;
}

static int measure(struct evaluating *job)
{
    struct cli_model *model = &job->model;
    const struct kith_experiment *experiment = &model->experiment;
    const bool data = needs_data(job);
    const kith_ns start_ns = kith_cli_now();
    char error[KITH_DATA_ERROR_BYTES] = "";
    struct kith_evaluator *evaluator = NULL;
    enum kith_err err = kith_estimate(experiment, experiment->backend,
                                      data ? &job->dataset.train : NULL,
                                      (uint32_t)job->estimate, model->z);
    if (err != KITH_OK)
        kith_text_copy(error, sizeof error, kith_err_text(err));
    else
        err = kith_evaluator_open(experiment, experiment->backend,
                                  data ? &job->dataset.test : NULL, &evaluator,
                                  error);
    if (err == KITH_OK)
        err = kith_evaluator_score(evaluator, model->z, &job->score, error);
    kith_evaluator_close(evaluator);
    job->wall_s = 1e-9 * (double)(kith_cli_now() - start_ns);
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(model->arguments,
                         err == KITH_EPARSE ? KITH_EXIT_DATA
                                            : kith_cli_exit_of(err),
                         "%.200s: %s", model->path, error);
}

static void print_json(const struct evaluating *job)
{
    const struct cli_model *model = &job->model;
    const struct kith_examples *test = &job->dataset.test;
    const bool text = is_text(job);
    const double tokens = (double)test->count * (double)test->features;
    kith_json_print(
        json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I, "
                  "s:o}",
                  "checkpoint", kith_json_text(model->path), "experiment",
                  kith_json_text(model->experiment.name), "model",
                  model->experiment.model->name, "parameters",
                  (json_int_t)model->dim, "step", (json_int_t)model->step,
                  "examples", (json_int_t)test->count, "tokens",
                  kith_json_real(text ? tokens : (double)NAN), "loss",
                  kith_json_real(job->score.loss), "accuracy",
                  kith_json_real(job->score.accuracy), "perplexity",
                  kith_json_real(text ? exp(job->score.loss) : (double)NAN),
                  "estimated_batches", (json_int_t)job->estimate, "wall_s",
                  kith_json_real(job->wall_s)),
        9);
}

static void print_table(const struct evaluating *job)
{
    const struct cli_model *model = &job->model;
    const struct kith_examples *test = &job->dataset.test;
    printf("%s: %s, %zu parameters, step %" PRIu64 "\n", model->path,
           model->experiment.model->name, model->dim, model->step);
    if (is_text(job))
        printf("  test set     %zu windows of %zu tokens\n", test->count,
               test->features);
    else if (needs_data(job))
        printf("  test set     %zu examples\n", test->count);
    if (job->estimate > 0)
        printf("  statistics   of %" PRIu64 " training batches\n",
               job->estimate);
    if (!isnan(job->score.loss))
        printf("  loss         %.4f\n", job->score.loss);
    if (!isnan(job->score.accuracy))
        printf("  accuracy     %.2f %%\n", 100 * job->score.accuracy);
    if (is_text(job))
        printf("  perplexity   %.3f\n", exp(job->score.loss));
}

/* Only some models have what --estimate is about. */
static int check_estimate(const struct evaluating *job)
{
    const struct kith_experiment *experiment = &job->model.experiment;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    return job->estimate == 0 || size.gossiped > size.trained
               ? KITH_EXIT_OK
               : kith_cli_fail(job->model.arguments, KITH_EXIT_USAGE,
                               "--estimate: model %s of %.300s has no running "
                               "statistics",
                               experiment->model->name, job->model.path);
}

int kith_cli_eval(const struct cli_arguments *arguments)
{
    struct evaluating job = {.estimate = 0};
    int code =
        kith_cli_number(arguments, CLI_ESTIMATE, 1, 100000, &job.estimate);
    if (code == KITH_EXIT_OK)
        code = kith_cli_model_open(&job.model, arguments);
    if (code != KITH_EXIT_OK)
        return code;
    code = kith_cli_model_compute(&job.model);
    if (code == KITH_EXIT_OK)
        code = check_estimate(&job);
    if (code == KITH_EXIT_OK)
        code = open_data(&job);
    if (code == KITH_EXIT_OK)
        code = measure(&job);
    if (code == KITH_EXIT_OK) {
        if (kith_cli_given(arguments, CLI_JSON))
            print_json(&job);
        else
            print_table(&job);
        /* A model that has lost its numbers is no result. */
        if (kith_model_learns(job.model.experiment.model) &&
            !isfinite(job.score.loss))
            code = kith_cli_fail(arguments, KITH_EXIT_FAILED,
                                 "%.300s: its loss is not finite",
                                 arguments->words[0]);
        code = kith_cli_flush(arguments, code);
    }
    kith_dataset_close(&job.dataset);
    kith_cli_model_close(&job.model);
    return code;
}
