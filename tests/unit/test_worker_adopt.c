/* Goal: who adopts a model goes on from it, whatever it kept before.
 * Method: items are run by hand; the adopted model is compared value by value,
 * and in every algorithm with rounds the next round moves nobody. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "worker_run.h"

enum { DIM = 37 };

/* A restarted peer adopts z with weight 1; the serving side gives nothing. */
static void test_adopt(void **state)
{
    (void)state;
    const struct kith_experiment experiment =
        fixture_experiment("quadratic", "sgp", 2);
    struct kith_worker *old = open_worker(&experiment, NULL, 0, 10);
    struct kith_worker *young = open_worker(&experiment, NULL, 1, 10);
    double z[DIM], got[DIM], x[DIM];
    train(old, 5);
    kith_worker_scalars(old)[0] = 0.25;
    kith_worker_read(old, z);
    memcpy(x, kith_worker_slot(old, KITH_SLOT_LIVE), sizeof x);
    struct kith_work_edge served = {.sent = KITH_SLOT_ANSWERED_SENT,
                                    .inbox = KITH_SLOT_NONE};
    run(old, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                .pattern = KITH_PATTERN_PULL,
                                .edges = &served,
                                .edge_count = 1});
    assert_memory_equal(x, kith_worker_slot(old, KITH_SLOT_LIVE), sizeof x);
    assert_true(served.scalars_sent[0] == 0.25);

    carry(old, KITH_SLOT_ANSWERED_SENT, young, KITH_SLOT_INITIATED_INBOX);
    struct kith_work_edge active = {.sent = KITH_SLOT_NONE,
                                    .inbox = KITH_SLOT_INITIATED_INBOX};
    active.scalars_received[0] = 0.25;
    run(young, (struct kith_work){.kind = KITH_WORK_ADOPT,
                                  .pattern = KITH_PATTERN_PULL,
                                  .edges = &active,
                                  .edge_count = 1});
    kith_worker_read(young, got);
    assert_true(kith_worker_scalars(young)[0] == 1);
    double sum = 0;
    for (size_t i = 0; i < DIM; i++) {
        assert_true(got[i] == z[i]);
        sum += z[i];
    }
    /* It started at 0. */
    assert_true(fabs(active.delta_sum - sum) < 1e-12);
    kith_worker_close(old);
    kith_worker_close(young);
}

/* Between two rounds a model is adopted, and the next round finds all at it:
 * nobody moves, for what the algorithm keeps of the last round is the adopted
 * one's, too. */
static void adopt_within(const struct kith_algorithm *algorithm)
{
    struct kith_experiment experiment =
        fixture_experiment("consensus", algorithm->name, 2);
    experiment.gossip.every = 4;
    memcpy(experiment.gossip.coefficients, algorithm->initial,
           sizeof algorithm->initial);
    experiment.gossip.coefficients[KITH_GOSSIP_OUTER_EVERY] = 1;
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 10);
    double y[DIM], after[DIM];
    train(worker, 2);
    for (size_t i = 0; i < DIM; i++)
        y[i] = 3 + (double)i;
    memcpy(kith_worker_slot(worker, KITH_SLOT_INITIATED_INBOX), y, sizeof y);
    struct kith_work_edge pulled = {.sent = KITH_SLOT_NONE,
                                    .inbox = KITH_SLOT_INITIATED_INBOX};
    run(worker, (struct kith_work){.kind = KITH_WORK_ADOPT,
                                   .pattern = KITH_PATTERN_PULL,
                                   .step = 2,
                                   .edges = &pulled,
                                   .edge_count = 1});
    for (uint64_t step = 2; step < 4; step++)
        run(worker, (struct kith_work){.kind = KITH_WORK_TRAIN, .step = step});
    struct kith_work_edge edge = {.peer = 1,
                                  .weight = 0.5,
                                  .sent = KITH_SLOT_ROUND_SENT,
                                  .inbox = kith_slot_inbox(0, 0)};
    struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                             .pattern = KITH_PATTERN_ROUND,
                             .step = 4,
                             .edges = &edge,
                             .edge_count = 1};
    run(worker, work);
    carry(worker, KITH_SLOT_ROUND_SENT, worker, kith_slot_inbox(0, 0));
    work.kind = KITH_WORK_MERGE;
    run(worker, work);
    kith_worker_read(worker, after);
    for (size_t i = 0; i < DIM; i++)
        if (!(fabs(after[i] - y[i]) < 1e-9))
            fail_msg("%s: %g became %g", algorithm->name, y[i], after[i]);
    assert_non_null(algorithm->start);
    kith_worker_close(worker);
}

static void test_adopt_within(void **state)
{
    (void)state;
    for (size_t i = 0; kith_algorithms[i] != NULL; i++) {
        const struct kith_algorithm *algorithm = kith_algorithms[i];
        if (algorithm->before_step != NULL &&
            !(algorithm->flags & KITH_NEEDS_STABLE_MEMBERS) &&
            algorithm->pattern == KITH_PATTERN_ROUND)
            adopt_within(algorithm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_adopt_within),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
