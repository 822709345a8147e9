/* The worker's memory: one block of cache-line aligned vectors, all of it taken
 * at open, and what is read out of it. */
#define _DEFAULT_SOURCE /* madvise */
#include "worker_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "kith/text.h"

#define HUGE_PAGE ((size_t)1 << 21)

/* `bytes` rounded up to whole cache lines. */
static size_t aligned_size(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Zeroed memory, 64-byte aligned, on huge pages where that is worth it. NULL
 * where there is none; free(*owner) gives it back. */
static void *aligned_zero(size_t bytes, void **owner)
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

#define REFUSE(err, ...)                                                       \
    kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,                          \
                   "opening a worker: " __VA_ARGS__)

static enum kith_err check_data(const struct kith_worker_config *config,
                                char *error)
{
    const struct kith_task *task = &config->task;
    if (task->model->input == KITH_INPUT_NONE)
        return KITH_OK;
    if (config->train == NULL)
        return REFUSE(KITH_EINVAL, "this model needs `data:`");
    const struct kith_model_size size =
        kith_model_size_of(task->model, task->model_config);
    if (size.features == config->train->features &&
        config->train->classes <= size.classes)
        return KITH_OK;
    return kith_text_fail(error, KITH_DATA_ERROR_BYTES, KITH_EMISMATCH,
                          "model.kind: %zu inputs and %zu classes, but the "
                          "data has %zu values per example and %u classes",
                          size.features, size.classes, config->train->features,
                          config->train->classes);
}

/* A peer of any pattern asks for a whole model where it starts over, and gives
 * its own to others that do. */
static bool is_pulled(uint32_t slot)
{
    return kith_slot_is(KITH_SLOT_INITIATED_INBOX, slot) ||
           kith_slot_is(KITH_SLOT_ANSWERED_SENT, slot);
}

static bool uses(const struct kith_task *task, uint32_t slot)
{
    const struct kith_algorithm *algorithm = task->algorithm;
    const enum kith_pattern pattern = algorithm->pattern;
    if (slot == KITH_SLOT_LIVE)
        return true;
    if (slot < KITH_SLOT_ROUND_SENT && kith_slot_exchange(slot) > 0 &&
        (pattern != KITH_PATTERN_SWAP ||
         kith_slot_exchange(slot) >= task->exchanges))
        return false;
    if (is_pulled(slot))
        return pattern != KITH_PATTERN_NONE;
    if (slot < KITH_SLOT_ROUND_SENT)
        return pattern == KITH_PATTERN_SWAP || pattern == KITH_PATTERN_PUSH;
    if (pattern != KITH_PATTERN_ROUND)
        return false;
    return kith_slot_is_inbox(slot) ||
           (slot == KITH_SLOT_ROUND_SENT) !=
               ((algorithm->flags & KITH_SENDS_EDGE_MESSAGES) != 0);
}

bool kith_worker_uses(const struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(slot < worker->slot_count);
    return uses(&worker->task, slot);
}

uint32_t kith_worker_role(unsigned role)
{
    KITH_ASSERT(role < KITH_ROLES);
    /* Snapshots have the odd slots. */
    return role == 0 ? (uint32_t)KITH_SLOT_LIVE : 2 * role - 1;
}

static bool has_role(uint32_t slot)
{
    for (unsigned role = 0; role < KITH_ROLES; role++)
        if (kith_worker_role(role) == slot)
            return true;
    return false;
}

bool kith_worker_shares(const struct kith_worker *worker)
{
    return worker->backend->host == worker->backend;
}

/* Hands out pieces of the block; with a NULL base it only counts. */
struct carver {
    char *base;
    size_t used;
};

static void *carve(struct carver *carver, size_t bytes)
{
    void *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += aligned_size(bytes);
    return piece;
}

/* A pull carries the model, an exchange its message. */
static size_t slot_bytes(const struct kith_worker *worker, uint32_t slot)
{
    const bool shares = has_role(slot) && kith_worker_shares(worker);
    /* What shares may become the live model. */
    const size_t model = shares ? worker->dim * worker->backend->element_bytes
                         : is_pulled(slot) ? worker->bytes
                                           : 0;
    return model > worker->payload ? model : worker->payload;
}

