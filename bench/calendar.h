/* The bare ceiling of an event engine: a calendar queue of sorted lists with
 * nothing around it, after Brown, CACM 1988. Times are in periods; buckets hold
 * about one event; no growth, no total order, no peers. */
#ifndef KITH_BENCH_CALENDAR_H
#define KITH_BENCH_CALENDAR_H

#include "bench/bench.h"

struct bench_event {
    double time;
    uint32_t node, from; /* the benchmark's */
    float value;
    uint32_t next;
};

struct bench_calendar {
    struct bench_event *pool;
    uint32_t *buckets, free;
    uint64_t mask, day;
    double days_per_time;
};

static inline void bench_calendar_open(struct bench_calendar *calendar,
                                       size_t capacity, double days_per_time)
{
    uint64_t buckets = 1;
    while (buckets < capacity)
        buckets *= 2;
    *calendar = (struct bench_calendar){.mask = buckets - 1,
                                        .days_per_time = days_per_time};
    calendar->pool = (struct bench_event *)bench_alloc((capacity + 1) *
                                                       sizeof *calendar->pool);
    calendar->buckets =
        (uint32_t *)bench_alloc(buckets * sizeof *calendar->buckets);
    for (uint32_t i = 1; i <= capacity; i++)
        calendar->pool[i].next = i < capacity ? i + 1 : 0;
    calendar->free = 1;
}

static inline void bench_calendar_close(struct bench_calendar *calendar,
                                        size_t capacity)
{
    munmap(calendar->pool, (capacity + 1) * sizeof *calendar->pool);
    munmap(calendar->buckets, (calendar->mask + 1) * sizeof(uint32_t));
}

static inline void bench_calendar_push(struct bench_calendar *calendar,
                                       struct bench_event event)
{
    struct bench_event *pool = calendar->pool;
    const uint32_t index = calendar->free;
    calendar->free = pool[index].next;
    const uint64_t day = (uint64_t)(event.time * calendar->days_per_time);
    uint32_t *at = &calendar->buckets[day & calendar->mask];
    while (*at != 0 && pool[*at].time <= event.time)
        at = &pool[*at].next;
    event.next = *at;
    pool[index] = event;
    *at = index;
}

/* The caller knows that something is pending. */
static inline struct bench_event
bench_calendar_pop(struct bench_calendar *calendar)
{
    struct bench_event *pool = calendar->pool;
    for (;; calendar->day++) {
        uint32_t *at = &calendar->buckets[calendar->day & calendar->mask];
        const uint32_t index = *at;
        if (index == 0 || (uint64_t)(pool[index].time *
                                     calendar->days_per_time) > calendar->day)
            continue;
        const struct bench_event event = pool[index];
        *at = event.next;
        pool[index].next = calendar->free;
        calendar->free = index;
        return event;
    }
}

/* xorshift64 (Marsaglia 2003): the ceiling's dice cost next to nothing. */
static inline uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline double bench_uniform(uint64_t *state)
{
    return (double)(bench_random(state) >> 11) * 0x1p-53;
}

#endif
