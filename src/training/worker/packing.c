/* Between vectors and what travels (kith/format.h).
 *
 *   SNAPSHOT    slot <- pack(what is made, or x)
 *   MERGE, UNDO    received <- unpack(inbox)    sent <- unpack(slot)
 *
 * Slots hold what is sent and received, so what an item reads of them stands in
 * vectors of its own while it runs. One's own snapshot is read back, too: both
 * ends merge with the same rounded numbers. A pulled model is never packed.
 *
 * Who gives a share away keeps what rounding took from it, M being the share
 * that was made and Q(M) what leaves:
 *
 *   x <- x + M - Q(M)                  x = w z: sgp
 *   x <- x + b / a (M - Q(M))          a x + b M is kept, of weights a and b:
 *                                      gosgd
 *
 * Test: unit/test_packing.c. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "worker_state.h"

/* Edges of an item at most: a round's, or the one of an exchange. */
static uint32_t edges_of(const struct kith_worker *worker)
{
    return worker->edge_count > 0 ? worker->edge_count : 1;
}

static bool sends_each(const struct kith_worker *worker)
{
    return (worker->algorithm->flags & KITH_SENDS_EDGE_MESSAGES) != 0;
}

/* One that is made, those received, those sent. */
static uint32_t vectors_of(const struct kith_worker *worker)
{
    const uint32_t edges = edges_of(worker);
    return sends_each(worker) ? 2 * edges + 1 : edges + 2;
}

/* Where a merge adds a difference, value by value, and nobody asks for more
 * than sums over all of them, no vector is unpacked: packed_merge.c. A device
 * unpacks all, by a kernel each. */
static bool streams(const struct kith_worker *worker)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    const struct kith_guard *guard = worker->task.guard;
    return kith_worker_shares(worker) && !kith_worker_is_modular(worker) &&
           (algorithm->flags & KITH_MERGES_BESIDE) != 0 &&
           algorithm->finish == NULL && (guard == NULL || guard->judge == NULL);
}

size_t kith_worker_packing_bytes(const struct kith_worker *worker)
{
    return worker->packing.format == NULL || streams(worker)
               ? 0
               : vectors_of(worker) * worker->message +
                     kith_worker_residues_bytes(worker);
}

