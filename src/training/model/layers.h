/* Layers of several models. Fully connected ones, of logistic and mlp:
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
/* A convolution (pad kernel / 2, no bias, N(0, 2 / fan-out)) and the norm that
 * `config` asks for. */
kith_tensor kith_layers_conv_norm(const struct kith_model_config *config,
                                  struct kith_net *net, kith_tensor x,
                                  const char *const names[2],
                                  struct kith_net_conv shape,
                                  enum kith_activation activation);
void kith_layers_build(const struct kith_model_config *config,
                       struct kith_net *net);

#endif
