/* Messages of a modular format (src/gossip/format/modular.h): read beside what
 * was sent for the same exchange, which is kept as it was rounded.
 *
 *   SNAPSHOT    slot <- pack(x; reach)    kept <- Q(x)
 *   MERGE, UNDO received <- unpack(inbox; slot, kept)    sent = kept
 *   merged      reach follows
 *
 * Blocks that one end cannot read are left out on both: received is what we
 * kept there, and nothing is added. A guard sees the distance of all that we
 * could read, as if the rest were like it; where that is nothing, nothing came.
 *
 * Memory: a message's vector more for each snapshot that may be under way.
 * Test: unit/test_packing_modular.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "worker_state.h"

static size_t values_of(const struct kith_worker *worker)
{
    return worker->message / worker->backend->element_bytes;
}

bool kith_worker_is_modular(const struct kith_worker *worker)
{
    return worker->packing.format != NULL &&
           worker->packing.format->residue_bits > 0;
}

/* Snapshots that something is sent from. */
static bool keeps(const struct kith_worker *worker, uint32_t slot)
{
    return slot != KITH_SLOT_LIVE && !kith_slot_is_inbox(slot) &&
           kith_worker_uses(worker, slot);
}

/* Grids, what the messages of an item showed, the blocks that travel. */
static size_t grids_bytes(const struct kith_worker *worker)
{
    const size_t edges = worker->edge_count > 0 ? worker->edge_count : 1;
    const size_t blocks = kith_modular_blocks(values_of(worker));
    const size_t carried =
        kith_modular_carried(values_of(worker), worker->task.wire_share);
    return (1 + edges) * blocks * sizeof(float) +
           (carried < blocks ? carried * sizeof(uint32_t) : 0);
}

size_t kith_worker_residues_bytes(const struct kith_worker *worker)
{
    if (!kith_worker_is_modular(worker))
        return 0;
    size_t bytes = grids_bytes(worker);
    for (uint32_t slot = 0; slot < KITH_SLOT_ROUND_EDGES; slot++)
        if (keeps(worker, slot))
            bytes += worker->message;
    return bytes;
}

/* A device's kernels read and write grids where the host has them. */
static void *take_grid(const struct kith_worker *worker, size_t count)
{
    const size_t bytes = (count + 1) * sizeof(float);
    return kith_worker_shares(worker) ? calloc(1, bytes)
                                      : worker->backend->alloc(bytes, true);
}

static void *take_kept(const struct kith_worker *worker)
{
    const size_t bytes = (worker->message + 63) & ~(size_t)63;
    return kith_worker_shares(worker)
               ? aligned_alloc(64, bytes > 0 ? bytes : 64)
               : worker->backend->alloc(bytes, false);
}

static void give(const struct kith_worker *worker, void *memory)
{
    if (kith_worker_shares(worker))
        free(memory);
    else
        worker->backend->release(memory);
}

bool kith_worker_residues_open(struct kith_worker *worker)
{
    struct kith_reading *residues = &worker->packing.residues;
    const size_t edges = worker->edge_count > 0 ? worker->edge_count : 1;
    residues->blocks = kith_modular_blocks(values_of(worker));
    residues->carried =
        kith_modular_carried(values_of(worker), worker->task.wire_share);
    if (residues->carried < residues->blocks)
        residues->chosen = take_grid(worker, residues->carried);
    residues->reach = take_grid(worker, residues->blocks);
    residues->apart = take_grid(worker, edges * residues->blocks);
    residues->seen = calloc(worker->slot_count, sizeof *residues->seen);
    residues->kept = calloc(KITH_SLOT_ROUND_EDGES, sizeof *residues->kept);
    bool enough =
        residues->reach != NULL && residues->apart != NULL &&
        residues->seen != NULL && residues->kept != NULL &&
        (residues->carried == residues->blocks || residues->chosen != NULL);
    for (uint32_t slot = 1; slot < KITH_SLOT_ROUND_EDGES && enough; slot++) {
        if (!keeps(worker, slot))
            continue;
        residues->kept[slot] = take_kept(worker);
        enough = residues->kept[slot] != NULL;
    }
    return enough;
}