/* Zeroed: what stands behind a short message leaves with it. */
static void *take(const struct kith_worker *worker, size_t bytes)
{
    if (!kith_worker_shares(worker))
        return worker->backend->alloc(bytes, false);
    void *const memory = aligned_alloc(64, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static void give(const struct kith_worker *worker, void *memory)
{
    if (!kith_worker_shares(worker))
        worker->backend->release(memory);
    else
        free(memory);
}

/* Of one vector. */
static size_t line_bytes(const struct kith_worker *worker)
{
    return (worker->message + 63) & ~(size_t)63;
}

size_t kith_worker_unpacked_bytes(const struct kith_worker *worker)
{
    return vectors_of(worker) * line_bytes(worker);
}

bool kith_worker_packing_open(struct kith_worker *worker, bool lies)
{
    struct kith_packing *packing = &worker->packing;
    const size_t bytes = line_bytes(worker);
    const uint32_t count = vectors_of(worker);
    if (packing->format == NULL || packing->vectors != NULL)
        return true;
    if (kith_worker_is_modular(worker) && packing->residues.kept == NULL &&
        !kith_worker_residues_open(worker))
        return false;
    if (packing->values == NULL)
        packing->values = calloc(worker->slot_count, sizeof *packing->values);
    if (packing->values == NULL || bytes == 0 || (streams(worker) && !lies))
        return packing->values != NULL;
    void **const vectors = calloc(count, sizeof *vectors);
    packing->memory = take(worker, count * bytes);
    if (vectors == NULL || packing->memory == NULL) {
        free(vectors);
        give(worker, packing->memory);
        packing->memory = NULL;
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        vectors[i] = (char *)packing->memory + i * bytes;
    packing->vectors = vectors;
    return true;
}

void kith_worker_packing_close(struct kith_worker *worker)
{
    kith_worker_residues_close(worker);
    free(worker->packing.values);
    free(worker->packing.vectors);
    give(worker, worker->packing.memory);
}

bool kith_worker_packs(const struct kith_worker *worker,
                       const struct kith_work *work)
{
    return worker->packing.format != NULL && work->kind != KITH_WORK_ADOPT &&
           work->pattern != KITH_PATTERN_PULL && worker->message > 0;
}

/* Values of a message: of a round that carries a slice, fewer. */
static size_t count_of(struct kith_worker *worker, const struct kith_work *work)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    size_t bytes = worker->message;
    if (algorithm->slice != NULL && work->pattern == KITH_PATTERN_ROUND) {
        const struct kith_algebra algebra = kith_worker_algebra(worker);
        const double period = algebra.coefficients[KITH_GOSSIP_OUTER_EVERY];
        KITH_ASSERT(algorithm->schedule == NULL); /* sends bytes of its own */
        if (!kith_algorithm_is_whole(algorithm, algebra.graph, (uint64_t)period,
                                     work->round))
            bytes = algorithm->slice(&algebra);
    }
    return bytes / worker->backend->element_bytes;
}

void *kith_worker_unpacked(const struct kith_worker *worker, uint32_t slot)
{
    return *kith_worker_values_at(worker, slot);
}

void **kith_worker_values_at(const struct kith_worker *worker, uint32_t slot)
{
    void **const values = worker->packing.values;
    KITH_ASSERT(slot < worker->slot_count);
    return values != NULL && values[slot] != NULL
               ? &values[slot]
               : (void **)(uintptr_t)&worker->slots[slot];
}

void *kith_worker_pack_begin(struct kith_worker *worker, uint32_t slot)
{
    struct kith_packing *packing = &worker->packing;
    KITH_ASSERT(packing->values[slot] == NULL);
    packing->values[slot] = packing->vectors[0];
    return packing->vectors[0];
}

/* Does what stands in the slot, and was read into `vector`, unpack? */
static bool is_sane(const struct kith_worker *worker, uint32_t slot,
                    const void *vector)
{
    /* There a slot may still be on its way to the host; what comes of a modular
     * format is read, whatever it says. */
    if (!kith_worker_shares(worker) && !kith_worker_is_modular(worker))
        return worker->backend->finite(worker->packing.count, vector);
    const struct kith_format *format = worker->packing.format;
    const size_t bytes = kith_worker_is_modular(worker)
                             ? worker->payload
                             : format->bytes(worker->packing.count);
    return format->is_sane(bytes, 0, bytes, worker->slots[slot]);
}

/* What rounding took of a share stays with its giver. The books are of what
 * leaves, as whoever merges it has them. */
static void keep_rest(struct kith_worker *worker, struct kith_work_edge *edge,
                      size_t count, const void *made)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    const struct kith_backend *backend = worker->backend;
    void *const x = worker->slots[KITH_SLOT_LIVE];
    if (!kith_algorithm_gives_weight(algorithm) || algorithm->scalar_count == 0)
        return;
    void *const rounded = worker->packing.vectors[1];
    worker->packing.format->unpack(backend, count, worker->slots[edge->sent], 0,
                                   count, rounded);
    if (!is_sane(worker, edge->sent, rounded))
        return;
    worker->passes += 2; /* it is unpacked, and mixed */
    if (algorithm->factor != NULL) {
        (void)backend->mix(count, 1, made, rounded, x);
        edge->delta_sum = -backend->sum(count, rounded);
    } else {
        const double weight = edge->scalars_sent[0] / worker->scalars[0];
        edge->delta_sum += backend->mix(count, weight, made, rounded, x);
    }
}

void kith_worker_pack(struct kith_worker *worker, const struct kith_work *work,
                      struct kith_work_edge *edge, const void *values,
                      bool is_own)
{
    struct kith_packing *packing = &worker->packing;
    const size_t count = packing->count = count_of(worker, work);
    KITH_ASSERT(values != worker->slots[edge->sent]);
    worker->passes++;
    if (kith_worker_is_modular(worker)) {
        kith_worker_residues_pack(worker, work, edge->sent, values);
        packing->values[edge->sent] = NULL;
        return;
    }
    packing->format->pack(worker->backend, count, values,
                          worker->slots[edge->sent]);
    if (is_own)
        keep_rest(worker, edge, count, values);
    packing->values[edge->sent] = NULL;
}

/* The gate has seen every inbox: what does not unpack all the same is left
 * out. */
static void unpack(struct kith_worker *worker, uint32_t slot, void *vector)
{
    const size_t count = worker->packing.count;
    worker->passes++;
    worker->packing.values[slot] = vector;
    worker->packing.format->unpack(worker->backend, count, worker->slots[slot],
                                   0, count, vector);
}

/* The snapshot that all edges of a round share: `finish` reads it, though
 * nobody may have come. */
static bool shares_sent(const struct kith_worker *worker,
                        const struct kith_work *work)
{
    return work->pattern == KITH_PATTERN_ROUND && !sends_each(worker);
}

/* A liar merges against what it did not send, but for `huge`. */
static bool may_stream(const struct kith_worker *worker,
                       const struct kith_work *work)
{
    if (!streams(worker) || worker->lying.lie.kind > KITH_LIE_HUGE)
        return false;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        KITH_ASSERT(work->edges[i].sent < KITH_SLOT_ROUND_EDGES);
        if (worker->lying.lies[work->edges[i].sent])
            return false;
    }
    return true;
}

