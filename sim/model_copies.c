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
#include <stdlib.h>
#include <string.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "sim/huge_pages.h"
#include "sim/work_pool.h"
#include "sim/world.h"

/* In front of a copy's bytes. */
struct sim_copy {
    _Alignas(64) struct sim_copy *next; /* of the free ones */
    size_t bytes;                       /* that were copied into it */
    uint32_t holders;
    uint32_t coming; /* rank_models.c */
    uint32_t rank;   /* whose log says whether it is finite; or none's */
    uint32_t name;   /* while a save is written; 0: none yet */
    uint32_t shown;  /* where it waits to be looked at; 0: nowhere */
    bool checked, finite;
    bool is_empty; /* of another rank's: there are no bytes behind it */
};
#define SIM_COPY_OWN UINT32_MAX
_Static_assert(sizeof(struct sim_copy) == 64, "a cache line");

/* Copies are made many at a time, of which those behind `used` are untouched:
 * first what workers begin with, then a sixteenth as many as there are, so that
 * a large run has them on huge pages, and a small one no more than it needs. */
struct sim_slab {
    _Alignas(64) struct sim_slab *older;
    size_t bytes, count, used;
    size_t last; /* where the last huge page begins that is used */
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
    while (world->copies.newest && !sim_ranks_linger(world)) {
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

/* So many at once. */
static size_t more_of(const struct sim_world *world, size_t stride)
{
    const uint64_t made = world->copies.made, here = world->here.count;
    const bool begins =
        world->workers && sim_workers_lend(world) && here > made;
    const uint64_t count = begins ? here - made : made / 16 + 1;
    const size_t most = SLAB_BYTES_MAX / stride + 1;
    KITH_ASSERT(stride > 0 && count > 0);
    return count < most ? (size_t)count : most;
}

static bool grow(struct sim_world *world)
{
    struct sim_copies *copies = &world->copies;
    const size_t stride = stride_of(world);
    KITH_ASSERT(!copies->newest ||
                copies->newest->used == copies->newest->count);
    const size_t bytes = sim_pages_whole(sizeof(struct sim_slab) +
                                         more_of(world, stride) * stride);
    const size_t count = (bytes - sizeof(struct sim_slab)) / stride;
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

/* A copy of the slab was taken: with threads the pages of a quarter of it, from
 * where that copy ends on, are made before they are written, which takes longer
 * than to write them. What of a run's last slab is made in vain is as much. */
static void make_ahead(struct sim_world *world, struct sim_slab *slab)
{
    const size_t page = SIM_HUGE_PAGE;
    const size_t used = sizeof *slab + slab->used * stride_of(world);
    const size_t last = (used - 1) / page * page;
    const size_t whole = slab->bytes / page * page;
    const size_t end = last + page + slab->bytes / 4 / page * page;
    struct sim_work_pool *const spare = sim_work_spare(world);
    KITH_ASSERT(used <= slab->bytes && last >= slab->last);
    if (spare && last > slab->last && last < whole)
        sim_work_pool_make(spare, (char *)slab + last,
                           (char *)slab + (end < whole ? end : whole));
    slab->last = last;
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
    void *copy = first + slab->used++ * stride_of(world);
    make_ahead(world, slab);
    world->report.vectors++;
    return copy;
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
    *head = (struct sim_copy){.holders = 1, .rank = SIM_COPY_OWN};
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

/* Before it is written, or asked about: no other thread reads it any more. */
static void withdraw(struct sim_world *world, struct sim_copy *head)
{
    struct sim_work_pool *const spare =
        head->shown != 0 ? sim_work_spare(world) : NULL;
    KITH_ASSERT(head->shown == 0 || !head->is_empty);
    if (spare)
        sim_work_pool_withdraw(spare, head + 1, head->shown);
    head->shown = 0;
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
        withdraw(world, head);
        struct sim_copy **list =
            head->is_empty ? &world->copies.empty : &world->copies.free;
        head->next = *list;
        *list = head;
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
    void **const sent = world->copies.sent ? world->copies.sent[peer] : NULL;
    for (unsigned i = 0; sent && i < SIM_SNAPSHOTS; i++) {
        if (!sent[i])
            continue;
        sim_copy_release(world, sent[i]);
        sent[i] = NULL;
    }
}

/* ---- of several ranks */

/* Made many at a time, for the whole run. */
#define EMPTY_COPIES 64u

static void *take_empty(struct sim_world *world)
{
    struct sim_copies *copies = &world->copies;
    KITH_ASSERT(sim_is_logged(world));
    if (!copies->empty) {
        struct sim_copy *heads = sim_alloc(world, EMPTY_COPIES, sizeof *heads);
        for (size_t i = 0; heads && i < EMPTY_COPIES; i++) {
            heads[i].next = copies->empty;
            copies->empty = &heads[i];
        }
    }
    struct sim_copy *head = copies->empty;
    if (!head) {
        sim_fail(world, KITH_ENOMEM, "no memory for messages under way");
        return NULL;
    }
    KITH_ASSERT(head->holders == 0);
    copies->empty = head->next;
    *head = (struct sim_copy){.holders = 1, .is_empty = true};
    return head + 1;
}

/* What an algorithm checks itself is never asked about. */
static bool is_asked(const struct sim_world *world,
                     const struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_MODEL);
    return message->pattern == KITH_PATTERN_PULL ||
           !kith_experiment_opaque(world->experiment);
}

/* Its sender's vectors are here: whether they are finite the others learn now,
 * long before the message comes, so that nobody waits for it then. */
static void *send_copy(struct sim_world *world, kith_id from,
                       const struct kith_send *send)
{
    const struct kith_message *message = &send->message;
    KITH_ASSERT(sim_is_here(world, from));
    void *copy =
        sim_copy_slot(world, from, message->slot, message->payload_bytes);
    if (!copy)
        return NULL;
    if (is_asked(world, message)) {
        const uint8_t finite = sim_copy_finite(world, copy, message);
        sim_log_put(world, &finite, sizeof finite);
    }
    if (sim_is_here(world, send->to))
        return copy;
    void *empty = take_empty(world);
    if (empty) {
        head_of(empty)->checked = true;
        head_of(empty)->finite = head_of(copy)->finite;
        head_of(empty)->bytes = message->payload_bytes;
        sim_models_send(world, sim_rank_of(world, send->to), copy,
                        message->payload_bytes);
    }
    sim_copy_release(world, copy);
    return empty;
}

/* At once, where the log is a file, too: its order is that of the events. */
static void hear_finite(struct sim_world *world, uint32_t rank, void *copy)
{
    uint8_t finite = 0;
    KITH_ASSERT(world->saves != NULL);
    sim_log_get(world, rank, &finite, sizeof finite);
    sim_copy_told(world, copy, finite != 0);
}

/* To tell another thread takes as long as to look at some 8,000 values. */
#define WORTH_SHOWING ((size_t)1 << 15)

/* Long before it arrives: another thread finds out meanwhile, should one have
 * nothing else to do. */
static void *show_copy(struct sim_world *world, kith_id from,
                       const struct kith_message *message)
{
    const size_t bytes = message->payload_bytes;
    void *copy = sim_copy_slot(world, from, message->slot, bytes);
    KITH_ASSERT(!sim_is_logged(world));
    if (!copy || bytes < WORTH_SHOWING ||
        message->pattern == KITH_PATTERN_PULL || !is_asked(world, message))
        return copy;
    struct sim_copy *head = head_of(copy);
    struct sim_work_pool *const spare = sim_work_spare(world);
    if (spare && head->shown == 0 && !head->checked && !world->channels) {
        head->bytes = bytes;
        head->shown = sim_work_pool_show(spare, copy);
    }
    return copy;
}

void *sim_copy_sent(struct sim_world *world, kith_id from,
                    const struct kith_send *send)
{
    const struct kith_message *message = &send->message;
    const bool comes = sim_is_here(world, send->to);
    KITH_ASSERT(from != send->to && message->kind == KITH_MESSAGE_MODEL);
    if (!sim_is_logged(world))
        return show_copy(world, from, message);
    if (sim_is_here(world, from))
        return send_copy(world, from, send);
    const uint32_t rank = sim_rank_of(world, from);
    void *copy = comes ? sim_copy_take(world) : take_empty(world);
    if (!copy)
        return NULL;
    KITH_ASSERT(!head_of(copy)->checked);
    head_of(copy)->bytes = message->payload_bytes;
    head_of(copy)->rank = rank;
    if (is_asked(world, message) && world->saves)
        hear_finite(world, rank, copy);
    else if (is_asked(world, message))
        sim_log_expect(world, rank, copy);
    if (comes)
        sim_models_receive(world, rank, copy, message->payload_bytes);
    return copy;
}

void sim_copy_told(struct sim_world *world, void *copy, bool finite)
{
    struct sim_copy *head = head_of(copy);
    KITH_ASSERT(sim_is_logged(world) && !head->checked);
    KITH_ASSERT(head->rank != SIM_COPY_OWN);
    head->checked = true;
    head->finite = finite;
}

/* Who waits for one of thousands finds it at once. */
uint32_t *sim_copy_coming(void *copy)
{
    KITH_ASSERT(head_of(copy)->holders > 0);
    return &head_of(copy)->coming;
}

/* ---- in a save */

/* One that the run has no bytes of. */
bool sim_copy_is_empty(void *copy)
{
    KITH_ASSERT(head_of(copy)->holders > 0);
    return head_of(copy)->is_empty;
}

/* By number, for whoever names it later; freed when the walk is over. */
static bool remember(struct sim_world *world, void *copy)
{
    struct sim_copies *copies = &world->copies;
    KITH_ASSERT(copies->named_count <= copies->named_room);
    if (copies->named_count == copies->named_room) {
        const size_t room = 2 * copies->named_room + 64;
        void **named = realloc(copies->named, room * sizeof *named);
        if (!named)
            return false;
        copies->named = named;
        copies->named_room = room;
    }
    copies->named[copies->named_count++] = copy;
    return true;
}

/* Whole vectors, whatever was copied into them: x of a worker stands in one,
 * too, and is longer than a message that is packed. */
static void move_bytes(struct sim_world *world, struct kith_archive *archive,
                       void *copy)
{
    struct sim_copy *head = head_of(copy);
    KITH_ASSERT(!head->is_empty && head->coming == 0);
    withdraw(world, head);
    KITH_ARCHIVE(archive, head->bytes);
    KITH_ARCHIVE(archive, head->rank);
    kith_archive_bool(archive, &head->checked);
    kith_archive_bool(archive, &head->finite);
    if (head->bytes > world->vector_bytes)
        kith_archive_fail(archive, "a vector is longer than any is");
    kith_archive_pages(archive, copy, world->vector_bytes);
}

/* Named at first sight, with what stands in it behind the name; but for what
 * every run of the experiment has. */
#define NAME_OF_FIRST UINT32_MAX

static void write_copy(struct kith_archive *archive, void *copy)
{
    struct sim_world *world = archive->owner;
    struct sim_copy *head = copy ? head_of(copy) : NULL;
    const bool is_first = copy && copy == sim_workers_first(world);
    const bool is_new = head && !is_first && head->name == 0;
    KITH_ASSERT(!archive->reads);
    if (is_new && !remember(world, copy)) {
        kith_archive_fail(archive, "there is no memory for its vectors");
        return;
    }
    if (is_new)
        head->name = (uint32_t)world->copies.named_count;
    uint32_t name = is_first ? NAME_OF_FIRST : head ? head->name : 0;
    KITH_ARCHIVE(archive, name);
    if (is_new)
        move_bytes(world, archive, copy);
}

/* One holder more each time. */
static void read_copy(struct kith_archive *archive, void **copy)
{
    struct sim_world *world = archive->owner;
    struct sim_copies *copies = &world->copies;
    uint32_t name = 0;
    KITH_ASSERT(archive->reads);
    *copy = NULL;
    KITH_ARCHIVE(archive, name);
    if (archive->failed || name == 0)
        return;
    if (name <= copies->named_count) {
        *copy = sim_copy_hold(copies->named[name - 1]);
        return;
    }
    if (name == NAME_OF_FIRST && sim_workers_first(world)) {
        *copy = sim_copy_hold(sim_workers_first(world));
        return;
    }
    void *fresh = name == copies->named_count + 1 ? sim_copy_take(world) : NULL;
    if (!fresh || !remember(world, fresh)) {
        kith_archive_fail(archive, "there is no such vector, or no memory");
        return;
    }
    move_bytes(world, archive, fresh);
    *copy = fresh;
}

static void move_copy(struct kith_archive *archive, void **copy)
{
    KITH_ASSERT(archive->owner != NULL);
    if (archive->reads)
        read_copy(archive, copy);
    else
        write_copy(archive, *copy);
}

void sim_copies_move_begin(struct sim_world *world,
                           struct kith_archive *archive)
{
    KITH_ASSERT(world->copies.named_count == 0);
    archive->owner = world;
    archive->vector = move_copy;
}

void sim_copies_move_end(struct sim_world *world)
{
    struct sim_copies *copies = &world->copies;
    KITH_ASSERT(copies->named_count < NAME_OF_FIRST);
    for (size_t i = 0; i < copies->named_count; i++)
        head_of(copies->named[i])->name = 0;
    free(copies->named);
    copies->named = NULL;
    copies->named_count = copies->named_room = 0;
}

/* ---- is it finite? */

/* Only x of one that nobody else holds is written where it is. */
void sim_copy_write(struct sim_world *world, void *copy)
{
    KITH_ASSERT(!sim_copy_is_held(copy));
    withdraw(world, head_of(copy));
    head_of(copy)->checked = false;
}

static bool is_finite(const struct sim_world *world, const void *copy,
                      const struct kith_format *format, size_t bytes)
{
    KITH_ASSERT(bytes <= world->vector_bytes);
    return kith_format_passes(format, world->experiment->backend->host, bytes,
                              0, bytes, copy);
}

void sim_copy_look(const void *owner, void *copy)
{
    const struct sim_world *world = owner;
    struct sim_copy *head = head_of(copy);
    KITH_ASSERT(!head->checked && !head->is_empty);
    head->finite =
        is_finite(world, copy, world->experiment->gossip.format, head->bytes);
    head->checked = true;
}

/* Asked once for all who receive it: the answer is a property of the bytes.
 * Where those are another rank's, that one has asked. */
bool sim_copy_finite(struct sim_world *world, void *copy,
                     const struct kith_message *message)
{
    struct sim_copy *head = head_of(copy);
    const size_t bytes = message->payload_bytes;
    KITH_ASSERT(head->holders > 0);
    if (head->is_empty || head->rank != SIM_COPY_OWN) {
        KITH_ASSERT(head->bytes == bytes);
        while (!head->checked && sim_log_hear(world, head->rank))
            ;
        return head->finite;
    }
    withdraw(world, head);
    if (!head->checked || head->bytes != bytes) {
        const struct kith_format *format =
            message->pattern == KITH_PATTERN_PULL
                ? NULL
                : world->experiment->gossip.format;
        head->finite = is_finite(world, copy, format, bytes);
        head->bytes = bytes;
        head->checked = !world->channels;
    }
    return head->finite;
}
