/* The event queue; see queue.h for the two kinds and their order. */
#include "sim/queue.h"

#include <string.h>

#include "kith/assert.h"
#include "sim/same_time.h"
#include "sim/huge_pages.h"
#include "sim/event_sort.h"

#define CAPACITY_MIN 64u
/* What each of the four tables has for an event. */
#define EVENT_BYTES                                                            \
    (sizeof(struct kith_heap_entry) + sizeof(struct sim_same_time_event) +     \
     2 * sizeof(struct sim_event))
#define BUCKETS_MIN 64u
#define BUCKETS_MAX (UINT64_C(1) << 26)
#define SHIFT_START 16u /* 65 us: a LAN's latency; tuned from then on */
#define SHIFT_MAX 40u   /* 18 min: nothing is that rare */
#define WINDOW_MIN 4096u
#define TURNS_MAX 8u /* windows are 256 times as long then */
/* Days are widened when they hold fewer events, narrowed when they hold four
 * times as many different times: enough to prefetch, and so few days that
 * the chunks being filled stay in the cache. */
#define DAY_EVENTS 128u
/* So many days in advance first chunks are fetched. */
#define PREFETCH_DAYS 2u

/* Heap and today have room for every event, and no chunk that is in use is
 * empty: only a push can run out of memory, never a pop or a change of the
 * calendar. Either all is there or `queue` stays as it is. */
static enum kith_err take_memory(struct sim_queue *queue, size_t capacity)
{
    KITH_ASSERT(capacity >= CAPACITY_MIN);
    struct kith_heap_entry *entries = sim_pages(capacity * EVENT_BYTES);
    struct sim_chunk *chunks = sim_pages(capacity * sizeof *chunks);
    if (!entries || !chunks) {
        sim_pages_free(entries, capacity * EVENT_BYTES);
        sim_pages_free(chunks, capacity * sizeof *chunks);
        return KITH_ENOMEM;
    }
    queue->memory = entries;
    queue->chunks = chunks;
    queue->capacity = capacity;
    kith_heap_init(&queue->heap, entries, capacity);
    queue->places = (void *)(entries + capacity);
    queue->today = (void *)(queue->places + capacity);
    queue->scratch = queue->today + capacity;
    return KITH_OK;
}

static void give_memory(struct sim_queue *queue)
{
    KITH_ASSERT(queue->capacity == 0 || queue->memory != NULL);
    sim_pages_free(queue->memory, queue->capacity * EVENT_BYTES);
    sim_pages_free(queue->chunks, queue->capacity * sizeof *queue->chunks);
}

/* A heap's queue is a calendar whose days all are over: one structure, so that
 * the two differ in nothing but where events wait. */
enum kith_err sim_queue_open(struct sim_queue *queue, enum sim_queue_kind kind,
                             size_t capacity)
{
    KITH_ASSERT(capacity < UINT32_MAX / 4);
    *queue = (struct sim_queue){.day = kind == SIM_QUEUE_HEAP ? UINT64_MAX : 0,
                                .shift = SHIFT_START,
                                .widened = true,
                                .now_ns = -1};
    capacity = capacity < CAPACITY_MIN ? CAPACITY_MIN : capacity;
    uint64_t buckets = BUCKETS_MIN;
    while (buckets < capacity / 4 && buckets < BUCKETS_MAX)
        buckets *= 2;
    queue->mask = buckets - 1;
    queue->buckets = sim_pages(buckets * sizeof *queue->buckets);
    const enum kith_err err = take_memory(queue, capacity);
    const bool calendar = kind == SIM_QUEUE_CALENDAR;
    if (calendar)
        queue->same_time = sim_pages(sizeof *queue->same_time);
    if (err != KITH_OK || !queue->buckets || (calendar && !queue->same_time)) {
        sim_queue_close(queue);
        return KITH_ENOMEM;
    }
    return KITH_OK;
}

