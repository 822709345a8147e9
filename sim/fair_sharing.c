/* See fair_sharing.h. A flow has the number of its packet; a connection's
 * packets stand in a chain whose first one is, or waits to become, a flow.
 * Flows that come and go at one time are one change: the run's own event, which
 * comes last among equal times, looks at them all. */
#include "sim/fair_sharing.h"

#include <math.h>

#include "kith/assert.h"
#include "sim/flows.h"
#include "sim/world.h"

struct sharing_line {     /* a direction of a connection: 2 link + side */
    uint32_t first, last; /* chain of packets: 1 + index */
    bool flows;           /* the first one is a flow */
};

struct sharing_packet {
    kith_ns began_ns; /* KITH_NEVER: it has not */
    kith_ns delay_ns; /* of one without a connection */
    uint64_t left;    /* bytes; of one that is no flow now */
};

struct sim_sharing {
    struct sim_flows_in_time flows;
    struct sharing_line *lines;     /* (line_capacity) */
    struct sharing_packet *packets; /* (packet_capacity), by index */
    uint32_t line_capacity, packet_capacity;
    kith_ns due_ns; /* of the event that is not stale */
};

/* Behind those of machines: with zone_rate and zone_rates from each zone to
 * each, by the first one's number; else each zone's out and in. */
static uint32_t count_zone_lines(const struct kith_zones *zones)
{
    if (kith_zones_limit(zones) == NULL)
        return 0;
    return zones->uplink_bits > 0 ? 2 * zones->count
                                  : zones->count * zones->count;
}

static uint64_t zone_line_rate(const struct kith_zones *zones, uint32_t line)
{
    KITH_ASSERT(line < count_zone_lines(zones));
    return zones->uplink_bits > 0 ? zones->uplink_bits
                                  : kith_zones_rate(zones, line / zones->count,
                                                    line % zones->count);
}

/* A line without a limit has no capacity, and is on no path. */
static void set_rate(struct sim_sharing *sharing, uint32_t line,
                     uint64_t rate_bits)
{
    KITH_ASSERT(line < sharing->flows.rates.link_count);
    if (rate_bits > 0)
        sim_rates_capacity(&sharing->flows.rates, line,
                           (double)rate_bits / (8.0 * KITH_S));
}

enum kith_err sim_sharing_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    const struct kith_classes *classes = &experiment->network.classes;
    const uint32_t zone_lines = count_zone_lines(&experiment->network.zones);
    if ((kith_classes_rate_least(classes) == 0 && zone_lines == 0) ||
        experiment->network.sharing != KITH_SHARING_FAIR)
        return KITH_OK;
    struct sim_sharing *sharing = sim_alloc(world, 1, sizeof *sharing);
    if (sharing == NULL)
        return KITH_ENOMEM;
    world->sharing = sharing;
    sharing->due_ns = KITH_NEVER;
    const uint32_t lines = 2 * world->machine_count;
    const enum kith_err err =
        sim_flows_open(&sharing->flows, lines + zone_lines);
    for (uint32_t line = 0; err == KITH_OK && line < lines; line++) {
        const struct kith_class *of = kith_class_of(classes, line / 2);
        set_rate(sharing, line, line % 2 == 0 ? of->up_bits : of->down_bits);
    }
    for (uint32_t line = 0; err == KITH_OK && line < zone_lines; line++)
        set_rate(sharing, lines + line,
                 zone_line_rate(&experiment->network.zones, line));
    return err;
}

void sim_sharing_close(struct sim_world *world)
{
    struct sim_sharing *sharing = world->sharing;
    if (sharing == NULL)
        return;
    sim_flows_close(&sharing->flows);
    sim_pages_free(sharing->lines,
                   sharing->line_capacity * sizeof *sharing->lines);
    sim_pages_free(sharing->packets,
                   sharing->packet_capacity * sizeof *sharing->packets);
}

/* ---- tables that grow with the pool of packets and the table of links */

static bool grow(struct sim_world *world, void **items, uint32_t *capacity,
                 uint32_t index, size_t size)
{
    if (index < *capacity)
        return true;
    const size_t more = 2 * (size_t)index + 64;
    void *grown = *capacity == 0
                      ? sim_pages(more * size)
                      : sim_pages_grow(*items, *capacity * size, more * size);
    KITH_ASSERT(more <= UINT32_MAX);
    if (grown == NULL) {
        sim_fail(world, KITH_ENOMEM, "no memory for %zu flows", more);
        return false;
    }
    *items = grown;
    *capacity = (uint32_t)more;
    return true;
}

/* NULL: no memory. */
static struct sharing_packet *packet_at(struct sim_world *world, uint32_t index)
{
    struct sim_sharing *sharing = world->sharing;
    void *packets = sharing->packets;
    KITH_DEBUG_ASSERT(index > 0);
    const bool done = grow(world, &packets, &sharing->packet_capacity, index,
                           sizeof *sharing->packets);
    sharing->packets = packets;
    return done ? &sharing->packets[index] : NULL;
}

