/* Multilayer perceptron: fully connected layers with ReLU between them, see
 * layers.h for the equations. He et al., "Delving Deep into Rectifiers",
 * ICCV 2015 (starting weights). */
#include "layers.h"

#include "kith/limits.h"

static enum kith_err mlp_check(const struct kith_model_config *config)
{
    if (config->layer_count < 2 || config->layer_count > KITH_LAYERS_MAX)
        return KITH_EINVAL;
    uint64_t dim = 0;
    for (uint32_t l = 0; l < config->layer_count; l++) {
        if (config->layers[l] == 0)
            return KITH_EINVAL;
        /* 32-bit sizes: the product and both sums stay below 2^64. */
        if (l > 0)
            dim += config->layers[l] * ((uint64_t)config->layers[l - 1] + 1);
        if (dim > KITH_PARAMETERS_MAX)
            return KITH_ELIMIT;
    }
    const uint32_t classes = config->layers[config->layer_count - 1];
    return classes >= 2 && classes <= 256 ? KITH_OK : KITH_EINVAL;
}

static struct kith_layers layers(const struct kith_model_config *config)
{
    return (struct kith_layers){config->layers, config->layer_count};
}

static size_t mlp_dim(const struct kith_model_config *config)
{
    return kith_layers_dim(layers(config));
}

static void mlp_shape(const struct kith_model_config *config, size_t *features,
                      size_t *classes)
{
    *features = config->layers[0];
    *classes = config->layers[config->layer_count - 1];
}

static uint32_t mlp_views(const struct kith_model_config *config,
                          struct kith_model_view *views, uint32_t capacity)
{
    return kith_layers_views(layers(config), views, capacity);
}

static void mlp_start(const struct kith_model_config *config, uint64_t seed,
                      uint64_t entity, double *x)
{
    (void)entity; /* Every peer of a seed starts alike. */
    kith_layers_start(layers(config), seed, x);
}

static size_t mlp_scratch(const struct kith_model_config *config,
                          const struct kith_backend *backend, size_t rows)
{
    return kith_layers_scratch(layers(config), backend, rows);
}

static double mlp_loss(const struct kith_model_config *config,
                       const struct kith_backend *backend, const void *x,
                       const struct kith_batch *batch, void *gradient,
                       uint32_t *correct, void *scratch)
{
    return kith_layers_loss(layers(config), backend, x, batch, gradient,
                            correct, scratch);
}

extern const struct kith_model kith_model_mlp;
const struct kith_model kith_model_mlp = {
    .name = "mlp",
    .paper = "He et al., ICCV 2015",
    .summary = "fully connected layers, ReLU, mean cross-entropy",
    .needs_data = true,
    .check = mlp_check,
    .dim = mlp_dim,
    .shape = mlp_shape,
    .views = mlp_views,
    .start = mlp_start,
    .scratch = mlp_scratch,
    .loss = mlp_loss,
};
