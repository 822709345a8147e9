/* What the tokens of a model mean: characters (the checkpoint keeps its
 * alphabet), bytes, or a tokenizer's byte pairs. */
#include <stdlib.h>
#include <string.h>

#include "kith/checkpoint.h"
#include "checkpoint_open.h"

enum { LETTERS_MAX = 256 };

static size_t put_letter(unsigned long code, char *text)
{
    static const unsigned char lead[4] = {0, 0xc0, 0xe0, 0xf0};
    const unsigned more = code < 0x80      ? 0
                          : code < 0x800   ? 1
                          : code < 0x10000 ? 2
                                           : 3;
    size_t at = 0;
    text[at++] = (char)(lead[more] | code >> (6 * more));
    for (unsigned i = more; i > 0; i--)
        text[at++] = (char)(0x80 | (code >> (6 * (i - 1)) & 0x3f));
    return at;
}

/* "a 20 41 ": the code point of each token. */
static bool parse_alphabet(struct cli_codec *codec)
{
    char *rest = codec->alphabet;
    codec->letters = calloc(LETTERS_MAX, sizeof *codec->letters);
    if (codec->letters == NULL)
        return false;
    while (*rest != '\0' && codec->count < LETTERS_MAX) {
        char *end;
        const unsigned long code = strtoul(rest, &end, 16);
        if (end == rest || *end != ' ' || code >= 0x110000)
            return false;
        codec->lengths[codec->count] =
            put_letter(code, codec->letters[codec->count]);
        codec->count++;
        rest = end + 1;
    }
    return *rest == '\0' && codec->count > 0;
}

static int open_alphabet(struct cli_codec *codec, const struct cli_model *model)
{
    char error[KITH_CHECKPOINT_ERROR_BYTES];
    const enum kith_err err =
        kith_checkpoint_text(model->path, "alphabet", &codec->alphabet, error);
    if (err != KITH_OK)
        return kith_cli_check(model->arguments, err, error);
    if (codec->alphabet == NULL)
        return kith_cli_fail(model->arguments, KITH_EXIT_EXPERIMENT,
                             "%.300s does not say what its tokens mean; name "
                             "their tokenizer.json with --tokenizer",
                             model->path);
    if (!parse_alphabet(codec))
        return kith_cli_fail(model->arguments, KITH_EXIT_EXPERIMENT,
                             "%.300s: its alphabet is damaged", model->path);
    return KITH_EXIT_OK;
}

static int open_tokenizer(struct cli_codec *codec,
                          const struct cli_model *model)
{
    const char *path = model->arguments->values[CLI_TOKENIZER];
    char error[KITH_TOKENIZER_ERROR_BYTES];
    const enum kith_err err =
        kith_tokenizer_open(path, &codec->tokenizer, error);
    if (err != KITH_OK)
        return kith_cli_fail(model->arguments,
                             err == KITH_ENOMEM ? KITH_EXIT_RESOURCES
                                                : KITH_EXIT_DATA,
                             "%s", error);
    codec->count = kith_tokenizer_vocabulary(codec->tokenizer);
    return KITH_EXIT_OK;
}

static int check_count(const struct cli_codec *codec,
                       const struct cli_model *model)
{
    const struct kith_experiment *experiment = &model->experiment;
    const size_t most =
        kith_model_size_of(experiment->model, &experiment->model_config)
            .classes;
    if (codec->count <= most)
        return KITH_EXIT_OK;
    return kith_cli_fail(model->arguments, KITH_EXIT_EXPERIMENT,
                         "found %zu different tokens; the model knows %zu: "
                         "another model's tokenizer?",
                         codec->count, most);
}

int kith_cli_codec_open(struct cli_codec *codec, const struct cli_model *model)
{
    const struct kith_dataset_kind *kind = model->experiment.data.config.kind;
    *codec = (struct cli_codec){.tokenizer = NULL};
    int code = KITH_EXIT_OK;
    if (kith_cli_given(model->arguments, CLI_TOKENIZER))
        code = open_tokenizer(codec, model);
    else if (kind != NULL && strcmp(kind->name, "bytes") == 0)
        codec->count = LETTERS_MAX;
    else
        code = open_alphabet(codec, model);
    if (code == KITH_EXIT_OK)
        code = check_count(codec, model);
    if (code != KITH_EXIT_OK)
        kith_cli_codec_close(codec);
    return code;
}

void kith_cli_codec_close(struct cli_codec *codec)
{
    kith_tokenizer_close(codec->tokenizer);
    free(codec->alphabet);
    free(codec->letters);
    *codec = (struct cli_codec){.tokenizer = NULL};
}

/* The token that `text` begins with, -1: none of the alphabet. */
static int32_t letter_of(const struct cli_codec *codec, const char *text)
{
    for (size_t i = 0; i < codec->count; i++)
        if (strncmp(codec->letters[i], text, codec->lengths[i]) == 0)
            return (int32_t)i;
    return -1;
}

static int encode_letters(const struct cli_codec *codec,
                          const struct cli_model *model, const char *text,
                          int32_t *tokens, size_t *count)
{
    for (const char *at = text; *at != '\0';) {
        const int32_t token =
            codec->letters == NULL ? (unsigned char)*at : letter_of(codec, at);
        if (token < 0)
            return kith_cli_fail(
                model->arguments, KITH_EXIT_USAGE,
                "--prompt: byte %zu, \"%.8s\": the text that the "
                "model was trained on has no such character",
                (size_t)(at - text), at);
        at += codec->letters == NULL ? 1 : codec->lengths[token];
        tokens[(*count)++] = token;
    }
    return KITH_EXIT_OK;
}

int kith_cli_codec_encode(const struct cli_codec *codec,
                          const struct cli_model *model, const char *text,
                          int32_t **tokens, size_t *count)
{
    *count = 0;
    if (codec->tokenizer != NULL) {
        const enum kith_err err = kith_tokenizer_encode(
            codec->tokenizer, text, strlen(text), tokens, count);
        return err == KITH_OK
                   ? KITH_EXIT_OK
                   : kith_cli_fail(model->arguments, kith_cli_exit_of(err),
                                   "--prompt: %s", kith_err_text(err));
    }
    *tokens = malloc((strlen(text) + 1) * sizeof **tokens);
    if (*tokens == NULL)
        return kith_cli_fail(model->arguments, KITH_EXIT_RESOURCES,
                             "no memory for the prompt");
    const int code = encode_letters(codec, model, text, *tokens, count);
    if (code != KITH_EXIT_OK)
        free(*tokens);
    return code;
}

const char *kith_cli_codec_bytes(const struct cli_codec *codec, int32_t token,
                                 size_t *size)
{
    static char byte[1];
    if (codec->tokenizer != NULL)
        return kith_tokenizer_bytes(codec->tokenizer, token, size);
    if (codec->letters != NULL) {
        *size = codec->lengths[token];
        return codec->letters[token];
    }
    *size = 1;
    byte[0] = (char)token;
    return byte;
}

int32_t kith_cli_codec_first(const struct cli_codec *codec)
{
    int32_t token;
    if (codec->tokenizer != NULL)
        token = kith_tokenizer_find(codec->tokenizer, "<|endoftext|>");
    else
        token = codec->letters != NULL ? letter_of(codec, "\n") : '\n';
    return token < 0 ? 0 : token;
}