/* What the algorithm keeps beside x. */
static void carve_own(struct kith_worker *worker, struct carver *carver)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    const struct kith_algebra algebra = kith_worker_algebra(worker);
    const uint32_t count = worker->edge_count * algorithm->edge_vectors;
    KITH_ASSERT(algorithm->vectors <= KITH_ALGORITHM_VECTORS_MAX);
    for (unsigned i = 0; i < algorithm->vectors; i++)
        worker->own[i] = carve(carver, worker->bytes);
    for (uint32_t i = 0; i < count; i++)
        worker->edges[i] = carve(carver, worker->bytes);
    if (algorithm->scratch_bytes != NULL)
        worker->algorithm_scratch =
            carve(carver, algorithm->scratch_bytes(&algebra));
}

/* What the host shares, and what the backend may keep to itself. */
static void carve_all(struct kith_worker *worker, struct carver *shared,
                      struct carver *carver)
{
    const struct kith_optimiser *optimiser = worker->task.training->optimiser;
    const size_t element = worker->backend->element_bytes;
    const size_t whole = worker->dim * element;
    const size_t trained = worker->layout->trained * element;
    const bool shares = kith_worker_shares(worker);
    for (uint32_t slot = 0; slot < worker->slot_count; slot++) {
        if (!uses(&worker->task, slot))
            continue;
        worker->slots[slot] =
            slot == KITH_SLOT_LIVE && !shares ? carve(carver, whole)
            : slot == KITH_SLOT_LIVE ? carve(carver, slot_bytes(worker, slot))
                                     : carve(shared, slot_bytes(worker, slot));
    }
    carve_own(worker, carver);
    if (!kith_model_learns(worker->model))
        return;
    worker->gradient = carve(carver, trained);
    worker->recovery.is_on = worker->algorithm->pattern != KITH_PATTERN_NONE &&
                             element < sizeof(double);
    if (worker->recovery.is_on && worker->keeps)
        worker->recovery.good = carve(carver, whole);
    if (worker->algorithm->factor != NULL &&
        !(worker->algorithm->flags & KITH_STEPS_AT_Z))
        worker->at = carve(carver, whole);
    KITH_ASSERT(optimiser->state_vectors <= KITH_STATES_MAX);
    for (unsigned i = 0; i < optimiser->state_vectors; i++)
        worker->state[i] = carve(carver, trained);
    if (optimiser->scratch != NULL)
        worker->scratch =
            carve(carver, optimiser->scratch(worker->layout, worker->backend));
}

/* On the host pages that nobody touches cost nothing. */
static bool take_block(const struct kith_worker *worker, bool shared,
                       struct carver *carver, void **owner)
{
    const struct kith_backend *backend = worker->backend;
    if (carver->used > 0 && backend->host == backend)
        carver->base = aligned_zero(carver->used, owner);
    else if (carver->used > 0)
        carver->base = *owner = backend->alloc(carver->used, shared);
    const bool taken = carver->used == 0 || carver->base != NULL;
    carver->used = 0;
    return taken;
}

static void give_block(const struct kith_worker *worker, void *owner)
{
    if (worker->backend->host == worker->backend)
        free(owner);
    else
        worker->backend->release(owner);
}

/* What every step touches, of all workers of the process, before any is taken:
 * the system gives what it does not have, and ends who uses it. */
static enum kith_err check_memory(const struct kith_worker *worker,
                                  uint32_t together, size_t own, char *error)
{
    const double needed = (double)own * (together > 0 ? together : 1);
    if (worker->backend->host != worker->backend || needed < 0x1p30 ||
        worker->self > 0)
        return KITH_OK;
    const size_t found = kith_host_available();
    if (needed <= (double)found)
        return KITH_OK;
    return REFUSE(KITH_ENOMEM,
                  "%u times the model's vectors, %.2f GiB each, need %.1f GiB "
                  "of memory, %.1f GiB are free; take a smaller model, fewer "
                  "peers, or train.recover_from_save (one vector less)",
                  together > 0 ? together : 1, (double)own / 0x1p30,
                  needed / 0x1p30, (double)found / 0x1p30);
}

