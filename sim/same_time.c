/* Events that are due at once; see same_time.h. */
#include "sim/same_time.h"

#include "kith/assert.h"

_Static_assert(SIM_SAME_TIME_PEERS == 64 * 64, "a word of words");

/* Places are shared by all peers and used again: their number is bounded by the
 * events that are pending. */
static uint32_t place_take(struct sim_same_time *same_time,
                           struct sim_same_time_event *places)
{
    KITH_ASSERT(same_time->free <= same_time->used);
    const uint32_t place = same_time->free;
    if (place == 0)
        return ++same_time->used;
    same_time->free = places[place - 1].next;
    return place;
}

/* Somebody has sent it more with a lower rank than the last one. */
static void insert(struct sim_same_time_event *places, uint32_t *at,
                   uint32_t place)
{
    KITH_ASSERT(place != *at);
    const uint64_t sequence = places[place - 1].event.sequence;
    while (*at != 0 && places[*at - 1].event.sequence < sequence)
        at = &places[*at - 1].next;
    places[place - 1].next = *at;
    *at = place;
}

/* Mostly at the chain's end: what a peer is sent at one time comes in the
 * senders' order. */
void sim_same_time_push(struct sim_same_time *same_time,
                        struct sim_same_time_event *places,
                        const struct sim_event *event)
{
    KITH_ASSERT(event->peer < SIM_SAME_TIME_PEERS);
    const kith_id peer = event->peer;
    const uint32_t place = place_take(same_time, places);
    uint32_t *const first = &same_time->chains[peer].first;
    uint32_t *const last = &same_time->chains[peer].last;
    places[place - 1].event = *event;
    if (*first == 0) {
        places[place - 1].next = 0;
        *first = *last = place;
        same_time->bits[peer / 64] |= UINT64_C(1) << peer % 64;
        same_time->words |= UINT64_C(1) << peer / 64;
    } else if (places[*last - 1].event.sequence < event->sequence) {
        places[place - 1].next = 0;
        places[*last - 1].next = place;
        *last = place;
    } else {
        insert(places, first, place);
    }
}

/* Two instructions find the lowest bit of a word: the order of equal times is
 * by rank. */
static kith_id first_peer(const struct sim_same_time *same_time)
{
    KITH_ASSERT(same_time->words != 0);
    const unsigned word = (unsigned)__builtin_ctzll(same_time->words);
    return 64 * word + (unsigned)__builtin_ctzll(same_time->bits[word]);
}

const struct sim_event *
sim_same_time_first(const struct sim_same_time *same_time,
                    const struct sim_same_time_event *places)
{
    KITH_ASSERT(same_time->words != 0);
    return &places[same_time->chains[first_peer(same_time)].first - 1].event;
}

/* A peer without events leaves the words: first_peer() never finds an empty
 * chain. */
void sim_same_time_pop(struct sim_same_time *same_time,
                       struct sim_same_time_event *places)
{
    KITH_ASSERT(same_time->chains[first_peer(same_time)].first != 0);
    const kith_id peer = first_peer(same_time);
    const uint32_t place = same_time->chains[peer].first;
    same_time->chains[peer].first = places[place - 1].next;
    places[place - 1].next = same_time->free;
    same_time->free = place;
    if (same_time->chains[peer].first == 0)
        same_time->bits[peer / 64] &= ~(UINT64_C(1) << peer % 64);
    if (same_time->bits[peer / 64] == 0)
        same_time->words &= ~(UINT64_C(1) << peer / 64);
}
