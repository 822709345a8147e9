/* kith sample: text from a checkpoint, as it comes. */
#include "kith/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "checkpoint_open.h"

#define TOKENS 256u
#define TOKENS_MAX 10000000u
#define TEMPERATURE 0.8
#define TEMPERATURE_MAX 100.0

struct sampling {
    struct cli_model model;
    struct cli_codec codec;
    struct kith_generator *generator;
    struct kith_sampling how;
    uint64_t tokens;
};

static int read_options(struct sampling *job,
                        const struct cli_arguments *arguments)
{
    const char *text = arguments->values[CLI_TEMPERATURE];
    uint64_t top_k = 0;
    job->tokens = TOKENS;
    job->how.temperature = TEMPERATURE;
    if (text != NULL &&
        (kith_text_double(text, &job->how.temperature) != KITH_OK ||
         !(job->how.temperature >= 0 &&
           job->how.temperature <= TEMPERATURE_MAX)))
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "--temperature: found \"%.60s\"; allowed: a number from 0 to %g",
            text, TEMPERATURE_MAX);
    int code =
        kith_cli_number(arguments, CLI_TOKENS, 1, TOKENS_MAX, &job->tokens);
    if (code == KITH_EXIT_OK)
        code =
            kith_cli_number(arguments, CLI_TOP_K, 0, KITH_CLASSES_MAX, &top_k);
    job->how.top_k = (uint32_t)top_k;
    return code;
}

static int open_generator(struct sampling *job)
{
    const struct cli_model *model = &job->model;
    const struct kith_generator_config config = {
        .model = model->experiment.model,
        .config = &model->experiment.model_config,
        .backend = model->experiment.backend,
        .z = model->z,
        .vocabulary = (uint32_t)job->codec.count,
        .how = job->how,
        .seed = model->experiment.seed};
    char error[KITH_MODEL_ERROR_BYTES];
    const enum kith_err err =
        kith_generator_open(&config, &job->generator, error);
    return kith_cli_check(model->arguments, err, error);
}

static int write_bytes(const struct sampling *job, const char *bytes,
                       size_t size)
{
    if (fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0)
        return KITH_EXIT_OK;
    return kith_cli_fail(job->model.arguments, KITH_EXIT_WRITE,
                         "cannot write to standard output: %s",
                         strerror(errno));
}

/* The prompt is part of the text. */
static int push_prompt(struct sampling *job)
{
    const char *prompt = job->model.arguments->values[CLI_PROMPT];
    int32_t *tokens = NULL;
    size_t count = 0;
    int code = KITH_EXIT_OK;
    if (prompt != NULL && prompt[0] != '\0')
        code = kith_cli_codec_encode(&job->codec, &job->model, prompt, &tokens,
                                     &count);
    if (code != KITH_EXIT_OK)
        return code;
    enum kith_err err = KITH_OK;
    if (count == 0)
        err = kith_generator_push(job->generator,
                                  kith_cli_codec_first(&job->codec));
    for (size_t i = 0; i < count && err == KITH_OK; i++)
        err = kith_generator_push(job->generator, tokens[i]);
    free(tokens);
    if (err != KITH_OK)
        return kith_cli_fail(
            job->model.arguments, KITH_EXIT_EXPERIMENT,
            "the prompt has tokens that the model does not know");
    return count == 0 ? code : write_bytes(job, prompt, strlen(prompt));
}

static int generate(struct sampling *job)
{
    char error[KITH_MODEL_ERROR_BYTES];
    int code = push_prompt(job);
    for (uint64_t i = 0; i < job->tokens && code == KITH_EXIT_OK; i++) {
        int32_t token;
        size_t size;
        if (kith_cli_stop) {
            code = KITH_EXIT_INTERRUPTED;
            break;
        }
        code = kith_cli_check(
            job->model.arguments,
            kith_generator_next(job->generator, &token, error), error);
        if (code != KITH_EXIT_OK)
            break;
        const char *bytes = kith_cli_codec_bytes(&job->codec, token, &size);
        code = write_bytes(job, bytes, size);
    }
    if (code == KITH_EXIT_OK || code == KITH_EXIT_INTERRUPTED) {
        const int ended = write_bytes(job, "\n", 1);
        code = ended == KITH_EXIT_OK ? code : ended;
    }
    return code;
}

int kith_cli_sample(const struct cli_arguments *arguments)
{
    struct sampling job = {.generator = NULL};
    int code = read_options(&job, arguments);
    if (code == KITH_EXIT_OK)
        code = kith_cli_model_open(&job.model, arguments);
    if (code != KITH_EXIT_OK)
        return code;
    kith_cli_catch_signals();
    code = kith_cli_model_compute(&job.model);
    if (code == KITH_EXIT_OK &&
        job.model.experiment.model->input != KITH_INPUT_TOKENS)
        code = kith_cli_fail(
            arguments, KITH_EXIT_EXPERIMENT,
            "%.300s holds model %s, which reads no text; gpt does",
            job.model.path, job.model.experiment.model->name);
    if (code == KITH_EXIT_OK)
        code = kith_cli_codec_open(&job.codec, &job.model);
    if (code == KITH_EXIT_OK)
        code = open_generator(&job);
    if (code == KITH_EXIT_OK)
        code = generate(&job);
    kith_generator_close(job.generator);
    kith_cli_codec_close(&job.codec);
    kith_cli_model_close(&job.model);
    return code;
}
