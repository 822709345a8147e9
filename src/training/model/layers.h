/* Fully connected layers: what logistic and mlp share.
 *
 *   a_0 = inputs;  a_{l+1} = relu(a_l W_l^T + b_l), no relu last
 *
 * Views fc1.weight (out, in), fc1.bias, fc2.weight, ... W ~ U(-sqrt(6 / in),
 * sqrt(6 / in)) (He et al., ICCV 2015), b = 0; the last layer feeds no relu,
 * so U(-sqrt(3 / in), sqrt(3 / in)). */
#ifndef KITH_TRAINING_MODEL_LAYERS_H
#define KITH_TRAINING_MODEL_LAYERS_H

#include "kith/net.h"

enum kith_err kith_layers_check(const char *model,
                                const struct kith_model_config *config,
                                uint32_t count_min, uint32_t count_max,
                                char *error);
void kith_layers_build(const struct kith_model_config *config,
                       struct kith_net *net);

#endif
