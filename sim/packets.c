/* The pool of packets, chains of them, and the MODELs that can be cancelled. */
#include "sim/packets.h"

#include <stdlib.h>

#include "kith/archive.h"
#include "kith/assert.h"
#include "sim/world.h"

#define PACKETS_MIN 64u
/* So many packets before it is taken. */
#define FETCH_FREE 4u

/* Payloads stand in a table of their own: runs without parameters never touch
 * it, and a packet stays two cache lines. */
enum kith_err sim_packets_open(struct sim_world *world)
{
    KITH_ASSERT(world->packets.packets == NULL);
    struct sim_packets *pool = &world->packets;
    /* One message under way per machine to start with: pages that are never
     * touched cost nothing. */
    pool->capacity = PACKETS_MIN + world->machine_count;
    pool->packets = sim_pages(pool->capacity * sizeof *pool->packets);
    pool->free = sim_pages(pool->capacity * sizeof *pool->free);
    bool complete = pool->packets && pool->free;
    if (world->vector_bytes > 0 || world->options.wire != KITH_WIRE_SIZED) {
        pool->payloads = sim_pages(pool->capacity * sizeof *pool->payloads);
        complete = complete && pool->payloads;
    }
    if (world->vector_bytes > 0) {
        pool->transfers =
            sim_alloc(world, world->peer_count, sizeof *pool->transfers);
        complete = complete && pool->transfers;
    }
    return complete ? KITH_OK : KITH_ENOMEM;
}

/* What is still under way at the end is nobody's. */
void sim_packets_close(struct sim_world *world)
{
    KITH_ASSERT(world->packets.used <= world->packets.capacity);
    struct sim_packets *pool = &world->packets;
    for (uint32_t i = 0; pool->payloads && i < pool->used; i++)
        free(pool->payloads[i].sealed);
    sim_pages_free(pool->payloads, pool->capacity * sizeof *pool->payloads);
    sim_pages_free(pool->packets, pool->capacity * sizeof *pool->packets);
    sim_pages_free(pool->free, pool->capacity * sizeof *pool->free);
}

/* Twice as many: indices stay, addresses do not, so nobody keeps a pointer
 * across a call that may send. */
static bool grow(struct sim_packets *pool)
{
    KITH_ASSERT(pool->used == pool->capacity);
    if (pool->capacity > SIM_VALUE_MAX / 2)
        return false;
    const uint32_t old = pool->capacity, capacity = 2 * old;
    struct sim_packet *packets = sim_pages_grow(
        pool->packets, old * sizeof *packets, capacity * sizeof *packets);
    if (!packets)
        return false;
    pool->packets = packets;
    uint32_t *places = sim_pages_grow(pool->free, old * sizeof *places,
                                      capacity * sizeof *places);
    if (!places)
        return false;
    pool->free = places;
    if (pool->payloads) {
        struct sim_payload *payloads =
            sim_pages_grow(pool->payloads, old * sizeof *payloads,
                           capacity * sizeof *payloads);
        if (!payloads)
            return false;
        pool->payloads = payloads;
    }
    pool->capacity = capacity;
    return true;
}

/* One that is taken soon is asked for: what was freed long ago has left the
 * cache. */
static uint32_t take_free(struct sim_packets *pool)
{
    KITH_ASSERT(pool->free_count <= pool->used);
    const uint32_t index = pool->free[--pool->free_count];
    if (pool->free_count >= FETCH_FREE) {
        const uint32_t soon = pool->free[pool->free_count - FETCH_FREE];
        sim_fetch(&pool->packets[soon - 1]);
        sim_fetch((const char *)&pool->packets[soon - 1] + 64);
    }
    return index;
}

/* Flags alone are reset: sender, receiver and message are written by whoever
 * takes it. */
uint32_t sim_packet_take(struct sim_world *world)
{
    struct sim_packets *pool = &world->packets;
    uint32_t index;
    if (pool->free_count > 0) {
        index = take_free(pool);
    } else if (pool->used < pool->capacity || grow(pool)) {
        index = ++pool->used;
    } else {
        sim_fail(world, KITH_ENOMEM, "no memory for %u messages under way",
                 pool->used);
        return 0;
    }
    struct sim_packet *packet = &pool->packets[index - 1];
    packet->next = 0;
    packet->bytes = 0;
    packet->flags = world->channels ? SIM_PACKET_CARRIES : 0;
    return index;
}

/* A packet that is freed leaves its sender's list first: cancelling must not
 * find one that is used again. */
