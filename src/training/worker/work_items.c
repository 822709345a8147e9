/* What each work item does to the vectors, one case per kind of work.h. */
#include "worker_state.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"

struct kith_algebra kith_worker_edge_algebra(struct kith_worker *worker,
                                             const struct kith_work *work,
                                             const struct kith_work_edge *edge)
{
    struct kith_algebra algebra = kith_worker_algebra(worker);
    if (worker->waiting == 0)
        algebra.gradient = NULL;
    algebra.step = work->step;
    algebra.round = work->round;
    algebra.rate = kith_worker_rate(worker, work->step);
    /* Nothing is sent for a model that is pulled. */
    if (edge->sent != KITH_SLOT_NONE && work->kind != KITH_WORK_ADOPT)
        algebra.sent = kith_worker_sent(worker, edge->sent);
    /* While a snapshot is made the driver may yet put a model there. */
    if (edge->inbox != KITH_SLOT_NONE && work->kind != KITH_WORK_SNAPSHOT &&
        work->kind != KITH_WORK_TRAIN)
        algebra.received = kith_worker_unpacked(worker, edge->inbox);
    const uint32_t slot =
        edge->inbox != KITH_SLOT_NONE ? edge->inbox : edge->sent;
    if (slot >= KITH_SLOT_ROUND_EDGES && slot < worker->slot_count)
        algebra.edge_index = kith_slot_edge(slot);
    return algebra;
}

/* A delta against an old snapshot may carry a variance below 0 while the batch
 * statistics move, whether it is added or taken back; no average of variances
 * does. Returns what that added. */
static double clamp_variances(struct kith_worker *worker)
{
    const struct kith_backend *backend = worker->backend;
    double chunk[256], added = 0;
    for (uint32_t v = 0; v < worker->layout->view_count; v++) {
        const struct kith_model_view *view = &worker->layout->views[v];
        if (view->kind != KITH_VIEW_VARIANCE)
            continue;
        for (size_t at = 0, count; at < view->elements; at += count) {
            void *x = kith_worker_element(worker, worker->slots[KITH_SLOT_LIVE],
                                          view->offset + at);
            double missing = 0;
            count = view->elements - at < 256 ? view->elements - at : 256;
            backend->read(count, x, chunk);
            for (size_t i = 0; i < count; i++) {
                if (chunk[i] < 0) {
                    missing -= chunk[i];
                    chunk[i] = 0;
                }
            }
            if (missing > 0)
                backend->write(count, chunk, x);
            added += missing;
        }
    }
    return added;
}

/* An entry of a mixing matrix: the topology's, never a peer's. Above 1 an
 * average would extrapolate, and buffers leave the range of what was averaged.
 * Test: property/test_topologies.c */
static void check_weight(const struct kith_work_edge *edge)
{
    KITH_ASSERT(edge->weight >= 0 && edge->weight <= 1);
}

static void merge_edge(struct kith_worker *worker, const struct kith_work *work,
                       struct kith_work_edge *edge, double let_in)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    check_weight(edge);
    const bool beside = (algorithm->flags & KITH_MERGES_BESIDE) != 0 &&
                        kith_worker_is_shared(worker, KITH_SLOT_LIVE) &&
                        !worker->packing.streams;
    const void *const before = beside ? worker->slots[KITH_SLOT_LIVE] : NULL;
    (void)kith_worker_own_live(worker, !beside);
    struct kith_algebra algebra = kith_worker_edge_algebra(worker, work, edge);
    algebra.before = before;
    algebra.withheld = 1 - let_in;
    worker->passes++;
    if (worker->packing.streams)
        kith_worker_packed_mix(worker, algorithm->merge, &algebra, edge);
    else
        algorithm->merge(&algebra, edge);
    kith_worker_norms_take(worker, work, edge);
    kith_worker_guard_merged(worker, edge);
}

/* Everything that MERGE says of an edge; does it have something to merge?
 * `let_in`: how much of it. */
