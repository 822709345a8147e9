/* Goal: T5.5: the balance of VGG-A as the paper prints it, and the division by
 * data, model or groups that sends least.
 * Method: the model as it is described here; figures of reference/papers.md,
 * section 6.2. Each check prints what is expected and what was found. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/balance.h"

static struct kith_layer layers[KITH_OPS_MAX];
static uint32_t count;
static size_t left;

static void open_model(const char *name)
{
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_model *model = kith_model_find(name);
    assert_int_equal(
        kith_balance_layers(model, &model->shape, layers, &count, &left, error),
        KITH_OK);
}

static void is(const char *what, double expected, double found, double within)
{
    printf("  T5.5 %-36s expected %.10g, measured %.10g\n", what, expected,
           found);
    if (!(fabs(found - expected) <= within))
        fail_msg("%s", what);
}

static void test_vgg(void **state)
{
    (void)state;
    static const double ratios[] = {75264, 18816, 4704, 4704, 1176, 1176,
                                    294,   294,   1.5,  1.5,  1.5};
    double weights = 0, flops = 0;
    open_model("vgg");
    assert_int_equal(count, sizeof ratios / sizeof ratios[0]);
    for (uint32_t i = 0; i < count; i++) {
        is(layers[i].name, ratios[i], kith_balance_ratio(&layers[i]), 0);
        weights += (double)layers[i].weights;
        flops += layers[i].flops;
    }
    is("million weights", 132.85, weights / 1e6, .005);
    is("MiB", 506.8, 4 * weights / (1 << 20), .05);
    is("GFLOP of an image", 45.65, flops / 1e9, .005);
    /* Norms and biases, as kith list models counts the whole. */
    is("other values", 132871592 - weights, (double)left, 0);
}

/* fc2 has 4096 inputs and outputs. */
static void test_groups(void **state)
{
    (void)state;
    static const struct {
        uint32_t peers, groups;
        double batch;
        enum kith_division division;
    } cases[] = {{64, 2, 256, KITH_DIVIDE_HYBRID},
                 {128, 4, 512, KITH_DIVIDE_HYBRID},
                 {8, 1, 256, KITH_DIVIDE_MODEL},
                 {64, 64, 4096, KITH_DIVIDE_DATA},
                 {1, 1, 256, KITH_DIVIDE_DATA},
                 {67, 1, 256, KITH_DIVIDE_MODEL}}; /* a prime number */
    open_model("vgg");
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char what[64];
        const struct kith_partition found =
            kith_balance_split(&layers[9], cases[i].peers, cases[i].batch, 1);
        (void)snprintf(what, sizeof what, "groups, %u peers, batch %.0f",
                       cases[i].peers, cases[i].batch);
        is(what, cases[i].groups, found.groups, 0);
        assert_int_equal(found.division, cases[i].division);
    }
    for (uint32_t i = 0; i < 8; i++) /* convolutions */
        assert_int_equal(kith_balance_split(&layers[i], 64, 256, 1).division,
                         KITH_DIVIDE_DATA);
}

/* What is chosen sends no more than any other division. */
static void test_least(void **state)
{
    (void)state;
    open_model("vgg");
    for (uint32_t peers = 2; peers <= 256; peers++)
        for (double batch = peers; batch <= 8192; batch *= 1.3) {
            const struct kith_layer *layer = &layers[9];
            const struct kith_partition found =
                kith_balance_split(layer, peers, batch, 1);
            if (found.division == KITH_DIVIDE_DATA)
                continue;
            for (uint32_t groups = 2; groups < peers; groups++)
                assert_true(peers % groups != 0 ||
                            found.bytes <=
                                4 * (layer->inputs * batch / groups +
                                     (double)layer->weights * groups / peers));
            assert_true(found.bytes <= 4 * layer->inputs * batch);
        }
}

/* By hand: 256 images of 45.65 GFLOP, 531.5 MB, 1 TFLOP/s, 1.25 GB/s. */
static void test_limit(void **state)
{
    (void)state;
    open_model("vgg");
    is("peers before sending shows", 256 * 45.65e9 * 1.25e9 / (1e12 * 531.5e6),
       kith_balance_peers_max(layers, count, left, 256, 1, 1e12, 1.25e9), .01);
}

/* A table that embeds and scores is one layer; positions and norms are left. */
static void test_others(void **state)
{
    (void)state;
    open_model("gpt");
    assert_string_equal(layers[count - 1].name, "wte");
    for (uint32_t i = 0; i < count; i++)
        assert_true(kith_balance_ratio(&layers[i]) == 1536);
    char error[KITH_MODEL_ERROR_BYTES];
    const struct kith_model *model = kith_model_find("consensus");
    const struct kith_model_config config = {.dim = 8};
    assert_int_equal(
        kith_balance_layers(model, &config, layers, &count, &left, error),
        KITH_EUNSUPPORTED);
    assert_string_equal(error, "model consensus has no layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vgg),    cmocka_unit_test(test_groups),
        cmocka_unit_test(test_least),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
