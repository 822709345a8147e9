/* How a model describes its network: a string of operations over tensors.
 *
 *   kith_tensor x = kith_net_images(net, config->image);
 *   x = kith_net_conv(net, x, "conv1", (struct kith_net_conv){...});
 *   x = kith_net_linear(net, x, "fc", 10, ...);
 *   kith_net_cross_entropy(net, x);
 *
 * Building allocates nothing of the model's size; shapes are derived, and a
 * parameter's starting distribution stands where the parameter is named. The
 * first error (too many operations, a shape that does not fit) is kept and
 * ends the building; builders need no checks.
 *
 * model_builder.c holds the builders; src/training/graph/ makes of them an
 * order of steps, a place in memory for each tensor and a flat vector of
 * parameters, and runs it.
 */
#ifndef KITH_MODEL_BUILDER_H
#define KITH_MODEL_BUILDER_H

#include "kith/model.h"
#include "kith/ops.h"

/* The index of a tensor of the net. */
typedef uint32_t kith_tensor;

/* How a parameter starts. */
enum kith_start {
    KITH_START_ZERO,
    KITH_START_ONE,
    KITH_START_NORMAL,  /* N(0, spread^2) */
    KITH_START_UNIFORM, /* U(-spread, spread) */
};

/* Input: images (height, width, channels) as values in [0, 1], or tokens. A
 * model for flat features says (1, 1, features). */
kith_tensor kith_net_images(struct kith_net *net, size_t height, size_t width,
                            size_t channels);
/* Tokens through their embedding: (rows * context, width). Views NAME_t and
 * NAME_p. */
kith_tensor kith_net_embed(struct kith_net *net, const char *token,
                           const char *position, struct kith_embed op,
                           double token_spread, double position_spread);

struct kith_net_linear {
    size_t out;
    bool in_out, bias;
    enum kith_activation activation;
    enum kith_start start;
    double spread;
    const char *tied; /* name of the view to use as W (out, in); or NULL */
};
/* Flattens images. Views NAME.weight, NAME.bias. */
kith_tensor kith_net_linear(struct kith_net *net, kith_tensor x,
                            const char *name, struct kith_net_linear op);

struct kith_net_conv {
    size_t out, kernel, stride, pad;
    bool bias;
    enum kith_activation activation;
    enum kith_start start;
    double spread;
};
kith_tensor kith_net_conv(struct kith_net *net, kith_tensor x, const char *name,
                          struct kith_net_conv op);

/* Views NAME.weight, NAME.bias, and for BATCH NAME.running_mean and
 * NAME.running_var. groups is for GROUP. */
kith_tensor kith_net_norm(struct kith_net *net, kith_tensor x, const char *name,
                          enum kith_norm_kind kind, size_t groups,
                          double epsilon, enum kith_activation activation);
kith_tensor kith_net_max_pool(struct kith_net *net, kith_tensor x,
                              size_t kernel, size_t stride, size_t pad);
kith_tensor kith_net_mean_pool(struct kith_net *net, kith_tensor x);
kith_tensor kith_net_sum(struct kith_net *net, kith_tensor a, kith_tensor b,
                         enum kith_activation activation);
kith_tensor kith_net_dropout(struct kith_net *net, kith_tensor x, double rate);
kith_tensor kith_net_attention(struct kith_net *net, kith_tensor qkv,
                               size_t heads);
/* A block ends here: what `recompute` keeps. */
void kith_net_block(struct kith_net *net);
/* The end: mean cross-entropy of scores x (rows, classes); the weights of the
 * linear operation that gives them are a TABLE, as those of an embedding. */
void kith_net_cross_entropy(struct kith_net *net, kith_tensor x);

#endif
