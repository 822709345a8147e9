/* Messages over access links: latency, rate, loss, in order. Owner: delivery.c.
 */
#ifndef KITH_SIM_DELIVERY_H
#define KITH_SIM_DELIVERY_H

#include "kith/node.h"
#include "sim/huge_pages.h"
#include "sim/packets.h"

struct sim_access_link {    /* of one machine, both directions */
    kith_ns up_ns, down_ns; /* free from then on */
};

struct sim_network {
    struct sim_access_link *access; /* (machines), NULL without a rate */
    uint32_t drop_threshold;        /* of 2^32 */
    /* While a receiver is told of a push that `drop_push` took. */
    const struct kith_message *lost;
};

/* Soon a message arrives there. */
SIM_INLINE void sim_access_fetch(const struct sim_network *network,
                                 kith_id machine)
{
    if (network->access)
        sim_fetch(&network->access[machine]);
}

enum kith_err sim_network_open(struct sim_world *world);
/* Is the message of the event in hand one that is lost to its receiver? */
bool sim_network_loses(const struct sim_world *world);
/* Do messages take lines, one after another? */
bool sim_network_has_lines(const struct sim_world *world);
void sim_send(struct sim_world *world, kith_id from,
              const struct kith_send *send);
/* A message that was sent then, and whose link is up: size it, and put it on
 * the wire. */
void sim_launch(struct sim_world *world, uint32_t packet, kith_ns at_ns);
/* Put a packet on its link's wire. */
void sim_transmit(struct sim_world *world, uint32_t packet, kith_ns at_ns);
/* The access link takes bytes that are sent then, after what it has to send
 * already; returns when the first leaves. */
kith_ns sim_uplink_take(struct sim_world *world, kith_id from, kith_ns at_ns,
                        uint64_t bytes, kith_ns *left_ns);
/* Bytes that leave as a flow do: counted when the first does. */
void sim_network_leaves(struct sim_world *world, kith_id from, uint64_t bytes);
/* A packet that was held goes on: into the receiver's access link. */
void sim_release(struct sim_world *world, kith_id by, uint32_t packet);
void sim_arrive(struct sim_world *world, uint32_t packet);
/* The peer has taken the time that the message takes: to send it, or to open
 * it. */
void sim_message_handled(struct sim_world *world, kith_id peer,
                         uint32_t packet);
void sim_deliver(struct sim_world *world, uint32_t packet);
/* Bytes that moved without a packet: a stage of a central exchange. */
void sim_network_count(struct sim_world *world, kith_id from, kith_id to,
                       uint64_t bytes);
/* Bytes of a message on the wire, its bulk records included. */
uint64_t sim_message_bytes(const struct kith_message *message);

#endif
