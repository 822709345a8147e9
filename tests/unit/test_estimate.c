/* Goal: running statistics are those of the training set's own activations,
 * whatever stood there before; the mean of two models needs them. Method: a
 * resnet-20 on random images, on naive64 and cpu; two trained copies. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/lab/average.h"
#include "worker_fixture.h"

enum { SIDE = 8, ROWS = 64, FEATURES = SIDE * SIDE * 3 };

static uint8_t images[ROWS * FEATURES];
static int32_t labels[ROWS];

static struct kith_examples random_images(void)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 11, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < ROWS; i++) {
        labels[i] = (int32_t)(i % 2);
        for (size_t k = 0; k < FEATURES; k++)
            images[i * FEATURES + k] =
                (uint8_t)(kith_rng_below(&rng, 128) + (labels[i] ? 100 : 0));
    }
    struct kith_examples examples =
        fixture_examples(images, labels, ROWS, FEATURES, 2);
    examples.shape[0] = examples.shape[1] = SIDE;
    examples.shape[2] = 3;
    return examples;
}

static struct kith_experiment resnet(const char *backend, bool group)
{
    struct kith_experiment experiment =
        fixture_experiment("resnet", "local", 1);
    experiment.model_config = (struct kith_model_config){
        .image = {SIDE, SIDE, 3}, .classes = 2, .depth = 20};
    experiment.model_config.norm =
        group ? KITH_MODEL_NORM_GROUP : KITH_MODEL_NORM_BATCH;
    experiment.backend = kith_backend_find(backend);
    experiment.train.batch = ROWS;
    experiment.train.config.learning_rate = 0.01;
    return experiment;
}

static struct kith_worker *open_worker(const struct kith_experiment *experiment,
                                       const struct kith_examples *train)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .train = train,
        .steps = 100,
        .peers = 1};
    struct kith_worker *worker = NULL;
    char error[KITH_DATA_ERROR_BYTES];
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    return worker;
}

static double *parameters(const struct kith_experiment *experiment,
                          const struct kith_examples *train, uint64_t steps)
{
    struct kith_worker *worker = open_worker(experiment, train);
    for (uint64_t step = 0; step < steps; step++) {
        struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
        struct kith_work_result result;
        kith_worker_run(worker, &work, &result);
        assert_true(result.finite);
    }
    double *z = malloc(kith_worker_dim(worker) * sizeof *z);
    assert_non_null(z);
    kith_worker_read(worker, z);
    kith_worker_close(worker);
    return z;
}

static struct kith_model_size size_of(const struct kith_experiment *experiment)
{
    return kith_model_size_of(experiment->model, &experiment->model_config);
}

static double loss_of(const struct kith_experiment *experiment,
                      const struct kith_examples *set, const double *z)
{
    struct kith_score score;
    assert_int_equal(
        kith_evaluate(experiment, experiment->backend, set, z, &score),
        KITH_OK);
    return score.loss;
}

/* Batches of all rows: every batch has the same statistics, those that the
 * first layer's inputs have, and what stood there plays no part. */
static void statistics_on(const char *backend, uint32_t batches, double slack)
{
    const struct kith_examples train = random_images();
    const struct kith_experiment experiment = resnet(backend, false);
    const struct kith_model_size size = size_of(&experiment);
    double *a = parameters(&experiment, &train, 0);
    double *b = malloc(size.dim * sizeof *b);
    assert_non_null(b);
    memcpy(b, a, size.dim * sizeof *b);
    for (size_t i = size.trained; i < size.gossiped; i++)
        b[i] = i % 2 ? (double)NAN : -7;

    assert_int_equal(
        kith_estimate(&experiment, experiment.backend, &train, 1, a), KITH_OK);
    assert_int_equal(
        kith_estimate(&experiment, experiment.backend, &train, batches, b),
        KITH_OK);

    for (size_t i = 0; i < size.trained; i++)
        assert_true(a[i] == b[i]);
    for (size_t i = size.trained; i < size.gossiped; i++)
        assert_true(fabs(a[i] - b[i]) <= slack * (1 + fabs(a[i])));
    free(a);
    free(b);
}

static void test_statistics(void **state)
{
    (void)state;
    statistics_on("naive64", 3, 1e-12);
    statistics_on("cpu", 20, 1e-4);
}

/* In evaluation a model with statistics of all rows does what it did in
 * training: the loss of the batch of all rows. */
static void test_matches_training(void **state)
{
    (void)state;
    const struct kith_examples train = random_images();
    struct kith_experiment experiment = resnet("naive64", false);
    double *z = parameters(&experiment, &train, 0);
    const double before = loss_of(&experiment, &train, z);
    struct kith_worker *worker = open_worker(&experiment, &train);
    struct kith_work work = {.kind = KITH_WORK_TRAIN};
    struct kith_work_result result;
    kith_worker_run(worker, &work, &result);
    kith_worker_close(worker);

    assert_int_equal(
        kith_estimate(&experiment, experiment.backend, &train, 1, z), KITH_OK);

    const double after = loss_of(&experiment, &train, z);
    /* The variance of a buffer is unbiased, that of a batch is not. */
    assert_true(fabs(after - result.loss) < 0.01 * result.loss);
    assert_true(fabs(before - result.loss) > 0.02 * result.loss);
    free(z);
}