void kith_worker_residues_close(struct kith_worker *worker)
{
    struct kith_reading *residues = &worker->packing.residues;
    for (uint32_t slot = 0;
         slot < KITH_SLOT_ROUND_EDGES && residues->kept != NULL; slot++)
        give(worker, residues->kept[slot]);
    free(residues->kept);
    free(residues->seen);
    give(worker, residues->chosen);
    give(worker, residues->apart);
    give(worker, residues->reach);
}

void kith_worker_residues_begin(struct kith_worker *worker)
{
    struct kith_reading *residues = &worker->packing.residues;
    if (!kith_worker_is_modular(worker) || worker->algorithm->make != NULL)
        return;
    /* Nothing is kept there before the first snapshot. */
    for (uint32_t slot = 1; slot < KITH_SLOT_ROUND_EDGES; slot++)
        if (residues->kept[slot] != NULL)
            residues->origin = residues->kept[slot];
    if (residues->origin != NULL)
        worker->backend->copy(values_of(worker), residues->origin,
                              worker->slots[KITH_SLOT_LIVE]);
}

/* Of the item's exchange or round. */
static struct kith_modular_cover cover_of(struct kith_worker *worker,
                                          const struct kith_work *work)
{
    struct kith_reading *residues = &worker->packing.residues;
    if (residues->chosen != NULL)
        kith_modular_choose(worker->task.seed, work->round, residues->blocks,
                            residues->carried, residues->chosen);
    return (struct kith_modular_cover){.n = values_of(worker),
                                       .blocks = residues->chosen,
                                       .count = residues->carried};
}

void kith_worker_residues_pack(struct kith_worker *worker,
                               const struct kith_work *work, uint32_t slot,
                               const void *values)
{
    struct kith_reading *residues = &worker->packing.residues;
    const struct kith_modular_cover cover = cover_of(worker, work);
    KITH_ASSERT(slot < KITH_SLOT_ROUND_EDGES && residues->kept[slot] != NULL);
    if (!residues->started)
        kith_modular_start(worker->backend, cover.n, values, residues->origin,
                           residues->reach);
    residues->started = true;
    residues->most = kith_modular_pack(
        worker->packing.format, worker->backend, &cover, values,
        residues->reach, worker->slots[slot], residues->kept[slot]);
}

void kith_worker_residues_unpack(struct kith_worker *worker,
                                 const struct kith_work *work, uint32_t index,
                                 void *out)
{
    struct kith_reading *residues = &worker->packing.residues;
    const struct kith_work_edge *edge = &work->edges[index];
    const struct kith_modular_cover cover = cover_of(worker, work);
    const uint32_t sent = edge->sent;
    KITH_ASSERT(sent < KITH_SLOT_ROUND_EDGES && residues->kept[sent] != NULL);
    const struct kith_modular_pair pair = {.received =
                                               worker->slots[edge->inbox],
                                           .sent = worker->slots[sent],
                                           .kept = residues->kept[sent],
                                           .out = out};
    residues->seen[edge->inbox] =
        kith_modular_unpack(worker->packing.format, worker->backend, &cover,
                            &pair, residues->apart + index * residues->blocks);
}

bool kith_worker_is_read(const struct kith_worker *worker, uint32_t inbox)
{
    return !kith_worker_is_modular(worker) ||
           worker->packing.residues.seen[inbox].read > 0;
}

double kith_worker_whole_distance(const struct kith_worker *worker,
                                  uint32_t inbox, double squared)
{
    const struct kith_reading *residues = &worker->packing.residues;
    if (!kith_worker_is_modular(worker))
        return squared;
    const struct kith_modular_seen *seen = &residues->seen[inbox];
    return (squared + seen->beyond) * (double)residues->blocks /
           (double)seen->read;
}

void kith_worker_residues_follow(struct kith_worker *worker, uint32_t index)
{
    struct kith_reading *residues = &worker->packing.residues;
    if (!kith_worker_is_modular(worker))
        return;
    kith_modular_follow(values_of(worker),
                        residues->apart + index * residues->blocks,
                        residues->most, residues->reach);
}
