/* Copies of vectors under way, and the inboxes that they become; where workers
 * are lent their vectors, x and its snapshots, too.
 *
 * What stands in a snapshot's slot is copied once, however many neighbours it
 * goes to: a copy is only read, by all who hold it, and is free again when
 * nobody does. Whether its values are finite is asked once, too. Free copies
 * are kept, so that a run allocates only while it grows; at its end the pool
 * frees all that it has made, whoever holds them. */
#include "sim/model_copies.h"

#include <inttypes.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/huge_pages.h"
#include "sim/world.h"

/* In front of a copy's bytes. */
struct sim_copy {
    _Alignas(64) struct sim_copy *next; /* of the free ones */
    size_t bytes;                       /* that were copied into it */
    uint32_t holders;
    bool checked, finite;
};
_Static_assert(sizeof(struct sim_copy) == 64, "a cache line");

/* Copies are made many at a time, of which those behind `used` are untouched: a
 * sixteenth as many as there are, so that a large run has them on huge pages,
 * and a small one no more than it needs. */
struct sim_slab {
    _Alignas(64) struct sim_slab *older;
    size_t bytes, count, used;
};
#define SLAB_BYTES_MAX ((size_t)1 << 28)

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
        struct sim_slab *slab = world->copies.newest;
        world->copies.newest = slab->older;
        sim_pages_free(slab, slab->bytes);
    }
}

/* The header stands in front, a cache line of its own: vectors keep the
 * alignment that kernels ask for. */
static struct sim_copy *head_of(void *copy)
{
    KITH_ASSERT((uintptr_t)copy % 64 == 0);
    return (struct sim_copy *)copy - 1;
}

static size_t stride_of(const struct sim_world *world)
{
    return sizeof(struct sim_copy) + (world->vector_bytes + 63) / 64 * 64;
}

static bool grow(struct sim_world *world)
{
    struct sim_copies *copies = &world->copies;
    const size_t stride = stride_of(world);
    KITH_ASSERT(!copies->newest ||
                copies->newest->used == copies->newest->count);
    size_t count = copies->made / 16 + 1;
    if (count > SLAB_BYTES_MAX / stride)
        count = SLAB_BYTES_MAX / stride + 1;
    const size_t bytes = sizeof(struct sim_slab) + count * stride;
    struct sim_slab *slab = sim_pages(bytes);
    if (!slab) {
        sim_fail(world, KITH_ENOMEM,
                 "no memory for %zu more models of %zu "
                 "bytes beside %" PRIu64,
                 count, world->vector_bytes, copies->made);
        return false;
    }
    *slab = (struct sim_slab){
        .older = copies->newest, .bytes = bytes, .count = count};
    copies->newest = slab;
    copies->made += count;
    return true;
}

/* One that was never used, of the newest slab. */
static struct sim_copy *fresh(struct sim_world *world)
{
    struct sim_slab *slab = world->copies.newest;
    if (!slab || slab->used == slab->count) {
        if (!grow(world))
            return NULL;
        slab = world->copies.newest;
    }
    KITH_ASSERT(slab->used < slab->count);
    char *first = (char *)(slab + 1);
    world->report.vectors++;
    return (struct sim_copy *)(void *)(first + slab->used++ * stride_of(world));
}

/* The last one freed first: its lines are the likeliest to be in the cache
 * still. */
void *sim_copy_take(struct sim_world *world)
{
    struct sim_copy *head = world->copies.free;
    KITH_ASSERT(world->vector_bytes > 0);
    if (head) {
        KITH_ASSERT(head->holders == 0);
        world->copies.free = head->next;
    } else if (!(head = fresh(world))) {
        return NULL;
    }
    *head = (struct sim_copy){.holders = 1};
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

bool sim_copy_is_held(void *copy)
{
    KITH_ASSERT(head_of(copy)->holders > 0);
    return head_of(copy)->holders > 1;
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
    void *vector = kith_worker_slot(sim_peer_worker(world, peer), slot);
    if (sim_workers_lend(world)) {
        KITH_ASSERT(vector && slot < KITH_SLOT_ROUND_EDGES);
        return sim_copy_hold(vector);
    }
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

void sim_copy_write(void *copy)
{
    head_of(copy)->checked = false;
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
        head->bytes = bytes;
        head->checked = !world->channels;
    }
    return head->finite;
}