/* Two models that learnt apart: their mean evaluates better with statistics of
 * its own than with the mean of theirs. */
static void test_average(void **state)
{
    (void)state;
    const struct kith_examples train = random_images();
    struct kith_experiment experiment = resnet("cpu", false);
    const struct kith_model_size size = size_of(&experiment);
    experiment.train.batch = 16;
    double *mean = parameters(&experiment, &train, 12);
    experiment.train.config.learning_rate = 0.02;
    double *other = parameters(&experiment, &train, 12);
    for (size_t i = 0; i < size.dim; i++)
        mean[i] = (mean[i] + other[i]) / 2;
    const double before = loss_of(&experiment, &train, mean);

    assert_int_equal(kith_estimate(&experiment, experiment.backend, &train,
                                   KITH_ESTIMATE_BATCHES, mean),
                     KITH_OK);

    const double after = loss_of(&experiment, &train, mean);
    print_message("averaged resnet-20: loss %.4f -> %.4f\n", before, after);
    assert_true(after < before);
    for (size_t i = size.trained; i < size.gossiped; i++)
        assert_true(isfinite(mean[i]));
    free(mean);
    free(other);
}

/* What a lab says of its averaged model is the score of the estimated one. */
static void test_lab(void **state)
{
    (void)state;
    struct kith_dataset dataset = {.train = random_images(),
                                   .test = random_images()};
    const struct kith_experiment experiment = resnet("cpu", false);
    const struct kith_model_size size = size_of(&experiment);
    double *z = parameters(&experiment, &dataset.train, 1);
    struct lab_average average = {.dim = size.dim, .count = 1, .mean = z};
    struct kith_score score;
    for (size_t i = size.trained; i < size.gossiped; i++)
        z[i] = 0;

    assert_int_equal(
        kith_lab_average_score(&average, &experiment, &dataset, &score),
        KITH_OK);

    for (size_t i = size.trained; i < size.gossiped; i++)
        assert_true(z[i] > 0 || z[i] < 0);
    assert_true(score.loss == loss_of(&experiment, &dataset.test, z));
    free(z);
}

/* It is as old as they are on average: no peer's rest is lost. */
static void test_lab_step(void **state)
{
    (void)state;
    uint64_t steps[] = {20, 20, 20};
    const struct lab_average average = {.count = 3, .steps = steps};
    assert_int_equal(kith_lab_average_step(&average), 20);
    steps[2] = 22;
    assert_int_equal(kith_lab_average_step(&average), 20);
    steps[0] = steps[1] = steps[2] = UINT64_MAX;
    assert_true(kith_lab_average_step(&average) == UINT64_MAX);
}

/* Without running statistics nothing is touched or needed. */
static void test_none(void **state)
{
    (void)state;
    const struct kith_examples train = random_images();
    const struct kith_experiment group = resnet("cpu", true);
    const struct kith_experiment batch = resnet("cpu", false);
    double *z = parameters(&group, &train, 0);
    const size_t bytes = size_of(&group).dim * sizeof *z;
    double *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, z, bytes);

    assert_int_equal(kith_estimate(&group, group.backend, NULL, 20, z),
                     KITH_OK);
    assert_memory_equal(z, before, bytes);
    assert_int_equal(kith_estimate(&batch, batch.backend, NULL, 20, z),
                     KITH_EINVAL);
    assert_memory_equal(z, before, bytes);
    free(z);
    free(before);
}

/* Against Pearson's formula for two models. */
static void test_correlation(void **state)
{
    (void)state;
    enum { D = 1000 };
    static double x[2][D], mean[D];
    struct kith_rng rng;
    kith_rng_init(&rng, 5, KITH_STREAM_TEST, 1);
    double squared = 0, sum[2] = {0}, products[3] = {0};
    for (size_t k = 0; k < D; k++) {
        const double both = kith_rng_double(&rng);
        for (unsigned i = 0; i < 2; i++)
            x[i][k] = 3 + both + kith_rng_double(&rng);
        mean[k] = (x[0][k] + x[1][k]) / 2;
    }
    for (size_t k = 0; k < D; k++)
        for (unsigned i = 0; i < 2; i++) {
            squared += (x[i][k] - mean[k]) * (x[i][k] - mean[k]) / 2;
            sum[i] += x[i][k] / D;
        }
    for (size_t k = 0; k < D; k++) {
        const double a = x[0][k] - sum[0], b = x[1][k] - sum[1];
        products[0] += a * b;
        products[1] += a * a;
        products[2] += b * b;
    }
    const double expected = 2 * products[0] / (products[1] + products[2]);
    const double measured = kith_correlation(mean, D, sqrt(squared), 2);
    printf("  correlation: expected %.4f, measured %.4f\n", expected, measured);
    assert_true(fabs(expected - measured) < 2e-3);
    assert_true(kith_correlation(mean, D, 0, 2) == 1);
    assert_true(isnan(kith_correlation(mean, D, 0, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_matches_training),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_lab),
        cmocka_unit_test(test_lab_step),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_correlation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
