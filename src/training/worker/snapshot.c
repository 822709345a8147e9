/* SNAPSHOT: what travels, and the vectors that it may share with x.
 *
 * Where the host's memory is the backend's a snapshot is x itself, until an
 * item is about to change x: then x moves on to a vector that stands in no
 * role, of which there is one wherever two roles share. What is packed
 * (packing.c) is never x, but several snapshots of one x share it. Where a
 * driver lends its vectors the one that x moves on to is new, and what stands
 * in no role any more is the driver's again; there the last good model
 * (recovery.c) is one that x stood in, too.
 *
 * Test: unit/test_worker.c, unit/test_packing.c. */
#include <string.h>

#include "kith/assert.h"
#include "worker_state.h"

static bool stands_in(const struct kith_worker *worker, const void *vector)
{
    for (unsigned role = 0; role < KITH_ROLES; role++)
        if (worker->slots[kith_worker_role(role)] == vector)
            return true;
    return false;
}

/* With a message, or with another role. */
static bool is_sent(const struct kith_worker *worker, uint32_t slot)
{
    if (slot == KITH_SLOT_LIVE && worker->lent.is_held)
        return true;
    for (unsigned role = 0; role < KITH_ROLES; role++) {
        const uint32_t other = kith_worker_role(role);
        if (other != slot && worker->slots[other] == worker->slots[slot])
            return worker->bytes > 0; /* Empty vectors are all the same. */
    }
    return false;
}

/* Or as the last good model. */
static bool is_kept(const struct kith_worker *worker, uint32_t slot)
{
    const void *const good = worker->recovery.good;
    return is_sent(worker, slot) ||
           (worker->lent.is_on && good != NULL && worker->slots[slot] == good);
}

bool kith_worker_is_shared(const struct kith_worker *worker, uint32_t slot)
{
    const void *const first = worker->lent.first;
    return is_kept(worker, slot) ||
           (first != NULL && worker->slots[slot] == first);
}

