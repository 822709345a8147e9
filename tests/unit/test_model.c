/* Goal: every model's gradient is that of its loss, and all that follows from
 * its description is right: layout, starting weights, size, recomputation.
 * Method: central finite differences on naive64. With step h the error is
 * O(h^2) + rounding / h; at h = 1e-5 and losses near 1 both stay below 1e-9, so
 * 1e-7 is ample. A step that crosses a kink (ReLU, max-pool) is asked again
 * with one much smaller, which the kink's neighbourhood no longer holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
     {.image = {16, 16, 1}, .classes = 3, .depth = 8, .group_norm = true},
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
     {.image = {6, 6, 2}, .classes = 4, .depth = 20, .group_norm = true},
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
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* A network of one case, at a random point, with a batch. */
struct bench {
    const struct kith_backend *backend;
    struct kith_network *network;
    const struct kith_layout *layout;
    double *x;
    double inputs[VALUES_MAX];
    int32_t tokens[VALUES_MAX], labels[VALUES_MAX];
    struct kith_batch batch;
};

static void bench_open(struct bench *bench, const struct model_case *one,
                       bool training, bool recompute)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_model *model = kith_model_find(one->name);
    struct kith_model_size size;
    struct kith_rng rng;
    bench->backend = kith_backend_find("naive64");
    if (kith_model_measure(model, &one->config, &size, error) != KITH_OK)
        fail_msg("%s: %s", one->label, error);
    const struct kith_network_options options = {.backend = bench->backend,
                                                 .rows = ROWS,
                                                 .training = training,
                                                 .recompute = recompute,
                                                 .smoothing = one->smoothing};
    if (kith_network_open(model, &one->config, &options, &bench->network,
                          error) != KITH_OK)
        fail_msg("%s: %s", one->label, error);
    bench->layout = kith_network_layout(bench->network);
    assert_int_equal(bench->layout->dim, size.dim);
    assert_int_equal(bench->layout->trained, size.trained);
    assert_int_equal(bench->layout->gossiped, size.gossiped);
    bench->x = malloc(size.dim * sizeof *bench->x);
    assert_non_null(bench->x);
    kith_network_start(bench->network, 11, 3, bench->x);
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

static void bench_close(struct bench *bench)
{
    kith_network_close(bench->network);
    free(bench->x);
}

/* The training loss and, in gradient (trained), its gradient; NULL: the loss
 * alone, which has no dropout. The buffers of x are put back, so that one point
 * gives one loss. */
static double train(struct bench *bench, double *gradient)
{
    const size_t from = bench->layout->trained;
    const size_t count = bench->layout->gossiped - from;
    double *kept = malloc((count + 1) * sizeof *kept);
    assert_non_null(kept);
    memcpy(kept, bench->x + from, count * sizeof *kept);
    const struct kith_pass pass = {.x = bench->x,
                                   .gradient = gradient,
                                   .batch = &bench->batch,
                                   .scale = 1,
                                   .estimate = gradient == NULL};
    const double loss = kith_network_loss(bench->network, &pass, NULL);
    memcpy(bench->x + from, kept, count * sizeof *kept);
    free(kept);
    return loss;
}

static double evaluate(struct bench *bench, uint32_t *correct)
{
    const struct kith_pass pass = {
        .x = bench->x, .batch = &bench->batch, .scale = 1};
    return kith_network_loss(bench->network, &pass, correct);
}

static double difference(struct bench *bench, size_t i, double h,
                         double *unused)
{
    const double kept = bench->x[i];
    bench->x[i] = kept + h;
    const double above = train(bench, unused);
    bench->x[i] = kept - h;
    const double below = train(bench, unused);
    bench->x[i] = kept;
    return (above - below) / (2 * h);
}

static void check_one(struct bench *bench, const struct model_case *one,
                      const struct kith_model_view *view, size_t k,
                      const double *gradient, double *unused)
{
    const size_t i = view->offset + k;
    double slope = 0;
    for (double h = 1e-5; h > 1e-8; h /= 20) {
        slope = difference(bench, i, h, unused);
        if (fabs(slope - gradient[i]) <= 1e-7 + 1e-14 / h)
            return;
    }
    fail_msg("%s: gradient %zu of %s is %.12g, differences give %.12g",
             one->label, k, view->name, gradient[i], slope);
}

