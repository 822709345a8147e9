/* A day's events in order: parted by their leading bits, each part merged. */
#include "sim/event_sort.h"

#include <string.h>

#include "kith/assert.h"

/* Sorted by insertion up to this many, then merged. */
#define RUN 8u
#define PART_BITS_MAX 10u

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

/* A day is sorted in 2^bits parts, about two events each if they are spread
 * evenly; no part is shorter than 1 ns. */
static unsigned part_bits(size_t count, unsigned shift)
{
    KITH_ASSERT(shift < 64);
    unsigned bits = 0;
    while (bits < PART_BITS_MAX && bits < shift && count >> (bits + 1) > 1)
        bits++;
    return bits;
}

struct sim_event *sim_sort(struct sim_event *events, struct sim_event *scratch,
                           size_t count, unsigned shift)
{
    KITH_ASSERT(shift < 64 && count < UINT32_MAX);
    if (runs_follow(events, 1, count))
        return events;
    const unsigned bits = part_bits(count, shift);
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint32_t ends[1u << PART_BITS_MAX];
    shift -= bits;
    memset(ends, 0, (mask + 1) * sizeof *ends);
    for (size_t i = 0; i < count; i++)
        ends[(uint64_t)events[i].time_ns >> shift & mask]++;
    uint32_t start = 0;
    for (size_t part = 0; part <= mask; part++) {
        const uint32_t size = ends[part];
        ends[part] = start;
        start += size;
    }
    for (size_t i = 0; i < count; i++) { /* starts become ends */
        const uint64_t part = (uint64_t)events[i].time_ns >> shift & mask;
        scratch[ends[part]++] = events[i];
    }
    start = 0;
    for (size_t part = 0; part <= mask; start = ends[part++])
        merge_sort(scratch + start, events, ends[part] - start);
    return scratch;
}
