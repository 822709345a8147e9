/* The event queue; see queue.h for the two kinds and their order. */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"
#include "sim/memory.h"

#define CAPACITY_MIN 64u
#define BUCKETS_MIN 64u
#define BUCKETS_MAX (UINT64_C(1) << 26)
#define SHIFT_START 16u /* 65 us: a LAN's latency; tuned from then on */
#define SHIFT_MAX 40u   /* 18 min: nothing is that rare */
#define WINDOW_MIN 4096u
/* Sorted by insertion up to this many, then merged. */
#define RUN 8u
/* Days whose first event is fetched in advance. */
#define AHEAD 4u

enum kith_err sim_queue_open(struct sim_queue *queue, enum sim_queue_kind kind,
                             size_t capacity)
{
    KITH_ASSERT(capacity < UINT32_MAX / 2);
    *queue = (struct sim_queue){.kind = kind, .shift = SHIFT_START};
    queue->capacity =
        capacity < CAPACITY_MIN ? CAPACITY_MIN : (uint32_t)capacity;
    uint64_t buckets = BUCKETS_MIN;
    while (buckets < queue->capacity && buckets < BUCKETS_MAX) {
        buckets *= 2;
    }
    /* Heap and today have room for every event, so that only a push can run
     * out of memory; pages never touched cost nothing. */
    const size_t events = queue->capacity;
    struct kith_heap_entry *entries = sim_pages(events * sizeof *entries);
    queue->pool = sim_pages(events * sizeof *queue->pool);
    queue->today = sim_pages(events * sizeof *queue->today);
    queue->scratch = sim_pages(events * sizeof *queue->scratch);
    queue->buckets = sim_pages(buckets * sizeof *queue->buckets);
    queue->mask = buckets - 1;
    kith_heap_init(&queue->heap, entries, entries ? queue->capacity : 0);
    if (!entries || !queue->pool || !queue->today || !queue->scratch ||
        !queue->buckets) {
        sim_queue_close(queue);
        return KITH_ENOMEM;
    }
    return KITH_OK;
}

void sim_queue_close(struct sim_queue *queue)
{
    const size_t events = queue->capacity;
    sim_pages_free(queue->heap.entries, events * sizeof *queue->heap.entries);
    sim_pages_free(queue->pool, events * sizeof *queue->pool);
    sim_pages_free(queue->today, events * sizeof *queue->today);
    sim_pages_free(queue->scratch, events * sizeof *queue->scratch);
    sim_pages_free(queue->buckets, (queue->mask + 1) * sizeof *queue->buckets);
    *queue = (struct sim_queue){0};
}

/* Twice as many of everything, or everything stays as it is. */
static enum kith_err pool_grow(struct sim_queue *queue)
{
    if (queue->capacity >= UINT32_MAX / 2) {
        return KITH_ENOMEM;
    }
    const size_t old = queue->capacity, capacity = 2 * old;
    struct kith_heap_entry *entries = sim_pages(capacity * sizeof *entries);
    struct sim_event *pool = sim_pages(capacity * sizeof *pool);
    struct sim_event *today = sim_pages(capacity * sizeof *today);
    struct sim_event *scratch = sim_pages(capacity * sizeof *scratch);
    if (!entries || !pool || !today || !scratch) {
        sim_pages_free(entries, capacity * sizeof *entries);
        sim_pages_free(pool, capacity * sizeof *pool);
        sim_pages_free(today, capacity * sizeof *today);
        sim_pages_free(scratch, capacity * sizeof *scratch);
        return KITH_ENOMEM;
    }
    memcpy(entries, queue->heap.entries, old * sizeof *entries);
    memcpy(pool, queue->pool, old * sizeof *pool);
    memcpy(today, queue->today, old * sizeof *today);
    sim_pages_free(queue->heap.entries, old * sizeof *entries);
    sim_pages_free(queue->pool, old * sizeof *pool);
    sim_pages_free(queue->today, old * sizeof *today);
    sim_pages_free(queue->scratch, old * sizeof *scratch);
    queue->heap.entries = entries;
    queue->heap.capacity = capacity;
    queue->pool = pool;
    queue->today = today;
    queue->scratch = scratch;
    queue->capacity = (uint32_t)capacity;
    return KITH_OK;
}

static void heap_put(struct sim_queue *queue, uint32_t index)
{
    const struct sim_event *event = &queue->pool[index];
    const bool room = kith_heap_push(
        &queue->heap, (struct kith_heap_entry){.time_ns = event->time_ns,
                                               .peer = event->peer,
                                               .value = index,
                                               .sequence = event->sequence});
    KITH_ASSERT(room);
}

