/* Goal: every model's gradient is that of its loss. Method: central finite
 * differences on naive64. With step h the error is O(h^2) + rounding / h; at
 * h = 1e-5 and losses near 1 both stay below 1e-9, so 1e-7 is ample. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/model.h"

enum { ROWS = 5, DIM_MAX = 400 };

static struct kith_model_config config_of(const struct kith_model *model)
{
    struct kith_model_config config = {.dim = 9, .spread = 1.5};
    const uint32_t mlp[] = {6, 8, 7, 4}, logistic[] = {6, 4};
    if (strcmp(model->name, "mlp") == 0) {
        memcpy(config.layers, mlp, sizeof mlp);
        config.layer_count = 4;
    } else {
        memcpy(config.layers, logistic, sizeof logistic);
        config.layer_count = 2;
    }
    return config;
}

static void test_gradients(void **state)
{
    (void)state;
    const struct kith_backend *backend = kith_backend_find("naive64");
    double inputs[ROWS * 6];
    const uint8_t labels[ROWS] = {0, 3, 1, 2, 3};
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < ROWS * 6; i++)
        inputs[i] = kith_rng_double(&rng);
    unsigned checked = 0;
    for (size_t k = 0; kith_models[k] != NULL; k++) {
        const struct kith_model *model = kith_models[k];
        const struct kith_model_config config = config_of(model);
        if (model->loss == NULL)
            continue;
        const size_t dim = model->dim(&config);
        assert_in_range(dim, 1, DIM_MAX);
        double x[DIM_MAX], gradient[DIM_MAX], unused[DIM_MAX];
        void *scratch = malloc(model->scratch(&config, backend, ROWS));
        assert_non_null(scratch);
        const struct kith_batch batch = {.inputs = inputs,
                                         .labels = labels,
                                         .rows = model->needs_data ? ROWS : 1,
                                         .entity = 3,
                                         .seed = 11};
        model->start(&config, 11, 3, x);
        for (size_t i = 0; i < dim; i++)
            x[i] += 0.1 * kith_rng_double(&rng);

        const double loss =
            model->loss(&config, backend, x, &batch, gradient, NULL, scratch);

        /* Without a gradient, and asked twice, it is the same loss. */
        assert_true(loss == model->loss(&config, backend, x, &batch, NULL, NULL,
                                        scratch));
        for (size_t i = 0; i < dim; i++) {
            const double h = 1e-5, kept = x[i];
            x[i] = kept + h;
            const double above =
                model->loss(&config, backend, x, &batch, unused, NULL, scratch);
            x[i] = kept - h;
            const double below =
                model->loss(&config, backend, x, &batch, unused, NULL, scratch);
            x[i] = kept;
            if (!(fabs((above - below) / (2 * h) - gradient[i]) <= 1e-7))
                fail_msg("%s: gradient %zu is %.12g, differences give %.12g",
                         model->name, i, gradient[i],
                         (above - below) / (2 * h));
        }
        free(scratch);
        checked++;
    }
    assert_int_equal(checked, 3);
}

/* Views tile the vector: no hole, no overlap. */
static void test_views(void **state)
{
    (void)state;
    for (size_t k = 0; kith_models[k] != NULL; k++) {
        const struct kith_model_config config = config_of(kith_models[k]);
        struct kith_model_view views[2 * KITH_LAYERS_MAX];
        const uint32_t count =
            kith_models[k]->views(&config, views, 2 * KITH_LAYERS_MAX);
        size_t at = 0;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(views[i].offset, at);
            at += views[i].rows * views[i].columns;
        }
        assert_int_equal(at, kith_models[k]->dim(&config));
        assert_int_equal(kith_models[k]->check(&config), KITH_OK);
    }
}

static void test_start(void **state)
{
    (void)state;
    double a[DIM_MAX], b[DIM_MAX];
    const struct kith_model *mlp = kith_model_find("mlp");
    struct kith_model_config config = config_of(mlp);
    const size_t dim = mlp->dim(&config);
    mlp->start(&config, 7, 0, a);
    mlp->start(&config, 7, 5, b);
    assert_memory_equal(a, b, dim * sizeof a[0]); /* one start for all peers */
    mlp->start(&config, 8, 0, b);
    assert_true(memcmp(a, b, dim * sizeof a[0]) != 0);
    for (size_t i = 0; i < 6 * 8; i++)
        assert_true(fabs(a[i]) <= 1); /* sqrt(6 / 6) */

    /* Peers of consensus start apart, with mean 0 and variance 1. */
    const struct kith_model *consensus = kith_model_find("consensus");
    enum { LARGE = 20000 };
    static double x[LARGE];
    config.dim = LARGE;
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

static void test_bad_shapes(void **state)
{
    (void)state;
    const struct kith_model *mlp = kith_model_find("mlp");
    const struct kith_model *logistic = kith_model_find("logistic");
    struct kith_model_config config = {.layers = {4, 2}, .layer_count = 1};
    assert_int_equal(mlp->check(&config), KITH_EINVAL);
    assert_int_equal(logistic->check(&config), KITH_EINVAL);
    config.layer_count = KITH_LAYERS_MAX + 1;
    assert_int_equal(mlp->check(&config), KITH_EINVAL);
    config = (struct kith_model_config){.layers = {4, 0, 2}, .layer_count = 3};
    assert_int_equal(mlp->check(&config), KITH_EINVAL);
    config = (struct kith_model_config){.layers = {4, 1}, .layer_count = 2};
    assert_int_equal(mlp->check(&config), KITH_EINVAL);
    config = (struct kith_model_config){.layers = {4, 300}, .layer_count = 2};
    assert_int_equal(logistic->check(&config), KITH_EINVAL);
    config = (struct kith_model_config){.layers = {UINT32_MAX, UINT32_MAX, 2},
                                        .layer_count = 3};
    assert_int_equal(mlp->check(&config), KITH_ELIMIT);
    config.dim = 0;
    assert_int_equal(kith_model_find("quadratic")->check(&config), KITH_EINVAL);
    config.layers[1] = 16;
    assert_int_equal(mlp->check(&config), KITH_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_bad_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
