/* Blocks: copies of vectors under way, and the inboxes that they become.
 *
 * What stands in a snapshot's slot is copied once, however many neighbours it
 * goes to: a block is only read, by all who hold it, and is free again when
 * nobody does. Whether its values are finite is asked once, too. Free blocks
 * are kept, so that a run allocates only while it grows. */
#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/world.h"

/* In front of a block's bytes. */
struct sim_block {
    _Alignas(64) struct sim_block *next; /* of the free ones */
    size_t bytes;                        /* that were copied into it */
    uint32_t holders;
    bool checked, finite;
};
_Static_assert(sizeof(struct sim_block) == 64, "a cache line");

static struct sim_block *head_of(void *block)
{
    return (struct sim_block *)block - 1;
}

static size_t whole_bytes(const struct sim_world *world)
{
    return sizeof(struct sim_block) + (world->vector_bytes + 63) / 64 * 64;
}

static void *block_take(struct sim_world *world)
{
    struct sim_block *head = world->blocks;
    if (head) {
        world->blocks = head->next;
    } else {
        head = aligned_alloc(64, whole_bytes(world));
        if (!head) {
            sim_fail(world, KITH_ENOMEM, "no memory for another %zu byte model",
                     world->vector_bytes);
            return NULL;
        }
    }
    *head = (struct sim_block){.holders = 1};
    return head + 1;
}

void sim_block_free(struct sim_world *world, void *block)
{
    if (!block) {
        return;
    }
    struct sim_block *head = head_of(block);
    KITH_ASSERT(head->holders > 0);
    if (--head->holders == 0) {
        head->next = world->blocks;
        world->blocks = head;
    }
}

/* A snapshot's place in its desk; messages of an edge's own have none. */
static void **shared_place(struct sim_world *world, kith_id peer, uint32_t slot)
{
    const bool shares = slot <= KITH_SLOT_ROUND_SENT && slot % 2 == 1 &&
                        !world->channels; /* which writes what it opens */
    return shares ? &world->desks[peer].sent[slot / 2] : NULL;
}

void *sim_block_copy(struct sim_world *world, kith_id peer, uint32_t slot,
                     size_t bytes)
{
    const void *vector = kith_worker_slot(world->desks[peer].worker, slot);
    void **place = shared_place(world, peer, slot);
    if (!place || !*place || head_of(*place)->bytes != bytes) {
        void *block = block_take(world);
        if (!block) {
            return NULL;
        }
        KITH_ASSERT(bytes <= world->vector_bytes);
        memcpy(block, vector, bytes);
        head_of(block)->bytes = bytes;
        if (!place) {
            return block;
        }
        sim_block_free(world, *place);
        *place = block;
    }
    head_of(*place)->holders++;
    return *place;
}

void sim_block_forget(struct sim_world *world, kith_id peer)
{
    struct sim_desk *desk = &world->desks[peer];
    for (unsigned i = 0; i < SIM_SNAPSHOTS; i++) {
        sim_block_free(world, desk->sent[i]);
        desk->sent[i] = NULL;
    }
}

bool sim_block_finite(const struct sim_world *world, void *block, size_t bytes)
{
    const struct kith_backend *backend = world->experiment->backend;
    struct sim_block *head = head_of(block);
    if (!head->checked || head->bytes != bytes) {
        head->finite = backend->finite(bytes / backend->element_bytes, block);
        head->checked = !world->channels;
    }
    return head->finite;
}

void sim_blocks_close(struct sim_world *world)
{
    while (world->blocks) {
        struct sim_block *head = world->blocks;
        world->blocks = head->next;
        free(head);
    }
}