static bool is_let_in(struct kith_worker *worker, const struct kith_work *work,
                      struct kith_work_edge *edge, double *let_in)
{
    const bool is_spoilt =
        (worker->packing.spoilt >> (edge - work->edges) & 1) != 0;
    edge->delta_sum = 0;
    edge->refused = false;
    edge->far = KITH_FAR_UNKNOWN;
    if (edge->inbox == KITH_SLOT_NONE ||
        kith_worker_is_stale(worker, edge->sent))
        return false;
    if (is_spoilt) {
        edge->refused = true;
        return false;
    }
    if (!kith_worker_is_read(worker, edge->inbox)) {
        /* Nothing of it can be read, here and there. */
        kith_worker_residues_follow(worker, (uint32_t)(edge - work->edges));
        return false;
    }
    *let_in = kith_worker_guard_weigh(worker, edge);
    edge->refused = kith_worker_is_far(worker, edge) && *let_in > 0;
    if (edge->refused)
        kith_worker_guard_merged(worker, edge); /* nothing to book */
    if (kith_algorithm_gives_weight(worker->algorithm))
        return !edge->refused;
    edge->weight *= *let_in; /* as UNDO takes it back */
    return !edge->refused && *let_in > 0;
}

static double finish_round(struct kith_worker *worker,
                           const struct kith_work *work)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    if (algorithm->finish == NULL || work->pattern != KITH_PATTERN_ROUND)
        return 0;
    (void)kith_worker_own_live(worker, true);
    const struct kith_work_edge none = {.sent = algorithm->flags &
                                                        KITH_SENDS_EDGE_MESSAGES
                                                    ? KITH_SLOT_NONE
                                                    : KITH_SLOT_ROUND_SENT,
                                        .inbox = KITH_SLOT_NONE};
    struct kith_algebra algebra = kith_worker_edge_algebra(worker, work, &none);
    for (uint32_t i = 0; i < work->edge_count; i++)
        worker->inboxes[i] = kith_worker_unpacked(worker, work->edges[i].inbox);
    algebra.merged = work->edges;
    algebra.merged_count = work->edge_count;
    algebra.inboxes = worker->inboxes;
    worker->passes++;
    return algorithm->finish(&algebra);
}

/* Within a cycle of an all-reduce x is looked at once: each of its many rounds
 * brings a part of it only. */
static bool ends_cycle(const struct kith_worker *worker,
                       const struct kith_work *work)
{
    KITH_ASSERT(worker->cycle > 0);
    return work->pattern != KITH_PATTERN_ROUND ||
           (work->round + 1) % worker->cycle == 0;
}

static void run_merge(struct kith_worker *worker, struct kith_work *work,
                      struct kith_work_result *result)
{
    struct kith_work_edge *last = NULL;
    if (work->snapshot_first)
        kith_worker_snapshot(worker, work);
    kith_worker_unpack(worker, work);
    kith_worker_hear(worker, work);
    kith_worker_guard_begin(worker, work);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        double let_in;
        if (!is_let_in(worker, work, edge, &let_in))
            continue;
        merge_edge(worker, work, edge, let_in);
        kith_worker_residues_follow(worker, i);
        worker->recovery.is_fresh = false;
        last = edge;
    }
    const double finished = finish_round(worker, work);
    if (ends_cycle(worker, work) && !kith_worker_descend_shared(worker))
        worker->not_finite = true;
    if (last != NULL)
        last->delta_sum += finished + clamp_variances(worker);
    if (ends_cycle(worker, work))
        kith_worker_judge_merge(worker, result);
    kith_worker_guard_end(worker);
    kith_worker_unpack_end(worker, work);
}

/* Where the algorithm says nothing else, merge was x += w (received - sent). */
static void unmix(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)algebra->backend->mix(algebra->dim, -edge->weight, algebra->received,
                                algebra->sent, algebra->live);
}

