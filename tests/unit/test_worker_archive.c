/* Goal: a worker that leaves its process between two items and comes into
 * another one goes on to the bit, whatever it keeps; one that was opened
 * otherwise is refused. Method: steps and merges of both, with optimisers,
 * methods, guards and formats that keep something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/archive.h"
#include "worker_run.h"

enum { PEERS = 3, STEPS = 12 };

struct buffer {
    uint8_t *bytes;
    size_t at, size;
};

static bool put(void *arg, void *bytes, size_t size)
{
    struct buffer *buffer = arg;
    buffer->bytes = realloc(buffer->bytes, buffer->size + size);
    assert_non_null(buffer->bytes);
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    return true;
}

static bool take(void *arg, void *bytes, size_t size)
{
    struct buffer *buffer = arg;
    if (buffer->size - buffer->at < size)
        return false;
    memcpy(bytes, buffer->bytes + buffer->at, size);
    buffer->at += size;
    return true;
}

/* Inboxes are the workers' own here, and go with their blocks. */
static void stay(struct kith_archive *archive, void **vector)
{
    (void)archive;
    (void)vector;
}

static const char *carry_over(struct kith_worker *from, struct kith_worker *to)
{
    struct buffer buffer = {NULL, 0, 0};
    struct kith_archive archive = {.move = put, .vector = stay, .arg = &buffer};
    kith_worker_archive(from, &archive);
    assert_null(archive.failed);
    archive.reads = true;
    archive.move = take;
    kith_worker_archive(to, &archive);
    if (archive.failed == NULL)
        assert_int_equal(buffer.at, buffer.size);
    free(buffer.bytes);
    return archive.failed;
}

static void learn(struct kith_worker *worker, uint64_t from, uint64_t to,
                  double *losses)
{
    for (uint64_t step = from; step < to; step++) {
        const struct kith_work work = {.kind = KITH_WORK_TRAIN, .step = step};
        losses[step] = run(worker, work).loss;
    }
}

static void go_on(struct kith_experiment *experiment,
                  const struct kith_examples *train)
{
    struct kith_worker *one = open_worker(experiment, train, 1, STEPS);
    struct kith_worker *other = open_worker(experiment, train, 1, STEPS);
    double expected[STEPS], found[STEPS];
    const size_t dim = kith_worker_dim(one);
    double *a = malloc(dim * sizeof *a), *b = malloc(dim * sizeof *b);
    assert_true(a != NULL && b != NULL);
    learn(one, 0, STEPS / 2, expected);

    assert_null(carry_over(one, other));
    learn(one, STEPS / 2, STEPS, expected);
    learn(other, STEPS / 2, STEPS, found);

    assert_memory_equal(expected + STEPS / 2, found + STEPS / 2,
                        STEPS / 2 * sizeof *found);
    kith_worker_read(one, a);
    kith_worker_read(other, b);
    assert_memory_equal(a, b, dim * sizeof *a);
    free(a);
    free(b);
    kith_worker_close(one);
    kith_worker_close(other);
}

static struct kith_experiment learner(const char *algorithm,
                                      const char *optimiser)
{
    struct kith_experiment experiment = fixture_learner(algorithm, PEERS);
    memcpy(experiment.gossip.coefficients, experiment.gossip.algorithm->initial,
           sizeof experiment.gossip.coefficients);
    experiment.train.optimiser = kith_optimiser_find(optimiser);
    experiment.train.config =
        (struct kith_optimiser_config){.learning_rate = 0.01,
                                       .momentum = 0.9,
                                       .beta1 = 0.9,
                                       .beta2 = 0.999,
                                       .epsilon = 1e-8,
                                       .trust = 0.02};
    return experiment;
}

static void test_goes_on(void **state)
{
    static const char *const cases[][2] = {
        {"adpsgd", "sgd"}, {"adpsgd", "adamw"}, {"sgp", "muon"},
        {"acid", "sgd"},   {"diloco", "lars"},  {"qg-dsgdm-n", "sgd"}};
    struct kith_dataset set;
    (void)state;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kith_experiment experiment = learner(cases[i][0], cases[i][1]);
        go_on(&experiment, &set.train);
    }
    kith_dataset_close(&set);
}

static void test_other_shape(void **state)
{
    struct kith_dataset set;
    (void)state;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    struct kith_experiment plain = learner("adpsgd", "sgd");
    struct kith_experiment adam = learner("adpsgd", "adamw");
    struct kith_worker *one = open_worker(&plain, &set.train, 1, STEPS);
    struct kith_worker *peer = open_worker(&plain, &set.train, 2, STEPS);
    struct kith_worker *larger = open_worker(&adam, &set.train, 1, STEPS);

    assert_string_equal(carry_over(one, peer),
                        "its workers are of another shape");
    assert_string_equal(carry_over(one, larger),
                        "its workers are of another shape");

    kith_worker_close(one);
    kith_worker_close(peer);
    kith_worker_close(larger);
    kith_dataset_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_on),
                                       cmocka_unit_test(test_other_shape)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
