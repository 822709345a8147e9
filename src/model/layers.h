/* Fully connected layers in one flat vector: what logistic and mlp share.
 *
 *   layer l: W_l (out, in) row-major, then b_l (out), l = 0 .. count - 2
 *   a_0 = inputs (rows, in);  a_{l+1} = relu(a_l W_l^T + b_l), no relu last
 *   loss = mean cross-entropy of softmax(a_last) */
#ifndef KITH_MODEL_LAYERS_H
#define KITH_MODEL_LAYERS_H

#include "kith/model.h"

/* Sizes, input first. */
struct kith_layers {
    const uint32_t *sizes; /* (count) */
    uint32_t count;        /* >= 2 */
};

size_t kith_layers_dim(struct kith_layers layers);
uint32_t kith_layers_views(struct kith_layers layers,
                           struct kith_model_view *views, uint32_t capacity);
/* Kaiming-uniform: W ~ U(-sqrt(6 / in), sqrt(6 / in)), b = 0; the last layer
 * feeds no relu, so U(-sqrt(3 / in), sqrt(3 / in)). Stream WEIGHTS. */
void kith_layers_start(struct kith_layers layers, uint64_t seed, double *x);
/* Activations of every layer and two gradients of the widest hidden one. */
size_t kith_layers_scratch(struct kith_layers layers,
                           const struct kith_backend *backend, size_t rows);
double kith_layers_loss(struct kith_layers layers,
                        const struct kith_backend *backend, const void *x,
                        const struct kith_batch *batch, void *gradient,
                        uint32_t *correct, void *scratch);

#endif
