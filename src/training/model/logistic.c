/* Logistic regression (softmax over linear scores): layers.h with two sizes,
 * features and classes. Convex: the model of convergence tests on real data. */
#include "layers.h"

static enum kith_err logistic_check(const struct kith_model_config *config,
                                    char *error)
{
    return kith_layers_check("logistic", config, 2, 2, error);
}

extern const struct kith_model kith_model_logistic;
const struct kith_model kith_model_logistic = {
    .name = "logistic",
    .paper = "Cox, Journal of the Royal Statistical Society B 1958",
    .summary = "softmax of W a + b, mean cross-entropy",
    .input = KITH_INPUT_IMAGES,
    .example = "layers 784, 10",
    .shape = {.layers = {784, 10}, .layer_count = 2},
    .keys = KITH_MODEL_READS(LAYERS) | KITH_MODEL_READS(FROZEN),
    .check = logistic_check,
    .build = kith_layers_build,
};