static struct sharing_line *line_at(struct sim_world *world, uint32_t line)
{
    struct sim_sharing *sharing = world->sharing;
    void *lines = sharing->lines;
    KITH_DEBUG_ASSERT(line <= SIM_VALUE_MAX);
    const bool done = grow(world, &lines, &sharing->line_capacity, line,
                           sizeof *sharing->lines);
    sharing->lines = lines;
    return done ? &sharing->lines[line] : NULL;
}

static uint32_t line_of(const struct sim_packet *packet)
{
    KITH_DEBUG_ASSERT(packet->from != packet->to);
    return 2 * packet->link + (packet->from > packet->to);
}

/* ---- flows */

static void expect(struct sim_world *world, kith_ns at_ns)
{
    struct sim_sharing *sharing = world->sharing;
    KITH_DEBUG_ASSERT(at_ns >= sim_time(world));
    if (at_ns < sharing->due_ns) {
        sharing->due_ns = at_ns;
        sim_schedule_run(world, at_ns, SIM_RUN_FLOWS);
    }
}

/* path <- those between two zones, or within one; returns how many. */
static unsigned zone_path(const struct sim_world *world,
                          const struct sim_packet *packet, uint32_t *path)
{
    const struct kith_zones *zones = &world->experiment->network.zones;
    const uint32_t begins = 2 * world->machine_count;
    const uint32_t from = kith_zone_of(zones, packet->from);
    const uint32_t to = kith_zone_of(zones, packet->to);
    if (kith_zones_limit(zones) == NULL)
        return 0;
    KITH_DEBUG_ASSERT(from < zones->count && to < zones->count);
    if (zones->uplink_bits == 0) {
        path[0] = begins + from * zones->count + to;
        return kith_zones_rate(zones, from, to) > 0;
    }
    if (from == to)
        return 0;
    path[0] = begins + 2 * from;
    path[1] = begins + 2 * to + 1;
    return 2;
}

/* path <- the lines that limit it; returns how many. */
static unsigned path_of(const struct sim_world *world,
                        const struct sim_packet *packet,
                        uint32_t path[SIM_PATH_LINKS])
{
    const struct sim_rate_link *links = world->sharing->flows.rates.links;
    const uint32_t out = 2 * packet->from, in = 2 * packet->to + 1;
    unsigned count = 0;
    KITH_ASSERT(packet->from < world->machine_count);
    KITH_ASSERT(packet->to < world->machine_count);
    if (links[out].capacity > 0)
        path[count++] = out;
    count += zone_path(world, packet, path + count);
    if (links[in].capacity > 0)
        path[count++] = in;
    KITH_ASSERT(count <= SIM_PATH_LINKS);
    return count;
}

/* False: no line limits it, and it has left. */
static bool begin(struct sim_world *world, uint32_t index)
{
    struct sim_sharing *sharing = world->sharing;
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sharing_packet *sent = &sharing->packets[index];
    uint32_t path[SIM_PATH_LINKS];
    const unsigned links = path_of(world, packet, path);
    KITH_ASSERT(sent->left > 0);
    if (links > 0 && sim_flows_begin(&sharing->flows, index, path, links,
                                     sent->left, sim_time(world)) != KITH_OK) {
        sim_fail(world, KITH_ENOMEM, "no memory for one more flow");
        return true;
    }
    if (sent->began_ns == KITH_NEVER) {
        sent->began_ns = sim_time(world);
        sim_network_leaves(world, packet->from, packet->bytes);
        if (world->zone_traffic)
            sim_zone_traffic_sent(world, packet->from, packet->to,
                                  sim_time(world), packet->bytes);
    }
    if (links > 0)
        expect(world, sim_time(world));
    return links > 0;
}

/* Whole bytes: what is left of one leaves again. */
static void end(struct sim_world *world, uint32_t index)
{
    struct sim_sharing *sharing = world->sharing;
    const double left =
        ceil(sim_flows_end(&sharing->flows, index, sim_time(world)));
    sharing->packets[index].left = left > 1 ? (uint64_t)left : 1;
    expect(world, sim_time(world));
}

/* The last bit has left. */
static void arrive(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    const struct sharing_packet *sent = &world->sharing->packets[index];
    const kith_ns now_ns = sim_time(world);
    const kith_ns began_ns =
        sent->began_ns == KITH_NEVER ? now_ns : sent->began_ns;
    KITH_ASSERT(began_ns <= now_ns);
    kith_ns there_ns = kith_ns_add(now_ns, sent->delay_ns);
    if (packet->kind != SIM_PACKET_CENTRAL) {
        if (packet->flags & SIM_PACKET_CARRIES)
            sim_transfer_list(world, index, now_ns);
        there_ns = sim_direction_arrival(world, index, began_ns, now_ns, 0);
    }
    sim_schedule(world, packet->from, packet->to, there_ns, SIM_EVENT_DELIVER,
                 index);
}

