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
#include "kith/fault.h"
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
    uint32_t acts = 0;
    for (uint32_t i = 0; i < world->experiment->atom_count; i++)
        acts += world->experiment->atoms[i].sides != NULL;
    if (acts > 0) {
        world->links.acted = sim_alloc(world, acts, sizeof(void *));
        if (!world->links.acted)
            return KITH_ENOMEM;
    }
    return sim_link_table_open(&world->links.table);
}

void sim_links_close(struct sim_world *world)
{
    sim_link_table_close(&world->links.table);
}

/* ---- where a link stands */

/* Records may move when the table grows: a link is named by its index, and
 * looked up again after each call that may dial. */
static struct sim_link *link_at(const struct sim_world *world, uint32_t link)
{
    KITH_DEBUG_ASSERT(link < world->links.table.count);
    return &world->links.table.links[link];
}

/* Ends stand in ascending order, so a peer's side is one comparison. */
static unsigned side_of(const struct sim_link *link, kith_id peer)
{
    KITH_DEBUG_ASSERT(link->end[0] == peer || link->end[1] == peer);
    return link->end[1] == peer;
}

static struct sim_flows *flows_of(struct sim_world *world,
                                  struct sim_link *link)
{
    struct sim_flows *flows = sim_link_table_flows(
        &world->links.table, link, &world->experiment->network.link,
        world->experiment->seed);
    if (!flows)
        sim_fail(world, KITH_ENOMEM, "no memory for more than %u links",
                 world->links.table.count);
    return flows;
}

/* What an atom does to one direction. Messages of a cut one are neither lost
 * nor late by a rule: they stall at the gate, in order, as a partition does to
 * TCP. */
static void act_on_side(struct sim_world *world, const struct kith_atom *atom,
                        const struct sim_link *link, unsigned side)
{
    struct sim_flows *flows = &world->links.table.flows[link->flows - 1];
    struct kith_link_flow *flow = &flows->flow[side];
    const bool was_cut = kith_link_is_cut(&flow->terms);
    kith_atom_act(atom, flow);
    const bool is_cut = kith_link_is_cut(&flow->terms);
    KITH_ASSERT(!was_cut || world->links.cuts > 0);
    world->links.cuts += (uint32_t)is_cut - (uint32_t)was_cut;
    while (!is_cut && flows->stalled[side] != 0) /* passes now, in order */
        sim_release(world, flow->from,
                    sim_packet_next(world, &flows->stalled[side]));
    if (world->sharing && is_cut != was_cut)
        sim_sharing_turn(world, (uint32_t)(link - link_at(world, 0)), side);
}

static bool turns(const struct kith_atom *atom, kith_id from, kith_id to)
{
    KITH_DEBUG_ASSERT(atom->sides != NULL && from != to);
    return kith_atom_turns(atom, true, from, to) ||
           kith_atom_turns(atom, false, from, to);
}

/* False: no memory. */
static bool act(struct sim_world *world, const struct kith_atom *atom,
                struct sim_link *link)
{
    const kith_id low = link->end[0], high = link->end[1];
    KITH_DEBUG_ASSERT(low != high);
    if (!turns(atom, low, high) && !turns(atom, high, low))
        return true;
    const bool done = flows_of(world, link) != NULL;
    for (unsigned side = 0; done && side < 2; side++)
        act_on_side(world, atom, link, side);
    return done;
}

/* A new link is as it would be if it had always been there. */
static bool catch_up(struct sim_world *world, struct sim_link *link)
{
    KITH_DEBUG_ASSERT(link->end[0] != link->end[1]);
    bool done = world->experiment->network.link.loss <= 0 ||
                flows_of(world, link) != NULL;
    for (uint32_t i = 0; done && i < world->links.acted_count; i++)
        done = act(world, world->links.acted[i], link);
    return done;
}

/* The link of two peers, made where they have not met. NULL: no memory. */
static struct sim_link *between(struct sim_world *world, kith_id a, kith_id b,
                                uint32_t *index)
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
        link->next[side] = peer->links.first;
        peer->links.first = *index + 1;
    }
    return made && !catch_up(world, link) ? NULL : link;
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
        const struct sim_link *entry = link_at(world, link);
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
    struct sim_link *entry = link_at(world, link);
    KITH_ASSERT(entry->side[side] == SIM_SIDE_IDLE);
    entry->side[side] = SIM_SIDE_DIALLING;
    if (entry->side[1 - side] == SIM_SIDE_IDLE)
        entry->dialler = (uint8_t)side;
    const uint32_t index = take(world, link, side, SIM_PACKET_SYN);
    if (index != 0)
        sim_transmit(world, index, at_ns);
}