static void bucket_put(struct sim_queue *queue, uint32_t index, uint64_t day)
{
    uint32_t *head = &queue->buckets[day & queue->mask];
    queue->pool[index].next = *head;
    *head = index + 1;
}

static inline uint64_t day_of(const struct sim_queue *queue, kith_ns time_ns)
{
    return (uint64_t)time_ns >> queue->shift;
}

enum kith_err sim_queue_push(struct sim_queue *queue,
                             const struct sim_event *event)
{
    KITH_ASSERT(event->time_ns >= 0);
    uint32_t index;
    if (queue->free != 0) {
        index = queue->free - 1;
        queue->free = queue->pool[index].next;
    } else {
        if (queue->used == queue->capacity) {
            const enum kith_err err = pool_grow(queue);
            if (err != KITH_OK) {
                return err;
            }
        }
        index = queue->used++;
    }
    queue->pool[index] = *event;
    queue->count++;
    const uint64_t day = day_of(queue, event->time_ns);
    if (queue->kind == SIM_QUEUE_HEAP || day <= queue->day) {
        heap_put(queue, index);
    } else {
        bucket_put(queue, index, day);
    }
    return KITH_OK;
}

static void release(struct sim_queue *queue, uint32_t index)
{
    queue->pool[index].next = queue->free;
    queue->free = index + 1;
}

static inline bool before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns;
    }
    if (a->peer != b->peer) {
        return a->peer < b->peer;
    }
    return a->sequence < b->sequence;
}

static void insertion_sort(struct sim_event *events, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct sim_event event = events[i];
        size_t at = i;
        for (; at > 0 && before(&event, &events[at - 1]); at--) {
            events[at] = events[at - 1];
        }
        events[at] = event;
    }
}

static void merge(const struct sim_event *from, struct sim_event *to,
                  size_t middle, size_t count)
{
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        const bool takes_left =
            left < middle &&
            (right == count || before(&from[left], &from[right]));
        to[i] = takes_left ? from[left++] : from[right++];
    }
}

/* Bottom-up merge sort: every pass reads and writes in order, and runs that
 * follow each other already, as those of peers in lockstep, are just copied. */
static void sort_today(struct sim_queue *queue)
{
    const size_t count = queue->today_count;
    for (size_t at = 0; at < count; at += RUN) {
        const size_t left = count - at;
        insertion_sort(queue->today + at, left < RUN ? left : RUN);
    }
    for (size_t run = RUN; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            struct sim_event *from = queue->today + at;
            const size_t left = count - at;
            const size_t middle = left < run ? left : run;
            const size_t both = left < 2 * run ? left : 2 * run;
            if (middle == both || before(&from[middle - 1], &from[middle])) {
                memcpy(queue->scratch + at, from, both * sizeof *from);
            } else {
                merge(from, queue->scratch + at, middle, both);
            }
        }
        struct sim_event *sorted = queue->scratch;
        queue->scratch = queue->today;
        queue->today = sorted;
    }
}

/* A list is last in, first out; events are mostly pushed in order. */
static void reverse_today(struct sim_queue *queue)
{
    for (size_t i = 0, j = queue->today_count; i + 1 < j; i++) {
        j--;
        const struct sim_event event = queue->today[i];
        queue->today[i] = queue->today[j];
        queue->today[j] = event;
    }
}

/* The earliest day that has an event in some bucket. */
static uint64_t earliest_day(const struct sim_queue *queue)
{
    uint64_t earliest = UINT64_MAX;
    for (uint64_t b = 0; b <= queue->mask; b++) {
        for (uint32_t i = queue->buckets[b]; i != 0;) {
            const struct sim_event *event = &queue->pool[i - 1];
            const uint64_t day = day_of(queue, event->time_ns);
            earliest = day < earliest ? day : earliest;
            i = event->next;
        }
    }
    return earliest;
}

/* Take the events of this day out of its bucket. */
static void collect(struct sim_queue *queue)
{
    uint32_t *link = &queue->buckets[queue->day & queue->mask];
    while (*link != 0) {
        const uint32_t index = *link - 1;
        struct sim_event *event = &queue->pool[index];
        if (day_of(queue, event->time_ns) > queue->day) {
            queue->wasted++; /* another lap's */
            link = &event->next;
            continue;
        }
        *link = event->next;
        queue->today[queue->today_count++] = *event;
        release(queue, index);
    }
}

