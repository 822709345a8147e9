/* Small networks of every model, each at a random point with a batch.
 * Include after what cmocka needs. */
#ifndef KITH_TESTS_MODEL_CASES_H
#define KITH_TESTS_MODEL_CASES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/model.h"

/* Coordinates of one case whose gradient is checked: small models and large. */
enum { ROWS = 2, VALUES_MAX = 4096, CHECKED_SMALL = 40, CHECKED_LARGE = 3 };

struct model_case {
    const char *name, *label;
    struct kith_model_config config;
    double smoothing;
    bool recompute;
};

static const struct model_case cases[] = {
    {"logistic", "logistic", {.layers = {6, 4}, .layer_count = 2}, 0, false},
    {"mlp", "mlp", {.layers = {6, 8, 7, 4}, .layer_count = 4}, 0, false},
    {"mlp",
     "mlp, dropout and smoothing",
     {.layers = {6, 8, 7, 4}, .layer_count = 4, .dropout = 0.3},
     0.1,
     false},
    {"mlp",
     "mlp, first layer frozen",
     {.layers = {6, 8, 7, 4}, .layer_count = 4, .frozen = "fc1"},
     0,
     false},
    {"cnn",
     "cnn",
     {.image = {7, 6, 2}, .classes = 4, .channels = {3, 5}, .channel_count = 2},
     0,
     false},
    {"cnn",
     "cnn, dropout",
     {.image = {8, 8, 1},
      .classes = 3,
      .channels = {3, 4},
      .channel_count = 2,
      .dropout = 0.5},
     0.05,
     false},
    {"vgg",
     "vgg 8, GroupNorm, recompute",
     {.image = {16, 16, 1},
      .classes = 3,
      .depth = 8,
      .norm = KITH_MODEL_NORM_GROUP},
     0,
     true},
    {"resnet",
     "resnet 20, BatchNorm",
     {.image = {6, 6, 2}, .classes = 4, .depth = 20},
     0,
     false},
    {"resnet",
     "resnet 20, BatchNorm, recompute",
     {.image = {6, 6, 2}, .classes = 4, .depth = 20},
     0,
     true},
    {"resnet",
     "resnet 20, GroupNorm",
     {.image = {6, 6, 2},
      .classes = 4,
      .depth = 20,
      .norm = KITH_MODEL_NORM_GROUP},
     0.1,
     false},
    {"gpt",
     "gpt",
     {.depth = 2, .heads = 2, .width = 8, .context = 5, .vocabulary = 7},
     0,
     false},
    {"gpt",
     "gpt, dropout and smoothing, recompute",
     {.depth = 2,
      .heads = 2,
      .width = 8,
      .context = 5,
      .vocabulary = 7,
      .dropout = 0.2},
     0.1,
     true},
    {"gpt",
     "gpt, RMSNorm",
     {.depth = 2,
      .heads = 2,
      .width = 8,
      .context = 5,
      .vocabulary = 7,
      .norm = KITH_MODEL_NORM_RMS},
     0,
     false},
    {"gpt",
     "gpt, rotary positions, recompute",
     {.depth = 2,
      .heads = 2,
      .width = 8,
      .context = 5,
      .vocabulary = 7,
      .rotary = true},
     0,
     true},
    {"gpt",
     "gpt, RMSNorm and rotary positions, dropout",
     {.depth = 2,
      .heads = 1,
      .width = 8,
      .context = 6,
      .vocabulary = 7,
      .norm = KITH_MODEL_NORM_RMS,
      .rotary = true,
      .dropout = 0.2},
     0.1,
     false},
    {"gpt",
     "gpt, embeddings frozen",
     {.depth = 1,
      .heads = 1,
      .width = 4,
      .context = 4,
      .vocabulary = 5,
      .frozen = "w"},
     0,
     false},
    {"gpt",
     "gpt, a block frozen",
     {.depth = 2,
      .heads = 2,
      .width = 8,
      .context = 4,
      .vocabulary = 5,
      .frozen = "h.1.mlp"},
     0,
     false},
    {"quadratic", "quadratic", {.dim = 9, .spread = 1.5}, 0, false},
    {"noise", "noise", {.dim = 70, .spread = 1.5}, 0, false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* A network of one case, at a random point, with a batch. */
struct bench {
    const struct kith_backend *backend;
    struct kith_graph *network;
    const struct kith_layout *layout;
    double *x;
    double inputs[VALUES_MAX];
    int32_t tokens[VALUES_MAX], labels[VALUES_MAX];
    struct kith_batch batch;
};

static inline void bench_open(struct bench *bench, const struct model_case *one,
                              bool training, bool recompute)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_model *model = kith_model_find(one->name);
    struct kith_model_size size;
    struct kith_rng rng;
    bench->backend = kith_backend_find("naive64");
    if (kith_model_measure(model, &one->config, &size, error) != KITH_OK)
        fail_msg("%s: %s", one->label, error);
    const struct kith_graph_options options = {.backend = bench->backend,
                                               .rows = ROWS,
                                               .training = training,
                                               .recompute = recompute,
                                               .smoothing = one->smoothing};
    if (kith_graph_open(model, &one->config, &options, &bench->network,
                        error) != KITH_OK)
        fail_msg("%s: %s", one->label, error);
    size_t bytes;
    assert_int_equal(
        kith_graph_measure(model, &one->config, &options, &bytes, error),
        KITH_OK);
    assert_true(bytes == kith_graph_bytes(bench->network));
    bench->layout = kith_graph_layout(bench->network);
    assert_int_equal(bench->layout->dim, size.dim);
    assert_int_equal(bench->layout->trained, size.trained);
    assert_int_equal(bench->layout->gossiped, size.gossiped);
    bench->x = malloc(size.dim * sizeof *bench->x);
    assert_non_null(bench->x);
    kith_graph_start(bench->network, 11, 3, bench->x);
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < bench->layout->trained; i++)
        bench->x[i] += 0.1 * kith_rng_double(&rng);
    assert_true(ROWS * size.features <= VALUES_MAX);
    const uint32_t classes = size.classes > 0 ? (uint32_t)size.classes : 1;
    for (size_t i = 0; i < VALUES_MAX; i++) {
        bench->inputs[i] = kith_rng_double(&rng);
        bench->tokens[i] = (int32_t)kith_rng_below(&rng, classes);
        bench->labels[i] = (int32_t)kith_rng_below(&rng, classes);
    }
    const void *inputs = bench->inputs;
    if (model->input == KITH_INPUT_TOKENS)
        inputs = bench->tokens;
    bench->batch =
        (struct kith_batch){.inputs = inputs,
                            .labels = bench->labels,
                            .rows = model->input == KITH_INPUT_NONE ? 1 : ROWS,
                            .entity = 3,
                            .seed = 11,
                            .step = 4};
}

static inline void bench_close(struct bench *bench)
{
    kith_graph_close(bench->network);
    free(bench->x);
}

#endif
