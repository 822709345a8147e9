/* Connections: dial, handshake, up, dead, cut. Owner: links.c. */
#ifndef KITH_SIM_LINKS_H
#define KITH_SIM_LINKS_H

#include "sim/link_table.h"

/* Messages that wait for the cache lines of their links: a power of two. */
#define SIM_OUTBOX 16u

struct sim_posting {
    kith_ns sent_ns;
    uint64_t hash; /* in the table of links */
    uint32_t packet;
};

struct sim_outbox {
    struct sim_posting postings[SIM_OUTBOX];
    uint64_t put, done;
};

struct sim_links {
    struct sim_outbox outbox;
    struct sim_link_table table;
    const struct kith_atom **acted; /* (acted_count) so far, in their order */
    uint32_t acted_count;
    uint64_t resets; /* links broken so far: packets may be stale */
    uint32_t cuts;   /* directions that are cut now */
};

struct kith_atom;
struct sim_world;

enum kith_err sim_links_open(struct sim_world *world);
void sim_links_close(struct sim_world *world);
/* A message that a node sends now: it leaves through the outbox, at this time
 * whenever that is. */
void sim_link_post(struct sim_world *world, uint32_t packet);
/* Would what `from` sends now leave at once? Nothing that stands in the outbox
 * changes that. */
bool sim_link_is_up(const struct sim_world *world, kith_id from, kith_id to);
/* A message waits for its sender's core: it leaves over the link that is up
 * now, if one is, or not at all. Is that one gone? */
void sim_link_bind(struct sim_world *world, uint32_t packet);
bool sim_link_is_lost(struct sim_world *world, uint32_t packet);
/* A node will soon send to `to`: the same way, a wish for a link. */
void sim_link_dial(struct sim_world *world, kith_id from, kith_id to);
/* Before links are touched or looked at in any other way. */
void sim_link_flush(struct sim_world *world);
/* Before an event as late as this the outbox must be empty. */
SIM_INLINE kith_ns sim_link_due_ns(const struct sim_links *links,
                                   kith_ns latency_ns)
{
    const struct sim_outbox *outbox = &links->outbox;
    return outbox->done == outbox->put
               ? KITH_NEVER
               : outbox->postings[outbox->done % SIM_OUTBOX].sent_ns +
                     latency_ns;
}
SIM_INLINE void sim_link_fetch_index(const struct sim_links *links,
                                     uint32_t link)
{
    sim_fetch(&links->table.links[link]);
}
/* `peer` has heard from `other` over this link: its answer needs no search. */
void sim_link_heard(struct sim_world *world, kith_id peer, kith_id other,
                    uint32_t link);
/* When what leaves from then to then will arrive, to its last bit, less
 * `early_ns` for what its caller looks at; after what left before (TCP). */
kith_ns sim_link_arrival(struct sim_world *world, uint32_t packet,
                         kith_ns leaves_ns, kith_ns left_ns, kith_ns early_ns);
/* Must it wait at its sender, because its direction is cut? */
bool sim_link_holds(struct sim_world *world, uint32_t packet);
/* Nothing was ever broken or is cut: no packet can be stopped, which spares a
 * cache miss for each. */
SIM_INLINE bool sim_link_is_clear(const struct sim_links *links)
{
    return links->resets == 0 && links->cuts == 0;
}
/* Whether the packet ends or waits here: its connection is gone, or its
 * direction is cut. */
bool sim_link_stops(struct sim_world *world, uint32_t packet);
/* A link's own packet has come to its receiver. */
void sim_link_step(struct sim_world *world, uint32_t packet);
/* All links of a crashed peer; the other ends learn it by a RESET. */
void sim_link_crash(struct sim_world *world, kith_id peer);
/* A fault that acts on links begins or ends. Cost: the links that there are. */
void sim_link_act(struct sim_world *world, const struct kith_atom *atom);

#endif