static void unpack_all(struct kith_worker *worker, const struct kith_work *work)
{
    struct kith_packing *packing = &worker->packing;
    void **const received = packing->vectors + 1;
    void **const sent = received + edges_of(worker);
    if (shares_sent(worker, work))
        unpack(worker, KITH_SLOT_ROUND_SENT, sent[0]);
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        /* A share that comes home was answered by nothing: where nothing was
         * ever received there may be no memory. */
        if (edge->inbox != KITH_SLOT_NONE &&
            worker->slots[edge->inbox] != NULL) {
            unpack(worker, edge->inbox, received[i]);
            packing->spoilt |=
                (uint64_t)!is_sane(worker, edge->inbox, received[i]) << i;
        }
        /* Who is pushed to has sent nothing: whatever stands there. */
        if (edge->sent != KITH_SLOT_NONE && packing->values[edge->sent] == NULL)
            unpack(worker, edge->sent, sent[sends_each(worker) ? i : 0]);
    }
}

/* Every edge has sent something. */
static void unpack_residues(struct kith_worker *worker,
                            const struct kith_work *work)
{
    struct kith_packing *packing = &worker->packing;
    void **const kept = packing->residues.kept;
    if (shares_sent(worker, work))
        packing->values[KITH_SLOT_ROUND_SENT] = kept[KITH_SLOT_ROUND_SENT];
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        packing->values[edge->sent] = kept[edge->sent];
        if (edge->inbox == KITH_SLOT_NONE)
            continue;
        worker->passes++;
        packing->values[edge->inbox] = packing->vectors[1 + i];
        kith_worker_residues_unpack(worker, work, i, packing->vectors[1 + i]);
        packing->spoilt |=
            (uint64_t)!is_sane(worker, edge->inbox, packing->vectors[1 + i])
            << i;
    }
}

void kith_worker_unpack(struct kith_worker *worker,
                        const struct kith_work *work)
{
    struct kith_packing *packing = &worker->packing;
    packing->spoilt = 0;
    packing->streams = false;
    if (!kith_worker_packs(worker, work))
        return;
    packing->count = count_of(worker, work);
    packing->streams = may_stream(worker, work);
    if (packing->streams)
        return;
    KITH_ASSERT(packing->vectors != NULL);
    KITH_ASSERT(work->edge_count <= edges_of(worker));
    if (kith_worker_is_modular(worker))
        unpack_residues(worker, work);
    else
        unpack_all(worker, work);
}

void kith_worker_unpack_end(struct kith_worker *worker,
                            const struct kith_work *work)
{
    void **const values = worker->packing.values;
    if (values == NULL)
        return;
    worker->packing.streams = false;
    values[KITH_SLOT_ROUND_SENT] = NULL;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        const struct kith_work_edge *edge = &work->edges[i];
        if (edge->inbox != KITH_SLOT_NONE)
            values[edge->inbox] = NULL;
        if (edge->sent != KITH_SLOT_NONE)
            values[edge->sent] = NULL;
    }
}
