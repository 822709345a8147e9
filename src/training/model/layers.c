/* See layers.h. */
#include "layers.h"

#include <math.h>
#include <stdio.h>

#include "config.h"

enum kith_err kith_layers_check(const char *model,
                                const struct kith_model_config *config,
                                uint32_t count_min, uint32_t count_max,
                                char *error)
{
    const uint32_t count = config->layer_count;
    if (count < count_min || count > count_max) {
        (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                       "model.layers: found %u sizes; allowed for model %s: %u "
                       "to %u, input first, such as [784, 10]",
                       count, model, count_min, count_max);
        return KITH_EINVAL;
    }
    uint64_t dim = 0;
    for (uint32_t l = 0; l < count; l++) {
        if (config->layers[l] == 0) {
            (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                           "model.layers: found a size of 0; allowed: whole "
                           "numbers above 0");
            return KITH_EINVAL;
        }
        /* 32-bit sizes: the product and both sums stay below 2^64. */
        if (l > 0)
            dim += config->layers[l] * ((uint64_t)config->layers[l - 1] + 1);
        if (dim > KITH_PARAMETERS_MAX)
            return kith_config_too_large(model, "model.layers", error);
    }
    return kith_config_classes(config->layers[count - 1], "model.layers",
                               error);
}

void kith_layers_build(const struct kith_model_config *config,
                       struct kith_net *net)
{
    const uint32_t count = config->layer_count;
    kith_tensor x = kith_net_images(net, 1, 1, config->layers[0]);
    for (uint32_t l = 0; l + 1 < count; l++) {
        const bool last = l + 2 == count;
        char name[16];
        (void)snprintf(name, sizeof name, "fc%u", l + 1);
        x = kith_net_linear(
            net, x, name,
            (struct kith_net_linear){
                .out = config->layers[l + 1],
                .bias = true,
                .activation =
                    last ? KITH_ACTIVATION_NONE : KITH_ACTIVATION_RELU,
                .start = KITH_START_UNIFORM,
                .spread = sqrt((last ? 3.0 : 6.0) / config->layers[l])});
        if (!last)
            x = kith_net_dropout(net, x, config->dropout);
    }
    kith_net_cross_entropy(net, x);
}

kith_tensor kith_layers_conv_norm(const struct kith_model_config *config,
                                  struct kith_net *net, kith_tensor x,
                                  const char *const names[2],
                                  struct kith_net_conv shape,
                                  enum kith_activation activation)
{
    const enum kith_norm_kind kind = config->norm == KITH_MODEL_NORM_GROUP
                                         ? KITH_NORM_GROUP
                                         : KITH_NORM_BATCH;
    shape.pad = shape.kernel / 2;
    shape.start = KITH_START_NORMAL;
    shape.spread =
        sqrt(2.0 / (double)(shape.kernel * shape.kernel * shape.out));
    x = kith_net_conv(net, x, names[0], shape);
    return kith_net_norm(net, x, names[1], kind, kith_config_groups(shape.out),
                         1e-5, activation);
}
