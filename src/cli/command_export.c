/* kith export: the model of a checkpoint, alone, as other programs read it.
 *
 * For gpt a config.json stands beside it, so that Hugging Face's
 * GPT2LMHeadModel.from_pretrained opens the folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kith/plain_file.h"
#include "kith/checkpoint.h"
#include "checkpoint_open.h"

#define CONFIG_BYTES 1024
#define ENDING ".safetensors"

static void config_text(const struct kith_model_config *config,
                        char text[CONFIG_BYTES])
{
    /* <|endoftext|>, in GPT-2's own vocabulary. */
    const char *end = config->vocabulary > 50256 ? "50256" : "null";
    (void)snprintf(text, CONFIG_BYTES,
                   "{\n"
                   "  \"architectures\": [\"GPT2LMHeadModel\"],\n"
                   "  \"model_type\": \"gpt2\",\n"
                   "  \"vocab_size\": %" PRIu32 ",\n"
                   "  \"n_positions\": %" PRIu32 ",\n"
                   "  \"n_ctx\": %" PRIu32 ",\n"
                   "  \"n_embd\": %" PRIu32 ",\n"
                   "  \"n_layer\": %" PRIu32 ",\n"
                   "  \"n_head\": %" PRIu32 ",\n"
                   "  \"activation_function\": \"gelu_new\",\n"
                   "  \"layer_norm_epsilon\": 1e-05,\n"
                   "  \"resid_pdrop\": %.9g,\n"
                   "  \"embd_pdrop\": %.9g,\n"
                   "  \"attn_pdrop\": 0.0,\n"
                   "  \"bos_token_id\": %s,\n"
                   "  \"eos_token_id\": %s,\n"
                   "  \"tie_word_embeddings\": true,\n"
                   "  \"torch_dtype\": \"float32\"\n"
                   "}\n",
                   config->vocabulary, config->context, config->context,
                   config->width, config->depth, config->heads, config->dropout,
                   config->dropout, end, end);
}

/* "FOLDER/config.json" of "FOLDER/name". */
static bool config_path(const char *out, char path[KITH_PATH_BYTES_MAX])
{
    const char *slash = strrchr(out, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - out) + 1;
    const int length =
        snprintf(path, KITH_PATH_BYTES_MAX, "%.*sconfig.json", folder, out);
    return length > 0 && length < (int)KITH_PATH_BYTES_MAX;
}

/* One that says something else is another model's, and nobody asked for it to
 * go. *same: it is there already. */
static int check_config(const struct cli_arguments *arguments, const char *path,
                        const char *text, bool *same)
{
    char found[CONFIG_BYTES + 1];
    *same = false;
    if (kith_cli_read_text(path, found, sizeof found) == KITH_ENOENT)
        return KITH_EXIT_OK;
    *same = strcmp(found, text) == 0;
    return *same
               ? KITH_EXIT_OK
               : kith_cli_fail(arguments, KITH_EXIT_WRITE,
                               "%.300s is there already and describes another "
                               "model; choose another folder",
                               path);
}

static int write_weights(const struct cli_model *model,
                         const struct kith_names *names, const char *out)
{
    const struct kith_experiment *experiment = &model->experiment;
    const struct kith_graph_options options = {
        .backend = kith_backend_stand_in(experiment->backend), .rows = 1};
    struct kith_graph *network;
    char error[KITH_WEIGHTS_ERROR_BYTES];
    enum kith_err err =
        kith_graph_open(experiment->model, &experiment->model_config, &options,
                        &network, error);
    if (err == KITH_OK) {
        err = kith_weights_write(out, names, kith_graph_layout(network),
                                 model->z, error);
        kith_graph_close(network);
    }
    if (err == KITH_OK)
        return KITH_EXIT_OK;
    return kith_cli_fail(model->arguments,
                         err == KITH_ENOENT ? KITH_EXIT_WRITE
                                            : kith_cli_exit_of(err),
                         "%s", error);
}

static int check_out(const struct cli_arguments *arguments, const char *out)
{
    const size_t length = strlen(out), ending = sizeof ENDING - 1;
    if (length <= ending || strcmp(out + length - ending, ENDING) != 0)
        return kith_cli_fail(
            arguments, KITH_EXIT_USAGE,
            "--out: found \"%.300s\"; allowed: a file that ends in "
            "%s",
            out, ENDING);
    if (strcmp(out, arguments->words[0]) == 0)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "--out: this is the checkpoint itself");
    char why[KITH_FILE_WHY_BYTES];
    if (kith_file_check(out, why) == KITH_EINVAL)
        return kith_cli_fail(arguments, KITH_EXIT_WRITE, "--out: %.300s: %s",
                             out, why);
    return KITH_EXIT_OK;
}

/* Under other names nothing is GPT-2's, and no config.json can say so. */
static int export_model(const struct cli_model *model,
                        const struct kith_names *names, const char *out)
{
    const struct cli_arguments *arguments = model->arguments;
    const bool gpt =
        strcmp(model->experiment.model->name, "gpt") == 0 && names == NULL;
    char text[CONFIG_BYTES], path[KITH_PATH_BYTES_MAX];
    bool same = true;
    int code = KITH_EXIT_OK;
    const struct kith_model_config *config = &model->experiment.model_config;
    if (gpt && (config->rotary || config->norm == KITH_MODEL_NORM_RMS))
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "a GPT-2 config.json cannot say %s, and "
                             "GPT2LMHeadModel could not read it; the "
                             "checkpoint itself is a safetensors file",
                             config->rotary ? "model.positions: rotary"
                                            : "model.norm: rms");
    if (gpt) {
        config_text(&model->experiment.model_config, text);
        code = config_path(out, path)
                   ? check_config(arguments, path, text, &same)
                   : kith_cli_fail(arguments, KITH_EXIT_USAGE,
                                   "--out: the path is too long");
    }
    if (code == KITH_EXIT_OK)
        code = write_weights(model, names, out);
    if (code == KITH_EXIT_OK && !same)
        code = kith_cli_replace_file(arguments, path, text);
    if (code == KITH_EXIT_OK)
        printf("%s: %s, %zu parameters of step %" PRIu64 "%s%s\n", out,
               model->experiment.model->name, model->dim, model->step,
               gpt ? ", described by " : "", gpt ? path : "");
    return code;
}

int kith_cli_export(const struct cli_arguments *arguments)
{
    struct cli_model model;
    struct kith_names names;
    const char *out = arguments->values[CLI_OUT];
    if (out == NULL)
        return kith_cli_fail(arguments, KITH_EXIT_USAGE,
                             "needs --out FILE.safetensors, such as --out "
                             "my-model/model.safetensors");
    int code = check_out(arguments, out);
    if (code == KITH_EXIT_OK)
        code = kith_cli_names_open(&names, arguments);
    if (code != KITH_EXIT_OK)
        return code;
    code = kith_cli_model_open(&model, arguments);
    if (code == KITH_EXIT_OK) {
        code = export_model(&model, names.count > 0 ? &names : NULL, out);
        kith_cli_model_close(&model);
    }
    kith_names_close(&names);
    return code;
}
