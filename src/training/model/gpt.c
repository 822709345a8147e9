/* GPT-2: a decoder of `depth` blocks over tokens and learned positions.
 *
 *   x = wte[token] + wpe[position]
 *   x = x + proj(attention(ln_1(x)))
 *   x = x + proj(gelu(fc(ln_2(x))))            fc: width -> 4 width
 *   scores = ln_f(x) wte^T
 *
 * Matrices of blocks are stored (in, out), and all names are Hugging Face's,
 * so that checkpoints load both ways. Weights start at N(0, 0.02^2), those of
 * proj at 0.02 / sqrt(2 depth). Dropout after the embedding and each proj; none
 * on attention weights. Radford et al., "Language Models are Unsupervised
 * Multitask Learners", 2019. With norm: rms each ln is an RMS norm, without a
 * bias; with positions: rotary q and k turn by their positions, wpe is not
 * there. Zhang and Sennrich, NeurIPS 2019; Su et al., "RoFormer", 2021. */
#include <math.h>
#include <stdio.h>

#include "config.h"
#include "kith/net.h"

static enum kith_err bad(char *error, const char *key, uint32_t found,
                         const char *allowed)
{
    (void)snprintf(error, KITH_MODEL_ERROR_BYTES,
                   "model.%s: found %u; model gpt needs %s", key, found,
                   allowed);
    return KITH_EINVAL;
}

static enum kith_err gpt_check(const struct kith_model_config *config,
                               char *error)
{
    if (config->depth < 1 || config->depth > 256)
        return bad(error, "depth", config->depth, "1 to 256 blocks");
    if (config->width < 1 || config->width > 65536)
        return bad(error, "width", config->width, "1 to 65536");
    if (config->heads < 1 || config->width % config->heads != 0)
        return bad(error, "heads", config->heads,
                   "a number that divides model.width");
    if (config->context < 1 || config->context > 65536)
        return bad(error, "context", config->context, "1 to 65536 tokens");
    if (config->vocabulary < 2 || config->vocabulary > KITH_CLASSES_MAX)
        return bad(error, "vocabulary", config->vocabulary,
                   "2 to 65536 different tokens");
    if (config->rotary && config->width / config->heads % 2 != 0)
        return bad(error, "heads", config->heads,
                   "heads of an even width with positions: rotary");
    const enum kith_err err = kith_config_norm(
        "gpt", config, KITH_MODEL_NORM_LAYER, KITH_MODEL_NORM_RMS, error);
    return err != KITH_OK ? err : kith_config_dropout(config, error);
}

/* One block's layers share its prefix. */
struct block {
    struct kith_net *net;
    const struct kith_model_config *config;
    uint32_t number;
};

static kith_tensor norm_named(struct kith_net *net,
                              const struct kith_model_config *config,
                              kith_tensor x, const char *name)
{
    if (config->norm == KITH_MODEL_NORM_RMS)
        return kith_net_rms_norm(net, x, name, 1e-5);
    return kith_net_norm(net, x, name, KITH_NORM_LAYER, 0, 1e-5,
                         KITH_ACTIVATION_NONE);
}

static kith_tensor norm(const struct block *block, kith_tensor x,
                        const char *layer)
{
    char name[KITH_NAME_MAX];
    (void)snprintf(name, sizeof name, "h.%u.%s", block->number, layer);
    return norm_named(block->net, block->config, x, name);
}

static kith_tensor linear(const struct block *block, kith_tensor x,
                          const char *layer, size_t out,
                          enum kith_activation activation, double spread)
{
    char name[KITH_NAME_MAX];
    (void)snprintf(name, sizeof name, "h.%u.%s", block->number, layer);
    return kith_net_linear(block->net, x, name,
                           (struct kith_net_linear){.out = out,
                                                    .in_out = true,
                                                    .bias = true,
                                                    .activation = activation,
                                                    .start = KITH_START_NORMAL,
                                                    .spread = spread});
}

static kith_tensor build_block(const struct block *block, kith_tensor x)
{
    const struct kith_model_config *config = block->config;
    const size_t width = config->width;
    const double spread = 0.02, last = 0.02 / sqrt(2.0 * config->depth);
    const enum kith_activation none = KITH_ACTIVATION_NONE;
    kith_tensor f = norm(block, x, "ln_1");
    f = linear(block, f, "attn.c_attn", 3 * width, none, spread);
    if (config->rotary)
        f = kith_net_rotary(block->net, f, config->heads);
    f = kith_net_attention(block->net, f, config->heads);
    f = linear(block, f, "attn.c_proj", width, none, last);
    f = kith_net_dropout(block->net, f, config->dropout);
    x = kith_net_sum(block->net, x, f, none);
    f = norm(block, x, "ln_2");
    f = linear(block, f, "mlp.c_fc", 4 * width, KITH_ACTIVATION_GELU, spread);
    f = linear(block, f, "mlp.c_proj", width, none, last);
    f = kith_net_dropout(block->net, f, config->dropout);
    return kith_net_sum(block->net, x, f, none);
}

static void gpt_build(const struct kith_model_config *config,
                      struct kith_net *net)
{
    kith_tensor x =
        kith_net_embed(net, "wte", config->rotary ? NULL : "wpe",
                       (struct kith_embed){.context = config->context,
                                           .vocabulary = config->vocabulary,
                                           .width = config->width},
                       0.02, 0.02);
    x = kith_net_dropout(net, x, config->dropout);
    kith_net_block(net);
    for (uint32_t i = 0; i < config->depth; i++) {
        x = build_block(&(struct block){net, config, i}, x);
        kith_net_block(net);
    }
    x = norm_named(net, config, x, "ln_f");
    x = kith_net_linear(net, x, "head",
                        (struct kith_net_linear){.out = config->vocabulary,
                                                 .tied = "wte.weight"});
    kith_net_cross_entropy(net, x);
}

extern const struct kith_model kith_model_gpt;
const struct kith_model kith_model_gpt = {
    .name = "gpt",
    .paper = "Radford et al., 2019",
    .summary = "GPT-2: learned or rotary positions, pre-norm blocks, tied head",
    .input = KITH_INPUT_TOKENS,
    .example = "depth 12, heads 12, width 768, context 1024, vocabulary 50257",
    .shape = {.depth = 12,
              .heads = 12,
              .width = 768,
              .context = 1024,
              .vocabulary = 50257},
    .keys = KITH_MODEL_READS(DEPTH) | KITH_MODEL_READS(HEADS) |
            KITH_MODEL_READS(WIDTH) | KITH_MODEL_READS(CONTEXT) |
            KITH_MODEL_READS(VOCABULARY) | KITH_MODEL_READS(NORM) |
            KITH_MODEL_READS(POSITIONS) | KITH_MODEL_READS(DROPOUT) |
            KITH_MODEL_READS(FROZEN),
    .check = gpt_check,
    .build = gpt_build,
};
