/* Connections: a dial, a handshake, two ends that are up.
 *
 *   dialler  SYN -------->            <- SYNACK
 *            FIRST ------>  preface, message 1
 *                           <- SECOND preface, message 2, certificate
 *            THIRD ------>  message 3, certificate, HELLO: responder is up
 *                           <- HELLO: dialler is up
 *
 * Where both ends dial at once, the lower rank's connection wins. A crash or a
 * dial that takes too long ends the link's generation: parcels of the old one
 * are dropped on arrival, and the other end learns of it by a RESET. */
#include "sim/world.h"

#include "kith/assert.h"
#include "kith/session.h"

/* How long a handshake may take in all. */
#define DIAL_TIMEOUT_NS (5 * KITH_S)
/* Preface and ephemeral key: what the first flight holds of the whole. */
#define FIRST_BYTES (KITH_PREFACE_BYTES + KITH_KEY_BYTES)

struct sim_link *sim_link_between(struct sim_world *world, kith_id a, kith_id b,
                                  uint32_t *index)
{
    KITH_ASSERT(b < world->peer_count);
    bool made = false;
    struct sim_link *link = sim_table_get(&world->links, a, b, index, &made);
    if (!link) {
        sim_fail(world, KITH_ENOMEM, "no memory for more than %u links",
                 world->links.count);
        return NULL;
    }
    for (unsigned side = 0; made && side < 2; side++) {
        struct sim_peer *peer = &world->peers[link->end[side]];
        link->next[side] = peer->links;
        peer->links = *index + 1;
    }
    return link;
}

