/* Goal: a worker that is given data learns from them, batch by batch, and is
 * refused where they do not fit. Method: the bundled digits, and sets of bytes
 * whose losses can be told apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker_run.h"

static void test_refusals(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("logistic", "local", 1);
    const uint32_t layers[] = {64, 10};
    fixture_layers(&experiment, layers, 2);
    const uint8_t images[8] = {0};
    const int32_t labels[2] = {0, 1};
    const struct kith_examples examples =
        fixture_examples(images, labels, 2, 4, 2);
    struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .peers = 1};
    struct kith_worker *worker;
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_EINVAL);
    assert_non_null(strstr(error, "data:"));
    config.train = &examples;
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_EMISMATCH);
    assert_non_null(strstr(error, "64 inputs"));
    const uint32_t small[] = {4, 2};
    fixture_layers(&experiment, small, 2);
    config.peers = 3; /* two rows for three peers */
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_EINVAL);
    assert_non_null(strstr(error, "data.split"));
    config.peers = 2;
    experiment.train.batch = 0;
    assert_int_equal(kith_worker_open(&config, &worker, error), KITH_ELIMIT);
    assert_null(worker);
    kith_worker_close(NULL);
}

/* An mlp learns the bundled digits: >= 90 % of the test set in 20 epochs. */
static void test_digits(void **state)
{
    (void)state;
    struct kith_dataset set;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    struct kith_experiment experiment = fixture_learner("local", 1);
    const uint64_t steps = 20 * 1440 / 16;
    struct kith_worker *worker = open_worker(&experiment, &set.train, 0, steps);
    const size_t dim = kith_worker_dim(worker);
    double *z = malloc(dim * sizeof *z);
    assert_non_null(z);
    struct kith_score before, after;

    kith_worker_read(worker, z);
    assert_int_equal(
        kith_evaluate(&experiment, experiment.backend, &set.test, z, &before),
        KITH_OK);
    train(worker, steps);
    kith_worker_read(worker, z);
    assert_int_equal(
        kith_evaluate(&experiment, experiment.backend, &set.test, z, &after),
        KITH_OK);

    print_message("digits: loss %.3f -> %.3f, accuracy %.3f -> %.3f\n",
                  before.loss, after.loss, before.accuracy, after.accuracy);
    assert_true(before.accuracy < 0.3);
    assert_true(after.accuracy >= 0.9);

    /* Diverging is noticed, in the step where it happens. */
    experiment.train.config.learning_rate = 1e30;
    bool finite = true;
    for (uint64_t step = 0; step < 5 && finite; step++)
        finite = run(worker,
                     (struct kith_work){.kind = KITH_WORK_TRAIN, .step = step})
                     .finite;
    assert_false(finite);
    free(z);
    kith_worker_close(worker);
    kith_dataset_close(&set);
}

/* One pass over the own rows is an epoch: every row once. */
static void test_batches(void **state)
{
    (void)state;
    uint8_t images[48];
    const int32_t labels[48] = {0, 1};
    for (size_t i = 0; i < 48; i++)
        images[i] = (uint8_t)i;
    const struct kith_examples examples =
        fixture_examples(images, labels, 48, 1, 2);
    struct kith_experiment experiment =
        fixture_experiment("logistic", "local", 2);
    const uint32_t layers[] = {1, 2};
    fixture_layers(&experiment, layers, 2);
    experiment.train.batch = 8;
    experiment.data.split.kind = KITH_SPLIT_IID;
    /* With rate 0 the loss of a batch depends on its rows alone, so the losses
     * of three batches of one epoch have the same mean in every order. */
    experiment.train.config.learning_rate = 0;
    struct kith_worker *worker = open_worker(&experiment, &examples, 1, 6);
    double epoch[2] = {0}, first[2] = {0};
    for (uint64_t step = 0; step < 6; step++) {
        const double loss =
            run(worker,
                (struct kith_work){.kind = KITH_WORK_TRAIN, .step = step})
                .loss;
        epoch[step / 3] += loss;
        if (step % 3 == 0)
            first[step / 3] = loss;
    }
    assert_true(fabs(epoch[0] - epoch[1]) < 1e-12);
    assert_true(fabs(first[0] - first[1]) > 1e-9); /* another shuffle */
    kith_worker_close(worker);
}

/* What stands behind a slice is an older message's: it says nothing of this
 * one. */
static void test_slice(void **state)
{
    (void)state;
    struct kith_dataset set;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    struct kith_experiment experiment = fixture_learner("sparta-diloco", 2);
    memcpy(experiment.gossip.coefficients, experiment.gossip.algorithm->initial,
           sizeof experiment.gossip.coefficients);
    struct kith_worker *worker = open_worker(&experiment, &set.train, 0, 10);
    struct kith_work_edge edge = {.peer = 1,
                                  .sent = KITH_SLOT_ROUND_SENT,
                                  .inbox = KITH_SLOT_ROUND_EDGES,
                                  .weight = 0.5};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_ROUND,
                             .round = 1,
                             .edges = &edge,
                             .edge_count = 1};
    train(worker, 1);
    (void)run(worker, work);
    float *inbox = kith_worker_slot(worker, edge.inbox);
    for (size_t i = 0; i < kith_worker_dim(worker); i++)
        inbox[i] = 1e30f;
    memcpy(inbox, kith_worker_slot(worker, edge.sent),
           kith_experiment_slice(&experiment, kith_worker_dim(worker)));
    work.kind = KITH_WORK_MERGE;
    (void)run(worker, work);
    assert_false(edge.refused);
    kith_worker_close(worker);
    kith_dataset_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_slice),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
