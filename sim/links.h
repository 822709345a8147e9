/* Connections: dial, handshake, up, dead. Owner: links.c. */
#ifndef KITH_SIM_LINKS_H
#define KITH_SIM_LINKS_H

#include "sim/link_table.h"

struct sim_links {
    struct sim_link_table table;
    uint64_t resets; /* links broken so far: packets may be stale */
};

struct sim_world;

enum kith_err sim_links_open(struct sim_world *world);
void sim_links_close(struct sim_world *world);
/* The link of two peers, made where they have not met. False: no memory. */
bool sim_link_between(struct sim_world *world, kith_id a, kith_id b,
                      uint32_t *link);
/* Peers' links are found anew, and so are those that they used last: before
 * the first is handed over. */
void sim_links_unchain(struct sim_world *world);
/* The ends of links that are of peers of both worlds go from one to the other,
 * with what waits there: each knows its own half of a link between divisions.
 * Nothing was ever broken or cut. */
void sim_links_hand_over(struct sim_world *from, struct sim_world *to);
/* All of them have been handed over. */
KITH_MUST_CHECK enum kith_err sim_links_renew(struct sim_world *world);
/* A message, or a wish for a link (SYN), as of `at_ns`: outbox.c calls. */
void sim_link_send(struct sim_world *world, uint32_t packet, kith_ns at_ns);
/* Would what `from` sends now leave at once? Nothing that stands in the outbox
 * changes that. */
bool sim_link_is_up(const struct sim_world *world, kith_id from, kith_id to);
/* Has all that `from` has sent to `to` arrived before `by_ns`, and been heard,
 * whatever else happens? Where a fault, a queue or another's load may delay it
 * the answer is no. */
bool sim_link_delivers(struct sim_world *world, kith_id from, kith_id to,
                       kith_ns by_ns);
/* A message waits for its sender's core: it leaves over the link that is up
 * now, if one is, or not at all. Is that one gone? */
void sim_link_bind(struct sim_world *world, uint32_t packet);
bool sim_link_is_lost(struct sim_world *world, uint32_t packet);
SIM_INLINE void sim_link_fetch_index(const struct sim_links *links,
                                     uint32_t link)
{
    sim_fetch(&links->table.links[link]);
}
/* `peer` has heard from `other` over this link: its answer needs no search. */
void sim_link_heard(struct sim_world *world, kith_id peer, kith_id other,
                    uint32_t link);
/* A handshake flight is stuck behind a cut: give up after a while. */
void sim_link_watch(struct sim_world *world, uint32_t link);
/* Whether the packet ends or waits here: its connection is gone, or its
 * direction is cut. */
bool sim_link_stops(struct sim_world *world, uint32_t packet);
/* A link's own packet has come to its receiver. */
void sim_link_step(struct sim_world *world, uint32_t packet);
/* All links of a crashed peer; the other ends learn it by a RESET. */
void sim_link_crash(struct sim_world *world, kith_id peer);

#endif
