/* Messages over access links.
 *
 *   leaves   when the sender's uplink is free, bytes / up after one another
 *   arrives  as the law of links says, never before what left earlier on the
 *            same connection (TCP)
 *   is there when the receiver's downlink has taken it in, bytes / down after
 *            its first bit came, and not before its last bit has: cut-through,
 *            so an idle path costs its bytes once, at the lower rate
 *
 * What happens to a message between is the law of kith/link_law.h. */
#include "sim/delivery.h"

#include "kith/assert.h"
#include "kith/rng.h"
#include "kith/session.h"
#include "kith/wire.h"
#include "sim/world.h"

/* What `sized` charges; that sessions write as many is asserted in
 * full_channel.c, for every message. */
uint64_t sim_message_bytes(const struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_MODEL ||
                message->payload_bytes < UINT64_MAX / 2);
    uint64_t bytes = kith_session_control_size(kith_wire_size(message));
    if (message->kind == KITH_MESSAGE_MODEL) {
        const uint64_t bursts = message->payload_bytes / KITH_BURST_BYTES;
        const uint64_t rest = message->payload_bytes % KITH_BURST_BYTES;
        if (bursts > 0)
            bytes += bursts * kith_session_burst_size(KITH_BURST_BYTES);
        if (rest > 0)
            bytes += kith_session_burst_size((size_t)rest);
    }
    return bytes;
}

/* A share becomes a bound on 32 random bits: comparing integers gives the same
 * losses with any compiler. */
static uint32_t threshold_of(double share)
{
    KITH_ASSERT(share >= 0);
    const double scaled = share * 4294967296.0;
    return scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
}

/* Access links only where there is a rate, and no flows share it: without one
 * nothing ever waits for another message. */
enum kith_err sim_network_open(struct sim_world *world)
{
    KITH_ASSERT(world->network.access == NULL);
    const struct kith_experiment *experiment = world->experiment;
    struct sim_network *network = &world->network;
    network->drop_threshold = threshold_of(experiment->network.drop_push);
    if (kith_classes_rate_least(&experiment->network.classes) > 0 &&
        experiment->network.sharing == KITH_SHARING_QUEUE) {
        network->access =
            sim_alloc(world, world->machine_count, sizeof *network->access);
        return network->access ? KITH_OK : KITH_ENOMEM;
    }
    return KITH_OK;
}

bool sim_network_loses(const struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->division == NULL);
    return world->network.lost != NULL;
}

bool sim_network_has_lines(const struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->network.access == NULL || world->sharing == NULL);
    return world->network.access != NULL;
}

/* Stages of a collective are matched, not sent: their bytes and messages count
 * all the same. */
void sim_network_count(struct sim_world *world, kith_id from, kith_id to,
                       uint64_t bytes)
{
    KITH_ASSERT(from != to);
    world->peers[from].bytes_sent += bytes;
    sim_totals_bytes(world, to, bytes);
    world->report.messages++;
}

void sim_network_leaves(struct sim_world *world, kith_id from, uint64_t bytes)
{
    KITH_DEBUG_ASSERT(from < world->machine_count);
    world->peers[from].bytes_sent += bytes;
}

/* Sends of a machine leave one after another: its access link is what a star's
 * hub runs out of first. */
kith_ns sim_uplink_take(struct sim_world *world, kith_id from, kith_ns at_ns,
                        uint64_t bytes, kith_ns *left_ns)
{
    KITH_ASSERT(from < world->machine_count && at_ns <= sim_time(world));
    struct sim_access_link *access = world->network.access;
    sim_network_leaves(world, from, bytes);
    const uint64_t up_bits =
        kith_class_of(&world->experiment->network.classes, from)->up_bits;
    *left_ns = at_ns;
    if (!access || bytes == 0 || up_bits == 0)
        return at_ns;
    const kith_ns leaves_ns =
        kith_line_take(&access[from].up_ns, up_bits, at_ns, bytes);
    *left_ns = access[from].up_ns;
    return leaves_ns;
}

/* Again through the receiver's access link: what stood at a cut has not been
 * taken in yet. */
void sim_release(struct sim_world *world, kith_id by, uint32_t index)
{
    KITH_ASSERT(by < world->machine_count);
    sim_packet_at(world, index)->flags |= SIM_PACKET_STOOD;
    sim_schedule(world, by, sim_packet_at(world, index)->to, sim_time(world),
                 world->network.access ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER,
                 index);
}

