/* Forward and backward pass of fully connected layers:
 *
 *   d_last = softmax(a_last) - one_hot(labels), / rows
 *   dW_l = d_{l+1}^T a_l      db_l = column sums of d_{l+1}
 *   d_l = (d_{l+1} W_l) where a_l > 0
 *
 * The gradient of the logits stands in their place; those of the hidden layers
 * take turns in two buffers. */
#include "layers.h"

#include <math.h>
#include <stdio.h>

#include "kith/assert.h"

static size_t layer_elements(struct kith_layers layers, uint32_t l)
{
    return (size_t)layers.sizes[l + 1] * ((size_t)layers.sizes[l] + 1);
}

size_t kith_layers_dim(struct kith_layers layers)
{
    size_t dim = 0;
    for (uint32_t l = 0; l + 1 < layers.count; l++)
        dim += layer_elements(layers, l);
    return dim;
}

uint32_t kith_layers_views(struct kith_layers layers,
                           struct kith_model_view *views, uint32_t capacity)
{
    uint32_t count = 0;
    size_t offset = 0;
    for (uint32_t l = 0; l + 1 < layers.count && count + 2 <= capacity; l++) {
        const size_t in = layers.sizes[l], out = layers.sizes[l + 1];
        views[count] = (struct kith_model_view){
            .offset = offset, .rows = out, .columns = in};
        (void)snprintf(views[count].name, sizeof views->name, "W%u", l + 1);
        offset += in * out;
        count++;
        views[count] = (struct kith_model_view){
            .offset = offset, .rows = out, .columns = 1};
        (void)snprintf(views[count].name, sizeof views->name, "b%u", l + 1);
        offset += out;
        count++;
    }
    return count;
}

void kith_layers_start(struct kith_layers layers, uint64_t seed, double *x)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_WEIGHTS, 0);
    for (uint32_t l = 0; l + 1 < layers.count; l++) {
        const size_t in = layers.sizes[l], out = layers.sizes[l + 1];
        const bool last = l + 2 == layers.count;
        const double bound = sqrt((last ? 3.0 : 6.0) / (double)in);
        for (size_t i = 0; i < in * out; i++)
            *x++ = (2 * kith_rng_double(&rng) - 1) * bound;
        for (size_t i = 0; i < out; i++)
            *x++ = 0;
    }
}

static size_t widest_hidden(struct kith_layers layers)
{
    size_t widest = 0;
    for (uint32_t l = 1; l + 1 < layers.count; l++) {
        if (layers.sizes[l] > widest)
            widest = layers.sizes[l];
    }
    return widest;
}

/* Whole cache lines, so that every buffer in the scratch is aligned. */
static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

size_t kith_layers_scratch(struct kith_layers layers,
                           const struct kith_backend *backend, size_t rows)
{
    const size_t element = backend->element_bytes;
    size_t bytes = 2 * aligned(rows * widest_hidden(layers) * element);
    for (uint32_t l = 1; l < layers.count; l++)
        bytes += aligned(rows * layers.sizes[l] * element);
    return bytes;
}

struct pass {
    struct kith_layers layers;
    const struct kith_backend *backend;
    const char *x;
    size_t rows;
    const void *activations[KITH_LAYERS_MAX]; /* a_l (rows, sizes[l]) */
    char *gradients[2];                       /* (rows, widest hidden) */
};

/* Fills in activations 1 .. count - 1; returns the logits. */
static void *forward(struct pass *pass, const void *inputs, char *scratch)
{
    const struct kith_backend *backend = pass->backend;
    const size_t element = backend->element_bytes, rows = pass->rows;
    const char *weights = pass->x;
    char *output = NULL;
    pass->activations[0] = inputs;
    for (uint32_t l = 0; l + 1 < pass->layers.count; l++) {
        const size_t in = pass->layers.sizes[l];
        const size_t out = pass->layers.sizes[l + 1];
        output = scratch;
        backend->gemm(false, true, rows, out, in, 1, pass->activations[l],
                      weights, 0, output);
        backend->add_bias(rows, out, weights + in * out * element,
                          l + 2 < pass->layers.count, output);
        pass->activations[l + 1] = output;
        scratch += aligned(rows * out * element);
        weights += layer_elements(pass->layers, l) * element;
    }
    pass->gradients[0] = scratch;
    pass->gradients[1] =
        scratch + aligned(rows * widest_hidden(pass->layers) * element);
    return output;
}

static void backward(const struct pass *pass, const void *logit_gradient,
                     char *gradient)
{
    const struct kith_backend *backend = pass->backend;
    const size_t element = backend->element_bytes, rows = pass->rows;
    const void *d = logit_gradient;
    size_t offset = kith_layers_dim(pass->layers);
    for (uint32_t l = pass->layers.count - 1; l-- > 0;) {
        const size_t in = pass->layers.sizes[l];
        const size_t out = pass->layers.sizes[l + 1];
        offset -= layer_elements(pass->layers, l);
        char *weight_gradient = gradient + offset * element;
        backend->gemm(true, false, out, in, rows, 1, d, pass->activations[l], 0,
                      weight_gradient);
        backend->column_sum(rows, out, d, weight_gradient + in * out * element);
        if (l > 0) {
            void *below = pass->gradients[l % 2];
            backend->gemm(false, false, rows, in, out, 1, d,
                          pass->x + offset * element, 0, below);
            backend->relu_backward(rows * in, pass->activations[l], below);
            d = below;
        }
    }
}

double kith_layers_loss(struct kith_layers layers,
                        const struct kith_backend *backend, const void *x,
                        const struct kith_batch *batch, void *gradient,
                        uint32_t *correct, void *scratch)
{
    KITH_ASSERT(layers.count >= 2 && layers.count <= KITH_LAYERS_MAX);
    KITH_ASSERT(batch->rows > 0);
    struct pass pass = {
        .layers = layers, .backend = backend, .x = x, .rows = batch->rows};
    void *logits = forward(&pass, batch->inputs, scratch);
    const double loss =
        backend->cross_entropy(batch->rows, layers.sizes[layers.count - 1],
                               batch->labels, logits, correct);
    if (gradient != NULL)
        backward(&pass, logits, gradient);
    return loss;
}