/* The first event of a day to come is seldom in the cache. */
static inline void look_ahead(const struct sim_queue *queue)
{
#if defined(__GNUC__)
    const uint32_t head = queue->buckets[(queue->day + AHEAD) & queue->mask];
    if (head != 0) {
        __builtin_prefetch(&queue->pool[head - 1]);
    }
#else
    (void)queue;
#endif
}

/* Go on to the next day that has events, and sort them. */
static void advance(struct sim_queue *queue)
{
    queue->today_at = queue->today_count = 0;
    for (uint64_t empty = 0; queue->today_count == 0; empty++) {
        if (empty > queue->mask) {
            queue->day = earliest_day(queue) - 1;
            empty = 0;
        }
        queue->day++;
        look_ahead(queue);
        collect(queue);
        queue->wasted++;
    }
    queue->wasted--;
    queue->days++;
    if (queue->today_count > 1) {
        reverse_today(queue);
        sort_today(queue);
    }
}

/* Lay the calendar out again. Nothing of today is left: `day` is over. */
static void rebuild(struct sim_queue *queue, unsigned shift, uint64_t buckets)
{
    uint32_t all = 0;
    for (uint64_t b = 0; b <= queue->mask; b++) {
        for (uint32_t i = queue->buckets[b]; i != 0;) {
            const uint32_t next = queue->pool[i - 1].next;
            queue->pool[i - 1].next = all;
            all = i;
            i = next;
        }
    }
    uint32_t *heads =
        buckets == queue->mask + 1 ? NULL : sim_pages(buckets * sizeof *heads);
    if (heads) { /* without it the old count serves, only slower */
        sim_pages_free(queue->buckets, (queue->mask + 1) * sizeof *heads);
        queue->buckets = heads;
        queue->mask = buckets - 1;
    }
    memset(queue->buckets, 0, (queue->mask + 1) * sizeof *queue->buckets);
    /* Days are now told by the last instant of the day in hand. Whatever a
     * wider day adds to it joins the heap, so that everything up to
     * queue->day stands there. */
    const uint64_t end = ((queue->day + 1) << queue->shift) - 1;
    queue->shift = shift;
    queue->day = end >> shift;
    while (all != 0) {
        const uint32_t index = all - 1;
        all = queue->pool[index].next;
        const uint64_t day = day_of(queue, queue->pool[index].time_ns);
        if (day <= queue->day) {
            heap_put(queue, index);
        } else {
            bucket_put(queue, index, day);
        }
    }
}

/* After a window of pops: days are widened while looking for them costs more
 * than using them, and narrowed while they hold many different instants. */
static void tune(struct sim_queue *queue)
{
    unsigned shift = queue->shift;
    if (queue->wasted > queue->pops && shift < SHIFT_MAX) {
        shift += queue->wasted > 8 * queue->pops ? 3 : 1;
    } else if (queue->instants > 12 * queue->days && shift > 0) {
        shift--;
    }
    uint64_t buckets = queue->mask + 1;
    while (queue->count > 2 * buckets && buckets < BUCKETS_MAX) {
        buckets *= 2;
    }
    while (queue->count < buckets / 16 && buckets > BUCKETS_MIN) {
        buckets /= 2;
    }
    if (shift != queue->shift || buckets != queue->mask + 1) {
        rebuild(queue, shift, buckets);
    }
    queue->pops = queue->instants = queue->days = queue->wasted = 0;
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event)
{
    if (queue->count == 0) {
        return false;
    }
    bool left = queue->today_at < queue->today_count;
    if (!left && queue->heap.count == 0) {
        const uint64_t window =
            queue->mask + 1 > WINDOW_MIN ? queue->mask + 1 : WINDOW_MIN;
        if (queue->pops >= window) {
            tune(queue); /* may put events into the heap */
        }
        if (queue->heap.count == 0) {
            advance(queue);
            left = true;
        }
    }
    queue->count--;
    const struct kith_heap_entry *late = queue->heap.entries;
    if (left && queue->heap.count > 0) {
        const struct sim_event *first = &queue->today[queue->today_at];
        left = before(first, &queue->pool[late->value]);
    }
    if (left) {
        *event = queue->today[queue->today_at++];
    } else {
        struct kith_heap_entry entry;
        const bool found = kith_heap_pop(&queue->heap, &entry);
        KITH_ASSERT(found);
        *event = queue->pool[entry.value];
        release(queue, entry.value);
    }
    queue->pops++;
    queue->instants += event->time_ns != queue->last_ns;
    queue->last_ns = event->time_ns;
    return true;
}