/* A handshake flight is stuck behind a cut: give up after a while. */
static void watch(struct sim_world *world, uint32_t link)
{
    KITH_ASSERT(world->links.cuts > 0);
    const unsigned dialler = link_at(world, link)->dialler;
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
    const struct sim_link *link = link_at(world, *index);
    return link->side[side_of(link, from)] == SIM_SIDE_UP;
}

bool sim_link_is_up(const struct sim_world *world, kith_id from, kith_id to)
{
    uint32_t index;
    return find_up(world, from, to, &index);
}

void sim_link_bind(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_DEBUG_ASSERT((packet->flags & SIM_PACKET_BOUND) == 0);
    if (!find_up(world, packet->from, packet->to, &packet->link))
        return;
    packet->generation = link_at(world, packet->link)->generation;
    packet->flags |= SIM_PACKET_BOUND;
}

bool sim_link_is_lost(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    return (packet->flags & SIM_PACKET_BOUND) &&
           packet->generation != link_at(world, packet->link)->generation;
}

/* The message waits until its end is up. */
static void wait(struct sim_world *world, uint32_t link, unsigned side,
                 uint32_t packet)
{
    KITH_ASSERT(link_at(world, link)->side[side] != SIM_SIDE_UP);
    sim_packet_append(world, &link_at(world, link)->waiting[side], packet);
    sim_transfer_list(world, packet, KITH_NEVER);
}

/* What stands for the channel's state at this end: up, on its way up, unknown,
 * or gone without notice. */
static void post(struct sim_world *world, uint32_t index, kith_ns at_ns)
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
    const unsigned side = side_of(link_at(world, link), from);
    const enum sim_side state = (enum sim_side)link_at(world, link)->side[side];
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

/* ---- the outbox
 *
 * A run's links are many times the cache: found and touched at once, each costs
 * two misses, one after the other. So a message stands here while the next few
 * events are carried out: its slot of the table is asked for when it comes in,
 * its link half-way, and both are there when it leaves. It leaves at the time
 * at which it was sent, which is an argument: the clock has moved on.
 *
 * Nobody sees the difference. What is sent arrives a latency later at the
 * earliest, and the loop empties the outbox before an event as late as that;
 * whatever else touches links empties it first. Order on a link is kept,
 * because messages leave in the order in which they came. */

static void outbox_first(struct sim_world *world)
{
    struct sim_outbox *outbox = &world->links.outbox;
    KITH_ASSERT(outbox->done < outbox->put);
    const struct sim_posting *first =
        &outbox->postings[outbox->done++ % SIM_OUTBOX];
    post(world, first->packet, first->sent_ns);
}

void sim_link_flush(struct sim_world *world)
{
    while (world->links.outbox.done != world->links.outbox.put)
        outbox_first(world);
}

void sim_link_post(struct sim_world *world, uint32_t index)
{
    struct sim_outbox *outbox = &world->links.outbox;
    const struct sim_link_table *table = &world->links.table;
    if (world->sharing) { /* flows begin when they do */
        post(world, index, sim_time(world));
        return;
    }
    if (outbox->put - outbox->done == SIM_OUTBOX)
        outbox_first(world); /* may move the packets */
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_posting *posting = &outbox->postings[outbox->put++ % SIM_OUTBOX];
    *posting = (struct sim_posting){
        .sent_ns = sim_time(world),
        .hash = sim_link_table_hash(packet->from, packet->to),
        .packet = index};
    sim_link_table_fetch_slot(table, posting->hash);
    if (outbox->put - outbox->done > SIM_OUTBOX / 2) {
        const uint64_t middle = outbox->put - 1 - SIM_OUTBOX / 2;
        sim_link_table_fetch_link(table,
                                  outbox->postings[middle % SIM_OUTBOX].hash);
    }
}

void sim_link_dial(struct sim_world *world, kith_id from, kith_id to)
{
    KITH_ASSERT(from != to);
    const uint32_t index = sim_packet_take(world);
    if (index == 0)
        return;
    struct sim_packet *packet = sim_packet_at(world, index);
    packet->from = from;
    packet->to = to;
    packet->kind = SIM_PACKET_SYN;
    sim_link_post(world, index);
}

/* Of a link that is not as usual. */
static kith_ns law_of(struct sim_world *world, struct kith_link_flow *flow,
                      const struct kith_link_piece *piece)
{
    if (!sim_is_watched(world))
        return kith_link_arrival(flow, piece);
    const struct kith_link_flow before = *flow;
    const kith_ns arrives_ns = kith_link_arrival(flow, piece);
    if (!kith_link_agrees(&before, piece, arrives_ns))
        sim_watch_unlawful(world, flow->from, flow->to, arrives_ns);
    return arrives_ns;
}

