/* A worker is opened, measured and closed, and what is read out of it. */
#include "worker_state.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/backend.h"
#include "kith/text.h"

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

static enum kith_err find_rows(struct kith_worker *worker,
                               const struct kith_worker_config *config)
{
    const struct kith_shares *shares = config->shares;
    if (shares != NULL) {
        const size_t first = shares->first[worker->self];
        worker->rows = shares->rows + first;
        worker->row_count = shares->first[worker->self + 1] - first;
        return KITH_OK;
    }
    const enum kith_err err = kith_split_rows(
        worker->task.split, worker->train, worker->task.seed, config->peers,
        worker->self, &worker->found_rows, &worker->row_count);
    worker->rows = worker->found_rows;
    return err;
}

static enum kith_err take_rows(struct kith_worker *worker,
                               const struct kith_worker_config *config,
                               char *error)
{
    if (worker->train == NULL)
        return KITH_OK;
    const enum kith_err err = find_rows(worker, config);
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
        .lender = worker->lender != NULL ? worker->lender->loader : NULL,
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

/* In float64, the same for every backend; false: no memory. */
static bool draw_weights(struct kith_worker *worker)
{
    double *x = malloc(worker->dim * sizeof *x);
    if (x == NULL)
        return false;
    kith_graph_start(worker->network, worker->task.seed, worker->self, x);
    worker->backend->write(worker->dim, x, worker->slots[KITH_SLOT_LIVE]);
    free(x);
    return true;
}

/* A lender never runs. */
const void *kith_worker_first(const struct kith_worker *lender)
{
    KITH_ASSERT(lender->lender == NULL);
    return lender->model->build != NULL ? lender->slots[KITH_SLOT_LIVE] : NULL;
}

/* A trainer has its own. */
static enum kith_err start_weights(struct kith_worker *worker, char *error)
{
    const struct kith_worker *lender = worker->lender;
    if (worker->dim == 0)
        return KITH_OK;
    if (worker->trainer != NULL)
        return kith_worker_trainer_begin(worker)
                   ? KITH_OK
                   : REFUSE(KITH_EINVAL, "its trainer does not begin");
    const void *const first = lender != NULL ? kith_worker_first(lender) : NULL;
    KITH_ASSERT(worker->lent.first == NULL || first != NULL);
    if (first != NULL) {
        if (worker->lent.first == NULL)
            worker->backend->copy(worker->dim, worker->slots[KITH_SLOT_LIVE],
                                  first);
    } else if (!draw_weights(worker)) {
        return REFUSE(KITH_ENOMEM, "no memory for starting weights");
    }
    kith_worker_residues_begin(worker);
    if (worker->algorithm->start != NULL) {
        struct kith_algebra algebra = kith_worker_algebra(worker);
        worker->algorithm->start(&algebra);
    }
    return KITH_OK;
}

static void lay_out(struct kith_worker *worker,
                    const struct kith_layout *layout)
{
    worker->layout = layout;
    worker->dim = layout->dim;
    worker->bytes = layout->gossiped * worker->backend->element_bytes;
}

static size_t network_rows(const struct kith_worker *worker)
{
    return worker->model->input == KITH_INPUT_NONE ? 1
                                                   : kith_worker_rows(worker);
}

/* `open`: kith_graph_open or kith_graph_plan. */
static enum kith_err
open_network(struct kith_worker *worker,
             enum kith_err (*open)(const struct kith_model *model,
                                   const struct kith_model_config *config,
                                   const struct kith_graph_options *options,
                                   struct kith_graph **network, char *words),
             char *error)
{
    const struct kith_task *task = &worker->task;
    const struct kith_graph_options options = {
        .backend = worker->backend,
        .rows = network_rows(worker),
        .training = true,
        .recompute = task->training->recompute,
        .weights_first = kith_worker_in_buckets(worker),
        .smoothing = task->training->smoothing};
    char words[KITH_MODEL_ERROR_BYTES] = "";
    const enum kith_err err = open(worker->model, task->model_config, &options,
                                   &worker->network, words);
    if (err != KITH_OK)
        return REFUSE(err, "%s", words);
    lay_out(worker, kith_graph_layout(worker->network));
    return KITH_OK;
}

static void open_borrowed(struct kith_worker *worker,
                          const struct kith_worker *lender)
{
    KITH_ASSERT(lender->task.training->batch == worker->task.training->batch);
    lay_out(worker, lender->layout);
    kith_worker_borrow(worker, lender);
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

/* Rounds of an all-reduce, or of one for each bucket; 1 of other graphs, or
 * where none was opened. */
static uint64_t cycle_of(const struct kith_topology *graph)
{
    const bool is_cycle =
        graph != NULL && graph->kind != NULL && graph->kind->collective;
    return is_cycle ? kith_topology_period(graph) : 1;
}

/* NULL: no memory. */
static struct kith_worker *
without_vectors(const struct kith_worker_config *config)
{
    const struct kith_task *task = &config->task;
    const uint32_t slot_count =
        KITH_SLOT_ROUND_EDGES + KITH_SLOTS_PER_EDGE * config->edges_max;
    struct kith_worker *worker =
        calloc(1, sizeof *worker + slot_count * sizeof worker->slots[0]);
    KITH_ASSERT(config->edges_max <= KITH_DEGREE_MAX);
    if (worker == NULL)
        return NULL;
    worker->task = *task;
    worker->cycle = cycle_of(task->graph);
    worker->backend = config->backend;
    worker->algorithm = task->algorithm;
    worker->packing.format =
        task->format == NULL || task->format->raw ? NULL : task->format;
    worker->model = task->model;
    worker->trainer = config->trainer;
    worker->self = config->self;
    worker->steps = config->steps;
    worker->slot_count = slot_count;
    worker->edge_count = config->edges_max;
    worker->peers = config->peers;
    worker->keeps = config->keeps || !task->training->recover_from_save;
    worker->vectors_from = config->vectors;
    worker->lent.is_on = config->x != NULL;
    worker->slots[KITH_SLOT_LIVE] = config->x;
    worker->lent.first = config->x_is_first ? config->x : NULL;
    memcpy(worker->scalars, worker->algorithm->scalars_start,
           sizeof worker->scalars);
    return worker;
}

/* Beside its vectors. The guard comes when starting values have gone. */
static void measure_rest(const struct kith_worker_config *config,
                         const struct kith_worker *worker,
                         struct kith_worker_memory *memory)
{
    const struct kith_model *model = worker->model;
    const struct kith_model_size size =
        kith_model_size_of(model, config->task.model_config);
    const size_t start =
        worker->trainer != NULL ? 0 : worker->dim * sizeof(double);
    const size_t guard = kith_worker_guard_bytes(worker);
    memory->training += start > guard ? start : guard;
    memory->batch =
        (worker->network == NULL ? 0 : kith_graph_bytes(worker->network)) +
        (model->input == KITH_INPUT_NONE
             ? 0
             : kith_loader_bytes(model->input, size.features, worker->backend,
                                 network_rows(worker), config->ahead));
}

/* Without the views. */
static const struct kith_layout *
roughly(const struct kith_worker_config *config, struct kith_layout *layout)
{
    const struct kith_model_size size =
        kith_model_size_of(config->task.model, config->task.model_config);
    *layout = (struct kith_layout){
        .dim = size.dim, .trained = size.trained, .gossiped = size.gossiped};
    return layout;
}

enum kith_err kith_worker_measure(const struct kith_worker_config *config,
                                  struct kith_worker_memory *memory)
{
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_layout layout; /* where the backend is on other machines */
    struct kith_worker *worker = without_vectors(config);
    if (worker == NULL)
        return KITH_ENOMEM;
    enum kith_err err = KITH_OK;
    if (worker->backend->missing() == NULL)
        err = open_network(worker, kith_graph_plan, error);
    else
        lay_out(worker, roughly(config, &layout));
    if (err == KITH_OK)
        err = open_algorithm(worker, error);
    if (err == KITH_OK) {
        kith_worker_vectors_measure(worker, memory);
        measure_rest(config, worker, memory);
    }
    kith_worker_close(worker);
    return err;
}

enum kith_err kith_worker_open(const struct kith_worker_config *config,
                               struct kith_worker **out, char *error)
{
    *out = NULL;
    const struct kith_task *task = &config->task;
    KITH_ASSERT(config->lender == NULL || kith_worker_may_borrow(config));
    KITH_ASSERT(config->x == NULL ||
                (config->lender != NULL && kith_worker_may_be_lent(config)));
    enum kith_err err =
        config->lender != NULL ? KITH_OK : check_data(config, error);
    if (err != KITH_OK)
        return err;
    const bool needs_data = task->model->input != KITH_INPUT_NONE;
    if (needs_data &&
        (task->training->batch == 0 || task->training->batch > KITH_BATCH_MAX))
        return REFUSE(KITH_ELIMIT, "train.batch must be 1 to 2^20");
    struct kith_worker *worker = without_vectors(config);
    if (worker == NULL)
        return REFUSE(KITH_ENOMEM, "no memory");
    worker->train = needs_data ? config->train : NULL;
    if (config->lender == NULL)
        err = open_network(worker, kith_graph_open, error);
    else
        open_borrowed(worker, config->lender);
    if (err == KITH_OK)
        err = open_algorithm(worker, error);
    if (err == KITH_OK && !kith_worker_parts_open(worker))
        err = REFUSE(KITH_ENOMEM, "no memory for the parts of a step");
    if (err == KITH_OK && !kith_worker_norms_open(worker))
        err = REFUSE(KITH_ENOMEM, "no memory for LARS' rates");
    if (err == KITH_OK)
        err = kith_worker_vectors_take(worker, config->together, error);
    if (err == KITH_OK)
        err = take_rows(worker, config, error);
    if (err == KITH_OK)
        err = start_weights(worker, error);
    if (err == KITH_OK && !kith_worker_guard_open(worker, config->known))
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

bool kith_worker_may_borrow(const struct kith_worker_config *config)
{
    const struct kith_task *task = &config->task;
    return config->trainer == NULL && kith_model_learns(task->model) &&
           config->backend->host == config->backend && !config->ahead &&
           (task->guard == NULL || !task->guard->looks_at_loss) &&
           !(task->algorithm->flags & KITH_SHARES_GRADIENTS);
}

void kith_worker_borrow(struct kith_worker *worker,
                        const struct kith_worker *lender)
{
    KITH_ASSERT(lender->lender == NULL);
    worker->lender = lender;
    worker->network = lender->network;
    worker->gradient = lender->gradient;
    worker->at = lender->at;
    worker->scratch = lender->scratch;
    kith_worker_guard_borrow(worker, lender);
    if (worker->loader != NULL)
        kith_loader_borrow(worker->loader, lender->loader);
}

void kith_worker_close(struct kith_worker *worker)
{
    if (worker == NULL)
        return;
    kith_worker_guard_close(worker);
    kith_worker_lie_close(worker);
    kith_loader_close(worker->loader);
    if (worker->lender == NULL)
        kith_graph_close(worker->network);
    kith_worker_parts_close(worker);
    kith_worker_trainer_end(worker);
    kith_worker_vectors_give(worker);
    free(worker->found_rows);
    free(worker->edges);
    free(worker->inboxes);
    free(worker->edge_scalars);
    free(worker->norms.rates);
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
    KITH_ASSERT(kith_worker_uses(worker, slot));
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
    if (failed == NULL && worker->trainer_failed)
        failed = "its trainer's step failed";
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
    /* A model that is pulled is longer than a packed message, and rare. */
    const size_t bytes = worker->packing.format == NULL
                             ? kith_worker_slot_bytes(worker, slot)
                             : worker->payload;
    if (worker->backend->arrived != NULL)
        worker->backend->arrived(worker->slots[slot], bytes);
}

void *kith_worker_swap(struct kith_worker *worker, uint32_t slot, void *memory)
{
    KITH_ASSERT(kith_slot_is_inbox(slot));
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
    kith_worker_read_part(worker, 0, worker->dim, z);
}

void kith_worker_read_part(const struct kith_worker *worker, size_t first,
                           size_t count, double *z)
{
    const double factor = kith_worker_factor(worker);
    const size_t gossiped = worker->layout->gossiped;
    KITH_ASSERT(first <= worker->dim && count <= worker->dim - first);
    worker->backend->read(
        count,
        kith_worker_element(worker, worker->slots[KITH_SLOT_LIVE], first), z);
    for (size_t i = 0; i < count && first + i < gossiped; i++)
        z[i] *= factor;
}

void kith_worker_read_own(const struct kith_worker *worker, unsigned index,
                          double *vector)
{
    KITH_ASSERT(index < worker->algorithm->vectors);
    worker->backend->read(worker->layout->gossiped, worker->own[index], vector);
}