/* Three times: when the first bit leaves, when the last has left, when the
 * first is there. The last is there when the receiver's link has taken it in.
 * */
void sim_transmit(struct sim_world *world, uint32_t index, kith_ns at_ns)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->from != packet->to);
    if (world->sharing) {
        KITH_ASSERT(at_ns == sim_time(world)); /* no outbox */
        sim_sharing_send(world, index);
        return;
    }
    kith_ns left_ns;
    const kith_ns leaves_ns =
        sim_uplink_take(world, packet->from, at_ns, packet->bytes, &left_ns);
    if (world->zone_traffic)
        sim_zone_traffic_sent(world, packet->from, packet->to, at_ns,
                              packet->bytes);
    if (packet->flags & SIM_PACKET_CARRIES)
        sim_transfer_list(world, index, left_ns);
    const kith_ns arrives_ns = sim_direction_arrival(
        world, index, leaves_ns, left_ns, left_ns - leaves_ns);
    const enum sim_event_kind kind =
        world->network.access ? SIM_EVENT_ARRIVE : SIM_EVENT_DELIVER;
    if (sim_is_mine(world, packet->to))
        sim_schedule(world, packet->from, packet->to, arrives_ns, kind, index);
    else
        sim_mail_post(world, index, arrives_ns);
}

/* When its last bit is in. A slower line out is what it waits for, unless it
 * stood at a cut meanwhile. */
static kith_ns downlink_take(struct sim_world *world,
                             const struct sim_packet *packet)
{
    const struct kith_classes *classes = &world->experiment->network.classes;
    const uint64_t up_bits = kith_class_of(classes, packet->from)->up_bits;
    const uint64_t down_bits = kith_class_of(classes, packet->to)->down_bits;
    kith_ns *down_ns = &world->network.access[packet->to].down_ns;
    kith_ns last_ns = sim_time(world);
    KITH_ASSERT(packet->bytes > 0);
    if (up_bits != down_bits && !(packet->flags & SIM_PACKET_STOOD))
        last_ns = kith_ns_add(last_ns, kith_line_time(packet->bytes, up_bits));
    if (down_bits == 0)
        return last_ns;
    (void)kith_line_take(down_ns, down_bits, sim_time(world), packet->bytes);
    return *down_ns > last_ns ? *down_ns : last_ns;
}

/* Cut-through: the receiver's link takes the message in while its last bits
 * still leave, so an idle path costs its bytes once. */
void sim_arrive(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->to < world->machine_count);
    if (!sim_links_are_clear(world) && sim_link_stops(world, index))
        return;
    packet->flags |= SIM_PACKET_HERE;
    kith_ns there_ns = sim_time(world);
    if (packet->bytes > 0)
        there_ns = downlink_take(world, packet);
    sim_schedule_delivery(world, packet->from, packet->to, there_ns, index);
}

/* The vector of a delivered MODEL changes hands: no copy. */
static void receive_vector(struct sim_world *world, kith_id peer, void *vector,
                           struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_MODEL);
    KITH_ASSERT(message->payload_bytes <= world->vector_bytes);
    const bool is_pull = message->pattern == KITH_PATTERN_PULL;
    message->finite = (kith_experiment_opaque(world->experiment) && !is_pull) ||
                      sim_copy_finite(world, vector, message);
    world->report.bulk_bytes += message->payload_bytes;
    if (message->slot != KITH_SLOT_NONE && sim_is_here(world, peer)) {
        if (world->ranks)
            sim_models_await(world, vector);
        vector = kith_worker_swap(sim_peer_worker(world, peer), message->slot,
                                  vector);
    }
    sim_copy_release(world, vector);
}

/* The node says where the model goes before it is told that it has come: an
 * exchange that has ended meanwhile has no place for it. */
static void receive_model(struct sim_world *world, uint32_t index,
                          struct kith_message *message)
{
    KITH_ASSERT(message->kind == KITH_MESSAGE_MODEL);
    const struct sim_packet *packet = sim_packet_at(world, index);
    const kith_id peer = packet->to;
    message->slot =
        kith_node_inbox(sim_node_at(world, peer), packet->from, message);
    sim_totals_model(world, peer, message);
    sim_totals_passes(world, peer, 1); /* it is opened */
    message->finite = true;
    message->distance_squared = 0;
    if (world->work) {
        struct sim_payload *payload = sim_payload_at(world, index);
        receive_vector(world, peer, payload->vector, message);
        payload->vector = NULL;
    }
}

