/* Messages on their way to their links; see outbox.h.
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
#include "sim/outbox.h"

#include "kith/assert.h"
#include "sim/world.h"

static void send_first(struct sim_world *world)
{
    struct sim_outbox *outbox = &world->outbox;
    KITH_ASSERT(outbox->done < outbox->put);
    const struct sim_posting *first =
        &outbox->postings[outbox->done++ % SIM_OUTBOX];
    sim_link_send(world, first->packet, first->sent_ns);
}

void sim_outbox_flush(struct sim_world *world)
{
    KITH_DEBUG_ASSERT(world->outbox.put - world->outbox.done <= SIM_OUTBOX);
    while (world->outbox.done != world->outbox.put)
        send_first(world);
}

void sim_outbox_post(struct sim_world *world, uint32_t index)
{
    struct sim_outbox *outbox = &world->outbox;
    const struct sim_link_table *table = sim_link_table_of(world);
    if (world->sharing) { /* flows begin when they do */
        sim_link_send(world, index, sim_time(world));
        return;
    }
    if (outbox->put - outbox->done == SIM_OUTBOX)
        send_first(world); /* may move the packets */
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

void sim_outbox_dial(struct sim_world *world, kith_id from, kith_id to)
{
    KITH_ASSERT(from != to);
    const uint32_t index = sim_packet_take(world);
    if (index == 0)
        return;
    struct sim_packet *packet = sim_packet_at(world, index);
    packet->from = from;
    packet->to = to;
    packet->kind = SIM_PACKET_SYN;
    sim_outbox_post(world, index);
}
