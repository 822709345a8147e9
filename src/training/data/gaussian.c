/* Gaussian classes of the model's own shape: something to learn whose
 * difficulty is known, made in an instant, the same for every peer of a seed.
 *
 *   mean_c ~ N(0, spread^2) per coordinate,  x ~ N(mean_c, 1),  c = i mod
 * classes
 *
 * The test set is a quarter of the training set: 8,000 and 2,000 rows of 100
 * values in 10 classes with spread 0.28 are the workload of the taxonomy. */
#include "data_files.h"

#include <math.h>

#include "kith/rng.h"
#include "kith/text.h"

/* Draws of their own, after those of the two parts. */
enum { MEANS = KITH_DATA_TEST + 1 };

/* Two at a time: Box and Muller. n is even or one more is drawn. */
static void draw_normal(struct kith_rng *rng, size_t n, double spread,
                        float *out)
{
    static const double turn = 6.283185307179586;
    for (size_t i = 0; i < n; i += 2) {
        const double radius = spread * sqrt(-2 * log(1 - kith_rng_double(rng)));
        const double angle = turn * kith_rng_double(rng);
        out[i] = (float)(radius * cos(angle));
        if (i + 1 < n)
            out[i + 1] = (float)(radius * sin(angle));
    }
}

static enum kith_err check(struct kith_data_opening *opening, uint64_t rows)
{
    const struct kith_data_config *config = opening->config;
    const uint64_t limit = KITH_IDX_BYTES_MAX / sizeof(float);
    if (config->context > 0)
        return kith_data_refuse(opening, KITH_EINVAL,
                                "it holds values, and the model reads tokens; "
                                "take synthetic");
    if (config->shape[0] != 1 || config->shape[1] != 1 || config->shape[2] == 0)
        return kith_data_refuse(opening, KITH_EINVAL,
                                "it holds flat rows, not images; take a model "
                                "that reads flat rows (mlp, logistic)");
    if (config->classes == 0 || config->classes > DATA_CLASSES_MAX)
        return kith_data_refuse(opening, KITH_EINVAL,
                                "1 to 65,536 classes are needed");
    if (rows < 4 || rows > limit / config->shape[2] ||
        config->classes > limit / config->shape[2])
        return kith_data_refuse(opening, KITH_ELIMIT,
                                "data.rows must be 4 or more, and all values "
                                "together below 2 GiB");
    return KITH_OK;
}

/* (rows, features) of one stream, until the set is closed; NULL: no memory. */
static float *draw_rows(struct kith_data_opening *opening, unsigned stream,
                        size_t rows, double spread)
{
    const size_t features = opening->config->shape[2];
    struct kith_rng rng;
    float *values = kith_data_alloc(opening, rows * features, sizeof *values,
                                    "values; take fewer data.rows");
    kith_rng_init(&rng, opening->config->seed, KITH_STREAM_SYNTHETIC, stream);
    if (values != NULL)
        draw_normal(&rng, rows * features, spread, values);
    return values;
}

static enum kith_err open_gaussian(struct kith_data_opening *opening,
                                   enum kith_data_part part,
                                   struct kith_examples *examples)
{
    const struct kith_data_config *config = opening->config;
    const uint64_t rows = config->rows > 0 ? config->rows : config->kind->rows;
    const size_t features = config->shape[2];
    const uint64_t sizes[2] = {part == KITH_DATA_TRAIN ? rows : rows / 4,
                               features};
    (void)kith_text_copy(opening->path, sizeof opening->path, "Gaussian data");
    const enum kith_err err = check(opening, rows);
    if (err != KITH_OK)
        return err;
    const size_t count = (size_t)sizes[0];
    const float *means =
        draw_rows(opening, MEANS, config->classes, config->spread);
    float *values = draw_rows(opening, part, count, 1);
    int32_t *labels = kith_data_alloc(opening, count, sizeof *labels,
                                      "labels; take fewer data.rows");
    if (means == NULL || values == NULL || labels == NULL)
        return KITH_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const size_t class = i % config->classes;
        labels[i] = (int32_t) class;
        for (size_t k = 0; k < features; k++)
            values[i * features + k] += means[class * features + k];
    }
    kith_data_images(examples, KITH_ELEMENT_F32, values, 2, sizes);
    examples->labels = labels;
    examples->classes = config->classes;
    return KITH_OK;
}

const struct kith_dataset_kind kith_dataset_gaussian = {
    .name = "gaussian",
    .paper = "-",
    .summary = "classes of flat rows, unit noise around random means",
    .input = KITH_INPUT_IMAGES,
    .rows = 8000,
    .spreads = true,
    .open = open_gaussian,
};