static bool is_cut(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = link_at(world, link);
    KITH_DEBUG_ASSERT(side < 2);
    return entry->flows != 0 &&
           kith_link_is_cut(&flows_of(world, entry)->flow[side].terms);
}

/* A retransmission delays all that was sent behind it: arrivals on one
 * connection never overtake. */
kith_ns sim_link_arrival(struct sim_world *world, uint32_t index,
                         kith_ns leaves_ns, kith_ns left_ns, kith_ns early_ns)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_link *link = link_at(world, packet->link);
    const unsigned side = side_of(link, packet->from);
    kith_ns arrives_ns;
    if (link->flows == 0)
        arrives_ns = left_ns - early_ns +
                     kith_link_delay(&world->experiment->network.link,
                                     world->experiment->seed, packet->from,
                                     packet->to, link->sent[side]++);
    else
        arrives_ns = law_of(world, &flows_of(world, link)->flow[side],
                            &(struct kith_link_piece){leaves_ns, left_ns,
                                                      packet->bytes, 0}) -
                     early_ns;
    if (arrives_ns < link->last_ns[side])
        arrives_ns = link->last_ns[side];
    if (packet->kind != SIM_PACKET_SYN) /* may be of another connection */
        link->last_ns[side] = arrives_ns;
    packet->generation = link->generation;
    KITH_ASSERT(arrives_ns >=
                sim_time(world)); /* posted late, never too late */
    return arrives_ns;
}

bool sim_link_holds(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    const struct sim_link *link = link_at(world, packet->link);
    const unsigned side = side_of(link, packet->from);
    if (world->links.cuts == 0 || !is_cut(world, packet->link, side))
        return false;
    if (packet->kind < SIM_PACKET_MESSAGE)
        watch(world, packet->link);
    return true;
}

/* Stale packets are told by the link's generation: a reset connection's bytes
 * must not reach the next one. */
bool sim_link_stops(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_link *link = link_at(world, packet->link);
    KITH_ASSERT(packet->generation <= link->generation);
    if (packet->generation != link->generation) {
        sim_packet_free(world, index);
        return true;
    }
    const unsigned side = side_of(link, packet->from);
    if (packet->kind == SIM_PACKET_TIMEOUT ||
        (packet->flags & SIM_PACKET_HERE) || !is_cut(world, packet->link, side))
        return false;
    sim_packet_append(world, &flows_of(world, link)->stalled[side], index);
    if (packet->kind < SIM_PACKET_MESSAGE)
        watch(world, packet->link);
    return true;
}

/* ---- the end of a connection */

/* This end's connection is over. Its own state is IDLE from now on; the other
 * end, if it believes in anything, is dead and will hear of it. */
static void link_break(struct sim_world *world, uint32_t link, unsigned side)
{
    KITH_ASSERT(side < 2);
    struct sim_link *entry = link_at(world, link);
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
    sim_link_flush(world);
    KITH_ASSERT(!sim_alive(world, peer));
    uint32_t next = world->peers[peer].links.first;
    while (next != 0) {
        const uint32_t link = next - 1;
        const unsigned side = side_of(link_at(world, link), peer);
        next = link_at(world, link)->next[side];
        link_break(world, link, side);
    }
}

/* Peers that have not met have no link to be cut: one that is made later
 * catches up. The order of links is free: what is released is ordered by who
 * sent it to whom. */
void sim_link_act(struct sim_world *world, const struct kith_atom *atom)
{
    sim_link_flush(world);
    KITH_ASSERT(atom->sides != NULL);
    bool done = true;
    for (uint32_t i = 0; done && i < world->links.table.count; i++)
        done = act(world, atom, link_at(world, i));
    world->links.acted[world->links.acted_count++] = atom;
}

/* ---- what an end learns */

/* The node hears of its link. Messages that have waited leave before that,
 * because it may answer and order must hold; where the link is gone they are
 * gone with it: the node decides anew whether to send them. */
static void turn(struct sim_world *world, uint32_t link, unsigned side, bool up)
{
    struct sim_link *entry = link_at(world, link);
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
    struct sim_link *entry = link_at(world, link);
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
    if (link_at(world, link)->side[side] == SIM_SIDE_DIALLING) {
        link_break(world, link, side);
        turn(world, link, side, false);
    }
}

/* Six flights of a handshake and two endings: see the picture above. */
void sim_link_step(struct sim_world *world, uint32_t index)
{
    sim_link_flush(world);
    const struct sim_packet *packet = sim_packet_at(world, index);
    const enum sim_packet_kind kind = (enum sim_packet_kind)packet->kind;
    const uint32_t link = packet->link;
    const struct sim_link *entry = link_at(world, link);
    const unsigned side = side_of(entry, packet->to);
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
