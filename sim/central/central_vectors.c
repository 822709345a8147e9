/* Vectors of a central run. Sums are in rank order whichever way the parts
 * have travelled: patterns differ in time and bytes, never in bits. */
#include <stdlib.h>
#include <string.h>

#include "sim/central/central_state.h"

static enum kith_err open_desk(struct central *run, uint32_t self,
                               struct kith_worker **desk)
{
    const struct kith_worker_config config = {
        .task = kith_experiment_task(run->experiment, NULL),
        .backend = run->experiment->backend,
        .train = run->options.dataset ? &run->options.dataset->train : NULL,
        .self = self,
        .steps = run->steps,
        .peers = run->worker_count,
    };
    char text[KITH_DATA_ERROR_BYTES] = "";
    const enum kith_err err = kith_worker_open(&config, desk, text);
    if (err != KITH_OK) {
        sim_central_fail(run, err, "worker %u: %s", self,
                         text[0] ? text : kith_err_text(err));
    }
    return err;
}

enum kith_err sim_central_desks_open(struct central *run)
{
    const struct kith_experiment *experiment = run->experiment;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    const size_t element = experiment->backend->element_bytes;
    run->dim = size.dim;
    run->trained = size.trained;
    run->vector_bytes = (size.dim * element + 63) / 64 * 64;
    run->shape.bytes =
        size.dim > 0 ? size.gossiped * element : run->config->payload_bytes;
    if (!kith_model_learns(experiment->model)) {
        run->dim = 0;
        return KITH_OK;
    }
    run->mean = malloc(run->dim * sizeof *run->mean);
    run->z = malloc(run->dim * sizeof *run->z);
    run->sum = aligned_alloc(64, run->vector_bytes);
    if (!run->mean || !run->z || !run->sum) {
        return KITH_ENOMEM;
    }
    memset(run->sum, 0, run->vector_bytes);
    enum kith_err err = open_desk(run, 0, &run->server);
    for (uint32_t i = 0; i < run->worker_count && err == KITH_OK; i++) {
        err = open_desk(run, i, &run->workers[i].desk);
    }
    return err;
}

void sim_central_desks_close(struct central *run)
{
    for (uint32_t i = 0; run->workers && i < run->worker_count; i++) {
        if (run->workers[i].desk) {
            kith_worker_close(run->workers[i].desk);
        }
    }
    free(run->workers);
    if (run->server) {
        kith_worker_close(run->server);
    }
    while (run->blocks) {
        void *block = run->blocks;
        run->blocks = *(void **)block;
        free(block);
    }
    free(run->mean);
    free(run->z);
    free(run->sum);
}

void *sim_central_block_take(struct central *run)
{
    void *block = run->blocks;
    if (run->dim == 0) {
        return NULL;
    }
    if (block) {
        run->blocks = *(void **)block;
        return block;
    }
    block = aligned_alloc(64, run->vector_bytes);
    if (!block) {
        sim_central_fail(run, KITH_ENOMEM,
                         "no memory for another %zu byte vector",
                         run->vector_bytes);
    }
    return block;
}

void sim_central_block_free(struct central *run, void *block)
{
    if (block) {
        *(void **)block = run->blocks;
        run->blocks = block;
    }
}

void *sim_central_block_copy(struct central *run, const void *vector)
{
    void *block = sim_central_block_take(run);
    if (block) {
        run->experiment->backend->copy(run->dim, block, vector);
    }
    return block;
}

void *sim_central_x(struct kith_worker *desk)
{
    return desk ? kith_worker_slot(desk, KITH_SLOT_LIVE) : NULL;
}

void sim_central_adopt(struct central *run, uint32_t id, const void *vector,
                       uint64_t version)
{
    struct central_worker *worker = &run->workers[id];
    worker->version = version;
    if (worker->desk && vector) {
        run->experiment->backend->copy(run->dim, sim_central_x(worker->desk),
                                       vector);
    }
}

void sim_central_apply(struct central *run, void *gradient, uint64_t step)
{
    run->updates++;
    if (run->server && gradient &&
        !kith_worker_descend(run->server, step, gradient)) {
        run->nonfinite = true;
    }
}

void sim_central_update(struct central *run, const bool *members,
                        double divisor, uint64_t step)
{
    const struct kith_backend *backend = run->experiment->backend;
    bool first = true;
    for (uint32_t i = 0; run->server && i < run->worker_count; i++) {
        if (members && !members[i]) {
            continue;
        }
        if (first) {
            backend->copy(run->trained, run->sum, run->workers[i].gradient);
        } else {
            backend->add(run->trained, 1, run->workers[i].gradient, run->sum);
        }
        first = false;
    }
    if (run->server) {
        backend->scale(run->trained, 1 / divisor, run->sum);
    }
    sim_central_apply(run, run->sum, step);
}

void sim_central_descend(struct central *run, uint32_t id)
{
    struct central_worker *worker = &run->workers[id];
    if (worker->desk && !kith_worker_descend(worker->desk, worker->steps - 1,
                                             worker->gradient)) {
        run->nonfinite = true;
    }
}

void sim_central_average(struct central *run)
{
    const struct kith_backend *backend = run->experiment->backend;
    run->updates++;
    if (!run->server) {
        return;
    }
    backend->copy(run->dim, run->sum, sim_central_x(run->workers[0].desk));
    for (uint32_t i = 1; i < run->worker_count; i++) {
        backend->add(run->dim, 1, sim_central_x(run->workers[i].desk),
                     run->sum);
    }
    backend->scale(run->dim, 1.0 / run->worker_count, run->sum);
    backend->copy(run->dim, sim_central_x(run->server), run->sum);
}

void sim_central_stale(struct central *run, uint32_t id, uint64_t updates)
{
    struct central_worker *worker = &run->workers[id];
    worker->stale_count++;
    worker->stale_sum += updates;
    if (updates > worker->stale_max) {
        worker->stale_max = updates;
    }
}