/* Some coordinates of each view that trains, or of some of these views. */
static void check_gradient(struct bench *bench, const struct model_case *one,
                           const double *gradient, double *unused)
{
    const struct kith_layout *layout = bench->layout;
    const size_t budget =
        layout->trained > 100000 ? CHECKED_LARGE : CHECKED_SMALL;
    size_t views = 0;
    while (views < layout->view_count &&
           layout->views[views].offset < layout->trained)
        views++;
    const size_t visited = views < budget ? views : budget;
    for (size_t n = 0; n < visited; n++) {
        const struct kith_model_view *view =
            &layout->views[n * views / visited];
        const size_t most = budget / visited;
        const size_t count = view->elements < most ? view->elements : most;
        for (size_t k = 0; k < count; k++)
            check_one(bench, one, view,
                      (2 * k + 1) * view->elements / (2 * count), gradient,
                      unused);
    }
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench bench;
        bench_open(&bench, &cases[c], true, cases[c].recompute);
        const size_t trained = bench.layout->trained;
        double *gradient = malloc(trained * sizeof *gradient);
        double *unused = malloc(trained * sizeof *unused);
        assert_true(gradient != NULL && unused != NULL);
        memset(gradient, 0xff, trained * sizeof *gradient);

        const double loss = train(&bench, gradient);

        assert_true(isfinite(loss));
        assert_true(train(&bench, unused) == loss); /* asked twice */
        assert_memory_equal(gradient, unused, trained * sizeof *gradient);
        /* Where nothing is dropped the forward pass alone will do. */
        if (cases[c].config.dropout > 0 ||
            kith_model_find(cases[c].name)->build == NULL) {
            check_gradient(&bench, &cases[c], gradient, unused);
        } else {
            assert_true(train(&bench, NULL) == loss);
            check_gradient(&bench, &cases[c], gradient, NULL);
        }
        free(gradient);
        free(unused);
        bench_close(&bench);
    }
}

/* Running blocks forward once more changes no bit, of gradient or buffers. */
static void test_recompute(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench benches[2];
        double *gradients[2], loss[2];
        for (int i = 0; i < 2; i++) {
            bench_open(&benches[i], &cases[c], true, i == 1);
            gradients[i] =
                malloc(benches[i].layout->trained * sizeof *gradients[i]);
            assert_non_null(gradients[i]);
            const struct kith_pass pass = {.x = benches[i].x,
                                           .gradient = gradients[i],
                                           .batch = &benches[i].batch,
                                           .scale = 1};
            loss[i] = kith_network_loss(benches[i].network, &pass, NULL);
        }
        assert_true(loss[0] == loss[1]);
        assert_memory_equal(gradients[0], gradients[1],
                            benches[0].layout->trained * sizeof(double));
        assert_memory_equal(benches[0].x, benches[1].x,
                            benches[0].layout->dim * sizeof(double));
        for (int i = 0; i < 2; i++) {
            free(gradients[i]);
            bench_close(&benches[i]);
        }
    }
}

/* Two halves added up with scale 1/2 are the mean of their gradients. */
static void test_micro_batches(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench bench;
        bench_open(&bench, &cases[c], true, false);
        const size_t trained = bench.layout->trained;
        double *gradients[3];
        for (int i = 0; i < 3; i++) {
            gradients[i] = malloc(trained * sizeof *gradients[i]);
            assert_non_null(gradients[i]);
        }
        for (uint64_t step = 0; step < 2; step++) {
            bench.batch.step = step;
            (void)train(&bench, gradients[step]);
            const struct kith_pass pass = {.x = bench.x,
                                           .gradient = gradients[2],
                                           .batch = &bench.batch,
                                           .scale = 0.5,
                                           .add = step > 0};
            double *kept = malloc(bench.layout->dim * sizeof *kept);
            assert_non_null(kept);
            memcpy(kept, bench.x, bench.layout->dim * sizeof *kept);
            (void)kith_network_loss(bench.network, &pass, NULL);
            memcpy(bench.x, kept, bench.layout->dim * sizeof *kept);
            free(kept);
        }
        for (size_t i = 0; i < trained; i++) {
            const double mean = (gradients[0][i] + gradients[1][i]) / 2;
            assert_true(fabs(mean - gradients[2][i]) <=
                        1e-12 * (1 + fabs(mean)));
        }
        for (int i = 0; i < 3; i++)
            free(gradients[i]);
        bench_close(&bench);
    }
}

/* Evaluation is the same on a network for training and on one for nothing
 * else, leaves x alone, and agrees with the scores. */
