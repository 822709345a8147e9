/* Goal: what follows from a model's description is right: the order of its
 * views, starting weights, sizes, and what it refuses. Method: known sizes, and
 * the statistics of what is drawn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "model_cases.h"

/* Views tile the vector class by class: no hole, no overlap. */
static void test_layouts(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench bench;
        bench_open(&bench, &cases[c], false, false);
        const struct kith_layout *layout = bench.layout;
        size_t at = 0;
        for (uint32_t i = 0; i < layout->view_count; i++) {
            const struct kith_model_view *view = &layout->views[i];
            size_t product = 1;
            for (uint32_t k = 0; k < view->rank; k++)
                product *= view->shape[k];
            assert_int_equal(view->elements, product);
            assert_int_equal(view->offset, at);
            at += view->elements;
            const bool buffer = view->kind == KITH_VIEW_MEAN ||
                                view->kind == KITH_VIEW_VARIANCE;
            const bool vector = view->kind == KITH_VIEW_VECTOR;
            const size_t from = view->frozen ? layout->gossiped
                                : buffer     ? layout->trained
                                : vector     ? layout->decayed
                                             : 0;
            const size_t to = view->frozen ? layout->dim
                              : buffer     ? layout->gossiped
                              : vector     ? layout->trained
                                           : layout->decayed;
            assert_true(view->offset >= from && at <= to);
            const size_t prefix = strlen(cases[c].config.frozen);
            assert_int_equal(
                view->frozen,
                prefix > 0 &&
                    strncmp(view->name, cases[c].config.frozen, prefix) == 0);
            for (uint32_t k = 0; k < i; k++)
                assert_string_not_equal(view->name, layout->views[k].name);
        }
        assert_int_equal(at, layout->dim);
        bench_close(&bench);
    }
}

static const struct kith_model_view *find_view(const struct kith_layout *layout,
                                               const char *name)
{
    for (uint32_t i = 0; i < layout->view_count; i++)
        if (strcmp(layout->views[i].name, name) == 0)
            return &layout->views[i];
    fail_msg("no view %s", name);
    return NULL;
}

static struct kith_graph *open_plain(const char *name,
                                     const struct kith_model_config *config)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_graph_options options = {
        .backend = kith_backend_find("naive64"), .rows = 1};
    struct kith_graph *network;
    if (kith_graph_open(kith_model_find(name), config, &options, &network,
                        error) != KITH_OK)
        fail_msg("%s", error);
    return network;
}

static void test_start(void **state)
{
    (void)state;
    enum { DIM = 400 };
    double a[DIM], b[DIM];
    struct kith_model_config config = cases[1].config;
    struct kith_graph *mlp = open_plain("mlp", &config);
    const size_t dim = kith_graph_layout(mlp)->dim;
    assert_in_range(dim, 1, DIM);
    kith_graph_start(mlp, 7, 0, a);
    kith_graph_start(mlp, 7, 5, b);
    assert_memory_equal(a, b, dim * sizeof a[0]); /* one start for all peers */
    kith_graph_start(mlp, 8, 0, b);
    assert_true(memcmp(a, b, dim * sizeof a[0]) != 0);
    for (size_t i = 0; i < 6 * 8; i++)
        assert_true(fabs(a[i]) <= 1); /* sqrt(6 / 6) */

    /* What is frozen starts as it would have otherwise. */
    config = cases[3].config;
    struct kith_graph *frozen = open_plain("mlp", &config);
    kith_graph_start(frozen, 7, 0, b);
    const struct kith_layout *here = kith_graph_layout(frozen);
    for (uint32_t i = 0; i < here->view_count; i++) {
        const struct kith_model_view *view = &here->views[i];
        assert_memory_equal(
            b + view->offset,
            a + find_view(kith_graph_layout(mlp), view->name)->offset,
            view->elements * sizeof a[0]);
    }
    kith_graph_close(frozen);
    kith_graph_close(mlp);

    /* Peers of consensus start apart, with mean 0 and variance 1. */
    const struct kith_model *consensus = kith_model_find("consensus");
    enum { LARGE = 20000 };
    static double x[LARGE];
    config = (struct kith_model_config){.dim = LARGE};
    consensus->start(&config, 7, 1, x);
    double sum = 0, square = 0;
    for (size_t i = 0; i < LARGE; i++) {
        sum += x[i];
        square += x[i] * x[i];
    }
    /* Five standard errors of each. */
    assert_true(fabs(sum / LARGE) < 5 / sqrt(LARGE));
    assert_true(fabs(square / LARGE - 1) < 5 * sqrt(2.0 / LARGE));
    config.dim = 9;
    consensus->start(&config, 7, 2, a);
    assert_true(memcmp(a, x, 9 * sizeof a[0]) != 0);
}

