/* What each work item does to the vectors, one case per kind of work.h. */
#include "private.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/rng.h"

/* Each epoch is a shuffle of its own, so a place in the stream of batches is
 * (epoch, cursor) and a save needs no generator state. */
void kith_worker_seek(struct kith_worker *worker, uint32_t epoch, size_t cursor)
{
    struct kith_rng rng;
    KITH_ASSERT(cursor <= worker->row_count);
    kith_rng_init(&rng, worker->experiment->seed, KITH_STREAM_BATCH,
                  (uint64_t)epoch << 32 | worker->self);
    memcpy(worker->order, worker->rows,
           worker->row_count * sizeof *worker->rows);
    kith_rng_shuffle(&rng, worker->order, (uint32_t)worker->row_count);
    worker->epoch = epoch;
    worker->cursor = cursor;
}

/* The next batch, straight from bytes to the model's input. */
static void draw_batch(struct kith_worker *worker)
{
    const struct kith_examples *train = worker->train;
    const size_t row_bytes = train->features * worker->backend->element_bytes;
    const size_t rows = worker->experiment->train.batch;
    for (size_t i = 0; i < rows; i++) {
        if (worker->cursor == worker->row_count)
            kith_worker_seek(worker, worker->epoch + 1, 0);
        const size_t row = worker->order[worker->cursor++];
        worker->backend->from_bytes(train->features,
                                    train->images + row * train->features,
                                    (char *)worker->inputs + i * row_bytes);
        worker->labels[i] = train->labels[row];
    }
}

static bool is_shared(const struct kith_worker *worker, uint32_t slot)
{
    for (unsigned role = 0; role < KITH_ROLES; role++) {
        const uint32_t other = kith_worker_role(role);
        if (other != slot && worker->slots[other] == worker->slots[slot])
            return worker->bytes > 0; /* Empty vectors are all the same. */
    }
    return false;
}

/* A vector that stands in no role; there is one where two roles share one. */
static void *spare(const struct kith_worker *worker)
{
    for (unsigned i = 0; i < KITH_ROLES; i++) {
        void *vector = worker->vectors[i];
        bool used = vector == NULL;
        for (unsigned role = 0; role < KITH_ROLES && !used; role++)
            used = worker->slots[kith_worker_role(role)] == vector;
        if (!used)
            return vector;
    }
    KITH_ASSERT(false);
    return NULL;
}

/* x, safe to be written: a snapshot that is x stays behind. `keep`: with its
 * values. */
static void *own_live(struct kith_worker *worker, bool keep)
{
    void *const old = worker->slots[KITH_SLOT_LIVE];
    if (!is_shared(worker, KITH_SLOT_LIVE))
        return old;
    void *const fresh = spare(worker);
    if (keep)
        worker->backend->copy(worker->dim, fresh, old);
    worker->slots[KITH_SLOT_LIVE] = fresh;
    return fresh;
}

/* x <- x - rate g(z), z = factor x. Weight decay pulls at z, too: decay times
 * factor at x. */
static void run_train(struct kith_worker *worker, uint64_t step,
                      struct kith_work_result *result)
{
    const struct kith_experiment *experiment = worker->experiment;
    const struct kith_backend *backend = worker->backend;
    void *live = worker->slots[KITH_SLOT_LIVE];
    if (worker->model->loss == NULL)
        return;
    const double factor = kith_worker_factor(worker);
    const void *z = live;
    if (worker->at != NULL) {
        backend->copy(worker->dim, worker->at, live);
        backend->scale(worker->dim, factor, worker->at);
        z = worker->at;
    }
    struct kith_batch batch = {
        .rows = 1, .entity = worker->self, .seed = experiment->seed};
    if (worker->train != NULL) {
        draw_batch(worker);
        batch.inputs = worker->inputs;
        batch.labels = worker->labels;
        batch.rows = experiment->train.batch;
    }
    result->loss =
        worker->model->loss(&experiment->model_config, backend, z, &batch,
                            worker->gradient, NULL, worker->scratch);
    live = own_live(worker, true);
    struct kith_optimiser_config config = experiment->train.config;
    config.weight_decay *= factor;
    const double rate =
        config.learning_rate *
        kith_schedule_factor(experiment->train.schedule, step, worker->steps,
                             experiment->train.warmup_steps);
    const bool finite = experiment->train.optimiser->step(
        &config, backend, worker->dim, rate, worker->gradient, worker->state,
        live);
    result->finite = finite && isfinite(result->loss);
}

