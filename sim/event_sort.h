/* The order of events, and a day of the calendar in that order. */
#ifndef KITH_SIM_EVENT_SORT_H
#define KITH_SIM_EVENT_SORT_H

#include "sim/queue.h"

static inline bool sim_event_before(const struct sim_event *a,
                                    const struct sim_event *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    if (a->peer != b->peer)
        return a->peer < b->peer;
    return a->sequence < b->sequence;
}

/* Sorts `count` events of times >= 0. Returns where they stand then: `events`,
 * or `scratch`, which has as much room; the other one is spoiled.
 *
 * Cost  O(k) where times are spread, or equal and peers are; O(k log k) at
 *       worst; and one look for a day that is in order already, as peers in
 *       lockstep make it. */
struct sim_event *sim_sort(struct sim_event *events, struct sim_event *scratch,
                           size_t count);

#endif