/* Spread and mean of GPT-2's starting weights, and what stands at 0 and 1. */
static void test_gpt_start(void **state)
{
    (void)state;
    const struct kith_model_config config = {
        .depth = 2, .heads = 4, .width = 64, .context = 16, .vocabulary = 80};
    struct kith_graph *gpt = open_plain("gpt", &config);
    const struct kith_layout *layout = kith_graph_layout(gpt);
    double *x = malloc(layout->dim * sizeof *x);
    assert_non_null(x);
    kith_graph_start(gpt, 3, 0, x);
    const struct {
        const char *name;
        double spread;
        uint32_t shape[2];
    } wanted[] = {{"wte.weight", 0.02, {80, 64}},
                  {"h.1.attn.c_attn.weight", 0.02, {64, 192}},
                  {"h.0.attn.c_proj.weight", 0.01, {64, 64}},
                  {"h.0.mlp.c_fc.weight", 0.02, {64, 256}},
                  {"h.1.mlp.c_proj.weight", 0.01, {256, 64}}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct kith_model_view *view = find_view(layout, wanted[i].name);
        assert_int_equal(view->shape[0], wanted[i].shape[0]);
        assert_int_equal(view->shape[1], wanted[i].shape[1]);
        const double n = (double)view->elements;
        double sum = 0, square = 0;
        for (size_t k = 0; k < view->elements; k++) {
            sum += x[view->offset + k];
            square += x[view->offset + k] * x[view->offset + k];
        }
        assert_true(fabs(sum / n) < 5 * wanted[i].spread / sqrt(n));
        assert_true(fabs(square / n / (wanted[i].spread * wanted[i].spread) -
                         1) < 5 * sqrt(2 / n));
    }
    assert_true(x[find_view(layout, "ln_f.weight")->offset] == 1);
    assert_true(x[find_view(layout, "h.1.mlp.c_fc.bias")->offset] == 0);
    assert_int_equal(find_view(layout, "wte.weight")->kind, KITH_VIEW_TABLE);
    free(x);
    kith_graph_close(gpt);
}

/* Published sizes: parameters of He et al. 2016 (0.27 M), torchvision's
 * resnet18, 34 and 50 and vgg16, GPT-2; floating-point operations of
 * torchvision's table (multiply-adds times 2). */
static void test_measure(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct kith_model_config config;
        size_t trained, buffers;
        double flops; /* 0: not published */
    } wanted[] = {
        {"resnet",
         {.image = {32, 32, 3}, .classes = 10, .depth = 20},
         272474,
         1568,
         0},
        {"resnet",
         {.image = {224, 224, 3}, .classes = 1000, .depth = 18},
         11689512,
         9600,
         2 * 1.814e9},
        {"resnet",
         {.image = {224, 224, 3}, .classes = 1000, .depth = 34},
         21797672,
         17024,
         2 * 3.664e9},
        {"resnet",
         {.image = {224, 224, 3}, .classes = 1000, .depth = 50},
         25557032,
         53120,
         2 * 4.089e9},
        {"vgg", /* 138,357,544 less 4,224 biases, with 8,448 of norms */
         {.image = {224, 224, 3}, .classes = 1000, .depth = 16},
         138361768,
         8448,
         2 * 15.470e9},
        {"gpt",
         {.depth = 12,
          .heads = 12,
          .width = 768,
          .context = 1024,
          .vocabulary = 50257},
         124439808,
         0,
         0},
        {"gpt",
         {.depth = 48,
          .heads = 25,
          .width = 1600,
          .context = 1024,
          .vocabulary = 50257},
         1557611200,
         0,
         0},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct kith_model_size size;
        char error[KITH_MODEL_ERROR_BYTES];
        if (kith_model_measure(kith_model_find(wanted[i].name),
                               &wanted[i].config, &size, error) != KITH_OK)
            fail_msg("%s", error);
        assert_int_equal(size.trained, wanted[i].trained);
        assert_int_equal(size.gossiped - size.trained, wanted[i].buffers);
        assert_int_equal(size.dim, size.gossiped);
        if (wanted[i].flops > 0 &&
            !(fabs(size.flops / wanted[i].flops - 1) < 0.01))
            fail_msg("%s %u: %g operations, published %g", wanted[i].name,
                     wanted[i].config.depth, size.flops, wanted[i].flops);
    }
}

/* An mlp of products 4 x 3, 3 x 5 and 5 x 2: what is frozen has no gradient,
 * and below the first that trains nobody asks for that of an input. */
static void test_frozen_flops(void **state)
{
    (void)state;
    static const struct {
        const char *frozen;
        double products;
    } wanted[] = {{"", 3 * (12 + 15 + 10)},
                  {"fc1", 12 + 2 * 15 + 3 * 10},
                  {"fc2", 2 * 12 + 2 * 15 + 3 * 10},
                  {"fc3", 2 * 12 + 3 * 15 + 2 * 10}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct kith_model_config config = {.layers = {4, 3, 5, 2},
                                           .layer_count = 4};
        struct kith_model_size size;
        char error[KITH_MODEL_ERROR_BYTES] = "";
        (void)snprintf(config.frozen, sizeof config.frozen, "%s",
                       wanted[i].frozen);
        if (kith_model_measure(kith_model_find("mlp"), &config, &size, error) !=
            KITH_OK)
            fail_msg("%s", error);
        assert_true(size.flops == 2 * (12 + 15 + 10));
        assert_true(size.training_flops == 2 * wanted[i].products);
    }
}

