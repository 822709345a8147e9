/* What eval, sample and export share: a checkpoint and what its tokens mean. */
#ifndef KITH_CLI_CHECKPOINT_OPEN_H
#define KITH_CLI_CHECKPOINT_OPEN_H

#include "cli.h"
#include "kith/names.h"
#include "kith/tokenizer.h"

/* The model of a checkpoint, alone. */
struct cli_model {
    const struct cli_arguments *arguments;
    const char *path;
    struct kith_experiment experiment; /* the file's, --set applied */
    double *z;                         /* (dim); push-sum's factor applied */
    size_t dim;
    uint64_t step;
};
/* words[0], with --set, --seed and --data applied to its experiment. 0, or an
 * exit code with the error printed and nothing to close. */
int kith_cli_model_open(struct cli_model *model,
                        const struct cli_arguments *arguments);
/* Products and threads as the run had them, or --threads. A library that is not
 * here is told, and done without. */
int kith_cli_model_compute(struct cli_model *model);
void kith_cli_model_close(struct cli_model *model);

/* --names; an empty one where it was not given. kith_names_close() on 0. */
int kith_cli_names_open(struct kith_names *names,
                        const struct cli_arguments *arguments);

/* Text and tokens: characters of an alphabet, bytes, or byte pairs. */
struct cli_codec {
    struct kith_tokenizer *tokenizer; /* NULL: one of the others */
    char *alphabet;                   /* kith_examples.alphabet; NULL: bytes */
    char (*letters)[5];               /* (count) UTF-8 */
    size_t lengths[256];
    size_t count; /* tokens */
};
/* By --tokenizer, else as the model was trained. */
int kith_cli_codec_open(struct cli_codec *codec, const struct cli_model *model);
void kith_cli_codec_close(struct cli_codec *codec);
/* *tokens is malloc'd, (count). */
int kith_cli_codec_encode(const struct cli_codec *codec,
                          const struct cli_model *model, const char *text,
                          int32_t **tokens, size_t *count);
/* The bytes of a token. */
const char *kith_cli_codec_bytes(const struct cli_codec *codec, int32_t token,
                                 size_t *size);
/* What stands before a text that has no beginning. */
int32_t kith_cli_codec_first(const struct cli_codec *codec);

#endif
