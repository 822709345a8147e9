/* Made-up data of the model's own shape, for measuring speed: uniform bytes and
 * labels, or uniform tokens, from stream SYNTHETIC of the seed. There is
 * nothing to learn in it beyond what can be memorised. */
#include "data_files.h"

#include "kith/rng.h"
#include "kith/text.h"

static enum kith_err make_images(struct kith_data_opening *opening,
                                 struct kith_rng *rng, const uint64_t *sizes,
                                 struct kith_examples *examples)
{
    const size_t count = (size_t)sizes[0], bytes = count * examples->features;
    uint8_t *images =
        kith_data_alloc(opening, bytes, 1, "bytes; take fewer data.rows");
    int32_t *labels = kith_data_alloc(opening, count, sizeof *labels,
                                      "labels; take fewer data.rows");
    if (images == NULL || labels == NULL)
        return KITH_ENOMEM;
    kith_rng_fill(rng, images, bytes);
    for (size_t i = 0; i < count; i++)
        labels[i] = (int32_t)kith_rng_below(rng, examples->classes);
    kith_data_images(examples, KITH_ELEMENT_U8, images, 4, sizes);
    examples->labels = labels;
    return KITH_OK;
}

static enum kith_err make_tokens(struct kith_data_opening *opening,
                                 struct kith_rng *rng, uint64_t rows,
                                 struct kith_examples *examples)
{
    examples->tokens = (size_t)rows * examples->features + 1;
    int32_t *tokens = kith_data_alloc(opening, examples->tokens, sizeof *tokens,
                                      "tokens; take fewer data.rows");
    if (tokens == NULL)
        return KITH_ENOMEM;
    for (size_t i = 0; i < examples->tokens; i++)
        tokens[i] = (int32_t)kith_rng_below(rng, examples->classes);
    examples->input = KITH_INPUT_TOKENS;
    examples->element = KITH_ELEMENT_I32;
    examples->values = tokens;
    return KITH_OK;
}

static enum kith_err open_synthetic(struct kith_data_opening *opening,
                                    enum kith_data_part part,
                                    struct kith_examples *examples)
{
    const struct kith_data_config *config = opening->config;
    const bool tokens = config->context > 0;
    const uint64_t asked = config->rows > 0 ? config->rows : config->kind->rows;
    const uint64_t sizes[4] = {part == KITH_DATA_TRAIN ? asked : asked / 10 + 1,
                               config->shape[0], config->shape[1],
                               config->shape[2]};
    const uint64_t limit = KITH_IDX_BYTES_MAX / (tokens ? 4 : 1);
    uint64_t features = tokens ? config->context : 1;
    (void)kith_text_copy(opening->path, sizeof opening->path, "synthetic data");
    for (unsigned i = 1; i < 4 && !tokens; i++) {
        if (sizes[i] == 0 || sizes[i] > limit / features)
            return kith_data_refuse(opening, KITH_ELIMIT,
                                    "an image needs 1 byte to 2 GiB");
        features *= sizes[i];
    }
    if (config->classes == 0 || (!tokens && config->classes > DATA_CLASSES_MAX))
        return kith_data_refuse(
            opening, KITH_EINVAL,
            "1 to 65,536 classes, or a vocabulary, are needed");
    if (sizes[0] > (limit - 4) / features)
        return kith_data_refuse(opening, KITH_ELIMIT,
                                "data.rows of this model's inputs are above "
                                "2 GiB; take fewer");
    struct kith_rng rng;
    kith_rng_init(&rng, config->seed, KITH_STREAM_SYNTHETIC, part);
    examples->features = (size_t)features;
    examples->classes = config->classes;
    return tokens ? make_tokens(opening, &rng, sizes[0], examples)
                  : make_images(opening, &rng, sizes, examples);
}

const struct kith_dataset_kind kith_dataset_synthetic = {
    .name = "synthetic",
    .paper = "-",
    .summary = "random images or tokens of the model's shape: for speed alone",
    .input = KITH_INPUT_NONE,
    .rows = 10000,
    .open = open_synthetic,
};
