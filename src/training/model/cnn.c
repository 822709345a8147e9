/* A plain convolutional net, after LeNet: for each of `channels` a 3x3
 * convolution with a border of zeros, ReLU, and the largest of each 2x2; then
 * scores from what is left. LeCun et al., "Gradient-based learning applied to
 * document recognition", Proc. IEEE 1998; He et al., ICCV 2015 (starting
 * weights). */
#include <math.h>
#include <stdio.h>

#include "config.h"
#include "kith/net.h"

static enum kith_err cnn_check(const struct kith_model_config *config,
                               char *error)
{
    const uint32_t count = config->channel_count;
    const uint32_t side = config->image[0] < config->image[1]
                              ? config->image[0]
                              : config->image[1];
    enum kith_err err = kith_config_image("cnn", config, error);
    if (err == KITH_OK)
        err = kith_config_classes(config->classes, "model.classes", error);
    if (err == KITH_OK)
        err = kith_config_dropout(config, error);
    if (err != KITH_OK)
        return err;
    bool good = count > 0 && count <= KITH_LAYERS_MAX && side >> count > 0;
    for (uint32_t i = 0; good && i < count; i++)
        good = config->channels[i] > 0 && config->channels[i] <= 4096;
    if (good)
        return KITH_OK;
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.channels: found %u convolutions; allowed: 1 to %u "
                   "numbers from 1 to 4096, such as [16, 32], each of which "
                   "halves an image of side %u",
                   count, KITH_LAYERS_MAX, side);
    return KITH_EINVAL;
}

static void cnn_build(const struct kith_model_config *config,
                      struct kith_net *net)
{
    size_t in = config->image[2];
    size_t height = config->image[0], width = config->image[1];
    kith_tensor x = kith_net_images(net, height, width, in);
    for (uint32_t i = 0; i < config->channel_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "conv%u", i + 1);
        x = kith_net_conv(
            net, x, name,
            (struct kith_net_conv){.out = config->channels[i],
                                   .kernel = 3,
                                   .stride = 1,
                                   .pad = 1,
                                   .bias = true,
                                   .activation = KITH_ACTIVATION_RELU,
                                   .start = KITH_START_UNIFORM,
                                   .spread = sqrt(6.0 / (9.0 * (double)in))});
        x = kith_net_max_pool(net, x, 2, 2, 0);
        in = config->channels[i];
        height /= 2;
        width /= 2;
    }
    x = kith_net_dropout(net, x, config->dropout);
    x = kith_net_linear(
        net, x, "fc",
        (struct kith_net_linear){
            .out = config->classes,
            .bias = true,
            .start = KITH_START_UNIFORM,
            .spread = sqrt(3.0 / (double)(in * height * width))});
    kith_net_cross_entropy(net, x);
}

extern const struct kith_model kith_model_cnn;
const struct kith_model kith_model_cnn = {
    .name = "cnn",
    .paper = "LeCun et al., Proc. IEEE 1998",
    .summary = "3x3 convolutions of `channels`, ReLU, 2x2 max-pools, scores",
    .input = KITH_INPUT_IMAGES,
    .example = "28 x 28 x 1, channels 16, 32, 10 classes",
    .shape = {.image = {28, 28, 1},
              .classes = 10,
              .channels = {16, 32},
              .channel_count = 2},
    .keys = KITH_MODEL_READS(IMAGE) | KITH_MODEL_READS(CLASSES) |
            KITH_MODEL_READS(CHANNELS) | KITH_MODEL_READS(DROPOUT) |
            KITH_MODEL_READS(FROZEN),
    .check = cnn_check,
    .build = cnn_build,
};