/* The order is that of a real channel: opened, then checked for having been
 * cancelled, then told to the node. */
static void deliver_message(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    const kith_id peer = packet->to;
    KITH_ASSERT(peer < world->peer_count && world->network.lost == NULL);
    if (packet->flags & SIM_PACKET_LISTED)
        sim_transfer_unlist(world, index);
    if (world->channels)
        sim_channel_open(world, index);
    if (packet->flags & SIM_PACKET_CANCELLED) {
        sim_packet_free(world, index);
        return;
    }
    world->report.messages++;
    if (packet->flags & SIM_PACKET_MOVES)
        sim_totals_passes(world, packet->from, 1); /* it was sealed */
    sim_trace_message(world, packet);
    if (world->timeline)
        sim_timeline_message(world, index);
    /* The step may grow the pool of packets: keep nothing inside it. */
    struct kith_message message = packet->message;
    const struct kith_message *lost = NULL;
    if (packet->flags & SIM_PACKET_DROPPED) {
        /* The sender must not learn that its push was lost: the receiver is
         * told that it will not come, and its answer turns into an ACK. */
        sim_ledger_drop(world, packet);
        message.kind = KITH_MESSAGE_ABORT;
        message.payload_bytes = 0;
        message.scalar_count = 0;
        lost = &message;
    } else if (message.kind == KITH_MESSAGE_MODEL) {
        receive_model(world, index, &message);
    }
    struct kith_event event = {
        .kind = KITH_EVENT_MESSAGE, .from = packet->from, .message = &message};
    sim_link_heard(world, peer, packet->from, packet->link);
    sim_packet_free(world, index);
    world->network.lost = lost;
    sim_step(world, peer, &event);
    world->network.lost = NULL;
}

/* The method may send at once: the packet is freed after it, and a copy of the
 * message is what it reads. */
static void deliver_central(struct sim_world *world, uint32_t index)
{
    const struct sim_central_message message =
        sim_packet_at(world, index)->central;
    KITH_ASSERT(world->protocol->delivered);
    world->report.messages++;
    world->protocol->delivered(world, &message);
    sim_packet_free(world, index);
}

/* The link first: what it has dropped must not count as received, nor be held
 * for a paused peer. */
void sim_deliver(struct sim_world *world, uint32_t index)
{
    const struct sim_packet *packet = sim_packet_at(world, index);
    if (!sim_links_are_clear(world) && sim_link_stops(world, index))
        return;
    KITH_ASSERT(packet->to < world->machine_count);
    if (world->peers[packet->to].state == SIM_PEER_PAUSED) {
        sim_hold(world, packet->to, index);
        return;
    }
    if (packet->kind == SIM_PACKET_MESSAGE &&
        !(packet->flags & SIM_PACKET_OPENED) &&
        sim_host_charges_messages(world)) {
        sim_host_message(world, packet->to, index);
        return;
    }
    if (world->totals)
        sim_totals_bytes(world, packet->to, packet->bytes);
    if (packet->kind == SIM_PACKET_MESSAGE)
        deliver_message(world, index);
    else if (packet->kind == SIM_PACKET_CENTRAL)
        deliver_central(world, index);
    else
        sim_link_step(world, index);
}

/* Sealed as late as this, because a session's counters run in the order in
 * which messages leave. */
void sim_launch(struct sim_world *world, uint32_t index, kith_ns at_ns)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->kind == SIM_PACKET_MESSAGE);
    if (packet->flags & SIM_PACKET_CANCELLED) {
        sim_packet_free(world, index);
        return;
    }
    packet->bytes = world->channels ? sim_channel_seal(world, index)
                                    : sim_message_bytes(&packet->message);
    if (!(packet->flags & SIM_PACKET_MOVES))
        sim_totals_moves(world, packet); /* it has waited for its link */
    sim_transmit(world, index, at_ns);
}

