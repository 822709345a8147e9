/* Opening a worker and running its items by hand.
 * Include after what cmocka needs. */
#ifndef KITH_TESTS_WORKER_RUN_H
#define KITH_TESTS_WORKER_RUN_H

#include <cmocka.h>

#include "worker_fixture.h"

static char error[KITH_DATA_ERROR_BYTES];

static inline struct kith_worker *
open_worker(const struct kith_experiment *experiment,
            const struct kith_examples *train, kith_id self, uint64_t steps)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .train = train,
        .self = self,
        .steps = steps,
        .edges_max =
            experiment->gossip.algorithm->pattern == KITH_PATTERN_ROUND ? 2 : 0,
        .peers = experiment->peers};
    struct kith_worker *worker = NULL;
    if (kith_worker_open(&config, &worker, error) != KITH_OK)
        fail_msg("%s", error);
    return worker;
}

static inline struct kith_work_result run(struct kith_worker *worker,
                                          struct kith_work work)
{
    struct kith_work_result result;
    kith_worker_run(worker, &work, &result);
    assert_int_equal(result.kind, work.kind);
    return result;
}

static inline void train(struct kith_worker *worker, uint64_t steps)
{
    for (uint64_t step = 0; step < steps; step++)
        assert_true(run(worker, (struct kith_work){.kind = KITH_WORK_TRAIN,
                                                   .step = step})
                        .finite);
}

/* What the channel does: the bytes of one slot into another peer's. */
static inline void carry(struct kith_worker *from, uint32_t sent,
                         struct kith_worker *to, uint32_t inbox)
{
    memcpy(kith_worker_slot(to, inbox), kith_worker_slot(from, sent),
           kith_worker_bytes(from));
}

#endif
