/* A day's events in order: parted by the leading bits of their times, or of
 * their peers where they have one time, each part likewise; what is left in one
 * is merged. */
#include "sim/event_sort.h"

#include <string.h>

#include "kith/assert.h"

/* Sorted by insertion up to this many, then merged. */
#define RUN 8u
/* Up to so many merging is quicker than parting. */
#define MERGED 32u
/* Ends of parts that stay in the first cache, as their places do nearly. */
#define PART_BITS_MAX 10u
#define PARTS_MAX (1u << PART_BITS_MAX)

/* Eight events are two or three cache lines: below that nothing beats moving
 * them one by one. */
static void insertion_sort(struct sim_event *events, size_t count)
{
    KITH_ASSERT(count <= RUN);
    for (size_t i = 1; i < count; i++) {
        const struct sim_event event = events[i];
        size_t at = i;
        for (; at > 0 && sim_event_before(&event, &events[at - 1]); at--)
            events[at] = events[at - 1];
        events[at] = event;
    }
}

/* Stable: of equal events the left one goes first, though equal ones do not
 * exist in a run. */
static void merge(const struct sim_event *from, struct sim_event *to,
                  size_t middle, size_t count)
{
    KITH_ASSERT(middle <= count);
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        const bool takes_left =
            left < middle &&
            (right == count || sim_event_before(&from[left], &from[right]));
        to[i] = takes_left ? from[left++] : from[right++];
    }
}

/* Peers in lockstep push their events in order: whole days are sorted already,
 * and one look tells. */
static bool runs_follow(const struct sim_event *events, size_t run,
                        size_t count)
{
    KITH_ASSERT(run > 0);
    for (size_t at = run; at < count; at += run)
        if (sim_event_before(&events[at], &events[at - 1]))
            return false;
    return true;
}

/* Bottom-up merge sort: every pass reads and writes in order. It ends as soon
 * as the runs follow each other. The result stands in `events`. */
static void merge_sort(struct sim_event *events, struct sim_event *scratch,
                       size_t count)
{
    KITH_ASSERT(events != scratch);
    struct sim_event *from = events, *to = scratch;
    for (size_t at = 0; at < count; at += RUN) {
        const size_t left = count - at;
        insertion_sort(events + at, left < RUN ? left : RUN);
    }
    for (size_t run = RUN; !runs_follow(from, run, count); run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            const size_t left = count - at;
            merge(from + at, to + at, left < run ? left : run,
                  left < 2 * run ? left : 2 * run);
        }
        struct sim_event *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != events)
        memcpy(events, from, count * sizeof *events);
}

/* What parts events: so many bits of the first field that differs. */
struct key {
    bool is_time; /* else of the peer */
    unsigned shift, bits;
};

static inline size_t part_of(const struct key *key,
                             const struct sim_event *event)
{
    const uint64_t field =
        key->is_time ? (uint64_t)event->time_ns : event->peer;
    return field >> key->shift & ((UINT64_C(1) << key->bits) - 1);
}

/* About two events to a part, if they are spread evenly. No bits: all are of
 * one time and one peer. */
static struct key key_of(const struct sim_event *events, size_t count)
{
    KITH_ASSERT(count > 0);
    uint64_t times = 0;
    kith_id peers = 0;
    for (size_t i = 1; i < count; i++) {
        times |= (uint64_t)(events[i].time_ns ^ events[0].time_ns);
        peers |= events[i].peer ^ events[0].peer;
    }
    struct key key = {.is_time = times != 0};
    for (uint64_t left = times != 0 ? times : peers; left != 0; left >>= 1)
        key.shift++;
    while (key.bits < PART_BITS_MAX && key.shift > 0 &&
           count >> (key.bits + 1) > 1) {
        key.bits++;
        key.shift--;
    }
    return key;
}

/* Part by part into `to`; those of one part keep their order. Part i ends at
 * ends[i]. */
static void spread(const struct sim_event *from, struct sim_event *to,
                   size_t count, const struct key *key, uint32_t *ends)
{
    const size_t parts = (size_t)1 << key->bits;
    KITH_ASSERT(parts <= PARTS_MAX && count < UINT32_MAX);
    memset(ends, 0, parts * sizeof *ends);
    for (size_t i = 0; i < count; i++)
        ends[part_of(key, &from[i])]++;
    uint32_t start = 0;
    for (size_t part = 0; part < parts; part++) {
        const uint32_t size = ends[part];
        ends[part] = start;
        start += size;
    }
    for (size_t i = 0; i < count; i++) /* starts become ends */
        to[ends[part_of(key, &from[i])]++] = from[i];
}

/* One that is in the cache by now, or nearly. The result stands in `events`. */
static void sort_part(struct sim_event *events, struct sim_event *scratch,
                      size_t count)
{
    uint32_t ends[PARTS_MAX];
    KITH_ASSERT(events != scratch);
    if (count <= MERGED || runs_follow(events, 1, count)) {
        merge_sort(events, scratch, count);
        return;
    }
    const struct key key = key_of(events, count);
    spread(events, scratch, count, &key, ends);
    uint32_t start = 0;
    for (size_t part = 0; part >> key.bits == 0; start = ends[part++])
        merge_sort(scratch + start, events + start, ends[part] - start);
    memcpy(events, scratch, count * sizeof *events);
}

struct sim_event *sim_sort(struct sim_event *events, struct sim_event *scratch,
                           size_t count)
{
    uint32_t ends[PARTS_MAX];
    KITH_ASSERT(count < UINT32_MAX);
    if (runs_follow(events, 1, count))
        return events;
    if (count <= MERGED) {
        merge_sort(events, scratch, count);
        return events;
    }
    const struct key key = key_of(events, count);
    spread(events, scratch, count, &key, ends);
    uint32_t start = 0;
    for (size_t part = 0; part >> key.bits == 0; start = ends[part++])
        sort_part(scratch + start, events + start, ends[part] - start);
    return scratch;
}
