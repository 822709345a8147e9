/* A link's two directions; see directions.h. */
#include "sim/directions.h"

#include <stdlib.h>

#include "kith/assert.h"
#include "kith/fault.h"
#include "sim/world.h"

#define PAIRS_MIN 64u

enum kith_err sim_directions_open(struct sim_world *world)
{
    uint32_t acts = 0;
    KITH_ASSERT(world->directions.acted == NULL);
    for (uint32_t i = 0; i < world->experiment->atom_count; i++)
        acts += world->experiment->atoms[i].sides != NULL;
    if (acts == 0)
        return KITH_OK;
    world->directions.acted = sim_alloc(world, acts, sizeof(void *));
    return world->directions.acted ? KITH_OK : KITH_ENOMEM;
}

void sim_directions_close(struct sim_world *world)
{
    free(world->directions.pairs);
    world->directions.pairs = NULL;
}

/* A link's, made where it had none. Apart from the links, which most runs touch
 * far more often: there they would double a record. NULL: no memory. */
static struct sim_direction_pair *pair_of(struct sim_world *world,
                                          struct sim_link *link)
{
    struct sim_directions *all = &world->directions;
    if (link->pair != 0)
        return &all->pairs[link->pair - 1];
    if (all->count == all->capacity) {
        const uint32_t capacity =
            all->capacity == 0 ? PAIRS_MIN : 2 * all->capacity;
        void *pairs = all->capacity > UINT32_MAX / 4
                          ? NULL
                          : realloc(all->pairs, capacity * sizeof *all->pairs);
        if (!pairs) {
            sim_fail(world, KITH_ENOMEM, "no memory for more than %u links",
                     all->count);
            return NULL;
        }
        all->pairs = pairs;
        all->capacity = capacity;
    }
    struct sim_direction_pair *pair = &all->pairs[all->count++];
    *pair = (struct sim_direction_pair){0};
    for (unsigned side = 0; side < 2; side++) {
        const kith_id from = link->end[side], to = link->end[1 - side];
        struct kith_link_terms terms = world->experiment->network.link;
        kith_experiment_link(world->experiment, from, to, &terms);
        kith_link_flow_init(&pair->flow[side], &terms, world->experiment->seed,
                            from, to);
        pair->flow[side].messages = link->sent[side];
    }
    link->pair = all->count;
    return pair;
}

/* ---- faults */

/* What an atom does to one direction. Messages of a cut one are neither lost
 * nor late by a rule: they stall at the gate, in order, as a partition does to
 * TCP. */
static void act_on_side(struct sim_world *world, const struct kith_atom *atom,
                        const struct sim_link *link, unsigned side)
{
    struct sim_direction_pair *pair = &world->directions.pairs[link->pair - 1];
    struct kith_link_flow *flow = &pair->flow[side];
    const bool was_cut = kith_link_is_cut(&flow->terms);
    kith_atom_act(atom, flow);
    const bool is_cut = kith_link_is_cut(&flow->terms);
    KITH_ASSERT(!was_cut || world->directions.cuts > 0);
    world->directions.cuts += (uint32_t)is_cut - (uint32_t)was_cut;
    while (!is_cut && pair->stalled[side] != 0) /* passes now, in order */
        sim_release(world, flow->from,
                    sim_packet_next(world, &pair->stalled[side]));
    if (world->sharing && is_cut != was_cut)
        sim_sharing_turn(world, (uint32_t)(link - sim_link_at(world, 0)), side);
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
    const bool done = pair_of(world, link) != NULL;
    for (unsigned side = 0; done && side < 2; side++)
        act_on_side(world, atom, link, side);
    return done;
}

/* A new link is as it would be if it had always been there. */
bool sim_directions_catch_up(struct sim_world *world, struct sim_link *link)
{
    KITH_DEBUG_ASSERT(link->end[0] != link->end[1]);
    bool done = world->experiment->network.link.loss <= 0 ||
                pair_of(world, link) != NULL;
    for (uint32_t i = 0; done && i < world->directions.acted_count; i++)
        done = act(world, world->directions.acted[i], link);
    return done;
}

/* Peers that have not met have no link to be cut: one that is made later
 * catches up. The order of links is free: what is released is ordered by who
 * sent it to whom. */
void sim_directions_act(struct sim_world *world, const struct kith_atom *atom)
{
    sim_outbox_flush(world);
    KITH_ASSERT(atom->sides != NULL);
    bool done = true;
    for (uint32_t i = 0; done && i < sim_link_count(world); i++)
        done = act(world, atom, sim_link_at(world, i));
    world->directions.acted[world->directions.acted_count++] = atom;
}

