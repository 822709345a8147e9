/* Vectors of a central run. Sums are in rank order whichever way the parts
 * have travelled: patterns differ in time and bytes, never in bits. */
#include "kith/assert.h"
#include "sim/central/central_state.h"

/* The place may move with each item: it is asked for anew, never kept. */
void *sim_central_x(struct kith_worker *trainer)
{
    KITH_ASSERT(trainer == NULL || kith_worker_dim(trainer) > 0);
    return trainer ? kith_worker_slot(trainer, KITH_SLOT_LIVE) : NULL;
}

/* A whole model, also where only a part of it is gossiped: central methods
 * replace the receiver's. */
void *sim_central_copy(struct sim_central *run, const void *x)
{
    KITH_ASSERT(run->world->vector_bytes % sizeof(float) == 0);
    return sim_copy_of(run->world, x, run->world->vector_bytes);
}

/* Without a vector the version alone moves on: a study of timing knows how
 * stale a step is, and computes nothing. */
void sim_central_adopt(struct sim_central *run, uint32_t id, const void *vector,
                       uint64_t version)
{
    KITH_ASSERT(id < run->worker_count);
    KITH_ASSERT(version <= run->updates);
    struct central_worker *worker = &run->workers[id];
    worker->version = version;
    if (worker->trainer && vector) {
        run->experiment->backend->copy(run->dim, sim_central_x(worker->trainer),
                                       vector);
    }
}

/* The optimiser is the shared model's: momentum and schedule count its updates,
 * not the workers' steps. */
void sim_central_apply(struct sim_central *run, void *gradient, uint64_t step)
{
    KITH_ASSERT(run->worker_count > 0);
    run->updates++;
    if (run->server && gradient &&
        !kith_worker_descend(run->server, step, gradient))
        run->world->nonfinite = true;
}

/* Rank order, whoever came first, then one scaling: a float sum depends on its
 * order, and a run must not depend on arrival or pattern. */
void sim_central_mean(struct sim_central *run, size_t size, double divisor,
                      void *mean)
{
    KITH_ASSERT(divisor > 0 && (!mean || size <= run->dim));
    const struct kith_backend *backend = run->experiment->backend;
    bool first = true;
    for (uint32_t i = 0; i < run->worker_count; i++) {
        if (run->vectors[i] && first)
            backend->copy(size, mean, run->vectors[i]);
        else if (run->vectors[i])
            backend->add(size, 1, run->vectors[i], mean);
        first = first && !run->vectors[i];
    }
    if (mean)
        backend->scale(size, 1 / divisor, mean);
}

void sim_central_update(struct sim_central *run, const bool *members,
                        double divisor, uint64_t step)
{
    KITH_ASSERT(divisor <= run->worker_count);
    for (uint32_t i = 0; i < run->worker_count; i++) {
        run->vectors[i] =
            !members || members[i] ? run->workers[i].gradient : NULL;
    }
    sim_central_mean(run, run->trained, divisor, run->sum);
    sim_central_apply(run, run->sum, step);
}

/* The step before the one that is counted: `steps` has moved on already. */
void sim_central_descend(struct sim_central *run, uint32_t id)
{
    KITH_ASSERT(id < run->worker_count);
    KITH_ASSERT(run->workers[id].steps > 0);
    struct central_worker *worker = &run->workers[id];
    if (worker->trainer &&
        !kith_worker_descend(worker->trainer, worker->steps - 1,
                             worker->gradient))
        run->world->nonfinite = true;
}

/* The count of what a worker has contributed is kept beside its staleness:
 * their ratio is the mean that rows show. */
void sim_central_stale(struct sim_central *run, uint32_t id, uint64_t updates)
{
    KITH_ASSERT(id < run->worker_count);
    run->workers[id].taken_in++;
    sim_totals_stale(run->world, id, updates);
}
