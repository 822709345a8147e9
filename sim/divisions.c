/* The worlds of several threads (windows.c): made, filled from the whole one
 * and emptied into it.
 *
 *   shared    experiment, peers, nodes, totals: tables by peer, of which each
 *             division touches the rows of its own peers alone
 *   its own   clock, queue, packets, outbox, links: whatever an event of any
 *             peer may change
 *
 * A link between two divisions stands in both tables, and each has one end of
 * it: what a peer has sent, when that arrived, what it believes of the
 * connection. Nothing else of a link is ever read by the other end, unless
 * links break; runs with faults are not divided. */
#include "kith/assert.h"
#include "sim/windows_state.h"

/* The run's own events that may be pending. */
#define OWN_EVENTS 8u

uint32_t sim_regions(const struct sim_world *world)
{
    const uint32_t regions = world->experiment->network.latencies.regions;
    KITH_ASSERT(world->peer_count > 0);
    return regions < world->peer_count ? regions : world->peer_count;
}

/* Regions stay whole: what is near each other is one division's. Without them
 * any blocks will do. */
unsigned sim_division_of(const struct sim_world *world, kith_id peer)
{
    const uint64_t regions = sim_regions(world);
    const struct sim_windows *windows = world->windows;
    const uint64_t count = windows->count;
    KITH_DEBUG_ASSERT(count > 1 && peer < world->peer_count);
    return (unsigned)(regions > 0 ? peer % regions * count / regions
                                  : peer * count / world->peer_count);
}

/* ---- a division's world */

/* What is of one peer stands in tables that all share; what changes with
 * whatever happens, a division has for itself. */
static enum kith_err open_division(struct sim_world *world, unsigned number)
{
    struct sim_windows *windows = world->windows;
    KITH_ASSERT(number < windows->count);
    struct sim_world *own = sim_alloc(world, 1, sizeof *own);
    struct sim_division *division = sim_alloc(world, 1, sizeof *division);
    struct kith_effects *effects = sim_alloc(world, 1, sizeof *effects);
    char *error = sim_alloc(world, 1, SIM_ERROR_BYTES);
    struct sim_mail *mail =
        sim_alloc(world, 2 * (size_t)windows->count, sizeof *mail);
    struct sim_notes *notes =
        sim_alloc(world, 2 * (SIM_NOTES_USE + windows->count), sizeof *notes);
    if (!own || !division || !effects || !error || !mail || !notes)
        return KITH_ENOMEM;
    *division = (struct sim_division){.of = windows->of,
                                      .number = (uint8_t)number,
                                      .count = (uint8_t)windows->count,
                                      .mail = mail,
                                      .notes = notes};
    *own = (struct sim_world){
        .options = world->options,
        .experiment = world->experiment,
        .protocol = world->protocol,
        .peer_count = world->peer_count,
        .machine_count = world->machine_count,
        .steps = world->steps,
        .vector_bytes = world->vector_bytes,
        .peers = world->peers,
        .here = world->here,
        .nodes = world->nodes,
        .network = world->network,
        .faults = world->faults,
        .totals = world->totals,
        .zone_traffic = world->zone_traffic,
        .kept = world->kept,
        .division = division,
        .engine = {.error = error},
    };
    sim_nodes_use(own, effects);
    windows->divisions[number] = own;
    enum kith_err err = sim_engine_open(own);
    if (err == KITH_OK)
        err = sim_packets_open(own);
    return err == KITH_OK ? sim_links_open(own) : err;
}

/* Tables that all share are the whole world's to free. */
static void close_division(struct sim_world *own, unsigned count)
{
    KITH_ASSERT(own->blocks == NULL);
    for (unsigned i = 0; i < 2 * count; i++) {
        struct sim_mail *mail = &own->division->mail[i];
        sim_pages_free(mail->letters, mail->capacity * sizeof *mail->letters);
    }
    for (unsigned i = 0; i < 2 * (SIM_NOTES_USE + count); i++)
        sim_notes_close(&own->division->notes[i]);
    sim_directions_close(own);
    sim_links_close(own);
    sim_packets_close(own);
    sim_engine_close(own);
}

enum kith_err sim_divisions_open(struct sim_world *world)
{
    struct sim_windows *windows = world->windows;
    KITH_ASSERT(windows->of == NULL);
    windows->of = sim_alloc(world, world->peer_count, sizeof *windows->of);
    if (!windows->of)
        return KITH_ENOMEM;
    for (kith_id peer = 0; peer < world->peer_count; peer++)
        windows->of[peer] = (uint8_t)sim_division_of(world, peer);
    enum kith_err err = KITH_OK;
    for (unsigned i = 0; i < windows->count && err == KITH_OK; i++)
        err = open_division(world, i);
    return err;
}