static struct kith_algebra algebra_of(struct kith_worker *worker,
                                      const struct kith_work_edge *edge)
{
    return (struct kith_algebra){
        .backend = worker->backend,
        .dim = worker->dim,
        .live = worker->slots[KITH_SLOT_LIVE],
        .scalars = worker->scalars,
        .sent = edge->sent == KITH_SLOT_NONE
                    ? NULL
                    : kith_worker_slot(worker, edge->sent),
        .received = edge->inbox == KITH_SLOT_NONE
                        ? NULL
                        : kith_worker_slot(worker, edge->inbox)};
}

/* Fills what travels: x itself, which own_live() copies should it change while
 * the snapshot stands. A pulled model is plain x in any algorithm: nothing may
 * leave the sender for a peer that starts over. */
static void run_snapshot(struct kith_worker *worker, struct kith_work *work)
{
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        if (worker->algorithm->make != NULL &&
            work->pattern != KITH_PATTERN_PULL) {
            (void)own_live(worker, true);
            if (is_shared(worker, edge->sent))
                worker->slots[edge->sent] = spare(worker);
            struct kith_algebra algebra = algebra_of(worker, edge);
            worker->algorithm->make(&algebra, edge);
            continue;
        }
        memcpy(edge->scalars_sent, worker->scalars, sizeof worker->scalars);
        worker->slots[edge->sent] = worker->slots[KITH_SLOT_LIVE];
    }
}

static void run_merge(struct kith_worker *worker, struct kith_work *work)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    if (work->snapshot_first)
        run_snapshot(worker, work);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        edge->delta_sum = 0;
        if (edge->inbox == KITH_SLOT_NONE)
            continue;
        const bool same =
            edge->sent != KITH_SLOT_NONE &&
            worker->slots[edge->sent] == worker->slots[KITH_SLOT_LIVE];
        const bool swaps = same && algorithm->swap_merge != NULL;
        (void)own_live(worker, !swaps);
        struct kith_algebra algebra = algebra_of(worker, edge);
        if (swaps)
            algorithm->swap_merge(&algebra, edge);
        else
            algorithm->merge(&algebra, edge);
    }
}

/* Where the algorithm says nothing else, merge was x += w (received - sent). */
static void run_undo(struct kith_worker *worker, struct kith_work *work)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    (void)own_live(worker, true);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        struct kith_algebra algebra = algebra_of(worker, edge);
        if (algorithm->undo != NULL)
            algorithm->undo(&algebra, edge);
        else if (algebra.received != NULL)
            (void)worker->backend->mix(worker->dim, -edge->weight,
                                       algebra.received, algebra.sent,
                                       algebra.live);
    }
}

/* A restarted peer takes its neighbour's z with weight 1 and forgets its own
 * momentum. delta_sum books what that changed. */
static void run_adopt(struct kith_worker *worker, struct kith_work *work)
{
    KITH_ASSERT(work->edge_count == 1);
    const struct kith_backend *backend = worker->backend;
    struct kith_work_edge *edge = &work->edges[0];
    const double before =
        backend->sum(worker->dim, worker->slots[KITH_SLOT_LIVE]);
    (void)own_live(worker, false);
    struct kith_algebra algebra = algebra_of(worker, edge);
    KITH_ASSERT(algebra.received != NULL);
    backend->copy(worker->dim, algebra.live, algebra.received);
    if (worker->algorithm->factor != NULL)
        backend->scale(worker->dim,
                       worker->algorithm->factor(edge->scalars_received),
                       algebra.live);
    memcpy(worker->scalars, worker->algorithm->scalars_start,
           sizeof worker->scalars);
    for (unsigned i = 0; i < KITH_STATES_MAX; i++) {
        if (worker->state[i] != NULL)
            memset(worker->state[i], 0, worker->bytes);
    }
    edge->delta_sum = backend->sum(worker->dim, algebra.live) - before;
}

void kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                     struct kith_work_result *result)
{
    *result = (struct kith_work_result){.kind = work->kind, .finite = true};
    switch (work->kind) {
    case KITH_WORK_TRAIN:
        run_train(worker, work->step, result);
        break;
    case KITH_WORK_SNAPSHOT:
        run_snapshot(worker, work);
        break;
    case KITH_WORK_MERGE:
        run_merge(worker, work);
        break;
    case KITH_WORK_UNDO:
        run_undo(worker, work);
        break;
    case KITH_WORK_ADOPT:
        run_adopt(worker, work);
        break;
    case KITH_WORK_SAVE:
    case KITH_WORK_COUNT:
        /* SAVE: the driver calls kith_save_write, it knows the path. */
        break;
    }
}
