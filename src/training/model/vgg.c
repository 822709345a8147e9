/* VGG: stacks of 3x3 convolutions, each stack ended by a 2x2 max-pool, then
 * fully connected layers.
 *
 *   depth 11, 13, 16, 19   configurations A, B, D, E of the paper: 5 stacks and
 *                          4096-4096-classes. 224 x 224, or any image of at
 *                          least 32 x 32 (7 x 7 left of 224, 1 x 1 of 32)
 *   depth 8                small: 64, 128, 256 x 2, 512 x 2 in 4 stacks, the
 *                          mean over what is left, 512-classes
 *
 * A norm (BatchNorm, or GroupNorm) follows each convolution, so that these
 * have no bias. Simonyan and Zisserman, ICLR 2015; He et al., ICCV 2015
 * (starting weights, fan-out). */
#include <stdio.h>

#include "config.h"
#include "layers.h"

enum { STACKS_MAX = 5 };

/* Convolutions of each stack, and their channels. */
struct shape {
    uint32_t depth;
    uint32_t stacks, convolutions[STACKS_MAX];
    uint32_t hidden, hidden_count; /* fully connected, before the scores */
};

static const struct shape shapes[] = {
    {8, 4, {1, 1, 2, 2}, 512, 1},      {11, 5, {1, 1, 2, 2, 2}, 4096, 2},
    {13, 5, {2, 2, 2, 2, 2}, 4096, 2}, {16, 5, {2, 2, 3, 3, 3}, 4096, 2},
    {19, 5, {2, 2, 4, 4, 4}, 4096, 2},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const struct shape *shape_of(const struct kith_model_config *config)
{
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i].depth == config->depth)
            return &shapes[i];
    return NULL;
}

static enum kith_err vgg_check(const struct kith_model_config *config,
                               char *error)
{
    static const uint32_t depths[] = {8, 11, 13, 16, 19};
    enum kith_err err = kith_config_image("vgg", config, error);
    if (err == KITH_OK)
        err = kith_config_depth("vgg", config, depths, SHAPES, error);
    if (err == KITH_OK)
        err = kith_config_classes(config->classes, "model.classes", error);
    if (err == KITH_OK)
        err = kith_config_norm("vgg", config, KITH_MODEL_NORM_BATCH,
                               KITH_MODEL_NORM_GROUP, error);
    if (err == KITH_OK)
        err = kith_config_dropout(config, error);
    if (err != KITH_OK)
        return err;
    const uint32_t least = 1u << shape_of(config)->stacks;
    if (config->image[0] >= least && config->image[1] >= least)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.image: found %u x %u; vgg of depth %u halves it %u "
                   "times: at least %u x %u",
                   config->image[0], config->image[1], config->depth,
                   shape_of(config)->stacks, least, least);
    return KITH_EINVAL;
}

static kith_tensor stack(struct kith_net *net, kith_tensor x,
                         const struct kith_model_config *config,
                         uint32_t number, uint32_t convolutions, size_t out)
{
    for (uint32_t i = 0; i < convolutions; i++) {
        char conv[32], norm[32];
        (void)snprintf(conv, sizeof conv, "stack%u.conv%u", number, i + 1);
        (void)snprintf(norm, sizeof norm, "stack%u.norm%u", number, i + 1);
        x = kith_layers_conv_norm(
            config, net, x, (const char *const[]){conv, norm},
            (struct kith_net_conv){.out = out, .kernel = 3, .stride = 1},
            KITH_ACTIVATION_RELU);
    }
    return kith_net_max_pool(net, x, 2, 2, 0);
}

static void vgg_build(const struct kith_model_config *config,
                      struct kith_net *net)
{
    const struct shape *shape = shape_of(config);
    size_t channels = 64;
    kith_tensor x = kith_net_images(net, config->image[0], config->image[1],
                                    config->image[2]);
    for (uint32_t i = 0; i < shape->stacks; i++) {
        x = stack(net, x, config, i + 1, shape->convolutions[i], channels);
        kith_net_block(net);
        channels = channels < 512 ? 2 * channels : 512;
    }
    if (shape->depth == 8)
        x = kith_net_mean_pool(net, x);
    for (uint32_t i = 0; i <= shape->hidden_count; i++) {
        const bool last = i == shape->hidden_count;
        char name[16];
        (void)snprintf(name, sizeof name, "fc%u", i + 1);
        x = kith_net_linear(net, x, name,
                            (struct kith_net_linear){
                                .out = last ? config->classes : shape->hidden,
                                .bias = true,
                                .activation = last ? KITH_ACTIVATION_NONE
                                                   : KITH_ACTIVATION_RELU,
                                .start = KITH_START_NORMAL,
                                .spread = 0.01});
        if (!last)
            x = kith_net_dropout(net, x, config->dropout);
    }
    kith_net_cross_entropy(net, x);
}

extern const struct kith_model kith_model_vgg;
const struct kith_model kith_model_vgg = {
    .name = "vgg",
    .paper = "Simonyan and Zisserman, ICLR 2015",
    .summary = "stacks of 3x3 convolutions and max-pools; depth 8 (small), "
               "11, 13, 16, 19",
    .input = KITH_INPUT_IMAGES,
    .example = "depth 11, 224 x 224 x 3, 1000 classes",
    .shape = {.image = {224, 224, 3}, .classes = 1000, .depth = 11},
    .keys = KITH_MODEL_READS(IMAGE) | KITH_MODEL_READS(CLASSES) |
            KITH_MODEL_READS(DEPTH) | KITH_MODEL_READS(NORM) |
            KITH_MODEL_READS(DROPOUT) | KITH_MODEL_READS(FROZEN),
    .check = vgg_check,
    .build = vgg_build,
};