void sim_divisions_close(struct sim_world *world)
{
    const struct sim_windows *windows = world->windows;
    KITH_ASSERT(windows->count <= SIM_THREADS_MAX);
    for (unsigned i = 0; i < windows->count; i++)
        if (windows->divisions[i])
            close_division(windows->divisions[i], windows->count);
}

/* ---- dividing and joining */

/* A packet that is under way stands in the pool of whoever it comes to. */
static void hand_over_event(struct sim_world *from, struct sim_event event,
                            struct sim_world *to)
{
    KITH_ASSERT(event.peer < from->peer_count);
    if (event.kind == SIM_EVENT_ARRIVE || event.kind == SIM_EVENT_DELIVER) {
        const uint32_t packet = sim_packet_hand_over(from, event.value, to);
        if (packet == 0)
            return;
        event.value = packet & SIM_VALUE_MAX;
    }
    sim_engine_put(to, &event);
}

/* As if nothing had ever happened here. */
static enum kith_err renew(struct sim_world *world)
{
    KITH_ASSERT(!sim_ended(world));
    const enum kith_err err = sim_engine_renew(world);
    return err == KITH_OK ? sim_links_renew(world) : err;
}

/* Each takes from the whole what is its peers': links first, for packets that
 * come in are told which of them they came over. */
static enum kith_err prepare(struct sim_world *world,
                             struct sim_world *division)
{
    KITH_ASSERT(division->division != NULL);
    enum kith_err err = renew(division);
    if (err != KITH_OK)
        return err;
    sim_engine_reach(division, sim_time(world));
    division->unfinished = sim_unfinished(division);
    sim_links_hand_over(world, division);
    return KITH_OK;
}

/* Everything that happens to peers, to the divisions; the run's own events
 * stay. */
enum kith_err sim_divide(struct sim_world *world)
{
    struct sim_windows *windows = world->windows;
    struct sim_event own[OWN_EVENTS], event;
    size_t count = 0;
    enum kith_err err = KITH_OK;
    sim_outbox_flush(world);
    sim_links_unchain(world);
    for (unsigned i = 0; i < windows->count && err == KITH_OK; i++)
        err = prepare(world, windows->divisions[i]);
    while (err == KITH_OK && sim_engine_empty(world, &event)) {
        KITH_ASSERT(event.peer != KITH_NOBODY || count < OWN_EVENTS);
        if (event.peer == KITH_NOBODY)
            own[count++] = event;
        else
            hand_over_event(world, event,
                            windows->divisions[windows->of[event.peer]]);
    }
    if (err == KITH_OK)
        err = renew(world);
    for (size_t i = 0; i < count && err == KITH_OK; i++)
        sim_engine_put(world, &own[i]);
    windows->until_ns =
        sim_engine_first(world, &event) ? event.time_ns : KITH_NEVER;
    windows->leaves = false;
    return err == KITH_OK
               ? err
               : sim_fail(world, err, "no memory for %u threads' events",
                          windows->count);
}

/* What is left of all divisions, and the first failure of them. */
void sim_join(struct sim_world *world)
{
    const struct sim_windows *windows = world->windows;
    struct sim_event event;
    KITH_ASSERT(windows->count > 1);
    world->unfinished = 0;
    sim_links_unchain(world);
    for (unsigned i = 0; i < windows->count; i++) {
        struct sim_world *division = windows->divisions[i];
        world->unfinished += division->unfinished;
        sim_links_hand_over(division, world);
        while (sim_engine_empty(division, &event))
            hand_over_event(division, event, world);
        if (sim_failure(division) != KITH_OK)
            sim_fail(world, sim_failure(division), "%s",
                     sim_failure_text(division));
    }
    if (world->unfinished == 0)
        sim_ending(world);
}

/* Every division has something to do: what ends the run is seen by all. */
bool sim_divisions_are_worth(const struct sim_world *world)
{
    const struct sim_windows *windows = world->windows;
    KITH_ASSERT(sim_links_are_clear(world));
    if (windows->is_off || sim_ended(world) || sim_is_ending(world))
        return false;
    for (unsigned i = 0; i < windows->count; i++)
        if (sim_unfinished(windows->divisions[i]) == 0)
            return false;
    return true;
}
