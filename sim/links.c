/* Connections: a dial, a handshake, two ends that are up.
 *
 *   dialler  SYN -------->            <- SYNACK
 *            FIRST ------>  preface, message 1
 *                           <- SECOND preface, message 2, certificate
 *            THIRD ------>  message 3, certificate, HELLO: responder is up
 *                           <- HELLO: dialler is up
 *
 * Where both ends dial at once, the lower rank's connection wins. A crash or a
 * dial that takes too long ends the link's generation: packets of the old one
 * are dropped on arrival, and the other end learns of it by a RESET. */
#include "sim/links.h"

#include "kith/assert.h"
#include "kith/session.h"
#include "sim/world.h"

/* How long a handshake may take in all. */
#define DIAL_TIMEOUT_NS (5 * KITH_S)
/* Preface and ephemeral key: what the first flight holds of the whole. */
#define FIRST_BYTES (KITH_PREFACE_BYTES + KITH_KEY_BYTES)

/* Nobody has spoken with anybody: the first message of each peer searches the
 * table. */
enum kith_err sim_links_open(struct sim_world *world)
{
    KITH_ASSERT(world->links.table.links == NULL);
    for (unsigned initiator = 0; initiator < 2; initiator++) {
        world->handshake_bytes[initiator] =
            sim_channel_handshake_bytes(world, initiator);
    }
    for (kith_id id = 0; id < world->machine_count; id++)
        world->peers[id].links.recent = KITH_NOBODY;
    return sim_link_table_open(&world->links.table);
}

void sim_links_close(struct sim_world *world)
{
    sim_link_table_close(&world->links.table);
}

/* The link of two peers, made where they have not met. NULL: no memory. */
SIM_INLINE struct sim_link *between(struct sim_world *world, kith_id a,
                                    kith_id b, uint32_t *index)
{
    struct sim_link_table *table = &world->links.table;
    KITH_ASSERT(a < world->peer_count && b < world->peer_count);
    bool made = false;
    struct sim_link *link = sim_link_table_get(table, a, b, index, &made);
    if (!link) {
        sim_fail(world, KITH_ENOMEM, "no memory for more than %u links",
                 table->count);
        return NULL;
    }
    for (unsigned side = 0; made && side < 2; side++) {
        struct sim_peer *peer = &world->peers[link->end[side]];
        if (sim_is_mine(world, link->end[side])) {
            link->next[side] = peer->links.first;
            peer->links.first = *index + 1;
        }
    }
    return made && !sim_directions_catch_up(world, link) ? NULL : link;
}

bool sim_link_between(struct sim_world *world, kith_id a, kith_id b,
                      uint32_t *link)
{
    KITH_ASSERT(a != b);
    return between(world, a, b, link) != NULL;
}

/* Three of four messages go back where one has just come from: they skip the
 * search, and its two cache misses. */
void sim_link_heard(struct sim_world *world, kith_id peer, kith_id other,
                    uint32_t link)
{
    KITH_DEBUG_ASSERT(peer != other && link < world->links.table.count);
    world->peers[peer].links.recent = other;
    world->peers[peer].links.recent_link = link;
}

/* ---- the link's own packets */

/* From this side; 0: no memory. */
static uint32_t take(struct sim_world *world, uint32_t link, unsigned side,
                     enum sim_packet_kind kind)
{
    KITH_ASSERT(side < 2);
    const uint32_t index = sim_packet_take(world);
    if (index != 0) {
        const struct sim_link *entry = sim_link_at(world, link);
        struct sim_packet *packet = sim_packet_at(world, index);
        packet->from = entry->end[side];
        packet->to = entry->end[1 - side];
        packet->kind = (uint8_t)kind;
        packet->link = link;
        packet->generation = entry->generation;
    }
    return index;
}

/* Bytes of a handshake, which sessions write and read. */
static bool is_flight(enum sim_packet_kind kind)
{
    return kind >= SIM_PACKET_FIRST && kind <= SIM_PACKET_HELLO;
}

/* Handshakes carry bytes of their own where the wire is `full`; time and bytes
 * are charged alike. */
static void transmit(struct sim_world *world, uint32_t link, unsigned side,
                     enum sim_packet_kind kind, uint64_t bytes)
{
    KITH_ASSERT(side < 2 && kind != SIM_PACKET_MESSAGE);
    const uint32_t index = take(world, link, side, kind);
    if (index == 0)
        return;
    sim_packet_at(world, index)->bytes = bytes;
    if (world->channels && is_flight(kind))
        sim_channel_write_flight(world, index);
    sim_transmit(world, index, sim_time(world));
}

