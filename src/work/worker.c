/* The worker's memory: one block of cache-line aligned vectors, all of it taken
 * at open, and what is read out of it. */
#define _DEFAULT_SOURCE /* madvise */
#include "private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kith/assert.h"

#define HUGE_PAGE ((size_t)1 << 21)

size_t kith_aligned_size(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

void *kith_aligned_zero(size_t bytes, void **owner)
{
    const bool huge = bytes >= 2 * HUGE_PAGE;
    const size_t unit = huge ? HUGE_PAGE : 64;
    /* calloc leaves fresh pages untouched, so a slot that no exchange uses
     * costs address space only; aligned_alloc and memset would not. */
    *owner = bytes > SIZE_MAX - unit ? NULL : calloc(1, bytes + unit);
    if (*owner == NULL)
        return NULL;
    char *memory = *owner;
    memory += (unit - (uintptr_t)memory % unit) % unit;
#ifdef MADV_HUGEPAGE
    if (huge)
        (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory;
}

static enum kith_err refuse(char *error, enum kith_err err, const char *text)
{
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "opening a worker: %s", text);
    return err;
}

static enum kith_err check_data(const struct kith_worker_config *config,
                                char *error)
{
    const struct kith_experiment *experiment = config->experiment;
    if (!experiment->model->needs_data)
        return KITH_OK;
    if (config->train == NULL)
        return refuse(error, KITH_EINVAL, "this model needs `data:`");
    size_t features, classes;
    experiment->model->shape(&experiment->model_config, &features, &classes);
    if (features == config->train->features &&
        config->train->classes <= classes)
        return KITH_OK;
    (void)snprintf(error, KITH_DATA_ERROR_BYTES,
                   "model.layers: %zu inputs and %zu classes, but the data has "
                   "%zu values per example and %u classes",
                   features, classes, config->train->features,
                   config->train->classes);
    return KITH_EMISMATCH;
}

static bool pattern_uses(enum kith_pattern pattern, uint32_t slot)
{
    if (slot == KITH_SLOT_LIVE)
        return true;
    if (slot >= KITH_SLOT_ROUND_SENT)
        return pattern == KITH_PATTERN_ROUND;
    return pattern != KITH_PATTERN_NONE;
}

uint32_t kith_worker_role(unsigned role)
{
    static const uint32_t roles[KITH_ROLES] = {
        KITH_SLOT_LIVE, KITH_SLOT_ACTIVE_SENT, KITH_SLOT_SERVED_SENT,
        KITH_SLOT_ROUND_SENT};
    KITH_ASSERT(role < KITH_ROLES);
    return roles[role];
}

/* Hands out pieces of the block; with a NULL base it only counts. */
struct carver {
    char *base;
    size_t used;
};

static void *carve(struct carver *carver, size_t bytes)
{
    void *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += kith_aligned_size(bytes);
    return piece;
}

static void carve_all(struct kith_worker *worker, struct carver *carver)
{
    const struct kith_experiment *experiment = worker->experiment;
    for (uint32_t slot = 0; slot < worker->slot_count; slot++) {
        if (pattern_uses(worker->algorithm->pattern, slot))
            worker->slots[slot] = carve(carver, worker->bytes);
    }
    if (worker->model->loss == NULL)
        return;
    const size_t batch = worker->train == NULL ? 1 : experiment->train.batch;
    worker->gradient = carve(carver, worker->bytes);
    if (worker->algorithm->factor != NULL)
        worker->at = carve(carver, worker->bytes);
    KITH_ASSERT(experiment->train.optimiser->state_vectors <= KITH_STATES_MAX);
    for (unsigned i = 0; i < experiment->train.optimiser->state_vectors; i++)
        worker->state[i] = carve(carver, worker->bytes);
    worker->scratch =
        carve(carver, worker->model->scratch(&experiment->model_config,
                                             worker->backend, batch));
    if (worker->train != NULL) {
        worker->inputs = carve(carver, batch * worker->train->features *
                                           worker->backend->element_bytes);
        worker->labels = carve(carver, batch);
    }
}

static enum kith_err take_memory(struct kith_worker *worker, char *error)
{
    struct carver carver = {NULL, 0};
    carve_all(worker, &carver);
    if (carver.used == 0)
        return KITH_OK;
    carver.base = kith_aligned_zero(carver.used, &worker->block);
    if (carver.base == NULL)
        return refuse(error, KITH_ENOMEM, "no memory for the model's vectors");
    carver.used = 0;
    carve_all(worker, &carver);
    for (unsigned role = 0; role < KITH_ROLES; role++)
        worker->vectors[role] = worker->slots[kith_worker_role(role)];
    return KITH_OK;
}

static enum kith_err take_rows(struct kith_worker *worker,
                               const struct kith_worker_config *config,
                               char *error)
{
    if (worker->train == NULL)
        return KITH_OK;
    const enum kith_err err =
        kith_split_rows(&worker->experiment->data.split, worker->train,
                        worker->experiment->seed, config->peers, worker->self,
                        &worker->rows, &worker->row_count);
    if (err == KITH_EINVAL) {
        (void)snprintf(error, KITH_DATA_ERROR_BYTES,
                       "data.split: %zu rows of %u classes cannot be divided "
                       "among %u peers",
                       worker->train->count, worker->train->classes,
                       config->peers);
        return err;
    }
    if (err == KITH_OK)
        worker->order = malloc(worker->row_count * sizeof *worker->order);
    if (worker->order == NULL)
        return refuse(error, KITH_ENOMEM, "no memory for the list of rows");
    kith_worker_seek(worker, 0, 0);
    return KITH_OK;
}

/* Starting weights are drawn in float64, the same for every backend. */
static enum kith_err start_weights(struct kith_worker *worker, char *error)
{
    if (worker->dim == 0)
        return KITH_OK;
    double *x = malloc(worker->dim * sizeof *x);
    if (x == NULL)
        return refuse(error, KITH_ENOMEM, "no memory for starting weights");
    worker->model->start(&worker->experiment->model_config,
                         worker->experiment->seed, worker->self, x);
    worker->backend->write(worker->dim, x, worker->slots[KITH_SLOT_LIVE]);
    free(x);
    return KITH_OK;
}

enum kith_err kith_worker_open(const struct kith_worker_config *config,
                               struct kith_worker **out, char *error)
{
    *out = NULL;
    const struct kith_experiment *experiment = config->experiment;
    KITH_ASSERT(config->edges_max <= KITH_DEGREE_MAX);
    enum kith_err err = check_data(config, error);
    if (err != KITH_OK)
        return err;
    const bool needs_data = experiment->model->needs_data;
    if (needs_data && (experiment->train.batch == 0 ||
                       experiment->train.batch > KITH_BATCH_MAX))
        return refuse(error, KITH_ELIMIT, "train.batch must be 1 to 2^20");
    const uint32_t slot_count = KITH_SLOT_ROUND_INBOX + 2 * config->edges_max;
    struct kith_worker *worker =
        calloc(1, sizeof *worker + slot_count * sizeof worker->slots[0]);
    if (worker == NULL)
        return refuse(error, KITH_ENOMEM, "no memory");
    worker->experiment = experiment;
    worker->backend = config->backend;
    worker->algorithm = experiment->gossip.algorithm;
    worker->model = experiment->model;
    worker->train = needs_data ? config->train : NULL;
    worker->self = config->self;
    worker->steps = config->steps;
    worker->slot_count = slot_count;
    worker->dim = experiment->model->dim(&experiment->model_config);
    worker->bytes = worker->dim * config->backend->element_bytes;
    memcpy(worker->scalars, worker->algorithm->scalars_start,
           sizeof worker->scalars);
    err = take_memory(worker, error);
    if (err == KITH_OK)
        err = take_rows(worker, config, error);
    if (err == KITH_OK)
        err = start_weights(worker, error);
    if (err != KITH_OK) {
        kith_worker_close(worker);
        return err;
    }
    *out = worker;
    return KITH_OK;
}

void kith_worker_close(struct kith_worker *worker)
{
    if (worker == NULL)
        return;
    free(worker->block);
    free(worker->rows);
    free(worker->order);
    free(worker);
}

size_t kith_worker_dim(const struct kith_worker *worker)
{
    return worker->dim;
}

size_t kith_worker_bytes(const struct kith_worker *worker)
{
    return worker->bytes;
}

void *kith_worker_slot(struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(slot < worker->slot_count);
    KITH_ASSERT(pattern_uses(worker->algorithm->pattern, slot));
    return worker->slots[slot];
}

void *kith_worker_swap(struct kith_worker *worker, uint32_t slot, void *memory)
{
    for (unsigned role = 0; role < KITH_ROLES; role++)
        KITH_ASSERT(slot != kith_worker_role(role));
    void *old = kith_worker_slot(worker, slot);
    worker->slots[slot] = memory;
    return old;
}

double *kith_worker_scalars(struct kith_worker *worker)
{
    return worker->scalars;
}

double kith_worker_factor(const struct kith_worker *worker)
{
    return worker->algorithm->factor == NULL
               ? 1.0
               : worker->algorithm->factor(worker->scalars);
}

void kith_worker_read(struct kith_worker *worker, double *z)
{
    const double factor = kith_worker_factor(worker);
    worker->backend->read(worker->dim, worker->slots[KITH_SLOT_LIVE], z);
    for (size_t i = 0; i < worker->dim; i++)
        z[i] *= factor;
}
