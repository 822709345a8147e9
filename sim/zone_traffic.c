/* Exchanges and bytes by place and time, in bounded memory: see
 * kith/zone_map.h for places.
 *
 *   cells   (slots, places, places), at most ZONE_CELLS_MAX
 *   slots   of equal length, which doubles when time is past the last one: two
 *           and two become one, so that half of them at least are in use
 *
 * Each thread's events have cells of their own, added up at the end. A run in
 * zones of more than KITH_NODES_MAX peers has them: a page draws fewer peers
 * one by one, from their rows. 1.2 MB a thread, and a byte a peer. */
#include "sim/zone_traffic.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "kith/zone_map.h"
#include "sim/world.h"

/* What a page reads of one run, and how many moments it shows. */
#define ZONE_CELLS_MAX 50000u
#define ZONE_SLOTS_MAX 24u
#define FIRST_SLOT_NS KITH_MS

struct zone_cell {
    uint64_t done, failed, bytes;
};

/* Of one thread's events. */
struct zone_slots {
    _Alignas(64) kith_ns length_ns;
    struct zone_cell *cells; /* (slots, places, places) */
    kith_ns from_ns;         /* of the slot that was asked for last */
    struct zone_cell *last;  /* its cells */
};

struct sim_zone_traffic {
    struct kith_zone_map map;
    uint8_t *place_of;        /* (peers) */
    uint32_t slots;           /* even */
    unsigned count;           /* of parts: the whole world, then divisions */
    struct zone_slots *parts; /* (count) */
};

/* Of a slot: from each place, a row, to each. */
static size_t slot_cells(const struct sim_zone_traffic *traffic)
{
    KITH_ASSERT(traffic->map.count > 0);
    return (size_t)traffic->map.count * traffic->map.count;
}

/* Fewer slots for more places, so that a page's file stays one that a browser
 * opens; an even number, for two and two become one. */
static enum kith_err open_parts(struct sim_world *world,
                                struct sim_zone_traffic *traffic)
{
    const size_t cells = slot_cells(traffic);
    KITH_ASSERT(2 * cells <= ZONE_CELLS_MAX);
    traffic->slots = ZONE_CELLS_MAX / cells < ZONE_SLOTS_MAX
                         ? (uint32_t)(ZONE_CELLS_MAX / cells)
                         : ZONE_SLOTS_MAX;
    traffic->slots -= traffic->slots % 2;
    traffic->count = 1 + world->options.threads;
    traffic->parts = sim_alloc(world, traffic->count, sizeof *traffic->parts);
    if (!traffic->parts)
        return KITH_ENOMEM;
    for (unsigned i = 0; i < traffic->count; i++) {
        struct zone_slots *part = &traffic->parts[i];
        part->length_ns = FIRST_SLOT_NS;
        part->cells =
            sim_alloc(world, traffic->slots * cells, sizeof *part->cells);
        if (!part->cells)
            return KITH_ENOMEM;
        part->last = part->cells;
    }
    return KITH_OK;
}

/* Central methods have servers, which are in no zone. Of a sweep's runs no page
 * draws a map, and one of thousands of regions takes seconds. */
enum kith_err sim_zone_traffic_open(struct sim_world *world)
{
    const struct kith_zones *zones = &world->experiment->network.zones;
    KITH_ASSERT(world->zone_traffic == NULL);
    if (!world->options.store || world->options.of_sweep ||
        world->experiment->central.present || zones->count < 2 ||
        world->peer_count <= KITH_NODES_MAX)
        return KITH_OK;
    struct sim_zone_traffic *traffic = sim_alloc(world, 1, sizeof *traffic);
    if (!traffic)
        return KITH_ENOMEM;
    world->zone_traffic = traffic;
    traffic->place_of =
        sim_alloc(world, world->peer_count, sizeof *traffic->place_of);
    enum kith_err err =
        !traffic->place_of
            ? KITH_ENOMEM
            : kith_zone_map_open(zones, &world->experiment->network.latencies,
                                 world->peer_count, &traffic->map);
    if (err != KITH_OK)
        return err;
    for (kith_id peer = 0; peer < world->peer_count; peer++)
        traffic->place_of[peer] =
            traffic->map.place_of[kith_zone_of(zones, peer)];
    return open_parts(world, traffic);
}

void sim_zone_traffic_close(struct sim_world *world)
{
    KITH_ASSERT(world->division == NULL);
    if (world->zone_traffic)
        kith_zone_map_close(&world->zone_traffic->map);
}

static void add_cell(struct zone_cell *sum, const struct zone_cell *one)
{
    KITH_DEBUG_ASSERT(sum != one);
    sum->done += one->done;
    sum->failed += one->failed;
    sum->bytes += one->bytes;
}

