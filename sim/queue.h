/* The event queue: (time, peer, sequence) is a total order, so both kinds pop
 * the same events in the same order.
 *
 *   calendar  buckets of 2^shift ns. Days to come are unsorted lists: a push
 *             is O(1). A day whose time has come is sorted once, O(k log k)
 *             also where all its k events share one instant, as peers in
 *             lockstep do: sorted buckets were refused because they need
 *             O(k^2) then. What is pushed into the day in hand goes through a
 *             4-ary heap that stays small.
 *   heap      the 4-ary heap of base/, for everything.
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
    uint64_t sequence;   /* orders equal times of one peer */
    kith_id peer;        /* KITH_NOBODY: the run itself; last among equals */
    uint32_t kind : 3;   /* the caller's */
    uint32_t value : 29; /* the caller's */
};
_Static_assert(sizeof(struct sim_event) == 24, "five to a chunk");
#define SIM_VALUE_MAX ((1u << 29) - 1)

/* A piece of a bucket's list: two cache lines, so that a day of a few events
 * costs one miss. */
#define SIM_CHUNK_EVENTS 5u
struct sim_chunk {
    uint32_t next, count; /* 1 + index of the next chunk */
    struct sim_event events[SIM_CHUNK_EVENTS];
};

/* Pushes that wait for the cache lines they will write: a power of two. */
#define SIM_STAGED 8u

struct sim_queue {
    enum sim_queue_kind kind;
    size_t count, capacity; /* events pending, and room for them */
    /* All events, or late-comers of today. */
    struct kith_heap heap;
    struct sim_event *pool; /* (capacity), by the heap's values */
    uint32_t pool_used, pool_free;
    /* Calendar. */
    struct sim_chunk *chunks; /* (chunk_capacity) */
    uint32_t chunk_capacity, chunk_used, chunk_free;
    uint32_t *buckets; /* (mask + 1): 1 + index of the newest chunk */
    uint64_t mask;
    uint64_t day;   /* days up to this one stand in `today` and the heap */
    unsigned shift; /* a day is 2^shift ns */
    struct sim_event staged[SIM_STAGED];
    uint64_t staged_at, staged_done;   /* put in, carried on to a bucket */
    struct sim_event *today, *scratch; /* (capacity), sorted */
    size_t today_at, today_count;
    uint32_t chased; /* the chunk of tomorrow that was last asked for */
    /* What the last window of pops looked like: tunes shift. */
    uint64_t pops, instants, days, wasted;
    kith_ns last_ns;
};

KITH_MUST_CHECK enum kith_err sim_queue_open(struct sim_queue *queue,
                                             enum sim_queue_kind kind,
                                             size_t capacity);
void sim_queue_close(struct sim_queue *queue);
/* KITH_ENOMEM only when something has to grow. */
KITH_MUST_CHECK enum kith_err sim_queue_push(struct sim_queue *queue,
                                             const struct sim_event *event);
/* False when empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event);

/* Hints for prefetching, nothing else: an event that will be popped soon, the
 * `ahead`-th of today from now, or one of tomorrow's; NULL where none is known.
 */
static inline const struct sim_event *
sim_queue_ahead(const struct sim_queue *queue, size_t ahead)
{
    const size_t at = queue->today_at + ahead;
    return at < queue->today_count ? &queue->today[at] : NULL;
}

static inline const struct sim_chunk *
sim_queue_tomorrow(const struct sim_queue *queue)
{
    const uint32_t head = queue->buckets[(queue->day + 1) & queue->mask];
    return head == 0 ? NULL : &queue->chunks[head - 1];
}

#endif
