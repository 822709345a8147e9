/* Residual networks:  y = relu(x + F(x)), F two or three convolutions with a
 * norm after each.
 *
 *   sides below 64    depth 20, 32, 44, 56, 110: a 3x3 convolution, three
 *                     stages of 16, 32 and 64 channels with (depth - 2) / 6
 *                     blocks of two 3x3 convolutions each
 *   sides from 64 on  depth 18, 34 (two 3x3 convolutions) and 50 (1x1, 3x3,
 *                     1x1 to four times the channels): a 7x7 convolution of
 *                     stride 2, a 3x3 max-pool of stride 2, four stages of 64
 *                     to 512
 *
 * Each stage but the first begins with stride 2 (on the 3x3 convolution); a
 * 1x1 convolution with a norm stands on the shortcut where shapes differ. The
 * mean over pixels gives the scores. Convolutions start at N(0, 2 / fan-out).
 * Names of views are those of torchvision.
 * He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. */
#include <math.h>
#include <stdio.h>

#include "config.h"
#include "layers.h"

enum { LARGE_SIDE = 64, STAGES_MAX = 4 };

struct shape {
    uint32_t depth;
    bool bottleneck;
    uint32_t stages, width, blocks[STAGES_MAX];
};

static const struct shape large[] = {{18, false, 4, 64, {2, 2, 2, 2}},
                                     {34, false, 4, 64, {3, 4, 6, 3}},
                                     {50, true, 4, 64, {3, 4, 6, 3}}};

static bool is_large(const struct kith_model_config *config)
{
    return config->image[0] >= LARGE_SIDE && config->image[1] >= LARGE_SIDE;
}

static struct shape shape_of(const struct kith_model_config *config)
{
    const uint32_t blocks = (config->depth - 2) / 6;
    for (size_t i = 0; is_large(config) && i < sizeof large / sizeof large[0];
         i++)
        if (large[i].depth == config->depth)
            return large[i];
    return (struct shape){
        config->depth, false, 3, 16, {blocks, blocks, blocks, 0}};
}

static enum kith_err resnet_check(const struct kith_model_config *config,
                                  char *error)
{
    static const uint32_t small_depths[] = {20, 32, 44, 56, 110};
    static const uint32_t large_depths[] = {18, 34, 50};
    enum kith_err err = kith_config_image("resnet", config, error);
    if (err == KITH_OK && is_large(config))
        err = kith_config_depth("resnet", config, large_depths, 3, error);
    else if (err == KITH_OK)
        err = kith_config_depth("resnet", config, small_depths, 5, error);
    if (err == KITH_OK)
        err = kith_config_classes(config->classes, "model.classes", error);
    if (err == KITH_OK)
        err = kith_config_norm("resnet", config, KITH_MODEL_NORM_BATCH,
                               KITH_MODEL_NORM_GROUP, error);
    return err;
}

/* Where the next convolution goes. */
struct builder {
    struct kith_net *net;
    const struct kith_model_config *config;
    char block[32]; /* "layer1.0.", or "" */
};

/* conv, then norm. */
static kith_tensor conv_norm(const struct builder *builder, kith_tensor x,
                             const char *conv, const char *norm,
                             struct kith_net_conv shape,
                             enum kith_activation activation)
{
    char first[KITH_NAME_MAX], second[KITH_NAME_MAX];
    (void)snprintf(first, sizeof first, "%s%s", builder->block, conv);
    (void)snprintf(second, sizeof second, "%s%s", builder->block, norm);
    return kith_layers_conv_norm(builder->config, builder->net, x,
                                 (const char *const[]){first, second}, shape,
                                 activation);
}

static kith_tensor residual(const struct builder *builder, kith_tensor x,
                            bool bottleneck, size_t width, size_t stride,
                            bool project)
{
    const size_t out = bottleneck ? 4 * width : width;
    const enum kith_activation relu = KITH_ACTIVATION_RELU;
    const enum kith_activation none = KITH_ACTIVATION_NONE;
    const struct kith_net_conv narrow = {
        .out = width, .kernel = 1, .stride = 1};
    const struct kith_net_conv first = {
        .out = width, .kernel = 3, .stride = stride};
    const struct kith_net_conv second = {
        .out = width, .kernel = 3, .stride = 1};
    const struct kith_net_conv widen = {.out = out, .kernel = 1, .stride = 1};
    kith_tensor f = x;
    if (bottleneck) {
        f = conv_norm(builder, f, "conv1", "bn1", narrow, relu);
        f = conv_norm(builder, f, "conv2", "bn2", first, relu);
        f = conv_norm(builder, f, "conv3", "bn3", widen, none);
    } else {
        f = conv_norm(builder, f, "conv1", "bn1", first, relu);
        f = conv_norm(builder, f, "conv2", "bn2", second, none);
    }
    if (project)
        x = conv_norm(
            builder, x, "downsample.0", "downsample.1",
            (struct kith_net_conv){.out = out, .kernel = 1, .stride = stride},
            none);
    return kith_net_sum(builder->net, x, f, relu);
}

static void resnet_build(const struct kith_model_config *config,
                         struct kith_net *net)
{
    const struct shape shape = shape_of(config);
    struct builder builder = {.net = net, .config = config};
    kith_tensor x = kith_net_images(net, config->image[0], config->image[1],
                                    config->image[2]);
    const bool wide = shape.stages == STAGES_MAX;
    x = conv_norm(&builder, x, "conv1", "bn1",
                  (struct kith_net_conv){.out = shape.width,
                                         .kernel = wide ? 7 : 3,
                                         .stride = wide ? 2 : 1},
                  KITH_ACTIVATION_RELU);
    if (wide)
        x = kith_net_max_pool(net, x, 3, 2, 1);
    kith_net_block(net);
    for (uint32_t stage = 0; stage < shape.stages; stage++) {
        const size_t width = (size_t)shape.width << stage;
        for (uint32_t i = 0; i < shape.blocks[stage]; i++) {
            const size_t stride = stage > 0 && i == 0 ? 2 : 1;
            const bool project = i == 0 && (stage > 0 || shape.bottleneck);
            (void)snprintf(builder.block, sizeof builder.block, "layer%u.%u.",
                           stage + 1, i);
            x = residual(&builder, x, shape.bottleneck, width, stride, project);
            kith_net_block(net);
        }
    }
    x = kith_net_mean_pool(net, x);
    const size_t last = ((size_t)shape.width << (shape.stages - 1)) *
                        (shape.bottleneck ? 4 : 1);
    x = kith_net_linear(
        net, x, "fc",
        (struct kith_net_linear){.out = config->classes,
                                 .bias = true,
                                 .start = KITH_START_UNIFORM,
                                 .spread = sqrt(1.0 / (double)last)});
    kith_net_cross_entropy(net, x);
}

extern const struct kith_model kith_model_resnet;
const struct kith_model kith_model_resnet = {
    .name = "resnet",
    .paper = "He et al., CVPR 2016",
    .summary = "residual blocks; small images: depth 20, 32, 44, 56, 110, "
               "large ones: 18, 34, 50",
    .input = KITH_INPUT_IMAGES,
    .example = "depth 20, 32 x 32 x 3, 10 classes",
    .shape = {.image = {32, 32, 3}, .classes = 10, .depth = 20},
    .keys = KITH_MODEL_READS(IMAGE) | KITH_MODEL_READS(CLASSES) |
            KITH_MODEL_READS(DEPTH) | KITH_MODEL_READS(NORM) |
            KITH_MODEL_READS(FROZEN),
    .check = resnet_check,
    .build = resnet_build,
};
