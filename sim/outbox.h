/* Messages that have been sent and wait for the cache lines of their links.
 * Owner: outbox.c. */
#ifndef KITH_SIM_OUTBOX_H
#define KITH_SIM_OUTBOX_H

#include "kith/types.h"
#include "sim/huge_pages.h"

#define SIM_OUTBOX 16u /* a power of two */

struct sim_posting {
    kith_ns sent_ns;
    uint64_t hash; /* in the table of links */
    uint32_t packet;
};

struct sim_outbox {
    struct sim_posting postings[SIM_OUTBOX];
    uint64_t put, done;
};

struct sim_world;

/* A message that a node sends now: it leaves at this time, whenever the outbox
 * lets it go. */
void sim_outbox_post(struct sim_world *world, uint32_t packet);
/* A node will soon send to `to`: the same way, a wish for a link. */
void sim_outbox_dial(struct sim_world *world, kith_id from, kith_id to);
/* Before links are touched or looked at in any other way. */
void sim_outbox_flush(struct sim_world *world);
/* Before an event as late as this it must be empty. */
SIM_INLINE kith_ns sim_outbox_due_ns(const struct sim_outbox *outbox,
                                     kith_ns latency_ns)
{
    return outbox->done == outbox->put
               ? KITH_NEVER
               : outbox->postings[outbox->done % SIM_OUTBOX].sent_ns +
                     latency_ns;
}

#endif