/* Slots twice as long. */
static void join_slots(const struct sim_zone_traffic *traffic,
                       struct zone_slots *part)
{
    const size_t cells = slot_cells(traffic);
    KITH_ASSERT(traffic->slots % 2 == 0 && part->length_ns <= KITH_NEVER / 2);
    for (uint32_t slot = 0; slot < traffic->slots; slot++) {
        struct zone_cell *from = part->cells + slot * cells;
        struct zone_cell *to = part->cells + slot / 2 * cells;
        for (size_t i = 0; i < cells && from != to; i++) {
            if (slot % 2 == 0)
                to[i] = (struct zone_cell){0};
            add_cell(&to[i], &from[i]);
        }
    }
    for (size_t i = traffic->slots / 2 * cells; i < traffic->slots * cells; i++)
        part->cells[i] = (struct zone_cell){0};
    part->length_ns *= 2;
    part->from_ns = 0;
    part->last = part->cells;
}

/* Messages may leave, and so be counted, some time after others did: any slot
 * up to now may be asked for. */
static void find_slot(const struct sim_zone_traffic *traffic,
                      struct zone_slots *part, kith_ns at_ns)
{
    KITH_ASSERT(at_ns >= 0);
    while (at_ns / part->length_ns >= traffic->slots)
        join_slots(traffic, part);
    const kith_ns slot = at_ns / part->length_ns;
    part->from_ns = slot * part->length_ns;
    part->last = part->cells + (size_t)slot * slot_cells(traffic);
}

/* Of the thread at hand. Most calls are for the slot of the one before. */
static struct zone_cell *cell_at(const struct sim_world *world, kith_id from,
                                 kith_id to, kith_ns at_ns)
{
    const struct sim_zone_traffic *traffic = world->zone_traffic;
    const unsigned number = world->division ? 1u + world->division->number : 0;
    KITH_DEBUG_ASSERT(number < traffic->count);
    KITH_DEBUG_ASSERT(from < world->peer_count && to < world->peer_count);
    struct zone_slots *part = &traffic->parts[number];
    if (at_ns < part->from_ns || at_ns - part->from_ns >= part->length_ns)
        find_slot(traffic, part, at_ns);
    return &part->last[traffic->place_of[from] * traffic->map.count +
                       traffic->place_of[to]];
}

/* Each end marks its own: an exchange that both have done counts twice, once
 * each way. */
void sim_zone_traffic_mark(struct sim_world *world, kith_id peer,
                           const struct kith_mark *mark)
{
    const bool is_done = mark->kind == KITH_MARK_DONE;
    if (mark->peer >= world->peer_count ||
        (!is_done && mark->kind != KITH_MARK_FAILED &&
         mark->kind != KITH_MARK_TORN))
        return;
    struct zone_cell *cell = cell_at(world, peer, mark->peer, sim_time(world));
    cell->done += is_done;
    cell->failed += !is_done;
}

void sim_zone_traffic_sent(struct sim_world *world, kith_id from, kith_id to,
                           kith_ns at_ns, uint64_t bytes)
{
    cell_at(world, from, to, at_ns)->bytes += bytes;
}

/* All threads' into the first one's. */
static void add_parts(const struct sim_zone_traffic *traffic)
{
    kith_ns longest_ns = 0;
    KITH_ASSERT(traffic->count > 0);
    for (unsigned i = 0; i < traffic->count; i++)
        if (traffic->parts[i].length_ns > longest_ns)
            longest_ns = traffic->parts[i].length_ns;
    for (unsigned i = 0; i < traffic->count; i++) {
        while (traffic->parts[i].length_ns < longest_ns)
            join_slots(traffic, &traffic->parts[i]);
        for (size_t k = 0; i > 0 && k < traffic->slots * slot_cells(traffic);
             k++)
            add_cell(&traffic->parts[0].cells[k], &traffic->parts[i].cells[k]);
    }
}

/* Cells in which nothing happened are no rows: a reader takes them as 0. */
void sim_zone_traffic_write(struct sim_world *world)
{
    const struct sim_zone_traffic *traffic = world->zone_traffic;
    struct kith_rundb *store = world->options.store;
    KITH_ASSERT(store != NULL && world->division == NULL);
    const uint32_t count = traffic->map.count;
    add_parts(traffic);
    (void)kith_rundb_zone_map(store, &world->experiment->network.zones,
                              &traffic->map, traffic->parts[0].length_ns);
    for (size_t i = 0; i < traffic->slots * slot_cells(traffic); i++) {
        const struct zone_cell *cell = &traffic->parts[0].cells[i];
        const struct kith_zone_traffic row = {
            .slot = (uint32_t)(i / slot_cells(traffic)),
            .from = (uint32_t)(i / count % count),
            .to = (uint32_t)(i % count),
            .done = cell->done,
            .failed = cell->failed,
            .bytes = cell->bytes};
        if (cell->done + cell->failed + cell->bytes > 0)
            (void)kith_rundb_zone_traffic(store, &row);
    }
}
