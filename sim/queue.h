/* The event queue: (time, peer, sequence) is a total order, so both kinds pop
 * the same events in the same order.
 *
 *   calendar  buckets of 2^shift ns; the events of the day in hand stand in a
 *             small 4-ary heap, later days are unsorted lists. Push is O(1);
 *             a day with k events costs O(k log k), also when all k share one
 *             instant, as peers in lockstep do: sorted buckets were refused
 *             because they need O(k^2) then.
 *   heap      the 4-ary heap of base/.
 *
 * Source: Brown, "Calendar queues", CACM 1988; Tang et al., "Ladder queue",
 * TOMACS 2005 (sorting a bucket only when its time has come).
 * Test: unit/test_sim_queue.c. */
#ifndef KITH_SIM_QUEUE_H
#define KITH_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/heap.h"
#include "kith/sim.h"
#include "kith/types.h"

struct sim_event {
    kith_ns time_ns;
    uint64_t sequence; /* the peer's own counter */
    kith_id peer;      /* KITH_NOBODY: the run itself; last among equals */
    uint32_t next;     /* the queue's */
    uint32_t kind;     /* the caller's */
    uint32_t value;    /* the caller's */
};
_Static_assert(sizeof(struct sim_event) <= 32, "two events a cache line");

struct sim_queue {
    enum sim_queue_kind kind;
    struct sim_event *pool; /* (capacity) */
    uint32_t capacity, used, free;
    size_t count;
    struct kith_heap heap; /* all events, or those of today */
    /* Calendar. */
    uint32_t *buckets; /* (mask + 1) heads, 1 + index; 0: empty */
    uint64_t mask;
    uint64_t day;   /* days up to this one stand in the heap */
    unsigned shift; /* a day is 2^shift ns */
    /* What the last window of pops looked like: tunes shift. */
    uint64_t pops, misses;
    kith_ns window_ns;
};

KITH_MUST_CHECK enum kith_err sim_queue_open(struct sim_queue *queue,
                                             enum sim_queue_kind kind,
                                             size_t capacity);
void sim_queue_close(struct sim_queue *queue);
/* `next` is ignored. KITH_ENOMEM only when the pool has to grow. */
KITH_MUST_CHECK enum kith_err sim_queue_push(struct sim_queue *queue,
                                             const struct sim_event *event);
/* False when empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event);

#endif
