/* See config.h. */
#include "config.h"

#include <stdio.h>

enum kith_err kith_config_too_large(const char *model, const char *key,
                                    char *error)
{
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "%s: model %s would have more parameters than 2^31; make it "
                   "smaller",
                   key, model);
    return KITH_ELIMIT;
}

enum kith_err kith_config_classes(uint32_t classes, const char *key,
                                  char *error)
{
    if (classes >= 2 && classes <= KITH_CLASSES_MAX)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "%s: found %u classes; allowed: 2 to %u", key, classes,
                   KITH_CLASSES_MAX);
    return KITH_EINVAL;
}

enum kith_err kith_config_image(const char *model,
                                const struct kith_model_config *config,
                                char *error)
{
    const uint32_t *image = config->image;
    bool good = image[2] <= 1024;
    for (int i = 0; i < 3; i++)
        good = good && image[i] > 0 && image[i] <= KITH_SIDE_MAX;
    if (good)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.image: found [%u, %u, %u]; model %s needs height, "
                   "width and channels, such as [32, 32, 3] (sides up to %u)",
                   image[0], image[1], image[2], model, KITH_SIDE_MAX);
    return KITH_EINVAL;
}

enum kith_err kith_config_norm(const char *model,
                               const struct kith_model_config *config,
                               enum kith_model_norm first,
                               enum kith_model_norm second, char *error)
{
    static const char *const names[] = {
        [KITH_MODEL_NORM_BATCH] = "batch",
        [KITH_MODEL_NORM_GROUP] = "group",
        [KITH_MODEL_NORM_LAYER] = "layer",
        [KITH_MODEL_NORM_RMS] = "rms",
    };
    if (config->norm == KITH_MODEL_NORM_DEFAULT || config->norm == first ||
        config->norm == second)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.norm: found %s; allowed for model %s: %s, %s",
                   names[config->norm], model, names[first], names[second]);
    return KITH_EINVAL;
}

enum kith_err kith_config_dropout(const struct kith_model_config *config,
                                  char *error)
{
    if (config->dropout >= 0 && config->dropout < 1)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.dropout: found %g; allowed: from 0 to below 1",
                   config->dropout);
    return KITH_EINVAL;
}

enum kith_err kith_config_depth(const char *model,
                                const struct kith_model_config *config,
                                const uint32_t *depths, uint32_t count,
                                char *error)
{
    char allowed[96] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (depths[i] == config->depth)
            return KITH_OK;
        const int length = snprintf(allowed + at, sizeof allowed - at, "%s%u",
                                    i == 0 ? "" : ", ", depths[i]);
        at += length > 0 && (size_t)length < sizeof allowed - at
                  ? (size_t)length
                  : 0;
    }
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.depth: found %u; allowed for model %s and images of "
                   "%u x %u: %s",
                   config->depth, model, config->image[0], config->image[1],
                   allowed);
    return KITH_EINVAL;
}

size_t kith_config_groups(size_t channels)
{
    return channels % 8 == 0 ? channels / 8 : 1;
}
