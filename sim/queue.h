/* The event queue: (time, peer, sequence) is a total order, so both kinds pop
 * the same events in the same order.
 *
 *   calendar  buckets of 2^shift ns. Days to come are unsorted lists: a push
 *             is O(1). A day whose time has come is sorted once, O(k log k)
 *             also where all its k events share one time, as peers in
 *             lockstep do: sorted buckets were refused because they need
 *             O(k^2) then. What is pushed into the current day goes through a
 *             4-ary heap that stays small. Days to come are many times the
 *             cache: what is pushed stands for a few pushes more until its
 *             bucket, and then that one's chunk, have been asked for.
 *             What is due at once goes into lists by peer, of the first peers.
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
#include "sim/huge_pages.h"

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

/* Events that wait for their chunk, a power of two. */
#define SIM_STAGED 8u

/* What is due at once; same_time.h. */
#define SIM_SAME_TIME_PEERS 4096u
struct sim_same_time;
struct sim_same_time_event;

struct sim_queue {
    size_t count, capacity; /* events pending, and room for them */
    void *memory;           /* of the heap, places, today and scratch */
    /* All events, or late-comers of today. */
    struct kith_heap heap;
    /* Calendar. */
    kith_ns now_ns;                     /* of the last pop; -1: none yet */
    struct sim_same_time *same_time;    /* NULL: a heap's queue */
    struct sim_same_time_event *places; /* (capacity), of what is due at once */
    size_t due;                         /* events in it */
    struct sim_chunk *chunks;           /* (capacity) */
    uint32_t chunk_used, chunk_free;
    uint32_t *buckets; /* (mask + 1): 1 + index of the newest chunk */
    uint64_t mask;
    uint64_t day;   /* days up to this one stand in `today` and the heap; all
                       of them in a heap's queue */
    unsigned shift; /* a day is 2^shift ns */
    struct sim_event staged[SIM_STAGED]; /* of days to come */
    uint32_t staged_put, staged_taken;   /* so many, modulo 2^32 */
    struct sim_event *today, *scratch;   /* (capacity), sorted */
    size_t today_at, today_count;
    uint32_t prefetched; /* the chunk of tomorrow that was last asked for */
    /* What the last window of pops looked like: tunes shift. */
    uint64_t pops, times, days, wasted;
    unsigned turns; /* how often it was widened after narrowing, or back */
    bool widened;   /* by its last change */
};

KITH_MUST_CHECK enum kith_err sim_queue_open(struct sim_queue *queue,
                                             enum sim_queue_kind kind,
                                             size_t capacity);
void sim_queue_close(struct sim_queue *queue);
/* What sim_queue_push() and sim_queue_pop() do not find at hand. */
KITH_MUST_CHECK enum kith_err
sim_queue_push_slow(struct sim_queue *queue, const struct sim_event *event);
bool sim_queue_pop_slow(struct sim_queue *queue, struct sim_event *event);

SIM_INLINE void sim_chunk_fetch(const struct sim_queue *queue, uint32_t chunk)
{
    if (chunk != 0) {
        sim_fetch(&queue->chunks[chunk - 1]);
        sim_fetch((const char *)&queue->chunks[chunk - 1] + 64);
    }
}

/* The one that has waited longest goes to its bucket. */
void sim_queue_place(struct sim_queue *queue);

/* KITH_ENOMEM only when something has to grow. Inlined, so that the fields of
 * an event go from registers to where it waits. */
KITH_MUST_CHECK SIM_INLINE enum kith_err
sim_queue_push(struct sim_queue *queue, const struct sim_event *event)
{
    const uint64_t day = (uint64_t)event->time_ns >> queue->shift;
    if (day <= queue->day || queue->count == queue->capacity)
        return sim_queue_push_slow(queue, event);
    if (queue->staged_put - queue->staged_taken == SIM_STAGED)
        sim_queue_place(queue);
    const struct sim_event *middle =
        &queue->staged[(queue->staged_put - SIM_STAGED / 2) % SIM_STAGED];
    queue->staged[queue->staged_put++ % SIM_STAGED] = *event;
    queue->count++;
    sim_fetch(&queue->buckets[day & queue->mask]);
    /* Of one that is not there any more it is a fetch too many. */
    sim_chunk_fetch(queue,
                    queue->buckets[(uint64_t)middle->time_ns >> queue->shift &
                                   queue->mask]);
    return KITH_OK;
}

/* The event that the next pop would take. False when empty. */
bool sim_queue_first(struct sim_queue *queue, struct sim_event *event);

/* False when empty. Each pop of today fetches one more chunk of tomorrow:
 * walked all at once, a chain of cold chunks is one cache miss after the
 * other. */
SIM_INLINE bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event)
{
    if (queue->prefetched != 0) {
        queue->prefetched = queue->chunks[queue->prefetched - 1].next;
        sim_chunk_fetch(queue, queue->prefetched);
    }
    if (queue->today_at == queue->today_count ||
        queue->heap.count + queue->due > 0)
        return sim_queue_pop_slow(queue, event);
    queue->count--;
    *event = queue->today[queue->today_at++];
    queue->now_ns = event->time_ns;
    return true;
}

/* No event is earlier than this; KITH_NEVER: not known without a pop. */
static inline kith_ns sim_queue_next_ns(const struct sim_queue *queue)
{
    kith_ns next_ns = queue->due > 0 ? queue->now_ns : KITH_NEVER;
    if (queue->today_at < queue->today_count &&
        queue->today[queue->today_at].time_ns < next_ns)
        next_ns = queue->today[queue->today_at].time_ns;
    if (queue->heap.count > 0 && queue->heap.entries[0].time_ns < next_ns)
        next_ns = queue->heap.entries[0].time_ns;
    return next_ns;
}

/* A hint for prefetching, nothing else: an event that will be popped soon, the
 * `next`-th of today from now; NULL where none is known. */
static inline const struct sim_event *
sim_queue_peek(const struct sim_queue *queue, size_t next)
{
    const size_t at = queue->today_at + next;
    return at < queue->today_count ? &queue->today[at] : NULL;
}

#endif