/* ---- connections */

/* What has nothing to send, or need not send it any more, passes at once. */
static void go_on(struct sim_world *world, struct sharing_line *line)
{
    KITH_ASSERT(!line->flows);
    while (line->first != 0) {
        const uint32_t index = line->first;
        if (sim_direction_holds(world, index))
            return;
        const struct sim_packet *packet = sim_packet_at(world, index);
        if (packet->bytes > 0 && !(packet->flags & SIM_PACKET_CANCELLED) &&
            begin(world, index)) {
            line->flows = true;
            return;
        }
        (void)sim_packet_next(world, &line->first);
        arrive(world, index);
    }
}

/* Its first packet has left, or will not. */
static void pass(struct sim_world *world, struct sharing_line *line)
{
    KITH_ASSERT(line->flows && line->first != 0);
    line->flows = false;
    arrive(world, sim_packet_next(world, &line->first));
    go_on(world, line);
}

void sim_sharing_send(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    struct sharing_packet *sent = packet_at(world, index);
    struct sharing_line *line = line_at(world, line_of(packet));
    if (sent == NULL || line == NULL)
        return;
    *sent =
        (struct sharing_packet){.began_ns = KITH_NEVER, .left = packet->bytes};
    if (packet->flags & SIM_PACKET_CARRIES)
        sim_transfer_list(world, index, KITH_NEVER);
    uint32_t *end_of = line->first == 0 ? &line->first : &line->last;
    const bool idle = line->first == 0;
    sim_packet_append(world, end_of, index);
    line->last = index;
    if (idle)
        go_on(world, line);
}

void sim_sharing_send_alone(struct sim_world *world, uint32_t index,
                            kith_ns delay_ns)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sharing_packet *sent = packet_at(world, index);
    KITH_ASSERT(packet->kind == SIM_PACKET_CENTRAL && delay_ns >= 0);
    if (sent == NULL)
        return;
    *sent = (struct sharing_packet){
        .began_ns = KITH_NEVER, .delay_ns = delay_ns, .left = packet->bytes};
    if (!begin(world, index))
        arrive(world, index);
}

/* One that waits passes when it is its turn: a session has counted it. */
void sim_sharing_cancel(struct sim_world *world, uint32_t index)
{
    struct sim_sharing *sharing = world->sharing;
    const uint32_t at = line_of(sim_packet_at(world, index));
    KITH_ASSERT(sim_packet_at(world, index)->flags & SIM_PACKET_CANCELLED);
    if (at >= sharing->line_capacity || sharing->lines[at].first != index ||
        !sharing->lines[at].flows)
        return;
    end(world, index);
    pass(world, &sharing->lines[at]);
}

/* Nothing flows there any more. NULL: nothing ever did. */
static struct sharing_line *stop_line(struct sim_world *world, uint32_t at)
{
    struct sim_sharing *sharing = world->sharing;
    if (at >= sharing->line_capacity)
        return NULL;
    struct sharing_line *line = &sharing->lines[at];
    KITH_ASSERT(!line->flows || line->first != 0);
    if (line->flows)
        end(world, line->first);
    line->flows = false;
    return line;
}

void sim_sharing_reset(struct sim_world *world, uint32_t link)
{
    for (unsigned side = 0; side < 2; side++) {
        struct sharing_line *line = stop_line(world, 2 * link + side);
        if (line != NULL)
            sim_packet_free_all(world, &line->first);
    }
}

void sim_sharing_turn(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sharing_line *line = stop_line(world, 2 * link + side);
    KITH_ASSERT(side < 2);
    if (line != NULL)
        go_on(world, line);
}

/* ---- events */

void sim_sharing_step(struct sim_world *world)
{
    struct sim_sharing *sharing = world->sharing;
    const kith_ns now_ns = sim_time(world);
    uint32_t index;
    if (sharing->due_ns != now_ns)
        return; /* stale: an earlier one has looked */
    while (sim_flows_next(&sharing->flows, &index) <= now_ns) {
        const struct sim_packet *packet = sim_packet_at(world, index);
        (void)sim_flows_end(&sharing->flows, index, now_ns);
        if (packet->kind == SIM_PACKET_CENTRAL)
            arrive(world, index);
        else
            pass(world, &sharing->lines[line_of(packet)]);
    }
    sharing->due_ns = KITH_NEVER;
    if (sim_flows_share(&sharing->flows, now_ns) != KITH_OK) {
        sim_fail(world, KITH_ENOMEM, "no memory for the rates of flows");
        return;
    }
    const kith_ns next_ns = sim_flows_next(&sharing->flows, &index);
    if (index != UINT32_MAX) /* one that never ends is due, too */
        expect(world, next_ns < KITH_NEVER ? next_ns : KITH_NEVER - 1);
}
