/* Logistic regression (softmax over linear scores): layers.h with two sizes,
 * features and classes. Convex: the model of convergence tests on real data. */
#include "layers.h"

#include "kith/limits.h"

static enum kith_err logistic_check(const struct kith_model_config *config)
{
    if (config->layer_count != 2 || config->layers[0] == 0)
        return KITH_EINVAL;
    if (config->layers[1] < 2 || config->layers[1] > 256)
        return KITH_EINVAL;
    const uint64_t dim = config->layers[1] * ((uint64_t)config->layers[0] + 1);
    return dim <= KITH_PARAMETERS_MAX ? KITH_OK : KITH_ELIMIT;
}

static struct kith_layers layers(const struct kith_model_config *config)
{
    return (struct kith_layers){config->layers, config->layer_count};
}

static size_t logistic_dim(const struct kith_model_config *config)
{
    return kith_layers_dim(layers(config));
}

static void logistic_shape(const struct kith_model_config *config,
                           size_t *features, size_t *classes)
{
    *features = config->layers[0];
    *classes = config->layers[config->layer_count - 1];
}

static uint32_t logistic_views(const struct kith_model_config *config,
                               struct kith_model_view *views, uint32_t capacity)
{
    return kith_layers_views(layers(config), views, capacity);
}

static void logistic_start(const struct kith_model_config *config,
                           uint64_t seed, uint64_t entity, double *x)
{
    (void)entity; /* Every peer of a seed starts alike. */
    kith_layers_start(layers(config), seed, x);
}

static size_t logistic_scratch(const struct kith_model_config *config,
                               const struct kith_backend *backend, size_t rows)
{
    return kith_layers_scratch(layers(config), backend, rows);
}

static double logistic_loss(const struct kith_model_config *config,
                            const struct kith_backend *backend, const void *x,
                            const struct kith_batch *batch, void *gradient,
                            uint32_t *correct, void *scratch)
{
    return kith_layers_loss(layers(config), backend, x, batch, gradient,
                            correct, scratch);
}

extern const struct kith_model kith_model_logistic;
const struct kith_model kith_model_logistic = {
    .name = "logistic",
    .paper = "Cox, Journal of the Royal Statistical Society B 1958",
    .summary = "softmax of W a + b, mean cross-entropy",
    .needs_data = true,
    .check = logistic_check,
    .dim = logistic_dim,
    .shape = logistic_shape,
    .views = logistic_views,
    .start = logistic_start,
    .scratch = logistic_scratch,
    .loss = logistic_loss,
};