static void test_evaluation(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench benches[2];
        double loss[2];
        uint32_t correct[2];
        for (int i = 0; i < 2; i++)
            bench_open(&benches[i], &cases[c], i == 1, false);
        double *gradient =
            malloc(benches[1].layout->trained * sizeof *gradient);
        assert_non_null(gradient);
        (void)train(&benches[1], gradient); /* leaves its marks in the arena */
        for (int i = 0; i < 2; i++)
            loss[i] = evaluate(&benches[i], &correct[i]);
        assert_true(loss[0] == loss[1]);
        assert_int_equal(correct[0], correct[1]);
        assert_memory_equal(benches[0].x, benches[1].x,
                            benches[0].layout->dim * sizeof(double));
        assert_true(kith_network_bytes(benches[0].network) <=
                    kith_network_bytes(benches[1].network));

        const struct kith_model *model = kith_model_find(cases[c].name);
        if (model->build != NULL) {
            const struct kith_model_size size =
                kith_model_size_of(model, &cases[c].config);
            const size_t rows =
                model->input == KITH_INPUT_TOKENS ? ROWS * size.features : ROWS;
            const double *scores = kith_network_scores(
                benches[1].network, benches[1].x, &benches[1].batch);
            uint32_t best_right = 0;
            for (size_t r = 0; r < rows; r++) {
                size_t best = 0;
                for (size_t k = 0; k < size.classes; k++) {
                    if (scores[r * size.classes + k] >
                        scores[r * size.classes + best])
                        best = k;
                }
                best_right += (int32_t)best == benches[1].labels[r];
            }
            assert_int_equal(best_right, correct[1]);
        }
        free(gradient);
        for (int i = 0; i < 2; i++)
            bench_close(&benches[i]);
    }
}

/* `estimate` moves buffers as a training pass does, and nothing else. */
static void test_estimate(void **state)
{
    (void)state;
    const struct model_case one = {
        "resnet",
        "estimate",
        {.image = {6, 6, 2}, .classes = 4, .depth = 20},
        0,
        false};
    struct bench trained, estimated;
    bench_open(&trained, &one, true, false);
    bench_open(&estimated, &one, false, false);
    const struct kith_layout *layout = trained.layout;
    double *gradient = malloc(layout->trained * sizeof *gradient);
    assert_non_null(gradient);
    const struct kith_pass pass = {.x = trained.x,
                                   .gradient = gradient,
                                   .batch = &trained.batch,
                                   .scale = 1};
    const double before = trained.x[layout->trained];
    (void)kith_network_loss(trained.network, &pass, NULL);
    const struct kith_pass again = {.x = estimated.x,
                                    .batch = &estimated.batch,
                                    .scale = 1,
                                    .estimate = true};
    (void)kith_network_loss(estimated.network, &again, NULL);
    assert_true(trained.x[layout->trained] != before);
    assert_memory_equal(trained.x, estimated.x, layout->dim * sizeof(double));
    free(gradient);
    bench_close(&trained);
    bench_close(&estimated);
}

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
    for (uint32_t i = 0; i < layout->view_count; i++) {
        if (strcmp(layout->views[i].name, name) == 0)
            return &layout->views[i];
    }
    fail_msg("no view %s", name);
    return NULL;
}

static struct kith_network *open_plain(const char *name,
                                       const struct kith_model_config *config)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_network_options options = {
        .backend = kith_backend_find("naive64"), .rows = 1};
    struct kith_network *network;
    if (kith_network_open(kith_model_find(name), config, &options, &network,
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
    struct kith_network *mlp = open_plain("mlp", &config);
    const size_t dim = kith_network_layout(mlp)->dim;
    assert_in_range(dim, 1, DIM);
    kith_network_start(mlp, 7, 0, a);
    kith_network_start(mlp, 7, 5, b);
    assert_memory_equal(a, b, dim * sizeof a[0]); /* one start for all peers */
    kith_network_start(mlp, 8, 0, b);
    assert_true(memcmp(a, b, dim * sizeof a[0]) != 0);
    for (size_t i = 0; i < 6 * 8; i++)
        assert_true(fabs(a[i]) <= 1); /* sqrt(6 / 6) */

    /* What is frozen starts as it would have otherwise. */
    config = cases[3].config;
    struct kith_network *frozen = open_plain("mlp", &config);
    kith_network_start(frozen, 7, 0, b);
    const struct kith_layout *here = kith_network_layout(frozen);
    for (uint32_t i = 0; i < here->view_count; i++) {
        const struct kith_model_view *view = &here->views[i];
        assert_memory_equal(
            b + view->offset,
            a + find_view(kith_network_layout(mlp), view->name)->offset,
            view->elements * sizeof a[0]);
    }
    kith_network_close(frozen);
    kith_network_close(mlp);

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
    struct kith_network *gpt = open_plain("gpt", &config);
    const struct kith_layout *layout = kith_network_layout(gpt);
    double *x = malloc(layout->dim * sizeof *x);
    assert_non_null(x);
    kith_network_start(gpt, 3, 0, x);
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
    kith_network_close(gpt);
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
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_gpt_start),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_bad_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