/* Put a parcel of this kind on the link's wire. */
static void say(struct sim_world *world, uint32_t link, unsigned side,
                enum sim_parcel_kind kind, uint64_t bytes)
{
    const uint32_t index = sim_parcel_take(world);
    if (index == 0) {
        return;
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const struct sim_link *entry = &world->links.links[link];
    parcel->from = entry->end[side];
    parcel->to = entry->end[1 - side];
    parcel->kind = (uint8_t)kind;
    parcel->link = link;
    parcel->bytes = bytes;
    if (world->channels && kind >= SIM_PARCEL_FIRST &&
        kind <= SIM_PARCEL_HELLO) {
        sim_channel_say(world, index);
    }
    sim_transmit(world, index);
}

void sim_link_wait(struct sim_world *world, uint32_t link, unsigned side,
                   uint32_t parcel)
{
    uint32_t *last = &world->links.links[link].waiting[side];
    while (*last != 0) {
        last = &world->parcels[*last - 1].next;
    }
    world->parcels[parcel - 1].next = 0;
    *last = parcel;
    sim_transfer_list(world, parcel, KITH_NEVER);
}

static void forget_waiting(struct sim_world *world, struct sim_link *link,
                           unsigned side)
{
    uint32_t next = link->waiting[side];
    link->waiting[side] = 0;
    while (next != 0) {
        const uint32_t parcel = next;
        next = world->parcels[parcel - 1].next;
        sim_parcel_free(world, parcel);
    }
}

void sim_link_dial(struct sim_world *world, uint32_t link, kith_id from)
{
    struct sim_link *entry = &world->links.links[link];
    const unsigned side = entry->end[1] == from;
    KITH_ASSERT(entry->side[side] == SIM_SIDE_IDLE);
    entry->side[side] = SIM_SIDE_DIALLING;
    if (entry->side[1 - side] == SIM_SIDE_IDLE) {
        entry->dialler = (uint8_t)side;
    }
    say(world, link, side, SIM_PARCEL_SYN, 0);
}

/* A handshake flight is stuck behind a cut: give up after a while. */
void sim_link_watch(struct sim_world *world, uint32_t link)
{
    const uint32_t index = sim_parcel_take(world);
    if (index == 0) {
        return;
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const struct sim_link *entry = &world->links.links[link];
    parcel->from = entry->end[1 - entry->dialler];
    parcel->to = entry->end[entry->dialler];
    parcel->kind = SIM_PARCEL_TIMEOUT;
    parcel->link = link;
    parcel->generation = entry->generation;
    sim_schedule(world, parcel->to, parcel->to, world->now_ns + DIAL_TIMEOUT_NS,
                 SIM_EVENT_DELIVER, index);
}

/* This end's connection is over. Its own state is IDLE from now on; the other
 * end, if it believes in anything, is dead and will hear of it. */
static void link_break(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = &world->links.links[link];
    const bool other = entry->side[1 - side] != SIM_SIDE_IDLE;
    if (entry->side[side] == SIM_SIDE_IDLE && !other) {
        return;
    }
    entry->generation++;
    world->resets++;
    forget_waiting(world, entry, 0);
    forget_waiting(world, entry, 1);
    entry->side[side] = SIM_SIDE_IDLE;
    if (world->channels) {
        sim_channel_reset(world, link);
    }
    if (other) {
        entry->side[1 - side] = SIM_SIDE_DEAD;
        say(world, link, side, SIM_PARCEL_RESET, 0);
    }
}

void sim_link_crash(struct sim_world *world, kith_id peer)
{
    uint32_t next = world->peers[peer].links;
    while (next != 0) {
        const uint32_t link = next - 1;
        const struct sim_link *entry = &world->links.links[link];
        const unsigned side = entry->end[1] == peer;
        next = entry->next[side];
        link_break(world, link, side);
    }
}

void sim_link_cut(struct sim_world *world, kith_id from, kith_id to, bool cut)
{
    uint32_t index;
    struct sim_link *link = sim_link_between(world, from, to, &index);
    if (!link) {
        return;
    }
    const unsigned side = link->end[1] == from;
    const uint8_t bit = (uint8_t)(1u << side);
    if (cut == ((link->cut & bit) != 0)) {
        return;
    }
    link->cut ^= bit;
    world->cuts += cut ? 1u : UINT32_MAX;
    uint32_t next = cut ? 0 : link->stalled[side];
    while (next != 0) { /* what stood at the gate passes now, in order */
        const uint32_t parcel = next;
        next = world->parcels[parcel - 1].next;
        sim_schedule(world, from, to, world->now_ns,
                     world->lanes ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER,
                     parcel);
    }
    if (!cut) {
        world->links.links[index].stalled[side] = 0;
    }
}

static void come_up(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = &world->links.links[link];
    const kith_id peer = entry->end[side], other = entry->end[1 - side];
    entry->side[side] = SIM_SIDE_UP;
    sim_launch_waiting(world, link, peer);
    sim_trace_link(world, peer, other, true);
    struct kith_event event = {.kind = KITH_EVENT_LINK_UP, .from = other};
    sim_step(world, peer, &event);
}

static void go_down(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = &world->links.links[link];
    const kith_id peer = entry->end[side], other = entry->end[1 - side];
    entry->side[side] = SIM_SIDE_IDLE;
    forget_waiting(world, entry, side);
    sim_trace_link(world, peer, other, false);
    struct kith_event event = {.kind = KITH_EVENT_LINK_DOWN, .from = other};
    sim_step(world, peer, &event);
}

static void step_syn(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = &world->links.links[link];
    if (world->peers[entry->end[side]].flags & SIM_CRASHED) {
        say(world, link, side, SIM_PARCEL_RESET, 0); /* refused */
        return;
    }
    const bool ours_wins = entry->side[side] == SIM_SIDE_DIALLING && side == 0;
    if (ours_wins || entry->side[side] == SIM_SIDE_UP) {
        return; /* both dialled: the lower rank's connection is the one */
    }
    entry->side[side] = SIM_SIDE_KNOWN;
    entry->dialler = (uint8_t)(1 - side);
    say(world, link, side, SIM_PARCEL_SYNACK, 0);
}

static void step_timeout(struct sim_world *world, uint32_t link, unsigned side)
{
    if (world->links.links[link].side[side] != SIM_SIDE_DIALLING) {
        return;
    }
    link_break(world, link, side);
    go_down(world, link, side);
}

/* A link's own parcel has come to its receiver. */
void sim_link_step(struct sim_world *world, uint32_t index)
{
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const enum sim_parcel_kind kind = (enum sim_parcel_kind)parcel->kind;
    const uint32_t link = parcel->link;
    const struct sim_link *entry = &world->links.links[link];
    const unsigned side = entry->end[1] == parcel->to;
    if (world->channels && kind >= SIM_PARCEL_FIRST &&
        kind <= SIM_PARCEL_HELLO) {
        sim_channel_hear(world, index);
    }
    sim_parcel_free(world, index);

    switch (kind) {
    case SIM_PARCEL_SYN:
        step_syn(world, link, side);
        break;
    case SIM_PARCEL_SYNACK:
        if (world->channels) {
            sim_channel_dial(world, link, entry->end[side]);
        }
        say(world, link, side, SIM_PARCEL_FIRST, FIRST_BYTES);
        break;
    case SIM_PARCEL_FIRST:
        say(world, link, side, SIM_PARCEL_SECOND, world->handshake_bytes[0]);
        break;
    case SIM_PARCEL_SECOND:
        say(world, link, side, SIM_PARCEL_THIRD,
            world->handshake_bytes[1] - FIRST_BYTES);
        break;
    case SIM_PARCEL_THIRD:
        say(world, link, side, SIM_PARCEL_HELLO, 0);
        come_up(world, link, side);
        break;
    case SIM_PARCEL_HELLO:
        world->handshakes++;
        come_up(world, link, side);
        break;
    case SIM_PARCEL_RESET:
        if (entry->side[side] != SIM_SIDE_IDLE) {
            go_down(world, link, side);
        }
        break;
    case SIM_PARCEL_TIMEOUT:
        step_timeout(world, link, side);
        break;
    case SIM_PARCEL_MESSAGE:
        KITH_ASSERT(kind != SIM_PARCEL_MESSAGE);
        break;
    }
}