/* A vector that stands in no role; there is one where two roles share one. */
static void *spare(struct kith_worker *worker)
{
    struct kith_lent *lent = &worker->lent;
    if (lent->is_on) {
        KITH_ASSERT(lent->spare_count > 0);
        return lent->spares[--lent->spare_count];
    }
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

static void leave(struct kith_worker *worker, void *vector)
{
    struct kith_lent *lent = &worker->lent;
    KITH_ASSERT(lent->left_count < sizeof lent->left / sizeof lent->left[0]);
    lent->left[lent->left_count++] = vector;
    if (worker->packing.of_live == vector)
        worker->packing.of_live = NULL;
}

/* The slot's vector is another one; who lent the old one has it again, should
 * no other role stand in it. */
static void stand_in(struct kith_worker *worker, uint32_t slot, void *vector)
{
    void *const old = worker->slots[slot];
    if (worker->lent.is_on && old != NULL && old != vector &&
        !is_kept(worker, slot))
        leave(worker, old);
    worker->slots[slot] = vector;
}

void kith_worker_stand_good(struct kith_worker *worker)
{
    void *const x = worker->slots[KITH_SLOT_LIVE];
    void *const old = worker->recovery.good;
    if (!worker->lent.is_on) {
        worker->backend->copy(worker->dim, old, x);
        return;
    }
    KITH_ASSERT(x != worker->lent.first);
    worker->recovery.good = x;
    if (old != NULL && !stands_in(worker, old))
        leave(worker, old);
}

static void end_good(struct kith_worker *worker)
{
    void *const good = worker->recovery.good;
    KITH_ASSERT(worker->lent.is_on);
    worker->recovery.good = NULL;
    if (good != NULL && !stands_in(worker, good))
        leave(worker, good);
}

/* A snapshot is about to be written. One that is lent may be under way yet, as
 * it was filled last. */
static void renew(struct kith_worker *worker, uint32_t slot)
{
    if (worker->lent.is_on || kith_worker_is_shared(worker, slot))
        stand_in(worker, slot, spare(worker));
}

bool kith_worker_may_be_lent(const struct kith_worker_config *config)
{
    const struct kith_algorithm *algorithm = config->task.algorithm;
    return kith_worker_may_borrow(config) &&
           (algorithm->pattern == KITH_PATTERN_SWAP ||
            (algorithm->pattern == KITH_PATTERN_ROUND &&
             algorithm->make == NULL)) &&
           !(algorithm->flags & KITH_SENDS_EDGE_MESSAGES);
}

size_t kith_worker_vector_bytes(const struct kith_worker *worker)
{
    const size_t whole = worker->dim * worker->backend->element_bytes;
    return whole > worker->payload ? whole : worker->payload;
}

/* The snapshot's that is made or packed, one that becomes a lie, and x's: where
 * a method changes x as it makes, or an item does while a snapshot is it or
 * becomes it. */
unsigned kith_worker_wants(struct kith_worker *worker,
                           const struct kith_work *work, bool prepared,
                           bool held)
{
    const bool makes = worker->algorithm->make != NULL;
    const bool snapshots =
        work->edge_count > 0 &&
        (prepared ? work->kind == KITH_WORK_SNAPSHOT ||
                        (work->kind == KITH_WORK_MERGE && work->snapshot_first)
                  : work->kind == KITH_WORK_TRAIN);
    const bool made = snapshots && (makes || kith_worker_packs(worker, work));
    const bool lies = snapshots && worker->lying.lie.kind != KITH_LIE_NONE;
    const bool changes = prepared && work->kind != KITH_WORK_SNAPSHOT;
    worker->lent.is_held = held;
    const bool moves =
        (snapshots && (makes || changes)) ||
        (changes && kith_worker_is_shared(worker, KITH_SLOT_LIVE));
    return worker->lent.is_on ? (unsigned)moves + made + lies : 0;
}

void kith_worker_lend(struct kith_worker *worker, void *vector)
{
    struct kith_lent *lent = &worker->lent;
    KITH_ASSERT(lent->is_on && lent->spare_count < KITH_LENT_MAX);
    lent->spares[lent->spare_count++] = vector;
}

void *kith_worker_lent_x(const struct kith_worker *worker)
{
    KITH_ASSERT(worker->lent.is_on);
    return worker->slots[KITH_SLOT_LIVE];
}

void kith_worker_end_slot(struct kith_worker *worker, uint32_t slot)
{
    KITH_ASSERT(worker->lent.is_on && slot < KITH_SLOT_ROUND_EDGES);
    const bool is_x = worker->slots[slot] == worker->slots[KITH_SLOT_LIVE];
    worker->lent.is_held = false; /* was of the last item */
    if (slot == KITH_SLOT_LIVE)
        end_good(worker);
    if (slot == KITH_SLOT_LIVE || !is_x)
        stand_in(worker, slot, NULL);
}

void *kith_worker_left(struct kith_worker *worker)
{
    struct kith_lent *lent = &worker->lent;
    return lent->left_count > 0    ? lent->left[--lent->left_count]
           : lent->spare_count > 0 ? lent->spares[--lent->spare_count]
                                   : NULL;
}

void *kith_worker_own_live(struct kith_worker *worker, bool keep)
{
    void *const old = worker->slots[KITH_SLOT_LIVE];
    worker->packing.of_live = NULL;
    if (!kith_worker_is_shared(worker, KITH_SLOT_LIVE))
        return old;
    void *const fresh = spare(worker);
    const size_t from = keep ? 0 : worker->layout->gossiped;
    /* The last good model and the first one a worker with vectors of its own
     * has to itself. */
    worker->passes += keep && is_sent(worker, KITH_SLOT_LIVE);
    worker->backend->copy(worker->dim - from,
                          kith_worker_element(worker, fresh, from),
                          kith_worker_element(worker, old, from));
    worker->lent.is_held = false;
    stand_in(worker, KITH_SLOT_LIVE, fresh);
    return fresh;
}

/* The pattern's own make: x changes, and so does the snapshot. */
static void make_edge(struct kith_worker *worker, const struct kith_work *work,
                      struct kith_work_edge *edge, double given)
{
    (void)kith_worker_own_live(worker, true);
    if (!kith_worker_packs(worker, work)) /* pack_snapshot() has */
        renew(worker, edge->sent);
    struct kith_algebra algebra = kith_worker_edge_algebra(worker, work, edge);
    algebra.given = given;
    worker->passes++;
    worker->algorithm->make(&algebra, edge);
    kith_worker_norms_make(worker, work, edge);
}

/* Whether what is packed is x, all of it, into a vector that may have several
 * roles. Of a modular format each snapshot keeps what it was rounded to. */
static bool packs_live(const struct kith_worker *worker)
{
    const struct kith_algorithm *algorithm = worker->algorithm;
    return algorithm->make == NULL && algorithm->slice == NULL &&
           (algorithm->flags & KITH_SENDS_EDGE_MESSAGES) == 0 &&
           worker->lying.lie.kind == KITH_LIE_NONE &&
           kith_worker_shares(worker) && !kith_worker_is_modular(worker);
}

/* Made, spoilt where that is asked for, and packed: x itself is not copied
 * first, and no snapshot stands in it. Until x changes it is packed once: what
 * is asked for at a step boundary, and what is prepared to answer with during
 * the next step, is the same. */
static void pack_snapshot(struct kith_worker *worker,
                          const struct kith_work *work,
                          struct kith_work_edge *edge, double given)
{
    const void *values = worker->slots[KITH_SLOT_LIVE];
    const bool lies = worker->lying.lie.kind != KITH_LIE_NONE;
    const bool is_live = packs_live(worker);
    if (is_live && worker->packing.of_live != NULL) {
        stand_in(worker, edge->sent, worker->packing.of_live);
        return;
    }
    renew(worker, edge->sent);
    if (worker->algorithm->make != NULL || lies) {
        void *const made = kith_worker_pack_begin(worker, edge->sent);
        if (worker->algorithm->make != NULL)
            make_edge(worker, work, edge, given);
        else
            worker->backend->copy(worker->layout->gossiped, made, values);
        if (lies)
            kith_worker_spoil_sent(worker, edge->sent, edge->scalars_sent);
        values = made;
    }
    kith_worker_pack(worker, work, edge, values, !lies);
    worker->packing.of_live = is_live ? worker->slots[edge->sent] : NULL;
}

/* Fills what travels: x itself, which kith_worker_own_live() copies should it
 * change while the snapshot stands, or a copy in memory that the host can read,
 * which a device brings there while later items run (kith_worker_outgoing). A
 * pulled model is plain x in any algorithm: nothing may leave the sender for a
 * peer that starts over. All edges of a round share one snapshot. */
static void take_snapshots(struct kith_worker *worker, struct kith_work *work)
{
    uint32_t copied = KITH_SLOT_NONE;
    double given = 0;
    for (uint32_t i = 0; i < work->edge_count; i++) {
        struct kith_work_edge *edge = &work->edges[i];
        const uint32_t snapshot = kith_slot_snapshot(edge->sent);
        KITH_ASSERT(snapshot < KITH_SLOT_ROUND_EDGES);
        worker->not_finite_slots[snapshot] = worker->not_finite;
        worker->recovery.stale[snapshot] = false;
        worker->lying.lies[snapshot] = false;
        const bool is_made = worker->algorithm->make != NULL &&
                             work->pattern != KITH_PATTERN_PULL;
        if (!is_made)
            memcpy(edge->scalars_sent, worker->scalars, sizeof worker->scalars);
        if (kith_worker_packs(worker, work)) {
            if (edge->sent != copied)
                pack_snapshot(worker, work, edge, given);
        } else if (is_made) {
            make_edge(worker, work, edge, given);
        } else if (kith_worker_shares(worker)) {
            stand_in(worker, edge->sent, worker->slots[KITH_SLOT_LIVE]);
        } else if (edge->sent != copied) {
            worker->passes++;
            worker->backend->copy(worker->layout->gossiped,
                                  worker->slots[edge->sent],
                                  worker->slots[KITH_SLOT_LIVE]);
        }
        given += is_made ? edge->weight : 0;
        copied = edge->sent;
    }
}

void kith_worker_snapshot(struct kith_worker *worker, struct kith_work *work)
{
    take_snapshots(worker, work);
    uint32_t spoilt = KITH_SLOT_NONE; /* edges of a round may share one */
    if (work->pattern == KITH_PATTERN_PULL || kith_worker_packs(worker, work))
        return;
    for (uint32_t i = 0;
         i < work->edge_count && worker->lying.lie.kind != KITH_LIE_NONE; i++) {
        void **const sent = &worker->slots[work->edges[i].sent];
        void *const x = *sent;
        if (work->edges[i].sent == spoilt)
            continue;
        spoilt = work->edges[i].sent;
        if (kith_worker_is_shared(worker, spoilt)) {
            *sent = spare(worker);
            worker->backend->copy(worker->layout->gossiped, *sent, x);
        }
        kith_worker_spoil_sent(worker, spoilt, work->edges[i].scalars_sent);
    }
}
