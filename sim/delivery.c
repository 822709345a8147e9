/* Parcels over links.
 *
 *   leaves   when the sender's uplink is free, bytes / rate after one another
 *   arrives  + latency + Exp(jitter) + retransmissions, never before what left
 *            earlier on the same connection (TCP)
 *   is there when the receiver's downlink has taken it in: cut-through, so an
 *            idle path costs bytes / rate once
 *
 * All arithmetic is on integers, those of delay.h. */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/rng.h"
#include "kith/session.h"
#include "kith/wire.h"
#include "sim/delay.h"

#define PARCELS_MIN 64u

uint64_t sim_message_bytes(const struct kith_message *message)
{
    uint64_t bytes = kith_session_control_size(kith_wire_size(message));
    if (message->kind == KITH_MESSAGE_MODEL) {
        const uint64_t bursts = message->payload_bytes / KITH_BURST_BYTES;
        const uint64_t rest = message->payload_bytes % KITH_BURST_BYTES;
        if (bursts > 0) {
            bytes += bursts * kith_session_burst_size(KITH_BURST_BYTES);
        }
        if (rest > 0) {
            bytes += kith_session_burst_size((size_t)rest);
        }
    }
    return bytes;
}

enum kith_err sim_network_open(struct sim_world *world)
{
    const struct kith_experiment *experiment = world->experiment;
    world->loss_threshold = sim_threshold(experiment->network.loss);
    world->drop_threshold = sim_threshold(experiment->network.drop_push);
    /* One message under way per peer to start with: pages that are never
     * touched cost nothing. */
    world->parcel_capacity = PARCELS_MIN + world->peer_count;
    world->parcels = sim_pages(world->parcel_capacity * sizeof *world->parcels);
    const bool carries = world->config.payload_bytes > 0 ||
                         world->options.wire != KITH_WIRE_SIZED;
    if (carries) {
        world->cargo = sim_pages(world->parcel_capacity * sizeof *world->cargo);
        if (!world->cargo) {
            return KITH_ENOMEM;
        }
    }
    if (experiment->network.rate_bits > 0) {
        world->lanes = calloc(world->peer_count, sizeof *world->lanes);
        if (!world->lanes) {
            return KITH_ENOMEM;
        }
    }
    return world->parcels ? sim_table_open(&world->links) : KITH_ENOMEM;
}

void sim_network_close(struct sim_world *world)
{
    for (uint32_t i = 0; world->cargo && i < world->parcel_used; i++) {
        free(world->cargo[i].sealed);
        sim_block_free(world, world->cargo[i].block);
    }
    const size_t parcels = world->parcel_capacity;
    sim_pages_free(world->cargo, parcels * sizeof *world->cargo);
    sim_pages_free(world->parcels, parcels * sizeof *world->parcels);
    free(world->lanes);
    sim_table_close(&world->links);
}

static bool parcels_grow(struct sim_world *world)
{
    if (world->parcel_capacity > SIM_VALUE_MAX / 2) {
        return false;
    }
    const uint32_t old = world->parcel_capacity, capacity = 2 * old;
    struct sim_parcel *parcels = sim_pages_grow(
        world->parcels, old * sizeof *parcels, capacity * sizeof *parcels);
    if (!parcels) {
        return false;
    }
    world->parcels = parcels;
    if (world->cargo) {
        struct sim_cargo *cargo = sim_pages_grow(
            world->cargo, old * sizeof *cargo, capacity * sizeof *cargo);
        if (!cargo) {
            return false;
        }
        world->cargo = cargo;
    }
    world->parcel_capacity = capacity;
    return true;
}