void sim_packet_free(struct sim_world *world, uint32_t index)
{
    struct sim_packets *pool = &world->packets;
    KITH_ASSERT(index - 1 < pool->used);
    struct sim_packet *packet = sim_packet_at(world, index);
    if (packet->flags & SIM_PACKET_LISTED)
        sim_transfer_unlist(world, index);
    if (packet->flags & SIM_PACKET_MOVES)
        sim_totals_moved(world, packet);
    if (packet->flags & SIM_PACKET_CARRIES) {
        struct sim_payload *payload = sim_payload_at(world, index);
        sim_copy_release(world, payload->vector);
        free(payload->sealed);
        *payload = (struct sim_payload){0};
    }
    KITH_ASSERT(pool->free_count < pool->used); /* freed twice */
    pool->free[pool->free_count++] = index;
}

/* Whatever it is counted as goes with it. */
void sim_packet_leave(struct sim_world *world, uint32_t index,
                      struct sim_packet *copy)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(!(packet->flags & (SIM_PACKET_LISTED | SIM_PACKET_CARRIES)));
    *copy = *packet;
    packet->flags = 0;
    sim_packet_free(world, index);
}

/* Its link has another index here. */
uint32_t sim_packet_enter(struct sim_world *world,
                          const struct sim_packet *copy)
{
    uint32_t link = 0;
    KITH_ASSERT(copy->from != copy->to);
    const uint32_t index = sim_packet_take(world);
    if (index == 0 || !sim_link_between(world, copy->from, copy->to, &link))
        return 0;
    struct sim_packet *packet = sim_packet_at(world, index);
    *packet = *copy;
    packet->next = 0;
    packet->link = link;
    KITH_ASSERT(sim_link_at(world, link)->generation == 0);
    return index;
}

uint32_t sim_packet_hand_over(struct sim_world *from, uint32_t index,
                              struct sim_world *to)
{
    struct sim_packet copy;
    KITH_ASSERT(from != to);
    sim_packet_leave(from, index, &copy);
    return sim_packet_enter(to, &copy);
}

/* Chains are short: what waits for one dial, or stands before one cut. */
void sim_packet_append(struct sim_world *world, uint32_t *first,
                       uint32_t packet)
{
    KITH_ASSERT(packet != *first);
    uint32_t *last = first;
    while (*last != 0)
        last = &sim_packet_at(world, *last)->next;
    sim_packet_at(world, packet)->next = 0;
    *last = packet;
}

/* The head leaves the chain; its next field is free for the chain that it
 * joins. */
uint32_t sim_packet_next(struct sim_world *world, uint32_t *first)
{
    KITH_ASSERT(*first <= world->packets.used);
    const uint32_t packet = *first;
    if (packet != 0) {
        *first = sim_packet_at(world, packet)->next;
        sim_packet_at(world, packet)->next = 0;
    }
    return packet;
}

void sim_packet_free_all(struct sim_world *world, uint32_t *first)
{
    while (*first != 0)
        sim_packet_free(world, sim_packet_next(world, first));
}

/* ---- transfers */

/* Messages of a round's edges share one list: they are cancelled together. */
static uint32_t *transfers_of(struct sim_world *world,
                              const struct sim_packet *packet)
{
    KITH_ASSERT(packet->from < world->peer_count);
    const uint32_t slot = kith_slot_is_edge_outbox(packet->message.slot)
                              ? KITH_SLOT_ROUND_SENT
                              : packet->message.slot;
    KITH_ASSERT(slot <= KITH_SLOT_ROUND_SENT && slot % 2 == 1);
    return &world->packets.transfers[packet->from][slot / 2];
}

/* A copy that has left whole cannot be called back: only what is still leaving,
 * or waits for its link, is listed. */
void sim_transfer_list(struct sim_world *world, uint32_t index, kith_ns left_ns)
{
    KITH_ASSERT(left_ns >= 0);
    struct sim_packet *packet = sim_packet_at(world, index);
    if (!(packet->flags & SIM_PACKET_CARRIES))
        return;
    struct sim_payload *payload = sim_payload_at(world, index);
    payload->left_ns = left_ns;
    if (left_ns <= sim_time(world) || !world->packets.transfers ||
        packet->kind != SIM_PACKET_MESSAGE ||
        packet->message.kind != KITH_MESSAGE_MODEL ||
        (packet->flags & SIM_PACKET_LISTED))
        return;
    uint32_t *head = transfers_of(world, packet);
    payload->next_transfer = *head;
    packet->flags |= SIM_PACKET_LISTED;
    *head = index;
}

/* Delivered, or freed: from now on cancelling it would cancel another packet's
 * bytes. */