/* Both ends may dial at once: whose SYN wins is decided where it arrives, by
 * rank. */
static void dial(struct sim_world *world, uint32_t link, unsigned side,
                 kith_ns at_ns)
{
    struct sim_link *entry = sim_link_at(world, link);
    KITH_ASSERT(entry->side[side] == SIM_SIDE_IDLE);
    entry->side[side] = SIM_SIDE_DIALLING;
    if (entry->side[1 - side] == SIM_SIDE_IDLE)
        entry->dialler = (uint8_t)side;
    const uint32_t index = take(world, link, side, SIM_PACKET_SYN);
    if (index != 0)
        sim_transmit(world, index, at_ns);
}

void sim_link_watch(struct sim_world *world, uint32_t link)
{
    const unsigned dialler = sim_link_at(world, link)->dialler;
    const uint32_t index = take(world, link, 1 - dialler, SIM_PACKET_TIMEOUT);
    if (index != 0) {
        const kith_id to = sim_packet_at(world, index)->to;
        sim_schedule(world, to, to, sim_time(world) + DIAL_TIMEOUT_NS,
                     SIM_EVENT_DELIVER, index);
    }
}

/* ---- messages on the link */

static bool find_up(const struct sim_world *world, kith_id from, kith_id to,
                    uint32_t *index)
{
    const struct sim_peer *peer = &world->peers[from];
    KITH_DEBUG_ASSERT(from < world->peer_count && to < world->peer_count);
    *index = peer->links.recent_link;
    if (peer->links.recent != to &&
        sim_link_table_find(&world->links.table, from, to, index) == NULL)
        return false;
    const struct sim_link *link = sim_link_at(world, *index);
    return link->side[sim_side_of(link, from)] == SIM_SIDE_UP;
}

bool sim_link_is_up(const struct sim_world *world, kith_id from, kith_id to)
{
    uint32_t index;
    return find_up(world, from, to, &index);
}

/* Of a usual direction the time at which the last of it arrives is known when
 * that leaves. */
bool sim_link_delivers(struct sim_world *world, kith_id from, kith_id to,
                       kith_ns by_ns)
{
    uint32_t index;
    KITH_ASSERT(from != to);
    if (world->sharing || sim_network_has_lines(world) ||
        sim_host_charges_messages(world) ||
        world->peers[from].state != SIM_PEER_RUNS ||
        world->peers[to].state != SIM_PEER_RUNS)
        return false;
    sim_outbox_flush(world);
    if (!find_up(world, from, to, &index))
        return false;
    const struct sim_link *link = sim_link_at(world, index);
    const kith_ns last_ns = link->last_ns[sim_side_of(link, from)];
    return link->pair == 0 &&
           link->side[sim_side_of(link, to)] == SIM_SIDE_UP &&
           last_ns < by_ns && last_ns < sim_fault_next(world);
}

void sim_link_bind(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_DEBUG_ASSERT((packet->flags & SIM_PACKET_BOUND) == 0);
    if (!find_up(world, packet->from, packet->to, &packet->link))
        return;
    packet->generation = sim_link_at(world, packet->link)->generation;
    packet->flags |= SIM_PACKET_BOUND;
}

bool sim_link_is_lost(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->kind == SIM_PACKET_MESSAGE);
    return (packet->flags & SIM_PACKET_BOUND) &&
           packet->generation != sim_link_at(world, packet->link)->generation;
}

/* The message waits until its end is up. */
static void wait(struct sim_world *world, uint32_t link, unsigned side,
                 uint32_t packet)
{
    KITH_ASSERT(sim_link_at(world, link)->side[side] != SIM_SIDE_UP);
    sim_packet_append(world, &sim_link_at(world, link)->waiting[side], packet);
    sim_transfer_list(world, packet, KITH_NEVER);
}

/* What stands for the channel's state at this end: up, on its way up, unknown,
 * or gone without notice. */
void sim_link_send(struct sim_world *world, uint32_t index, kith_ns at_ns)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    const kith_id from = packet->from, to = packet->to;
    KITH_ASSERT(packet->kind == SIM_PACKET_MESSAGE ||
                packet->kind == SIM_PACKET_SYN);
    struct sim_peer *peer = &world->peers[from];
    if (peer->links.recent != to) {
        uint32_t found;
        if (!between(world, from, to, &found))
            return;
        sim_link_heard(world, from, to, found);
    }
    const uint32_t link = packet->link = peer->links.recent_link;
    const unsigned side = sim_side_of(sim_link_at(world, link), from);
    const enum sim_side state =
        (enum sim_side)sim_link_at(world, link)->side[side];
    if (sim_packet_at(world, index)->kind == SIM_PACKET_SYN) {
        sim_packet_free(world, index); /* a wish: dialling takes its own */
        if (state == SIM_SIDE_IDLE)
            dial(world, link, side, at_ns);
        return;
    }
    switch (state) {
    case SIM_SIDE_UP:
        sim_launch(world, index, at_ns);
        break;
    case SIM_SIDE_DEAD: /* into the void: nobody has told this end yet */
        sim_packet_free(world, index);
        break;
    case SIM_SIDE_IDLE:
        wait(world, link, side, index);
        dial(world, link, side, at_ns);
        break;
    case SIM_SIDE_DIALLING:
    case SIM_SIDE_KNOWN:
        wait(world, link, side, index);
        break;
    }
}