static enum kith_err refuse_block(const struct kith_worker *worker, bool shared,
                                  size_t bytes, char *error)
{
    const bool host = worker->backend->host == worker->backend;
    uint32_t slots = 0;
    for (uint32_t slot = 1; slot < worker->slot_count; slot++)
        slots += uses(&worker->task, slot);
    if (shared && !host)
        return REFUSE(KITH_ENOMEM,
                      "the system refuses to pin %.1f MiB for the %u vectors "
                      "that are sent and received; free memory of the host, or "
                      "take fewer neighbours",
                      (double)bytes / 0x1p20, slots);
    return REFUSE(KITH_ENOMEM,
                  "no memory on %s for the model's vectors, %.1f MiB; take a "
                  "smaller model or fewer peers",
                  worker->backend->name, (double)bytes / 0x1p20);
}

static enum kith_err take_memory(struct kith_worker *worker, uint32_t together,
                                 char *error)
{
    struct carver shared = {NULL, 0}, own = {NULL, 0};
    carve_all(worker, &shared, &own);
    const enum kith_err err = check_memory(
        worker, together, own.used + kith_worker_packing_bytes(worker), error);
    if (err != KITH_OK)
        return err;
    if (!kith_worker_packing_open(worker, false))
        return REFUSE(KITH_ENOMEM, "no memory for what is unpacked");
    const size_t shared_bytes = shared.used, own_bytes = own.used;
    if (!take_block(worker, true, &shared, &worker->shared))
        return refuse_block(worker, true, shared_bytes, error);
    if (!take_block(worker, false, &own, &worker->memory))
        return refuse_block(worker, false, own_bytes, error);
    carve_all(worker, &shared, &own);
    for (unsigned role = 0; role < KITH_ROLES; role++)
        worker->vectors[role] = kith_worker_role(role) < worker->slot_count
                                    ? worker->slots[kith_worker_role(role)]
                                    : NULL;
    return KITH_OK;
}

static enum kith_err take_rows(struct kith_worker *worker,
                               const struct kith_worker_config *config,
                               char *error)
{
    if (worker->train == NULL)
        return KITH_OK;
    const enum kith_err err = kith_split_rows(
        worker->task.split, worker->train, worker->task.seed, config->peers,
        worker->self, &worker->rows, &worker->row_count);
    if (err == KITH_EINVAL)
        return kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,
                              "data.split: %zu rows of %u classes cannot be "
                              "divided among %u peers",
                              worker->train->count, worker->train->classes,
                              config->peers);
    if (err != KITH_OK)
        return REFUSE(err, "no memory for the list of rows");
    const struct kith_loader_config loader = {
        .examples = worker->train,
        .backend = worker->backend,
        .rows = worker->rows,
        .row_count = worker->row_count,
        .batch = kith_worker_rows(worker),
        .seed = worker->task.seed,
        .entity = worker->self,
        .augment = worker->task.training->augment,
        .shuffle = true,
        .ahead = config->ahead,
    };
    return kith_loader_open(&loader, &worker->loader, error);
}

uint32_t kith_worker_parts(const struct kith_worker *worker)
{
    const uint32_t parts = worker->task.training->accumulate;
    return parts > 0 ? parts : 1;
}

size_t kith_worker_rows(const struct kith_worker *worker)
{
    return worker->task.training->batch / kith_worker_parts(worker);
}

struct kith_worker_content kith_worker_content(struct kith_worker *worker)
{
    worker->packing.of_live = NULL; /* x may be written */
    return (struct kith_worker_content){
        .task = &worker->task,
        .backend = worker->backend,
        .layout = worker->layout,
        .train = worker->train,
        .self = worker->self,
        .scalars = worker->scalars,
        .model = worker->slots[KITH_SLOT_LIVE],
        .states = worker->state,
        .own = worker->own,
    };
}

struct kith_place kith_worker_place(const struct kith_worker *worker)
{
    return worker->loader == NULL ? (struct kith_place){0, 0}
                                  : kith_loader_place(worker->loader);
}

enum kith_err kith_worker_go_to(struct kith_worker *worker,
                                struct kith_place place)
{
    if (worker->loader != NULL)
        return kith_loader_seek(worker->loader, place);
    return place.epoch == 0 && place.cursor == 0 ? KITH_OK : KITH_EINVAL;
}

