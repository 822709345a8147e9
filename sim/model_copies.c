/* Copies of vectors under way, and the inboxes that they become.
 *
 * What stands in a snapshot's slot is copied once, however many neighbours it
 * goes to: a copy is only read, by all who hold it, and is free again when
 * nobody does. Whether its values are finite is asked once, too. Free copies
 * are kept, so that a run allocates only while it grows; at its end the pool
 * frees all that it has made, whoever holds them. */
#include "sim/model_copies.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/world.h"

/* In front of a copy's bytes. */
struct sim_copy {
    _Alignas(64) struct sim_copy *next; /* of the free ones */
    struct sim_copy *older;             /* of all that were made */
    size_t bytes;                       /* that were copied into it */
    uint32_t holders;
    bool checked, finite;
};
_Static_assert(sizeof(struct sim_copy) == 64, "a cache line");

enum kith_err sim_copies_open(struct sim_world *world)
{
    KITH_ASSERT(world->copies.sent == NULL);
    /* Sessions write what they open: there each message has its own copy. */
    if (world->dim == 0 || world->channels)
        return KITH_OK;
    world->copies.sent =
        sim_alloc(world, world->peer_count, sizeof *world->copies.sent);
    return world->copies.sent ? KITH_OK : KITH_ENOMEM;
}

void sim_copies_close(struct sim_world *world)
{
    while (world->copies.newest) {
        struct sim_copy *head = world->copies.newest;
        world->copies.newest = head->older;
        free(head);
    }
}

/* The header stands in front, a cache line of its own: vectors keep the
 * alignment that kernels ask for. */
static struct sim_copy *head_of(void *copy)
{
    KITH_ASSERT((uintptr_t)copy % 64 == 0);
    return (struct sim_copy *)copy - 1;
}

/* The last one freed first: its lines are the likeliest to be in the cache
 * still. */
void *sim_copy_take(struct sim_world *world)
{
    struct sim_copy *head = world->copies.free;
    if (head) {
        KITH_ASSERT(head->holders == 0);
        world->copies.free = head->next;
    } else {
        head = aligned_alloc(64, sizeof *head +
                                     (world->vector_bytes + 63) / 64 * 64);
        if (!head) {
            sim_fail(world, KITH_ENOMEM, "no memory for another %zu byte model",
                     world->vector_bytes);
            return NULL;
        }
        head->older = world->copies.newest;
        world->copies.newest = head;
    }
    *head = (struct sim_copy){.older = head->older, .holders = 1};
    return head + 1;
}

/* A copy of its own for who will change it, or for what is never sent twice. */
void *sim_copy_of(struct sim_world *world, const void *vector, size_t bytes)
{
    KITH_ASSERT(bytes <= world->vector_bytes);
    void *copy = vector ? sim_copy_take(world) : NULL;
    if (copy) {
        memcpy(copy, vector, bytes);
        head_of(copy)->bytes = bytes;
    }
    return copy;
}

/* Holders only read, so one more of them costs nothing but the count. */
void *sim_copy_hold(void *copy)
{
    if (copy) {
        KITH_ASSERT(head_of(copy)->holders > 0);
        head_of(copy)->holders++;
    }
    return copy;
}

/* Nothing is given back to the system while a run goes on: it would be asked
 * for again at the next exchange. */
void sim_copy_release(struct sim_world *world, void *copy)
{
    if (!copy)
        return;
    struct sim_copy *head = head_of(copy);
    KITH_ASSERT(head->holders > 0);
    if (--head->holders == 0) {
        head->next = world->copies.free;
        world->copies.free = head;
    }
}

/* A snapshot's place among those sent; messages of an edge's own have none. */
static void **shared_place(struct sim_world *world, kith_id peer, uint32_t slot)
{
    KITH_ASSERT(peer < world->peer_count);
    const bool shares = slot <= KITH_SLOT_ROUND_SENT && slot % 2 == 1;
    return shares && world->copies.sent ? &world->copies.sent[peer][slot / 2]
                                        : NULL;
}

/* Asked for by length, too: an algorithm may send more than one vector from a
 * slot, in turn. */
void *sim_copy_slot(struct sim_world *world, kith_id peer, uint32_t slot,
                    size_t bytes)
{
    KITH_ASSERT(bytes <= world->vector_bytes);
    const void *vector = kith_worker_slot(sim_job_worker(world, peer), slot);
    void **place = shared_place(world, peer, slot);
    if (!place)
        return sim_copy_of(world, vector, bytes);
    if (!*place || head_of(*place)->bytes != bytes) {
        sim_copy_release(world, *place);
        *place = sim_copy_of(world, vector, bytes);
    }
    return sim_copy_hold(*place);
}

/* The holders of a copy keep it: only the place forgets, so that the next
 * message copies anew. */
void sim_copy_forget(struct sim_world *world, kith_id peer)
{
    KITH_ASSERT(peer < world->peer_count);
    for (unsigned i = 0; world->copies.sent && i < SIM_SNAPSHOTS; i++) {
        sim_copy_release(world, world->copies.sent[peer][i]);
        world->copies.sent[peer][i] = NULL;
    }
}

/* Asked once for all who receive it: the answer is a property of the bytes. */
bool sim_copy_finite(const struct sim_world *world, void *copy, size_t bytes,
                     const struct kith_format *format)
{
    struct sim_copy *head = head_of(copy);
    KITH_ASSERT(head->holders > 0);
    if (!head->checked || head->bytes != bytes) {
        head->finite = kith_format_passes(
            format, world->experiment->backend->host, bytes, 0, bytes, copy);
        head->checked = !world->channels;
    }
    return head->finite;
}
