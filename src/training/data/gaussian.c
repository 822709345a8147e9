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
#include <string.h>

#include "kith/rng.h"

enum { TRAIN = 0, TEST = 1, MEANS = 2 };

static enum kith_err refuse(char *error, enum kith_err err, const char *what)
{
    return kith_data_complain(error, err, "Gaussian data", "%s", what);
}

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

static enum kith_err make(struct data_opening *opening, unsigned part,
                          size_t rows, const float *means,
                          struct kith_examples *examples)
{
    const struct kith_data_config *config = opening->config;
    const size_t features = config->shape[2];
    float *values = kith_data_alloc(opening, rows * features * sizeof *values);
    int32_t *labels = kith_data_alloc(opening, rows * sizeof *labels);
    if (values == NULL || labels == NULL)
        return refuse(opening->error, KITH_ENOMEM,
                      "no memory; take fewer data.rows");
    struct kith_rng rng;
    kith_rng_init(&rng, config->seed, KITH_STREAM_SYNTHETIC, part);
    draw_normal(&rng, rows * features, 1, values);
    for (size_t i = 0; i < rows; i++) {
        const size_t class = i % config->classes;
        labels[i] = (int32_t) class;
        for (size_t k = 0; k < features; k++)
            values[i * features + k] += means[class * features + k];
    }
    *examples = (struct kith_examples){.input = KITH_INPUT_IMAGES,
                                       .element = KITH_ELEMENT_F32,
                                       .values = values,
                                       .labels = labels,
                                       .count = rows,
                                       .features = features,
                                       .shape = {1, 1, config->shape[2]},
                                       .classes = config->classes,
                                       .deviation = {1, 1, 1, 1}};
    return KITH_OK;
}

static enum kith_err check(const struct kith_data_config *config, uint64_t rows,
                           char *error)
{
    if (config->context > 0)
        return refuse(error, KITH_EINVAL,
                      "it holds values, and the model reads tokens; take "
                      "synthetic");
    if (config->shape[0] != 1 || config->shape[1] != 1 || config->shape[2] == 0)
        return refuse(error, KITH_EINVAL,
                      "it holds flat rows, not images; take a model that reads "
                      "flat rows (mlp, logistic)");
    if (config->classes == 0 || config->classes > DATA_CLASSES_MAX)
        return refuse(error, KITH_EINVAL, "1 to 65,536 classes are needed");
    const uint64_t limit = KITH_IDX_BYTES_MAX / sizeof(float);
    if (rows < 4 || rows > limit / config->shape[2] ||
        config->classes > limit / config->shape[2])
        return refuse(error, KITH_ELIMIT,
                      "data.rows must be 4 or more, and all values together "
                      "below 2 GiB");
    return KITH_OK;
}

static enum kith_err open_gaussian(const struct kith_data_config *config,
                                   struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    const uint64_t rows = config->rows > 0 ? config->rows : config->kind->rows;
    enum kith_err err = check(config, rows, error);
    if (err != KITH_OK)
        return err;
    const size_t count = (size_t)config->classes * config->shape[2];
    float *means = kith_data_alloc(&opening, count * sizeof *means);
    if (means == NULL)
        return refuse(error, KITH_ENOMEM, "no memory for the classes' means");
    struct kith_rng rng;
    kith_rng_init(&rng, config->seed, KITH_STREAM_SYNTHETIC, MEANS);
    draw_normal(&rng, count, config->spread, means);
    err = make(&opening, TRAIN, (size_t)rows, means, &set->train);
    return err == KITH_OK
               ? make(&opening, TEST, (size_t)rows / 4, means, &set->test)
               : err;
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
