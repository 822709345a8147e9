/* Messages between a node's decision and the wire.
 *
 * A run's links are many times the cache: found and touched at once, each
 * costs two misses, one after the other. So a message stands here while the
 * next few events are carried out: its place in the table is asked for when it
 * comes in, its link half-way, and both are there when it leaves.
 *
 * Nobody sees the difference. What is sent arrives a latency later at the
 * earliest, and the loop empties the outbox before it goes on to an event as
 * late as that; whatever else touches links empties it first. Order on a link
 * is kept, because messages leave in the order in which they came. */
#include "sim/world.h"

#include "kith/rng.h"

/* Whole pushes lost at random: the stream DROP of i -> j, by exchange. */
static bool push_drops(const struct sim_world *world, kith_id from,
                       const struct kith_send *send)
{
    if (world->drop_threshold == 0 ||
        send->message.kind != KITH_MESSAGE_MODEL ||
        send->message.pattern != KITH_PATTERN_PUSH) {
        return false;
    }
    struct kith_rng rng;
    kith_rng_init(&rng, world->experiment->seed, KITH_STREAM_DROP,
                  (uint64_t)from << 32 | send->to);
    rng.block = (uint32_t)send->message.id.counter;
    return kith_rng_u32(&rng) < world->drop_threshold;
}

static uint32_t wrap(struct sim_world *world, kith_id from,
                     const struct kith_send *send)
{
    const uint32_t index = sim_parcel_take(world);
    if (index == 0) {
        return 0;
    }
    struct sim_parcel *parcel = &world->parcels[index - 1];
    parcel->message = send->message;
    parcel->from = from;
    parcel->to = send->to;
    parcel->kind = SIM_PARCEL_MESSAGE;
    if (world->lost && send->message.kind == KITH_MESSAGE_ABORTED &&
        send->message.id.counter == world->lost->id.counter) {
        parcel->message.kind = KITH_MESSAGE_ACK;
    }
    if (push_drops(world, from, send)) {
        parcel->flags |= SIM_PARCEL_DROPPED;
    }
    if (send->message.kind == KITH_MESSAGE_MODEL && world->desks) {
        struct sim_cargo *cargo = &world->cargo[index - 1];
        parcel->flags |= SIM_PARCEL_LADEN;
        cargo->block = sim_block_copy(world, from, send->message.slot,
                                      send->message.payload_bytes);
        if (!cargo->block) {
            sim_parcel_free(world, index);
            return 0;
        }
    }
    return index;
}

/* The link's wire, or a dial. The time is the moment of the decision. */
static void post(struct sim_world *world, uint32_t index)
{
    struct sim_parcel *parcel = &world->parcels[index - 1];
    const kith_id from = parcel->from, to = parcel->to;
    struct sim_peer *peer = &world->peers[from];
    if (peer->near != to) {
        uint32_t found;
        if (!sim_link_between(world, from, to, &found)) {
            return;
        }
        peer->near = to;
        peer->near_link = found;
    }
    const uint32_t link = peer->near_link;
    const struct sim_link *entry = &world->links.links[link];
    const unsigned side = entry->end[1] == from;
    parcel->link = link;
    switch ((enum sim_side)entry->side[side]) {
    case SIM_SIDE_UP:
        sim_launch(world, index);
        break;
    case SIM_SIDE_DEAD: /* into the void: nobody has told this end yet */
        sim_parcel_free(world, index);
        break;
    case SIM_SIDE_IDLE:
        sim_link_wait(world, link, side, index);
        sim_link_dial(world, link, from);
        break;
    case SIM_SIDE_DIALLING:
    case SIM_SIDE_KNOWN:
        sim_link_wait(world, link, side, index);
        break;
    }
}

static void post_first(struct sim_world *world)
{
    struct sim_outbox *outbox = &world->outbox;
    const struct sim_posting *first =
        &outbox->postings[outbox->done++ % SIM_OUTBOX];
    const kith_ns now_ns = world->now_ns;
    world->now_ns = first->sent_ns;
    post(world, first->parcel);
    world->now_ns = now_ns;
}

void sim_outbox_flush(struct sim_world *world)
{
    while (world->outbox.done != world->outbox.put) {
        post_first(world);
    }
}

/* The links of those that have come half-way. */
SIM_INLINE void fetch_middle(const struct sim_world *world)
{
    const struct sim_outbox *outbox = &world->outbox;
    if (outbox->put - outbox->done > SIM_OUTBOX / 2) {
        const struct sim_posting *middle =
            &outbox->postings[(outbox->put - SIM_OUTBOX / 2) % SIM_OUTBOX];
        sim_table_fetch_link(&world->links, middle->hash);
    }
}

void sim_send(struct sim_world *world, kith_id from,
              const struct kith_send *send)
{
    struct sim_outbox *outbox = &world->outbox;
    if (outbox->put - outbox->done == SIM_OUTBOX) {
        post_first(world);
    }
    const uint32_t index = wrap(world, from, send);
    if (index == 0) {
        return;
    }
    struct sim_posting *posting = &outbox->postings[outbox->put % SIM_OUTBOX];
    posting->parcel = index;
    posting->sent_ns = world->now_ns;
    posting->hash = sim_table_hash(from, send->to);
    sim_table_fetch_slot(&world->links, posting->hash);
    outbox->put++;
    fetch_middle(world);
}