void kith_worker_data(const struct kith_worker *worker,
                      struct kith_data_counts *counts, uint64_t *waited_ns)
{
    *waited_ns = 0;
    if (worker->loader == NULL)
        return;
    kith_loader_count(worker->loader, counts);
    *waited_ns = kith_loader_waited(worker->loader);
}

/* Starting weights are drawn in float64, the same for every backend. */
static enum kith_err start_weights(struct kith_worker *worker, char *error)
{
    if (worker->dim == 0)
        return KITH_OK;
    double *x = malloc(worker->dim * sizeof *x);
    if (x == NULL)
        return REFUSE(KITH_ENOMEM, "no memory for starting weights");
    kith_graph_start(worker->network, worker->task.seed, worker->self, x);
    worker->backend->write(worker->dim, x, worker->slots[KITH_SLOT_LIVE]);
    free(x);
    kith_worker_residues_begin(worker);
    if (worker->algorithm->start != NULL) {
        struct kith_algebra algebra = kith_worker_algebra(worker);
        worker->algorithm->start(&algebra);
    }
    return KITH_OK;
}

static enum kith_err open_network(struct kith_worker *worker, char *error)
{
    const struct kith_task *task = &worker->task;
    const struct kith_graph_options options = {
        .backend = worker->backend,
        .rows = worker->train == NULL ? 1 : kith_worker_rows(worker),
        .training = true,
        .recompute = task->training->recompute,
        .smoothing = task->training->smoothing};
    char words[KITH_MODEL_ERROR_BYTES] = "";
    const enum kith_err err = kith_graph_open(
        worker->model, task->model_config, &options, &worker->network, words);
    if (err != KITH_OK)
        return REFUSE(err, "%s", words);
    worker->layout = kith_graph_layout(worker->network);
    worker->dim = worker->layout->dim;
    worker->bytes = worker->layout->gossiped * worker->backend->element_bytes;
    return KITH_OK;
}

static enum kith_err open_algorithm(struct kith_worker *worker, char *error)
{
    const size_t dim = worker->layout->gossiped;
    const size_t count =
        (size_t)worker->edge_count * worker->algorithm->edge_vectors;
    worker->task.compression.dim = dim;
    const struct kith_algebra algebra = kith_worker_algebra(worker);
    worker->message = kith_algorithm_payload(worker->algorithm, &algebra);
    worker->payload =
        kith_format_bytes(worker->packing.format, worker->task.wire_share,
                          worker->backend, worker->message);
    worker->edges = calloc(count + 1, sizeof *worker->edges);
    worker->inboxes = calloc(worker->edge_count + 1, sizeof *worker->inboxes);
    worker->edge_scalars =
        calloc(worker->edge_count + 1, KITH_EDGE_SCALARS * sizeof(double));
    const bool enough = worker->edges != NULL && worker->inboxes != NULL &&
                        worker->edge_scalars != NULL;
    return enough ? KITH_OK : REFUSE(KITH_ENOMEM, "no memory");
}

/* Rounds of an all-reduce; 1 of other graphs, or where none was opened. */
static uint64_t cycle_of(const struct kith_topology *graph)
{
    const bool is_cycle =
        graph != NULL && graph->kind != NULL && graph->kind->collective;
    return is_cycle ? kith_topology_period(graph) : 1;
}