static void run_undo(struct kith_worker *worker, struct kith_work *work)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    (void)kith_worker_own_live(worker, true);
    kith_worker_unpack(worker, work);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        struct kith_algebra algebra =
            kith_worker_edge_algebra(worker, work, edge);
        check_weight(edge);
        if (edge->refused || !kith_worker_guard_undo(worker, edge) ||
            kith_worker_is_stale(worker, edge->sent))
            continue; /* x never had it, or is another one by now */
        kith_mix_edge *const undo =
            algorithm->undo != NULL ? algorithm->undo : unmix;
        const double delta_sum = edge->delta_sum;
        worker->passes++;
        if (worker->packing.streams)
            kith_worker_packed_mix(worker, undo, &algebra, edge);
        else if (algorithm->undo != NULL || algebra.received != NULL)
            undo(&algebra, edge);
        edge->delta_sum = delta_sum; /* what is taken back */
    }
    if (work->edge_count > 0) /* What is taken back is delta_sum, less this. */
        work->edges[work->edge_count - 1].delta_sum -= clamp_variances(worker);
    kith_worker_unpack_end(worker, work);
}

/* Its vectors start over from x. */
static void restart(struct kith_worker *worker)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    const size_t gossiped = worker->layout->gossiped;
    for (unsigned i = 0; i < algorithm->vectors; i++)
        worker->backend->clear(gossiped, worker->own[i]);
    for (uint32_t i = 0; i < worker->edge_count * algorithm->edge_vectors; i++)
        worker->backend->clear(gossiped, worker->edges[i]);
    memset(worker->edge_scalars, 0,
           worker->edge_count * KITH_EDGE_SCALARS * sizeof(double));
    if (algorithm->start != NULL) {
        struct kith_algebra algebra = kith_worker_algebra(worker);
        algorithm->start(&algebra);
    }
}

void kith_worker_forget(struct kith_worker *worker)
{
    for (unsigned i = 0; i < KITH_STATES_MAX; i++)
        if (worker->state[i] != NULL)
            worker->backend->clear(worker->layout->trained, worker->state[i]);
    restart(worker);
    worker->waiting = worker->parts.stepped = 0;
    worker->norms.have = 0;
    worker->not_finite = false;
}

/* A restarted peer takes its neighbour's z with weight 1 and forgets its own
 * momentum. delta_sum books what that changed: nothing where the donor's model
 * is none, and its own, or its save's, is one. */
static void run_adopt(struct kith_worker *worker, struct kith_work *work)
{
    KITH_ASSERT(work->edge_count == 1);
    const struct kith_backend *backend = worker->backend;
    struct kith_work_edge *edge = &work->edges[0];
    const size_t dim = worker->layout->gossiped;
    const double before = backend->sum(dim, worker->slots[KITH_SLOT_LIVE]);
    struct kith_algebra algebra = kith_worker_edge_algebra(worker, work, edge);
    KITH_ASSERT(algebra.received != NULL);
    edge->delta_sum = 0;
    if (kith_worker_is_spoilt(worker, algebra.received))
        return;
    algebra.live = kith_worker_own_live(worker, false);
    backend->copy(algebra.dim, algebra.live, algebra.received);
    worker->passes++;
    if (worker->algorithm->factor != NULL)
        backend->scale(algebra.dim,
                       worker->algorithm->factor(edge->scalars_received),
                       algebra.live);
    memcpy(worker->scalars, worker->algorithm->scalars_start,
           sizeof worker->scalars);
    kith_worker_forget(worker);
    edge->delta_sum = backend->sum(algebra.dim, algebra.live) - before;
    kith_worker_guard_end(worker);
}

void kith_worker_prepare(struct kith_worker *worker, struct kith_work *work)
{
    KITH_ASSERT(work->edge_count == 0 || work->edges != NULL);
    if (work->kind == KITH_WORK_TRAIN)
        kith_worker_snapshot(worker, work);
}

void kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                     struct kith_work_result *result)
{
    *result = (struct kith_work_result){.kind = work->kind, .finite = true};
    switch (work->kind) {
    case KITH_WORK_TRAIN:
        kith_worker_train(worker, work, result);
        break;
    case KITH_WORK_SNAPSHOT:
        kith_worker_snapshot(worker, work);
        break;
    case KITH_WORK_MERGE:
        run_merge(worker, work, result);
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
    result->passes = worker->passes;
    worker->passes = 0;
}