void sim_queue_close(struct sim_queue *queue)
{
    KITH_ASSERT(queue->mask == 0 || queue->count <= queue->capacity);
    give_memory(queue);
    sim_pages_free(queue->buckets, (queue->mask + 1) * sizeof *queue->buckets);
    sim_pages_free(queue->same_time, sizeof *queue->same_time);
    *queue = (struct sim_queue){0};
}

/* Twice the room for events, or everything stays as it is. */
static enum kith_err events_grow(struct sim_queue *queue)
{
    KITH_ASSERT(queue->count == queue->capacity);
    struct sim_queue larger = *queue;
    if (queue->capacity > UINT32_MAX / 4 ||
        take_memory(&larger, 2 * queue->capacity) != KITH_OK)
        return KITH_ENOMEM;
    larger.heap.count = queue->heap.count;
    memcpy(larger.heap.entries, queue->heap.entries,
           queue->heap.count * sizeof *queue->heap.entries);
    if (queue->same_time) {
        memcpy(larger.places, queue->places,
               queue->same_time->used * sizeof *queue->places);
    }
    memcpy(larger.today, queue->today,
           queue->today_count * sizeof *queue->today);
    memcpy(larger.chunks, queue->chunks,
           queue->chunk_used * sizeof *queue->chunks);
    give_memory(queue);
    *queue = larger;
    return KITH_OK;
}

/* Room was made when the event was pushed: the heap itself never grows. */
static void heap_put(struct sim_queue *queue, const struct sim_event *event)
{
    KITH_ASSERT(queue->heap.count < queue->capacity);
    const bool room = kith_heap_push(
        &queue->heap, (struct kith_heap_entry){
                          .time_ns = event->time_ns,
                          .peer = event->peer,
                          .value = (uint32_t)event->value << 3 | event->kind,
                          .sequence = event->sequence});
    KITH_ASSERT(room);
}

/* The heap's entries are those of base/, which know no kinds: a kind rides in
 * the value's low bits. */
static struct sim_event event_of(const struct kith_heap_entry *entry)
{
    KITH_ASSERT(entry->time_ns >= 0);
    const uint32_t value = entry->value >> 3;
    return (struct sim_event){.time_ns = entry->time_ns,
                              .sequence = entry->sequence,
                              .peer = entry->peer,
                              .kind = entry->value & 7u,
                              .value = value & SIM_VALUE_MAX};
}

/* Chunks are used again in the order in which they became free: the last one is
 * still in the cache. */
static uint32_t chunk_take(struct sim_queue *queue)
{
    KITH_DEBUG_ASSERT(queue->chunk_free <= queue->chunk_used);
    uint32_t chunk = queue->chunk_free;
    if (chunk != 0) {
        queue->chunk_free = queue->chunks[chunk - 1].next;
        if (queue->chunk_free != 0) /* the next one to be taken */
            sim_fetch(&queue->chunks[queue->chunk_free - 1]);
        return chunk;
    }
    KITH_ASSERT(queue->chunk_used < queue->capacity);
    return ++queue->chunk_used;
}

/* At the newest chunk's end: a bucket is read whole, so its order does not
 * matter until its day has come. */
static void bucket_put(struct sim_queue *queue, const struct sim_event *event,
                       uint64_t day)
{
    KITH_DEBUG_ASSERT(day == (uint64_t)event->time_ns >> queue->shift);
    uint32_t *head = &queue->buckets[day & queue->mask];
    if (*head == 0 || queue->chunks[*head - 1].count == SIM_CHUNK_EVENTS) {
        const uint32_t chunk = chunk_take(queue);
        queue->chunks[chunk - 1].next = *head;
        queue->chunks[chunk - 1].count = 0;
        *head = chunk;
    }
    struct sim_chunk *chunk = &queue->chunks[*head - 1];
    chunk->events[chunk->count++] = *event;
}

static inline uint64_t day_of(const struct sim_queue *queue, kith_ns time_ns)
{
    KITH_DEBUG_ASSERT(time_ns >= 0);
    return (uint64_t)time_ns >> queue->shift;
}