void sim_transfer_unlist(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->flags & SIM_PACKET_LISTED);
    uint32_t *at = transfers_of(world, packet);
    while (*at != index) {
        KITH_ASSERT(*at != 0); /* what is marked stands in the list */
        at = &sim_payload_at(world, *at)->next_transfer;
    }
    *at = sim_payload_at(world, index)->next_transfer;
    packet->flags &= (uint16_t)~SIM_PACKET_LISTED;
}

/* The node's own exchange has ended: what its channel has not sent yet must
 * never arrive, because its slots are used again. */
void sim_cancel(struct sim_world *world, kith_id from, uint32_t slots)
{
    KITH_ASSERT(from < world->peer_count);
    if (!world->packets.transfers)
        return;
    sim_outbox_flush(world);
    for (uint32_t slot = KITH_SLOT_INITIATED_SENT; slot <= KITH_SLOT_ROUND_SENT;
         slot += 2) {
        uint32_t *head = &world->packets.transfers[from][slot / 2];
        while ((slots >> slot & 1u) && *head != 0) {
            const uint32_t index = *head;
            struct sim_packet *packet = sim_packet_at(world, index);
            const struct sim_payload *payload = sim_payload_at(world, index);
            KITH_ASSERT(packet->from == from);
            *head = payload->next_transfer;
            packet->flags &= (uint16_t)~SIM_PACKET_LISTED;
            if (payload->left_ns <= sim_time(world))
                continue;
            packet->flags |= SIM_PACKET_CANCELLED;
            if (world->sharing)
                sim_sharing_cancel(world, index);
        }
    }
}

/* ---- in a save */

uint32_t sim_packet_number(struct sim_world *world)
{
    struct sim_packets *packets = &world->packets;
    packets->models = packets->models % UINT32_MAX + 1;
    return packets->models;
}

/* Which index a packet has depends on the queue, and so on when the outbox lets
 * others go: models are known by their numbers. */
struct numbered {
    uint32_t number, index;
};

static int by_number(const void *one, const void *other)
{
    const struct numbered *a = one, *b = other;
    return (a->number > b->number) - (a->number < b->number);
}

/* Of the models under way those with bytes here, or those without; count + 1
 * places, NULL: no memory. */
static struct numbered *list_models(const struct sim_packets *pool, bool empty,
                                    size_t *count)
{
    struct numbered *models = malloc((pool->used + 1u) * sizeof *models);
    KITH_ASSERT(pool->payloads != NULL);
    *count = 0;
    for (uint32_t i = 0; models && i < pool->used; i++) {
        const struct sim_payload *payload = &pool->payloads[i];
        if (payload->vector && sim_copy_is_empty(payload->vector) == empty)
            models[(*count)++] = (struct numbered){payload->number, i};
    }
    if (models)
        qsort(models, *count, sizeof *models, by_number);
    return models;
}

/* The vector takes the place of the one without bytes that stood for it. */
static void read_models(struct sim_world *world, struct kith_archive *archive,
                        const struct numbered *models, size_t count)
{
    struct numbered wanted = {0};
    KITH_ASSERT(archive->reads && models != NULL);
    KITH_ARCHIVE(archive, wanted.number);
    while (!archive->failed && wanted.number != 0) {
        const struct numbered *found =
            bsearch(&wanted, models, count, sizeof *models, by_number);
        void **vector =
            found ? &world->packets.payloads[found->index].vector : NULL;
        if (!vector || !sim_copy_is_empty(*vector)) {
            kith_archive_fail(archive, "another message was under way");
            return;
        }
        void *const empty = *vector;
        archive->vector(archive, vector);
        sim_copy_release(world, empty);
        KITH_ARCHIVE(archive, wanted.number);
    }
}

static void write_models(struct sim_world *world, struct kith_archive *archive,
                         struct numbered *models, size_t count)
{
    uint32_t last = 0;
    KITH_ASSERT(!archive->reads && models != NULL);
    for (size_t i = 0; i < count && !archive->failed; i++) {
        KITH_ASSERT(models[i].number != last);
        KITH_ARCHIVE(archive, models[i].number);
        archive->vector(archive,
                        &world->packets.payloads[models[i].index].vector);
    }
    KITH_ARCHIVE(archive, last);
}

/* Those that have bytes here alone: of the rest the engine knows all there
 * is to know, once it has caught up. */
void sim_packets_move(struct sim_world *world, struct kith_archive *archive)
{
    size_t count;
    sim_outbox_flush(world); /* it frees what no link takes */
    struct numbered *models =
        list_models(&world->packets, archive->reads, &count);
    if (!models)
        kith_archive_fail(archive, "there is no memory for its messages");
    else if (archive->reads)
        read_models(world, archive, models, count);
    else
        write_models(world, archive, models, count);
    free(models);
}
