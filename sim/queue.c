/* The event queue; see queue.h for the two kinds and their order. */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "kith/assert.h"

#define BUCKETS_MIN 64u
#define BUCKETS_MAX (UINT64_C(1) << 26)
#define CAPACITY_MIN 64u
#define SHIFT_START 16u /* 65 us: a LAN's latency; tuned from then on */
#define SHIFT_MAX 62u
#define WINDOW_MIN 1024u

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
    /* The heap has room for every event; pages never used cost nothing. */
    struct kith_heap_entry *memory = malloc(queue->capacity * sizeof *memory);
    queue->pool = malloc(queue->capacity * sizeof *queue->pool);
    queue->buckets = calloc(buckets, sizeof *queue->buckets);
    if (!memory || !queue->pool || !queue->buckets) {
        free(memory);
        free(queue->pool);
        free(queue->buckets);
        return KITH_ENOMEM;
    }
    kith_heap_init(&queue->heap, memory, queue->capacity);
    queue->mask = buckets - 1;
    return KITH_OK;
}

void sim_queue_close(struct sim_queue *queue)
{
    free(queue->heap.entries);
    free(queue->pool);
    free(queue->buckets);
    *queue = (struct sim_queue){0};
}

static enum kith_err pool_grow(struct sim_queue *queue)
{
    if (queue->capacity >= UINT32_MAX / 2) {
        return KITH_ENOMEM;
    }
    const uint32_t capacity = 2 * queue->capacity;
    struct kith_heap_entry *entries =
        realloc(queue->heap.entries, capacity * sizeof *entries);
    if (!entries) {
        return KITH_ENOMEM;
    }
    queue->heap.entries = entries;
    struct sim_event *pool = realloc(queue->pool, capacity * sizeof *pool);
    if (!pool) {
        return KITH_ENOMEM;
    }
    queue->pool = pool;
    queue->heap.capacity = capacity;
    queue->capacity = capacity;
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

/* Lay the whole calendar out again with another width or bucket count. The
 * heap keeps what it holds: every event of it is due before any bucket's. */
static void calendar_rebuild(struct sim_queue *queue, unsigned shift,
                             uint64_t buckets)
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
    if (buckets != queue->mask + 1) {
        uint32_t *heads = calloc(buckets, sizeof *heads);
        if (heads) { /* without it the old count serves, only slower */
            free(queue->buckets);
            queue->buckets = heads;
            queue->mask = buckets - 1;
        }
    }
    memset(queue->buckets, 0, (queue->mask + 1) * sizeof *queue->buckets);
    /* Days are now told by the last instant of the day in hand. Whatever a
     * wider day adds to it joins the heap, so that the heap still holds
     * everything up to queue->day. */
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

static unsigned log2_floor(uint64_t value)
{
    unsigned bits = 0;
    while (value >>= 1) {
        bits++;
    }
    return bits;
}

/* After a window of pops: one event a day is the aim, measured, not guessed. */
static void calendar_tune(struct sim_queue *queue, kith_ns now_ns)
{
    const uint64_t gap = (uint64_t)(now_ns - queue->window_ns) / queue->pops;
    const unsigned ideal = log2_floor(gap + 1);
    uint64_t buckets = queue->mask + 1;
    while (queue->count > 2 * buckets && buckets < BUCKETS_MAX) {
        buckets *= 2;
    }
    while (queue->count < buckets / 16 && buckets > BUCKETS_MIN) {
        buckets /= 2;
    }
    const bool wasteful = queue->misses > 2 * queue->pops;
    if (buckets != queue->mask + 1 ||
        (ideal != queue->shift &&
         (wasteful || ideal + 1 < queue->shift || ideal > queue->shift + 1))) {
        calendar_rebuild(queue, ideal, buckets);
    }
    queue->pops = 0;
    queue->misses = 0;
    queue->window_ns = now_ns;
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

/* The earliest day that has an event; the heap is empty, some bucket is not. */
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

/* Move to the next day with events and put them into the heap; one event
 * alone is returned at once, 1 + index. */
static uint32_t calendar_advance(struct sim_queue *queue)
{
    uint64_t empty = 0;
    for (;;) {
        queue->day++;
        uint32_t *link = &queue->buckets[queue->day & queue->mask];
        uint32_t alone = 0;
        while (*link != 0) {
            const uint32_t index = *link - 1;
            struct sim_event *event = &queue->pool[index];
            if (day_of(queue, event->time_ns) > queue->day) {
                queue->misses++;
                link = &event->next;
                continue;
            }
            *link = event->next;
            if (alone == 0 && queue->heap.count == 0) {
                alone = index + 1;
                continue;
            }
            if (alone != 0) {
                heap_put(queue, alone - 1);
                alone = 0;
            }
            heap_put(queue, index);
        }
        if (alone != 0 || queue->heap.count > 0) {
            return alone;
        }
        queue->misses++;
        if (++empty > queue->mask) {
            queue->day = earliest_day(queue) - 1;
            empty = 0;
        }
    }
}

static void take(struct sim_queue *queue, uint32_t index,
                 struct sim_event *event)
{
    struct sim_event *slot = &queue->pool[index];
    *event = *slot;
    slot->next = queue->free;
    queue->free = index + 1;
    queue->count--;
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event)
{
    if (queue->count == 0) {
        return false;
    }
    uint32_t alone = 0;
    if (queue->heap.count == 0) {
        alone = calendar_advance(queue);
    }
    if (alone != 0) {
        take(queue, alone - 1, event);
    } else {
        struct kith_heap_entry entry;
        const bool found = kith_heap_pop(&queue->heap, &entry);
        KITH_ASSERT(found);
        take(queue, entry.value, event);
    }
    if (queue->kind == SIM_QUEUE_CALENDAR) {
        const uint64_t window =
            queue->mask + 1 > WINDOW_MIN ? queue->mask + 1 : WINDOW_MIN;
        if (++queue->pops >= window) {
            calendar_tune(queue, event->time_ns);
        }
    }
    return true;
}