uint32_t sim_parcel_take(struct sim_world *world)
{
    uint32_t index = world->parcel_free;
    if (index != 0) {
        world->parcel_free = world->parcels[index - 1].next;
    } else if (world->parcel_used < world->parcel_capacity ||
               parcels_grow(world)) {
        index = ++world->parcel_used;
    } else {
        sim_fail(world, KITH_ENOMEM, "no memory for %u messages under way",
                 world->parcel_used);
        return 0;
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    parcel->next = 0;
    parcel->bytes = 0;
    parcel->flags = world->channels ? SIM_PARCEL_LADEN : 0;
    return index;
}

static uint32_t *transfers_of(struct sim_world *world,
                              const struct sim_parcel *parcel)
{
    const uint32_t slot = kith_slot_is_edge_outbox(parcel->message.slot)
                              ? KITH_SLOT_ROUND_SENT
                              : parcel->message.slot;
    KITH_ASSERT(slot <= KITH_SLOT_ROUND_SENT && slot % 2 == 1);
    return &world->desks[parcel->from].transfers[slot / 2];
}

void sim_transfer_list(struct sim_world *world, uint32_t parcel,
                       kith_ns left_ns)
{
    struct sim_parcel *entry = &world->parcels[parcel - 1];
    if (!(entry->flags & SIM_PARCEL_LADEN)) {
        return;
    }
    struct sim_cargo *cargo = &world->cargo[parcel - 1];
    cargo->left_ns = left_ns;
    if (left_ns <= world->now_ns || !cargo->block ||
        (entry->flags & SIM_PARCEL_LISTED)) {
        return;
    }
    uint32_t *head = transfers_of(world, entry);
    cargo->next_transfer = *head;
    entry->flags |= SIM_PARCEL_LISTED;
    *head = parcel;
}

static void transfer_unlist(struct sim_world *world, uint32_t parcel)
{
    struct sim_parcel *entry = &world->parcels[parcel - 1];
    if (!(entry->flags & SIM_PARCEL_LISTED)) {
        return;
    }
    uint32_t *at = transfers_of(world, entry);
    while (*at != 0 && *at != parcel) {
        at = &world->cargo[*at - 1].next_transfer;
    }
    if (*at == parcel) {
        *at = world->cargo[parcel - 1].next_transfer;
    }
    entry->flags &= (uint8_t)~SIM_PARCEL_LISTED;
}

void sim_parcel_free(struct sim_world *world, uint32_t parcel)
{
    transfer_unlist(world, parcel);
    struct sim_parcel *entry = &world->parcels[parcel - 1];
    if (entry->flags & SIM_PARCEL_LADEN) {
        struct sim_cargo *cargo = &world->cargo[parcel - 1];
        sim_block_free(world, cargo->block);
        free(cargo->sealed);
        *cargo = (struct sim_cargo){0};
    }
    entry->next = world->parcel_free;
    world->parcel_free = parcel;
}

void sim_cancel(struct sim_world *world, kith_id from, uint32_t slots)
{
    if (!world->desks) {
        return;
    }
    sim_outbox_flush(world);
    for (uint32_t slot = KITH_SLOT_INITIATED_SENT; slot <= KITH_SLOT_ROUND_SENT;
         slot += 2) {
        uint32_t *head = &world->desks[from].transfers[slot / 2];
        if (!(slots >> slot & 1u)) {
            continue;
        }
        while (*head != 0) {
            struct sim_parcel *parcel = &world->parcels[*head - 1];
            const struct sim_cargo *cargo = &world->cargo[*head - 1];
            *head = cargo->next_transfer;
            parcel->flags &= (uint8_t)~SIM_PARCEL_LISTED;
            if (cargo->left_ns > world->now_ns) {
                parcel->flags |= SIM_PARCEL_CANCELLED;
            }
        }
    }
}

/* Jitter and retransmissions of one parcel: the stream LINK i -> j. */
static kith_ns mishaps(struct sim_world *world, struct sim_link *link,
                       unsigned side, uint64_t bytes)
{
    const struct kith_experiment *experiment = world->experiment;
    struct kith_rng rng;
    kith_rng_init(&rng, experiment->seed, KITH_STREAM_LINK,
                  (uint64_t)link->end[side] << 32 | link->end[1 - side]);
    rng.block = link->draws[side];
    const kith_ns delay_ns =
        sim_mishaps(experiment, world->loss_threshold, bytes, &rng);
    link->draws[side] = rng.block;
    return delay_ns;
}

void sim_transmit(struct sim_world *world, uint32_t index)
{
    struct sim_parcel *parcel = &world->parcels[index - 1];
    struct sim_link *link = &world->links.links[parcel->link];
    const unsigned side = link->end[1] == parcel->from;
    const struct kith_experiment *experiment = world->experiment;

    kith_ns leaves_ns = world->now_ns, left_ns = leaves_ns;
    if (world->lanes && parcel->bytes > 0) {
        kith_ns *up_ns = &world->lanes[parcel->from].up_ns;
        leaves_ns = *up_ns > leaves_ns ? *up_ns : leaves_ns;
        *up_ns = leaves_ns +
                 sim_wire_time(parcel->bytes, experiment->network.rate_bits);
        left_ns = *up_ns;
    }
    sim_transfer_list(world, index, left_ns);
    kith_ns arrives_ns = leaves_ns + experiment->network.latency_ns;
    if (experiment->network.jitter_ns > 0 || world->loss_threshold > 0) {
        arrives_ns += mishaps(world, link, side, parcel->bytes);
    }
    if (arrives_ns < link->last_ns[side]) {
        arrives_ns = link->last_ns[side];
    }
    if (parcel->kind != SIM_PARCEL_SYN) { /* may be of another connection */
        link->last_ns[side] = arrives_ns;
    }
    parcel->generation = link->generation;
    world->peers[parcel->from].bytes_sent += parcel->bytes;
    sim_schedule(world, parcel->from, parcel->to, arrives_ns,
                 world->lanes ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER, index);
}

/* Whether the parcel is stopped here: its connection is gone, or its
 * direction is cut. */
static bool stopped(struct sim_world *world, uint32_t index)
{
    if (world->resets == 0 && world->cuts == 0) {
        return false; /* spares a cache miss per message */
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    struct sim_link *link = &world->links.links[parcel->link];
    if (parcel->generation != link->generation) {
        sim_parcel_free(world, index);
        return true;
    }
    const unsigned side = link->end[1] == parcel->from;
    if (parcel->kind == SIM_PARCEL_TIMEOUT ||
        ((unsigned)link->cut >> side & 1u) == 0) {
        return false;
    }
    uint32_t *last = &link->stalled[side];
    while (*last != 0) {
        last = &world->parcels[*last - 1].next;
    }
    parcel->next = 0;
    *last = index;
    if (parcel->kind < SIM_PARCEL_MESSAGE) {
        sim_link_watch(world, parcel->link);
    }
    return true;
}

void sim_arrive(struct sim_world *world, uint32_t index)
{
    if (stopped(world, index)) {
        return;
    }
    const struct sim_parcel *parcel = &world->parcels[index - 1];
    kith_ns there_ns = world->now_ns;
    if (parcel->bytes > 0) {
        kith_ns *down_ns = &world->lanes[parcel->to].down_ns;
        there_ns = *down_ns > there_ns ? *down_ns : there_ns;
        there_ns +=
            sim_wire_time(parcel->bytes, world->experiment->network.rate_bits);
        *down_ns = there_ns;
    }
    sim_schedule(world, parcel->from, parcel->to, there_ns, SIM_EVENT_DELIVER,
                 index);
}

/* The vector of a delivered MODEL changes hands: no copy. */
static void receive_vector(struct sim_world *world, kith_id peer, void *block,
                           struct kith_message *message)
{
    message->finite = (kith_experiment_opaque(world->experiment) &&
                       message->pattern != KITH_PATTERN_PULL) ||
                      sim_block_finite(world, block, message->payload_bytes);
    world->bulk_bytes += message->payload_bytes;
    if (message->slot != KITH_SLOT_NONE) {
        block =
            kith_worker_swap(world->desks[peer].worker, message->slot, block);
    }
    sim_block_free(world, block);
}

static void deliver_message(struct sim_world *world, uint32_t index)
{
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const kith_id peer = parcel->to;
    transfer_unlist(world, index);
    if (world->channels) {
        sim_channel_open(world, index);
    }
    if (parcel->flags & SIM_PARCEL_CANCELLED) {
        sim_parcel_free(world, index);
        return;
    }
    world->messages++;
    sim_trace_message(world, parcel);
    /* The step may grow the pool of parcels: keep nothing inside it. */
    struct kith_message message = parcel->message;
    const struct kith_message *lost = NULL;
    if (parcel->flags & SIM_PARCEL_DROPPED) {
        /* The sender must not learn that its push was lost: the receiver is
         * told that it will not come, and its answer turns into an ACK. */
        sim_ledger_drop(world, parcel);
        message.kind = KITH_MESSAGE_ABORT;
        message.payload_bytes = 0;
        message.scalar_count = 0;
        lost = &message;
    } else if (message.kind == KITH_MESSAGE_MODEL) {
        message.slot =
            kith_node_inbox(sim_node_at(world, peer), parcel->from, &message);
        sim_tally_model(world, peer, &message);
        message.finite = true;
        /* Only a guard reads the distance; none of today's does. */
        message.distance_squared = 0;
        if (world->desks) {
            struct sim_cargo *cargo = &world->cargo[index - 1];
            receive_vector(world, peer, cargo->block, &message);
            cargo->block = NULL;
        }
    }
    struct kith_event event = {
        .kind = KITH_EVENT_MESSAGE, .from = parcel->from, .message = &message};
    world->peers[peer].near = parcel->from;
    world->peers[peer].near_link = parcel->link;
    sim_parcel_free(world, index);
    world->lost = lost;
    sim_step(world, peer, &event);
    world->lost = NULL;
}

void sim_deliver(struct sim_world *world, uint32_t index)
{
    if (stopped(world, index)) {
        return;
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const struct sim_peer *peer = &world->peers[parcel->to];
    if (peer->flags & SIM_PAUSED) {
        sim_hold(world, parcel->to, index);
        return;
    }
    if (world->bytes_received) {
        world->bytes_received[parcel->to] += parcel->bytes;
    }
    if (parcel->kind == SIM_PARCEL_MESSAGE) {
        deliver_message(world, index);
    } else {
        sim_link_step(world, index);
    }
}

void sim_launch(struct sim_world *world, uint32_t index)
{
    struct sim_parcel *parcel = &world->parcels[index - 1];
    if (parcel->flags & SIM_PARCEL_CANCELLED) {
        sim_parcel_free(world, index);
        return;
    }
    parcel->bytes = world->channels ? sim_channel_seal(world, index)
                                    : sim_message_bytes(&parcel->message);
    sim_transmit(world, index);
}

void sim_launch_waiting(struct sim_world *world, uint32_t link, kith_id from)
{
    struct sim_link *entry = &world->links.links[link];
    uint32_t *waiting = &entry->waiting[entry->end[1] == from];
    uint32_t next = *waiting;
    *waiting = 0;
    while (next != 0) {
        const uint32_t index = next;
        next = world->parcels[index - 1].next;
        sim_launch(world, index);
    }
}