enum kith_err kith_worker_open(const struct kith_worker_config *config,
                               struct kith_worker **out, char *error)
{
    *out = NULL;
    const struct kith_task *task = &config->task;
    KITH_ASSERT(config->edges_max <= KITH_DEGREE_MAX);
    enum kith_err err = check_data(config, error);
    if (err != KITH_OK)
        return err;
    const bool needs_data = task->model->input != KITH_INPUT_NONE;
    if (needs_data &&
        (task->training->batch == 0 || task->training->batch > KITH_BATCH_MAX))
        return REFUSE(KITH_ELIMIT, "train.batch must be 1 to 2^20");
    const uint32_t slot_count =
        KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * config->edges_max;
    struct kith_worker *worker =
        calloc(1, sizeof *worker + slot_count * sizeof worker->slots[0]);
    if (worker == NULL)
        return REFUSE(KITH_ENOMEM, "no memory");
    worker->task = *task;
    worker->cycle = cycle_of(task->graph);
    worker->backend = config->backend;
    worker->algorithm = task->algorithm;
    worker->packing.format =
        task->format == NULL || task->format->raw ? NULL : task->format;
    worker->model = task->model;
    worker->train = needs_data ? config->train : NULL;
    worker->self = config->self;
    worker->steps = config->steps;
    worker->slot_count = slot_count;
    worker->edge_count = config->edges_max;
    worker->peers = config->peers;
    worker->keeps = config->keeps || !task->training->recover_from_save;
    memcpy(worker->scalars, worker->algorithm->scalars_start,
           sizeof worker->scalars);
    err = open_network(worker, error);
    if (err == KITH_OK)
        err = open_algorithm(worker, error);
    if (err == KITH_OK)
        err = take_memory(worker, config->together, error);
    if (err == KITH_OK)
        err = take_rows(worker, config, error);
    if (err == KITH_OK)
        err = start_weights(worker, error);
    if (err == KITH_OK && !kith_worker_guard_open(worker))
        err = REFUSE(KITH_ENOMEM, "no memory for the guard");
    if (kith_worker_failed(worker) != NULL)
        err = REFUSE(KITH_EDEVICE, "%s", kith_worker_failed(worker));
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
    kith_worker_guard_close(worker);
    kith_worker_lie_close(worker);
    kith_loader_close(worker->loader);
    kith_graph_close(worker->network);
    give_block(worker, worker->memory);
    give_block(worker, worker->shared);
    free(worker->rows);
    free(worker->edges);
    free(worker->inboxes);
    free(worker->edge_scalars);
    kith_worker_packing_close(worker);
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

size_t kith_worker_payload(const struct kith_worker *worker)
{
    return worker->payload;
}

void *kith_worker_slot(struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(slot < worker->slot_count);
    KITH_ASSERT(uses(&worker->task, slot));
    if (slot == KITH_SLOT_LIVE)
        worker->packing.of_live = NULL; /* x may be written */
    return worker->slots[slot];
}

const char *kith_worker_failed(const struct kith_worker *worker)
{
    const struct kith_backend *backend = worker->backend;
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    if (failed == NULL && worker->loader != NULL)
        failed = kith_loader_failed(worker->loader);
    return failed == NULL ? worker->lying.failed : failed;
}

const char *kith_worker_notice(const struct kith_worker *worker)
{
    const struct kith_backend *backend = worker->backend;
    return backend->notice == NULL ? NULL : backend->notice();
}

/* In this order: a copy that failed has settled, too. */
enum kith_outgoing kith_worker_outgoing(const struct kith_worker *worker,
                                        uint32_t slot, bool wait)
{
    const struct kith_backend *backend = worker->backend;
    KITH_ASSERT(kith_slot_snapshot(slot) < KITH_SLOT_ROUND_EDGES);
    if (worker->not_finite_slots[kith_slot_snapshot(slot)])
        return KITH_OUTGOING_NEVER;
    if (backend->settled != NULL &&
        !backend->settled(worker->slots[slot], wait))
        return KITH_OUTGOING_WAITS;
    return kith_worker_failed(worker) == NULL ? KITH_OUTGOING_READY
                                              : KITH_OUTGOING_NEVER;
}

void kith_worker_arrived(const struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(slot < worker->slot_count);
    if (worker->backend->arrived != NULL)
        worker->backend->arrived(worker->slots[slot], slot_bytes(worker, slot));
}

void *kith_worker_swap(struct kith_worker *worker, uint32_t slot, void *memory)
{
    KITH_ASSERT(!has_role(slot));
    void *old = kith_worker_slot(worker, slot);
    worker->slots[slot] = memory;
    return old;
}

double *kith_worker_scalars(struct kith_worker *worker)
{
    return worker->scalars;
}

double kith_worker_factor_of(const struct kith_worker *worker,
                             const double *scalars)
{
    return worker->algorithm->factor == NULL
               ? 1
               : worker->algorithm->factor(scalars);
}

double kith_worker_factor(const struct kith_worker *worker)
{
    return kith_worker_factor_of(worker, worker->scalars);
}

void kith_worker_read(struct kith_worker *worker, double *z)
{
    const double factor = kith_worker_factor(worker);
    worker->backend->read(worker->dim, worker->slots[KITH_SLOT_LIVE], z);
    for (size_t i = 0; i < worker->layout->gossiped; i++)
        z[i] *= factor;
}
