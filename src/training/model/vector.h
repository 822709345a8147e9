/* What the models without data share: a bare vector of config->dim numbers,
 * and draws for it that need no libm. */
#ifndef KITH_TRAINING_MODEL_VECTOR_H
#define KITH_TRAINING_MODEL_VECTOR_H

#include "kith/model.h"

enum kith_err kith_vector_check(const struct kith_model_config *config,
                                char *error);
size_t kith_vector_dim(const struct kith_model_config *config);
/* Mean 0, variance 1, nearly normal: the sum of four 16-bit uniforms. */
double kith_vector_draw(struct kith_rng *rng);

#endif