/* Refused, with the key in the words; then good again. */
static void test_bad_configurations(void **state)
{
    (void)state;
    const struct {
        const char *name, *key;
        enum kith_err err;
        struct kith_model_config config;
    } bad[] = {
        {"mlp", "model.layers", KITH_EINVAL, {.layers = {4}, .layer_count = 1}},
        {"logistic",
         "model.layers",
         KITH_EINVAL,
         {.layers = {4, 3, 2}, .layer_count = 3}},
        {"mlp",
         "model.layers",
         KITH_EINVAL,
         {.layer_count = KITH_LAYERS_MAX + 1}},
        {"mlp",
         "model.layers",
         KITH_EINVAL,
         {.layers = {4, 0, 2}, .layer_count = 3}},
        {"mlp",
         "model.layers",
         KITH_EINVAL,
         {.layers = {4, 1}, .layer_count = 2}},
        {"logistic",
         "model.layers",
         KITH_EINVAL,
         {.layers = {4, KITH_CLASSES_MAX + 1}, .layer_count = 2}},
        {"mlp",
         "model.layers",
         KITH_ELIMIT,
         {.layers = {UINT32_MAX, UINT32_MAX, 2}, .layer_count = 3}},
        {"mlp",
         "model.dropout",
         KITH_EINVAL,
         {.layers = {4, 2}, .layer_count = 2, .dropout = 1}},
        {"mlp",
         "model.frozen",
         KITH_EINVAL,
         {.layers = {4, 2}, .layer_count = 2, .frozen = "conv"}},
        {"mlp",
         "model.frozen",
         KITH_EINVAL,
         {.layers = {4, 2}, .layer_count = 2, .frozen = "fc"}},
        {"quadratic", "model.dim", KITH_EINVAL, {.dim = 0}},
        {"cnn",
         "model.image",
         KITH_EINVAL,
         {.image = {28, 28}, .classes = 10, .channels = {8}}},
        {"cnn",
         "model.channels",
         KITH_EINVAL,
         {.image = {28, 28, 1}, .classes = 10}},
        {"cnn",
         "model.channels",
         KITH_EINVAL,
         {.image = {7, 28, 1},
          .classes = 10,
          .channels = {8, 8, 8},
          .channel_count = 3}},
        {"cnn",
         "model.classes",
         KITH_EINVAL,
         {.image = {28, 28, 1}, .channels = {8}, .channel_count = 1}},
        {"vgg",
         "model.depth",
         KITH_EINVAL,
         {.image = {32, 32, 3}, .classes = 10, .depth = 12}},
        {"vgg",
         "model.image",
         KITH_EINVAL,
         {.image = {28, 28, 1}, .classes = 10, .depth = 11}},
        {"resnet",
         "model.depth",
         KITH_EINVAL,
         {.image = {32, 32, 3}, .classes = 10, .depth = 18}},
        {"resnet",
         "model.depth",
         KITH_EINVAL,
         {.image = {224, 224, 3}, .classes = 10, .depth = 20}},
        {"gpt",
         "model.heads",
         KITH_EINVAL,
         {.depth = 2, .heads = 3, .width = 8, .context = 4, .vocabulary = 5}},
        {"gpt",
         "model.context",
         KITH_EINVAL,
         {.depth = 2, .heads = 2, .width = 8, .vocabulary = 5}},
        {"gpt",
         "model.vocabulary",
         KITH_EINVAL,
         {.depth = 2, .heads = 2, .width = 8, .context = 4}},
        {"gpt",
         "model.depth",
         KITH_EINVAL,
         {.heads = 2, .width = 8, .context = 4, .vocabulary = 4}},
        {"gpt",
         "model.kind",
         KITH_ELIMIT,
         {.depth = 256,
          .heads = 1,
          .width = 65536,
          .context = 4,
          .vocabulary = 4}},
    };
    struct kith_model_size size;
    char error[KITH_MODEL_ERROR_BYTES];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error[0] = '\0';
        assert_int_equal(kith_model_measure(kith_model_find(bad[i].name),
                                            &bad[i].config, &size, error),
                         bad[i].err);
        if (strncmp(error, bad[i].key, strlen(bad[i].key)) != 0)
            fail_msg("%s of %s expected, got: %s", bad[i].key, bad[i].name,
                     error);
    }
    assert_int_equal(kith_model_measure(kith_model_find("mlp"),
                                        &cases[1].config, &size, error),
                     KITH_OK);
    assert_int_equal(size.features, 6);
    assert_int_equal(size.classes, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_gpt_start),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_frozen_flops),
        cmocka_unit_test(test_bad_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
