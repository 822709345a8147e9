/* Goal: the batch that kith plan chooses runs within the memory that it was
 * told, and one more example does not (T2.5). Method: workers of several
 * models, optimisers, guards and wires take steps beside an allocator that
 * counts; the memory allowed is what is planned for some batch and half an
 * example. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/cli/plan_command.h"
#include "worker_run.h"

/* ---- an allocator that counts: all that the program's own archives ask for */

static atomic_size_t held, peak;

static void *take(void *memory, size_t bytes)
{
    if (memory == NULL || memory == MAP_FAILED)
        return memory;
    const size_t now = atomic_fetch_add(&held, bytes) + bytes;
    size_t most = atomic_load(&peak);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
        ;
    return memory;
}

static void *take_usable(void *memory)
{
    return take(memory, malloc_usable_size(memory));
}

/* The linker's names. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t unit, size_t bytes);
void __real_free(void *memory);
void *__real_mmap(void *at, size_t bytes, int access, int flags, int fd,
                  off_t offset);
int __real_munmap(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t unit, size_t bytes);
void __wrap_free(void *memory);
void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd,
                  off_t offset);
int __wrap_munmap(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return take_usable(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return take_usable(__real_calloc(count, size));
}

void __wrap_free(void *memory)
{
    (void)atomic_fetch_sub(&held, malloc_usable_size(memory));
    __real_free(memory);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    (void)atomic_fetch_sub(&held, malloc_usable_size(memory));
    return take_usable(__real_realloc(memory, bytes));
}

void *__wrap_aligned_alloc(size_t unit, size_t bytes)
{
    return take_usable(__real_aligned_alloc(unit, bytes));
}

void *__wrap_mmap(void *at, size_t bytes, int access, int flags, int fd,
                  off_t offset)
{
    return take(__real_mmap(at, bytes, access, flags, fd, offset), bytes);
}

int __wrap_munmap(void *memory, size_t bytes)
{
    (void)atomic_fetch_sub(&held, bytes);
    return __real_munmap(memory, bytes);
}

/* ---- batches */

enum { SIDE = 24, FEATURES = 3 * SIDE * SIDE, EXAMPLES = 64, STEPS = 2 };

/* The most that a peer holds while it opens and takes steps, in bytes. */
static size_t peak_of(const struct kith_worker_config *planned,
                      const struct kith_examples *examples, uint32_t batch)
{
    struct kith_training training = *planned->task.training;
    struct kith_worker_config config = *planned;
    struct kith_worker *worker = NULL;
    training.batch = batch;
    config.task.training = &training;
    config.train = examples;
    config.steps = STEPS;
    const size_t before = atomic_load(&held);
    atomic_store(&peak, before);
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    train(worker, STEPS);
    kith_worker_close(worker);
    assert_int_equal(atomic_load(&held), before);
    return atomic_load(&peak) - before;
}

static void check_case(struct kith_experiment *experiment,
                       const struct kith_examples *examples, uint32_t batch)
{
    struct plan_facts facts = {
        .experiment = experiment,
        .worker = {.task = kith_experiment_task(experiment, NULL),
                   .backend = experiment->backend,
                   .edges_max = experiment->gossip.algorithm->pattern ==
                                        KITH_PATTERN_ROUND
                                    ? 2
                                    : 0,
                   .peers = experiment->peers,
                   .ahead = true}};
    double example;
    experiment->train.batch = batch;
    assert_int_equal(kith_worker_measure(&facts.worker, &facts.held), KITH_OK);
    assert_int_equal(kith_cli_example_bytes(experiment, &example), KITH_OK);
    const uint32_t parts =
        experiment->train.accumulate > 0 ? experiment->train.accumulate : 1;
    facts.memory_bytes = kith_cli_plan_held(&facts.held) + example * parts / 2;
    const uint32_t chosen = (uint32_t)kith_cli_largest_batch(&facts);
    const size_t here = peak_of(&facts.worker, examples, chosen);
    const size_t next = peak_of(&facts.worker, examples, chosen + parts);
    print_message("%s, %s, %s: batch %u of %.0f bytes takes %zu, %u more %zu\n",
                  experiment->model->name, experiment->train.optimiser->name,
                  experiment->gossip.algorithm->name, chosen,
                  facts.memory_bytes, here, parts, next);
    assert_int_equal(chosen, batch);
    assert_true((double)here <= facts.memory_bytes);
    assert_true((double)next > facts.memory_bytes);
}

static void test_chosen_batch(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm, *optimiser, *guard, *format;
        uint32_t accumulate, batch;
        bool recompute;
    } cases[] = {
        {"adpsgd", "sgd", NULL, NULL, 1, 8, false},
        {"adpsgd", "adamw", "clip", NULL, 1, 13, false},
        {"adpsgd", "muon", NULL, "moniqua4", 3, 12, false},
        {"dpsgd", "lars", "trimmed-mean", NULL, 1, 5, true},
        {"extra", "sgd", NULL, NULL, 2, 6, false},
    };
    static uint8_t images[EXAMPLES * FEATURES];
    static int32_t labels[EXAMPLES];
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < EXAMPLES; i++)
        labels[i] = (int32_t)(i % 10);
    struct kith_examples examples =
        fixture_examples(images, labels, EXAMPLES, FEATURES, 10);
    for (unsigned i = 0; i < 3; i++)
        examples.shape[i] = i < 2 ? SIDE : 3;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kith_experiment experiment =
            fixture_experiment("resnet", cases[i].algorithm, 3);
        experiment.backend = kith_backend_find("cpu");
        experiment.model_config = (struct kith_model_config){
            .image = {SIDE, SIDE, 3}, .classes = 10, .depth = 20};
        experiment.data.split.kind = KITH_SPLIT_IID;
        memcpy(experiment.gossip.coefficients,
               experiment.gossip.algorithm->initial,
               sizeof experiment.gossip.coefficients);
        experiment.train.optimiser = kith_optimiser_find(cases[i].optimiser);
        experiment.train.accumulate = cases[i].accumulate;
        experiment.train.recompute = cases[i].recompute;
        experiment.train.config =
            (struct kith_optimiser_config){.learning_rate = 0.001,
                                           .momentum = 0.9,
                                           .beta1 = 0.9,
                                           .beta2 = 0.999,
                                           .epsilon = 1e-8,
                                           .trust = 0.02};
        if (cases[i].guard != NULL)
            (void)snprintf(experiment.gossip.guard,
                           sizeof experiment.gossip.guard, "%s",
                           cases[i].guard);
        if (cases[i].format != NULL)
            experiment.gossip.format = kith_format_find(cases[i].format);
        check_case(&experiment, &examples, cases[i].batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