void sim_queue_place(struct sim_queue *queue)
{
    KITH_DEBUG_ASSERT(queue->staged_put != queue->staged_taken);
    const struct sim_event *event =
        &queue->staged[queue->staged_taken++ % SIM_STAGED];
    bucket_put(queue, event, day_of(queue, event->time_ns));
}

/* Three places: due at once, on a day that is already in order, on a day to
 * come. */
enum kith_err sim_queue_push_slow(struct sim_queue *queue,
                                  const struct sim_event *event)
{
    KITH_DEBUG_ASSERT(event->time_ns >= 0);
    if (queue->count == queue->capacity) {
        const enum kith_err err = events_grow(queue);
        if (err != KITH_OK)
            return err;
    }
    const uint64_t day = day_of(queue, event->time_ns);
    if (event->time_ns == queue->now_ns && queue->same_time &&
        event->peer < SIM_SAME_TIME_PEERS) {
        sim_same_time_push(queue->same_time, queue->places, event);
        queue->due++;
    } else if (day <= queue->day) { /* always, where all is the heap's */
        heap_put(queue, event);
    } else {
        bucket_put(queue, event, day);
    }
    queue->count++;
    return KITH_OK;
}

/* The earliest day that has an event in some bucket. */
static uint64_t earliest_day(const struct sim_queue *queue)
{
    KITH_ASSERT(queue->count > 0);
    uint64_t earliest = UINT64_MAX;
    for (uint64_t b = 0; b <= queue->mask; b++) {
        for (uint32_t i = queue->buckets[b]; i != 0;) {
            const struct sim_chunk *chunk = &queue->chunks[i - 1];
            for (uint32_t k = 0; k < chunk->count; k++) {
                const uint64_t day = day_of(queue, chunk->events[k].time_ns);
                earliest = day < earliest ? day : earliest;
            }
            i = chunk->next;
        }
    }
    return earliest;
}

/* Oldest chunk first: events are mostly pushed in order, so that sorting finds
 * long runs. */
static uint32_t chain_reverse(struct sim_queue *queue, uint32_t chunk)
{
    KITH_ASSERT(chunk <= queue->chunk_used);
    uint32_t reversed = 0;
    while (chunk != 0) {
        const uint32_t next = queue->chunks[chunk - 1].next;
        queue->chunks[chunk - 1].next = reversed;
        reversed = chunk;
        chunk = next;
    }
    return reversed;
}

/* This day's events of a chunk go to `today`, those of later laps stay. */
static void chunk_split(struct sim_queue *queue, struct sim_chunk *chunk)
{
    KITH_ASSERT(chunk->count <= SIM_CHUNK_EVENTS);
    KITH_ASSERT(queue->today_count + chunk->count <= queue->capacity);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < chunk->count; k++) {
        if (day_of(queue, chunk->events[k].time_ns) > queue->day) {
            chunk->events[kept++] = chunk->events[k];
            queue->wasted++;
        } else {
            queue->today[queue->today_count++] = chunk->events[k];
        }
    }
    chunk->count = kept;
}

/* The bucket of a day holds events of later laps of the calendar, too: they
 * stay. */
static void collect(struct sim_queue *queue, uint32_t *head)
{
    KITH_DEBUG_ASSERT(queue->today_at == 0);
    uint32_t chunk = chain_reverse(queue, *head);
    *head = 0;
    while (chunk != 0) {
        struct sim_chunk *entry = &queue->chunks[chunk - 1];
        const uint32_t next = entry->next;
        chunk_split(queue, entry);
        uint32_t *list = entry->count > 0 ? head : &queue->chunk_free;
        entry->next = *list;
        *list = chunk;
        chunk = next;
    }
}

