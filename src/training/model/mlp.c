/* Multilayer perceptron: fully connected layers with ReLU between them, and
 * dropout after each hidden one where that is asked for; see layers.h. */
#include "layers.h"

#include "config.h"

static enum kith_err mlp_check(const struct kith_model_config *config,
                               char *error)
{
    const enum kith_err err =
        kith_layers_check("mlp", config, 2, KITH_LAYERS_MAX, error);
    return err != KITH_OK ? err : kith_config_dropout(config, error);
}

extern const struct kith_model kith_model_mlp;
const struct kith_model kith_model_mlp = {
    .name = "mlp",
    .paper = "He et al., ICCV 2015",
    .summary = "fully connected layers, ReLU, mean cross-entropy",
    .input = KITH_INPUT_IMAGES,
    .example = "layers 784, 512, 512, 10",
    .shape = {.layers = {784, 512, 512, 10}, .layer_count = 4},
    .keys = KITH_MODEL_READS(LAYERS) | KITH_MODEL_READS(DROPOUT) |
            KITH_MODEL_READS(FROZEN),
    .check = mlp_check,
    .build = kith_layers_build,
};
