/* TRAIN by a trainer of the caller's (kith/worker.h): x lies in its memory, and
 * its step is one of z.
 *
 *   z <- factor x;  z <- step(z);  x <- z / factor
 *
 * Between peers' processes the same is divided into take in and give out
 * (outside.c), since there the loop is not called but calls.
 *
 * Test: unit/test_simulate.c */
#include <math.h>

#include "kith/assert.h"
#include "worker_state.h"

bool kith_worker_trainer_begin(struct kith_worker *worker)
{
    const struct kith_trainer *trainer = worker->trainer;
    KITH_ASSERT(worker->backend->element_bytes == sizeof(float));
    KITH_ASSERT(!kith_model_learns(worker->model));
    float *const x = trainer->begin(trainer->arg, worker->self);
    worker->slots[KITH_SLOT_LIVE] = x;
    if (x == NULL)
        return false;
    KITH_ASSERT((uintptr_t)x % 64 == 0);
    worker->not_finite = !worker->backend->finite(worker->dim, x);
    kith_worker_begin_outside(worker);
    return true;
}

void kith_worker_trainer_end(struct kith_worker *worker)
{
    const struct kith_trainer *trainer = worker->trainer;
    if (trainer != NULL && worker->slots[KITH_SLOT_LIVE] != NULL)
        trainer->end(trainer->arg, worker->self);
}

static void scale(struct kith_worker *worker, double factor)
{
    if (factor != 1)
        worker->backend->scale(worker->layout->gossiped, factor,
                               worker->slots[KITH_SLOT_LIVE]);
}

/* A loss that is not known says nothing of the model. */
void kith_worker_trainer_step(struct kith_worker *worker, uint64_t step,
                              struct kith_work_result *result)
{
    const struct kith_trainer *trainer = worker->trainer;
    const double factor = kith_worker_factor(worker);
    if (worker->trainer_failed)
        return;
    kith_worker_begin_step(worker, step);
    scale(worker, factor);
    result->loss = NAN;
    worker->trainer_failed =
        !trainer->step(trainer->arg, worker->self, step, &result->loss);
    scale(worker, 1 / factor);
    kith_worker_end_step(worker, step);
    worker->not_finite =
        !worker->backend->finite(worker->dim, worker->slots[KITH_SLOT_LIVE]);
    result->finite = !worker->not_finite && !isinf(result->loss);
}