static void sort_today(struct sim_queue *queue)
{
    KITH_ASSERT(queue->today_at == 0);
    struct sim_event *const sorted =
        sim_sort(queue->today, queue->scratch, queue->today_count);
    if (sorted == queue->scratch) {
        queue->scratch = queue->today;
        queue->today = sorted;
    }
}

/* Go on to the next day that has events, and sort them. */
static void advance(struct sim_queue *queue)
{
    KITH_ASSERT(queue->today_at == queue->today_count);
    KITH_ASSERT(queue->count > queue->heap.count);
    KITH_ASSERT(queue->staged_put == queue->staged_taken);
    queue->today_at = queue->today_count = 0;
    for (uint64_t empty = 0; queue->today_count == 0; empty++) {
        if (empty > queue->mask) {
            queue->day = earliest_day(queue) - 1;
            empty = 0;
        }
        queue->day++;
        uint32_t *head = &queue->buckets[queue->day & queue->mask];
        if (*head != 0) /* most days are empty where events have equal times */
            collect(queue, head);
        queue->wasted++;
    }
    queue->wasted--;
    queue->days++;
    queue->prefetched = queue->buckets[(queue->day + 1) & queue->mask];
    sim_chunk_fetch(queue,
                    queue->buckets[(queue->day + PREFETCH_DAYS) & queue->mask]);
    sort_today(queue);
    queue->pops += queue->today_count;
    queue->times++;
    for (size_t at = 1; at < queue->today_count; at++) {
        queue->times +=
            queue->today[at].time_ns != queue->today[at - 1].time_ns;
    }
}

/* Lay the calendar out again. Nothing of today is left: `day` is over. */
static void rebuild(struct sim_queue *queue, unsigned shift, uint64_t buckets)
{
    KITH_ASSERT((buckets & (buckets - 1)) == 0 && shift <= SHIFT_MAX + 3);
    KITH_ASSERT(queue->staged_put == queue->staged_taken);
    KITH_ASSERT(queue->today_at == queue->today_count);
    /* Days are now told by the last nanosecond of the current day. Whatever a
     * wider day adds to it joins the heap, so that everything up to
     * queue->day stands there. */
    const uint64_t end = ((queue->day + 1) << queue->shift) - 1;
    queue->today_at = queue->today_count = 0;
    queue->day = UINT64_MAX; /* all events of all buckets are today's */
    for (uint64_t b = 0; b <= queue->mask; b++)
        collect(queue, &queue->buckets[b]);
    uint32_t *heads =
        buckets == queue->mask + 1 ? NULL : sim_pages(buckets * sizeof *heads);
    if (heads) { /* without it the old count serves, only slower */
        sim_pages_free(queue->buckets, (queue->mask + 1) * sizeof *heads);
        queue->buckets = heads;
        queue->mask = buckets - 1;
    }
    queue->shift = shift;
    queue->day = end >> shift;
    for (size_t i = 0; i < queue->today_count; i++) {
        const struct sim_event *event = &queue->today[i];
        const uint64_t day = day_of(queue, event->time_ns);
        if (day <= queue->day)
            heap_put(queue, event);
        else
            bucket_put(queue, event, day);
    }
    queue->today_count = 0;
}

/* A calendar that is widened and narrowed by turns, as steps that peers take
 * together make of it, would be laid out again as often as it is used: each
 * time that it changes its mind it is looked at half as often. */
static void change_shift(struct sim_queue *queue, unsigned shift)
{
    const bool widens = shift > queue->shift;
    KITH_ASSERT(shift != queue->shift && queue->turns <= TURNS_MAX);
    queue->turns += widens != queue->widened && queue->turns < TURNS_MAX;
    queue->widened = widens;
}