/* Stale packets are told by the link's generation: a reset connection's bytes
 * must not reach the next one. */
bool sim_link_stops(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    const struct sim_link *link = sim_link_at(world, packet->link);
    KITH_ASSERT(packet->generation <= link->generation);
    if (packet->generation == link->generation)
        return sim_direction_stalls(world, index);
    sim_packet_free(world, index);
    return true;
}

/* ---- the end of a connection */

/* This end's connection is over. Its own state is IDLE from now on; the other
 * end, if it believes in anything, is dead and will hear of it. */
static void link_break(struct sim_world *world, uint32_t link, unsigned side)
{
    KITH_ASSERT(side < 2);
    struct sim_link *entry = sim_link_at(world, link);
    const bool other = entry->side[1 - side] != SIM_SIDE_IDLE;
    if (entry->side[side] == SIM_SIDE_IDLE && !other)
        return;
    entry->generation++;
    world->links.resets++;
    sim_packet_free_all(world, &entry->waiting[0]);
    sim_packet_free_all(world, &entry->waiting[1]);
    entry->side[side] = SIM_SIDE_IDLE;
    if (world->channels)
        sim_channel_reset(world, link);
    if (world->sharing)
        sim_sharing_reset(world, link);
    if (other) {
        entry->side[1 - side] = SIM_SIDE_DEAD;
        transmit(world, link, side, SIM_PACKET_RESET, 0);
    }
}

/* Along the peer's own chain of links: a crash costs its degree, not the size
 * of the run. */
void sim_link_crash(struct sim_world *world, kith_id peer)
{
    sim_outbox_flush(world);
    KITH_ASSERT(!sim_alive(world, peer));
    uint32_t next = world->peers[peer].links.first;
    while (next != 0) {
        const uint32_t link = next - 1;
        const unsigned side = sim_side_of(sim_link_at(world, link), peer);
        next = sim_link_at(world, link)->next[side];
        link_break(world, link, side);
    }
}

/* ---- what an end learns */

/* The node hears of its link. Messages that have waited leave before that,
 * because it may answer and order must hold; where the link is gone they are
 * gone with it: the node decides anew whether to send them. */
static void turn(struct sim_world *world, uint32_t link, unsigned side, bool up)
{
    struct sim_link *entry = sim_link_at(world, link);
    const kith_id peer = entry->end[side], other = entry->end[1 - side];
    KITH_ASSERT(!up || entry->side[side] != SIM_SIDE_IDLE);
    entry->side[side] = up ? SIM_SIDE_UP : SIM_SIDE_IDLE;
    while (up && entry->waiting[side] != 0) {
        sim_launch(world, sim_packet_next(world, &entry->waiting[side]),
                   sim_time(world));
    }
    sim_packet_free_all(world, &entry->waiting[side]);
    sim_trace_link(world, peer, other, up);
    struct kith_event event = {
        .kind = up ? KITH_EVENT_LINK_UP : KITH_EVENT_LINK_DOWN, .from = other};
    sim_step(world, peer, &event);
}

/* A crashed machine refuses at once, as an operating system does for a port
 * that nobody listens at. */
static void step_syn(struct sim_world *world, uint32_t link, unsigned side)
{
    KITH_ASSERT(side < 2);
    struct sim_link *entry = sim_link_at(world, link);
    if (!sim_alive(world, entry->end[side])) {
        transmit(world, link, side, SIM_PACKET_RESET, 0); /* refused */
        return;
    }
    const bool ours_wins = entry->side[side] == SIM_SIDE_DIALLING && side == 0;
    if (ours_wins || entry->side[side] == SIM_SIDE_UP)
        return; /* both dialled: the lower rank's connection is the one */
    entry->side[side] = SIM_SIDE_KNOWN;
    entry->dialler = (uint8_t)(1 - side);
    transmit(world, link, side, SIM_PACKET_SYNACK, 0);
}

/* Only a dial times out here: an exchange over a link that is up has its own
 * deadline, in the node. */
