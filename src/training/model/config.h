/* What the checks of several models share: one line of error each, with the
 * key, what was found and what is allowed. */
#ifndef KITH_TRAINING_MODEL_CONFIG_H
#define KITH_TRAINING_MODEL_CONFIG_H

#include "kith/model.h"

/* KITH_ELIMIT, in words. */
enum kith_err kith_config_too_large(const char *model, const char *key,
                                    char *error);
/* 2 to KITH_CLASSES_MAX. */
enum kith_err kith_config_classes(uint32_t classes, const char *key,
                                  char *error);
/* Height, width and channels: 1 to KITH_SIDE_MAX, and 1 to 1024. */
enum kith_err kith_config_image(const char *model,
                                const struct kith_model_config *config,
                                char *error);
/* One of the two, or not given. */
enum kith_err kith_config_norm(const char *model,
                               const struct kith_model_config *config,
                               enum kith_model_norm first,
                               enum kith_model_norm second, char *error);
/* A share in [0, 1). */
enum kith_err kith_config_dropout(const struct kith_model_config *config,
                                  char *error);
/* One of the depths, (count). */
enum kith_err kith_config_depth(const char *model,
                                const struct kith_model_config *config,
                                const uint32_t *depths, uint32_t count,
                                char *error);
/* Groups of a GroupNorm, 8 channels each: a fixed number of channels serves
 * narrow nets better than a fixed number of groups, which would leave one
 * channel to a group. */
size_t kith_config_groups(size_t channels);

#endif