/* Whole pushes lost at random: the stream DROP of i -> j, by exchange. */
static bool push_drops(const struct sim_world *world, kith_id from,
                       const struct kith_send *send)
{
    const uint32_t threshold = world->network.drop_threshold;
    if (threshold == 0 || send->message.kind != KITH_MESSAGE_MODEL ||
        send->message.pattern != KITH_PATTERN_PUSH)
        return false;
    struct kith_rng rng;
    kith_rng_init(&rng, world->experiment->seed, KITH_STREAM_DROP,
                  (uint64_t)from << 32 | send->to);
    rng.block = (uint32_t)(send->message.id.counter / KITH_ASKS);
    return kith_rng_u32(&rng) < threshold;
}

/* The vector is copied with the decision: the snapshot may be filled anew by
 * the item that the same step starts. */
static uint32_t pack(struct sim_world *world, kith_id from,
                     const struct kith_send *send)
{
    KITH_ASSERT(send->to < world->peer_count);
    const struct kith_message *lost = world->network.lost;
    const uint32_t index = sim_packet_take(world);
    if (index == 0)
        return 0;
    struct sim_packet *packet = sim_packet_at(world, index);
    packet->message = send->message;
    packet->from = from;
    packet->to = send->to;
    packet->kind = SIM_PACKET_MESSAGE;
    if (lost && send->message.kind == KITH_MESSAGE_ABORTED &&
        send->message.id.counter == lost->id.counter)
        packet->message.kind = KITH_MESSAGE_ACK;
    if (push_drops(world, from, send))
        packet->flags |= SIM_PACKET_DROPPED;
    if (send->message.kind != KITH_MESSAGE_MODEL || world->vector_bytes == 0)
        return index;
    struct sim_payload *payload = sim_payload_at(world, index);
    packet->flags |= SIM_PACKET_CARRIES;
    payload->number = sim_packet_number(world);
    if (!world->work)
        return index;
    /* After a failure a slot may not have been filled. */
    if (sim_failure(world) == KITH_OK)
        payload->vector = sim_copy_sent(world, from, send);
    if (payload->vector)
        return index;
    sim_packet_free(world, index);
    return 0;
}

static void post(struct sim_world *world, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_DEBUG_ASSERT(packet->kind == SIM_PACKET_MESSAGE);
    /* Now, not when the outbox lets it go: that depends on the queue. What a
     * host came to too late never moves. */
    if (world->totals && packet->message.kind == KITH_MESSAGE_MODEL &&
        !(packet->flags & SIM_PACKET_CANCELLED) &&
        sim_link_is_up(world, packet->from, packet->to)) {
        packet->bytes = sim_message_bytes(&packet->message);
        sim_totals_moves(world, packet);
    }
    sim_outbox_post(world, index);
}

/* Whatever has been cut off meanwhile has come in all the same; a link that was
 * reset has not. */
void sim_message_handled(struct sim_world *world, kith_id peer, uint32_t index)
{
    struct sim_packet *packet = sim_packet_at(world, index);
    KITH_ASSERT(packet->kind == SIM_PACKET_MESSAGE);
    if (packet->from == peer) {
        if (sim_link_is_lost(world, index))
            sim_packet_free(world, index);
        else
            post(world, index);
        return;
    }
    packet->flags |= SIM_PACKET_OPENED | SIM_PACKET_HERE;
    sim_deliver(world, index);
}

/* A model that its sender has not come to yet can be cancelled. */
static void speak(struct sim_world *world, kith_id from,
                  const struct kith_send *send)
{
    const uint32_t index = pack(world, from, send);
    if (index == 0)
        return;
    sim_timeline_sent(world, index);
    if (!sim_host_charges_messages(world)) {
        post(world, index);
        return;
    }
    if (sim_packet_at(world, index)->flags & SIM_PACKET_CARRIES)
        sim_transfer_list(world, index, KITH_NEVER);
    sim_link_bind(world, index);
    sim_host_message(world, from, index);
}

void sim_send(struct sim_world *world, kith_id from,
              const struct kith_send *send)
{
    if (!world->options.claims || sim_is_honest(world, from)) {
        speak(world, from, send);
        return;
    }
    struct kith_send changed = *send;
    uint32_t extra;
    if (sim_dishonest_send(world, from, &changed, &extra))
        for (uint32_t i = 0; i <= extra; i++)
            speak(world, from, &changed);
}
