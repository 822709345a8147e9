/* Made-up data of the model's own shape, for measuring speed: uniform bytes and
 * labels, or uniform tokens, from stream SYNTHETIC of the seed. There is
 * nothing to learn in it beyond what can be memorised. */
#include "data_files.h"

#include <string.h>

#include "kith/rng.h"

enum { TRAIN = 0, TEST = 1 };

static enum kith_err refuse(char *error, enum kith_err err, const char *what)
{
    return kith_data_complain(error, err, "synthetic data", "%s", what);
}

static enum kith_err make_images(struct data_opening *opening,
                                 struct kith_rng *rng,
                                 struct kith_examples *examples)
{
    const struct kith_data_config *config = opening->config;
    const size_t bytes = examples->count * examples->features;
    uint8_t *images = kith_data_alloc(opening, bytes);
    int32_t *labels =
        kith_data_alloc(opening, examples->count * sizeof *labels);
    if (images == NULL || labels == NULL)
        return refuse(opening->error, KITH_ENOMEM,
                      "no memory; take fewer data.rows");
    kith_rng_fill(rng, images, bytes);
    for (size_t i = 0; i < examples->count; i++)
        labels[i] = (int32_t)kith_rng_below(rng, config->classes);
    examples->input = KITH_INPUT_IMAGES;
    examples->element = KITH_ELEMENT_U8;
    examples->values = images;
    examples->labels = labels;
    memcpy(examples->shape, config->shape, sizeof examples->shape);
    return KITH_OK;
}

static enum kith_err make_tokens(struct data_opening *opening,
                                 struct kith_rng *rng,
                                 struct kith_examples *examples)
{
    examples->tokens = examples->count * examples->features + 1;
    int32_t *tokens =
        kith_data_alloc(opening, examples->tokens * sizeof *tokens);
    if (tokens == NULL)
        return refuse(opening->error, KITH_ENOMEM,
                      "no memory; take fewer data.rows");
    for (size_t i = 0; i < examples->tokens; i++)
        tokens[i] = (int32_t)kith_rng_below(rng, opening->config->classes);
    examples->input = KITH_INPUT_TOKENS;
    examples->element = KITH_ELEMENT_I32;
    examples->values = tokens;
    return KITH_OK;
}

static enum kith_err make(struct data_opening *opening, unsigned part,
                          uint64_t rows, struct kith_examples *examples)
{
    const struct kith_data_config *config = opening->config;
    const bool tokens = config->context > 0;
    const uint64_t height = config->shape[0], width = config->shape[1];
    const uint64_t limit = KITH_IDX_BYTES_MAX / (tokens ? 4 : 1);
    uint64_t features = config->context;
    if (!tokens) {
        if (height == 0 || width == 0 || config->shape[2] == 0 ||
            height > limit || width > limit / height ||
            config->shape[2] > limit / (height * width))
            return refuse(opening->error, KITH_ELIMIT,
                          "an image needs 1 byte to 2 GiB");
        features = height * width * config->shape[2];
    }
    if (config->classes == 0 || (!tokens && config->classes > DATA_CLASSES_MAX))
        return refuse(opening->error, KITH_EINVAL,
                      "1 to 65,536 classes, or a vocabulary, are needed");
    if (rows == 0 || rows > (limit - 4) / features)
        return refuse(opening->error, KITH_ELIMIT,
                      "data.rows of this model's inputs are above 2 GiB; take "
                      "fewer");
    struct kith_rng rng;
    kith_rng_init(&rng, config->seed, KITH_STREAM_SYNTHETIC, part);
    examples->count = (size_t)rows;
    examples->features = (size_t)features;
    examples->classes = config->classes;
    return tokens ? make_tokens(opening, &rng, examples)
                  : make_images(opening, &rng, examples);
}

static enum kith_err open_synthetic(const struct kith_data_config *config,
                                    struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    const uint64_t rows = config->rows > 0 ? config->rows : config->kind->rows;
    const enum kith_err err = make(&opening, TRAIN, rows, &set->train);
    return err == KITH_OK ? make(&opening, TEST, rows / 10 + 1, &set->test)
                          : err;
}

const struct kith_dataset_kind kith_dataset_synthetic = {
    .name = "synthetic",
    .paper = "-",
    .summary = "random images or tokens of the model's shape: for speed alone",
    .input = KITH_INPUT_NONE,
    .rows = 10000,
    .open = open_synthetic,
};