static void step_timeout(struct sim_world *world, uint32_t link, unsigned side)
{
    KITH_ASSERT(world->links.table.count > link);
    if (sim_link_at(world, link)->side[side] == SIM_SIDE_DIALLING) {
        link_break(world, link, side);
        turn(world, link, side, false);
    }
}

/* Six flights of a handshake and two endings: see the picture above. */
void sim_link_step(struct sim_world *world, uint32_t index)
{
    sim_outbox_flush(world);
    const struct sim_packet *packet = sim_packet_at(world, index);
    const enum sim_packet_kind kind = (enum sim_packet_kind)packet->kind;
    const uint32_t link = packet->link;
    const struct sim_link *entry = sim_link_at(world, link);
    const unsigned side = sim_side_of(entry, packet->to);
    if (world->channels && is_flight(kind))
        sim_channel_read_flight(world, index);
    sim_packet_free(world, index);
    const size_t *whole = world->handshake_bytes;
    const uint64_t answer_bytes[] = {[SIM_PACKET_SYNACK] = FIRST_BYTES,
                                     [SIM_PACKET_FIRST] = whole[0],
                                     [SIM_PACKET_SECOND] =
                                         whole[1] - FIRST_BYTES,
                                     [SIM_PACKET_THIRD] = 0};
    switch (kind) {
    case SIM_PACKET_SYN:
        step_syn(world, link, side);
        break;
    case SIM_PACKET_SYNACK:
    case SIM_PACKET_FIRST:
    case SIM_PACKET_SECOND:
    case SIM_PACKET_THIRD:
        if (kind == SIM_PACKET_SYNACK && world->channels) {
            sim_channel_dial(world, link, entry->end[side],
                             entry->end[1 - side]);
        }
        transmit(world, link, side, kind + 1, answer_bytes[kind]);
        if (kind == SIM_PACKET_THIRD)
            turn(world, link, side, true);
        break;
    case SIM_PACKET_HELLO:
        world->report.handshakes++;
        turn(world, link, side, true);
        break;
    case SIM_PACKET_RESET:
        if (entry->side[side] != SIM_SIDE_IDLE)
            turn(world, link, side, false);
        break;
    case SIM_PACKET_TIMEOUT:
        step_timeout(world, link, side);
        break;
    case SIM_PACKET_MESSAGE:
    case SIM_PACKET_CENTRAL:
        KITH_ASSERT(kind < SIM_PACKET_MESSAGE || kind > SIM_PACKET_CENTRAL);
        break;
    }
}

/* ---- divisions */

/* Of all peers at once: a link is in the chains of both its ends. */
void sim_links_unchain(struct sim_world *world)
{
    KITH_ASSERT(world->division == NULL);
    for (kith_id id = 0; id < world->peer_count; id++) {
        world->peers[id].links.first = 0;
        world->peers[id].links.recent = KITH_NOBODY;
    }
}

/* What the other end has of it stays where that is. */
static void hand_over_end(struct sim_world *from, struct sim_link *link,
                          unsigned side, struct sim_world *to)
{
    uint32_t index, packet;
    KITH_ASSERT(side < 2);
    if (!sim_link_between(to, link->end[0], link->end[1], &index))
        return;
    struct sim_link *end = sim_link_at(to, index);
    KITH_ASSERT(link->generation == 0 && end->generation == 0);
    end->last_ns[side] = link->last_ns[side];
    end->sent[side] = link->sent[side];
    end->side[side] = link->side[side];
    end->dialler = link->dialler;
    sim_directions_hand_over(from, link, side, to, end);
    while ((packet = sim_packet_next(from, &link->waiting[side])) != 0) {
        packet = sim_packet_hand_over(from, packet, to);
        if (packet != 0)
            sim_packet_append(to, &sim_link_at(to, index)->waiting[side],
                              packet);
    }
}

void sim_links_hand_over(struct sim_world *from, struct sim_world *to)
{
    KITH_ASSERT(sim_links_are_clear(from) && sim_links_are_clear(to));
    for (uint32_t i = 0; i < sim_link_count(from); i++) {
        struct sim_link *link = sim_link_at(from, i);
        for (unsigned side = 0; side < 2; side++)
            if (sim_is_mine(from, link->end[side]) &&
                sim_is_mine(to, link->end[side]))
                hand_over_end(from, link, side, to);
    }
}

enum kith_err sim_links_renew(struct sim_world *world)
{
    KITH_ASSERT(sim_links_are_clear(world));
    sim_directions_forget(world);
    sim_link_table_close(&world->links.table);
    return sim_link_table_open(&world->links.table);
}