/* ---- packets */

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

/* Of one that is: latency and jitter alone are its terms. */
static kith_ns usual_delay(const struct sim_world *world, kith_id from,
                           kith_id to, uint32_t message)
{
    const struct kith_experiment *experiment = world->experiment;
    struct kith_link_terms terms = {
        .latency_ns = experiment->network.link.latency_ns,
        .jitter_ns = experiment->network.link.jitter_ns};
    kith_experiment_link(experiment, from, to, &terms);
    return kith_link_delay(&terms, experiment->seed, from, to, message);
}

static bool is_cut(struct sim_world *world, uint32_t link, unsigned side)
{
    struct sim_link *entry = sim_link_at(world, link);
    KITH_DEBUG_ASSERT(side < 2);
    return entry->pair != 0 &&
           kith_link_is_cut(&pair_of(world, entry)->flow[side].terms);
}

/* Else the line in keeps the order: it is as long at a message as the line out.
 */
static bool lines_differ(const struct sim_world *world,
                         const struct sim_packet *packet)
{
    const struct kith_classes *classes = &world->experiment->network.classes;
    KITH_DEBUG_ASSERT(packet->from != packet->to);
    return kith_class_of(classes, packet->from)->up_bits !=
           kith_class_of(classes, packet->to)->down_bits;
}

/* A retransmission delays all that was sent behind it: arrivals on one
 * connection never overtake. */
kith_ns sim_direction_arrival(struct sim_world *world, uint32_t index,
                              kith_ns leaves_ns, kith_ns left_ns,
                              kith_ns early_ns)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_link *link = sim_link_at(world, packet->link);
    const unsigned side = sim_side_of(link, packet->from);
    kith_ns arrives_ns;
    if (link->pair == 0)
        arrives_ns = kith_ns_add(
            left_ns - early_ns,
            usual_delay(world, packet->from, packet->to, link->sent[side]++));
    else
        arrives_ns = law_of(world, &pair_of(world, link)->flow[side],
                            &(struct kith_link_piece){leaves_ns, left_ns,
                                                      packet->bytes, 0}) -
                     early_ns;
    if (arrives_ns < link->last_ns[side])
        arrives_ns = link->last_ns[side];
    if (packet->kind != SIM_PACKET_SYN) /* may be of another connection */
        link->last_ns[side] = lines_differ(world, packet)
                                  ? kith_ns_add(arrives_ns, early_ns)
                                  : arrives_ns;
    packet->generation = link->generation;
    KITH_ASSERT(arrives_ns >=
                sim_time(world)); /* posted late, never too late */
    return arrives_ns;
}

bool sim_direction_holds(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    const struct sim_link *link = sim_link_at(world, packet->link);
    const unsigned side = sim_side_of(link, packet->from);
    if (world->directions.cuts == 0 || !is_cut(world, packet->link, side))
        return false;
    if (packet->kind < SIM_PACKET_MESSAGE)
        sim_link_watch(world, packet->link);
    return true;
}

bool sim_direction_stalls(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    struct sim_link *link = sim_link_at(world, packet->link);
    const unsigned side = sim_side_of(link, packet->from);
    KITH_ASSERT(packet->generation == link->generation);
    if (packet->kind == SIM_PACKET_TIMEOUT ||
        (packet->flags & SIM_PACKET_HERE) || !is_cut(world, packet->link, side))
        return false;
    sim_packet_append(world, &pair_of(world, link)->stalled[side], index);
    if (packet->kind < SIM_PACKET_MESSAGE)
        sim_link_watch(world, packet->link);
    return true;
}

/* ---- divisions */

void sim_directions_hand_over(struct sim_world *from,
                              const struct sim_link *link, unsigned side,
                              struct sim_world *to, struct sim_link *target)
{
    /* Most links have no pair: without loss and faults none has. */
    KITH_ASSERT(from->directions.cuts == 0 && to->directions.cuts == 0);
    if (link->pair == 0)
        return;
    const struct sim_direction_pair *old =
        &from->directions.pairs[link->pair - 1];
    struct sim_direction_pair *pair = pair_of(to, target);
    KITH_ASSERT(old->stalled[side] == 0);
    if (pair)
        pair->flow[side] = old->flow[side];
}

void sim_directions_forget(struct sim_world *world)
{
    KITH_ASSERT(world->directions.cuts == 0);
    world->directions.count = 0;
}