/* After a window of pops. */
static void tune(struct sim_queue *queue)
{
    KITH_ASSERT(queue->days > 0 || queue->pops > 0);
    unsigned shift = queue->shift;
    const bool sparse =
        queue->wasted > queue->pops || queue->pops < DAY_EVENTS * queue->days;
    if (sparse && shift < SHIFT_MAX)
        shift += queue->wasted > 8 * queue->pops ? 3 : 1;
    else if (queue->times > 4 * DAY_EVENTS * queue->days && shift > 0)
        shift--;
    uint64_t buckets = queue->mask + 1;
    while (queue->count > 8 * buckets && buckets < BUCKETS_MAX)
        buckets *= 2;
    while (queue->count < buckets / 8 && buckets > BUCKETS_MIN)
        buckets /= 2;
    if (shift != queue->shift)
        change_shift(queue, shift);
    if (shift != queue->shift || buckets != queue->mask + 1)
        rebuild(queue, shift, buckets);
    queue->pops = queue->times = queue->days = queue->wasted = 0;
}

/* The calendar's next day, where nothing of this one is left. */
static void refill(struct sim_queue *queue)
{
    KITH_ASSERT(queue->today_at == queue->today_count);
    while (queue->staged_put != queue->staged_taken)
        sim_queue_place(queue);
    const uint64_t window =
        queue->mask + 1 > WINDOW_MIN ? queue->mask + 1 : WINDOW_MIN;
    if (queue->pops >= window << queue->turns)
        tune(queue); /* may put events into the heap */
    if (queue->heap.count == 0)
        advance(queue);
}

/* The first of what is left of today, of the heap and of what is due at once;
 * who is asked later gives way. */
enum source { NOWHERE, TODAY, HEAP, SAME_TIME };

/* Three sources and one order: equal times of one peer are told apart by their
 * sequence, wherever they wait. */
static void prefer(enum source *from, struct sim_event *first,
                   enum source source, const struct sim_event *event)
{
    KITH_ASSERT(source != NOWHERE);
    if (*from == NOWHERE || sim_event_before(event, first)) {
        *from = source;
        *first = *event;
    }
}

/* At most three comparisons: each source keeps its own first event at hand. */
static enum source first_of(const struct sim_queue *queue,
                            struct sim_event *first)
{
    KITH_ASSERT(queue->count > 0);
    enum source from = NOWHERE;
    if (queue->due > 0) {
        prefer(&from, first, SAME_TIME,
               sim_same_time_first(queue->same_time, queue->places));
    }
    if (queue->today_at < queue->today_count)
        prefer(&from, first, TODAY, &queue->today[queue->today_at]);
    if (queue->heap.count > 0) {
        const struct sim_event late = event_of(&queue->heap.entries[0]);
        prefer(&from, first, HEAP, &late);
    }
    return from;
}

/* Where the first event waits, once there is one of today. */
static enum source look(struct sim_queue *queue, struct sim_event *event)
{
    KITH_DEBUG_ASSERT(queue->today_at <= queue->today_count);
    if (queue->count == 0)
        return NOWHERE;
    if (queue->today_at == queue->today_count &&
        queue->heap.count + queue->due == 0)
        refill(queue);
    return first_of(queue, event);
}

/* A day may begin for it: events before that day that are pushed afterwards
 * join the heap, as late-comers do. */
bool sim_queue_first(struct sim_queue *queue, struct sim_event *event)
{
    KITH_ASSERT(queue->capacity > 0);
    return look(queue, event) != NOWHERE;
}

/* Time never goes back: whatever is pushed into the past of the calendar joins
 * the heap, which is looked at beside today. */
bool sim_queue_pop_slow(struct sim_queue *queue, struct sim_event *event)
{
    struct kith_heap_entry late;
    KITH_ASSERT(queue->count <= queue->capacity);
    switch (look(queue, event)) {
    case SAME_TIME:
        sim_same_time_pop(queue->same_time, queue->places);
        queue->due--;
        queue->pops++;
        break;
    case TODAY:
        queue->today_at++;
        break;
    case HEAP:
        (void)kith_heap_pop(&queue->heap, &late);
        queue->pops++;
        queue->times++;
        break;
    case NOWHERE:
        return false;
    }
    queue->count--;
    queue->now_ns = event->time_ns;
    return true;
}
