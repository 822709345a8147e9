/* Goal: workers that share what a step needs while it runs learn, to the bit,
 * what each learns with memory of its own. Method: three of them take steps in
 * turn, at one of two lenders, beside three that borrow nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker_run.h"

enum { PEERS = 3, STEPS = 12 };

static struct kith_worker *open_guest(const struct kith_experiment *experiment,
                                      const struct kith_examples *train,
                                      kith_id self,
                                      const struct kith_shares *shares,
                                      struct kith_worker *lender)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .train = train,
        .self = self,
        .steps = STEPS,
        .peers = experiment->peers,
        .shares = shares,
        .lender = lender};
    struct kith_worker *worker = NULL;
    assert_true(kith_worker_may_borrow(&config));
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    return worker;
}

static void learn_both_ways(struct kith_experiment *experiment,
                            const struct kith_examples *train)
{
    struct kith_worker *lenders[2], *alone[PEERS], *guests[PEERS];
    struct kith_shares shares;
    assert_int_equal(kith_split_shares(&experiment->data.split, train,
                                       experiment->seed, PEERS, &shares),
                     KITH_OK);
    for (unsigned i = 0; i < 2; i++)
        lenders[i] = open_worker(experiment, train, 0, STEPS);
    for (unsigned i = 0; i < PEERS; i++) {
        alone[i] = open_worker(experiment, train, i, STEPS);
        guests[i] = open_guest(experiment, train, i, &shares, lenders[0]);
    }
    const size_t dim = kith_worker_dim(alone[0]);
    double *a = malloc(dim * sizeof *a), *b = malloc(dim * sizeof *b);
    double *first = malloc(dim * sizeof *first);
    assert_true(a != NULL && b != NULL && first != NULL);
    kith_worker_read(guests[0], first);
    for (uint64_t step = 0; step < STEPS; step++) {
        for (unsigned i = 0; i < PEERS; i++) {
            const struct kith_work work = {.kind = KITH_WORK_TRAIN,
                                           .step = step};
            kith_worker_borrow(guests[i], lenders[(step + i) % 2]);
            const struct kith_work_result one = run(alone[i], work);
            const struct kith_work_result other = run(guests[i], work);
            assert_true(one.finite && other.finite);
            assert_true(one.loss == other.loss);
        }
    }
    for (unsigned i = 0; i < PEERS; i++) {
        kith_worker_read(alone[i], a);
        kith_worker_read(guests[i], b);
        assert_memory_equal(a, b, dim * sizeof *a);
        assert_memory_not_equal(first, b, dim * sizeof *b);
    }
    /* A lender is none of them. */
    kith_worker_read(lenders[0], a);
    assert_memory_equal(a, first, dim * sizeof *a);
    for (unsigned i = 0; i < PEERS; i++) {
        kith_worker_close(guests[i]);
        kith_worker_close(alone[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        kith_worker_close(lenders[i]);
    kith_shares_free(&shares);
    free(first);
    free(a);
    free(b);
}

/* Optimisers with scratch, a batch in parts, running statistics, a z beside x
 * (qg-dsgdm-n has a direction, sgp a factor). */
static void test_same(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm, *optimiser;
        uint32_t accumulate;
    } cases[] = {
        {"adpsgd", "sgd", 1}, {"adpsgd", "adamw", 4},   {"adpsgd", "lars", 1},
        {"sgp", "muon", 2},   {"qg-dsgdm-n", "sgd", 1},
    };
    struct kith_dataset set;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kith_experiment experiment =
            fixture_learner(cases[i].algorithm, PEERS);
        memcpy(experiment.gossip.coefficients,
               experiment.gossip.algorithm->initial,
               sizeof experiment.gossip.coefficients);
        experiment.train.optimiser = kith_optimiser_find(cases[i].optimiser);
        experiment.train.accumulate = cases[i].accumulate;
        experiment.train.config =
            (struct kith_optimiser_config){.learning_rate = 0.01,
                                           .momentum = 0.9,
                                           .beta1 = 0.9,
                                           .beta2 = 0.999,
                                           .epsilon = 1e-8,
                                           .trust = 0.02};
        learn_both_ways(&experiment, &set.train);
    }
    kith_dataset_close(&set);
}

/* x stands in a vector that a message still holds, and no snapshot of it is
 * left: a step moves x on, and what the message has stays. */
static void test_held(void **state)
{
    (void)state;
    struct kith_dataset set;
    if (fixture_digits(&set, error) != KITH_OK)
        fail_msg("%s", error);
    struct kith_experiment experiment = fixture_learner("adpsgd", PEERS);
    struct kith_worker *lender = open_worker(&experiment, &set.train, 0, STEPS);
    const size_t bytes = kith_worker_vector_bytes(lender);
    void *vectors[2], *was = malloc(bytes);
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(vectors[i] = aligned_alloc(64, (bytes + 63) / 64 * 64));
    assert_non_null(was);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .train = &set.train,
        .steps = STEPS,
        .peers = PEERS,
        .lender = lender,
        .x = vectors[0]};
    struct kith_worker *worker = NULL;
    assert_true(kith_worker_may_be_lent(&config));
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    const struct kith_work work = {.kind = KITH_WORK_TRAIN};
    const size_t values = kith_worker_bytes(worker);
    for (unsigned held = 0; held < 2; held++) {
        memcpy(was, vectors[0], values);
        assert_int_equal(kith_worker_wants(worker, &work, false, held), 0);
        assert_int_equal(kith_worker_wants(worker, &work, true, held), held);
        if (held)
            kith_worker_lend(worker, vectors[1]);
        assert_true(run(worker, work).finite);
        assert_ptr_equal(kith_worker_slot(worker, KITH_SLOT_LIVE),
                         vectors[held]);
        assert_int_equal(memcmp(was, vectors[0], values) == 0, held);
        /* It is the last good model: the first step ended in it. */
        assert_null(kith_worker_left(worker));
    }
    kith_worker_end_slot(worker, KITH_SLOT_LIVE);
    assert_ptr_equal(kith_worker_left(worker), vectors[1]);
    assert_ptr_equal(kith_worker_left(worker), vectors[0]);
    assert_null(kith_worker_left(worker));
    kith_worker_close(worker);
    kith_worker_close(lender);
    kith_dataset_close(&set);
    free(vectors[0]);
    free(vectors[1]);
    free(was);
}

/* What a later item looks for is not lent. */
static void test_who_may(void **state)
{
    (void)state;
    struct kith_experiment experiment = fixture_learner("adpsgd", PEERS);
    struct kith_worker_config config = {
        .task = kith_experiment_task(&experiment, NULL),
        .backend = experiment.backend,
        .peers = PEERS};
    assert_true(kith_worker_may_borrow(&config));
    config.ahead = true;
    assert_false(kith_worker_may_borrow(&config));
    config.ahead = false;
    unsigned lenders = 0;
    for (size_t i = 0; kith_guards[i] != NULL; i++) {
        config.task.guard = kith_guards[i];
        lenders += kith_worker_may_borrow(&config);
        assert_int_equal(kith_worker_may_borrow(&config),
                         !kith_guards[i]->looks_at_loss);
    }
    assert_true(lenders > 1);
    config.task.algorithm = kith_algorithm_find("sync-sgd");
    assert_false(kith_worker_may_borrow(&config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_who_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
