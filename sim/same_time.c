/* Events of the instant in hand; see same_time.h. */
#include "sim/same_time.h"

#include "kith/assert.h"

_Static_assert(SIM_INSTANT_PEERS == 64 * 64, "a word of words");

static uint32_t place_take(struct sim_instant *instant, struct sim_late *places)
{
    const uint32_t place = instant->free;
    if (place == 0) {
        return ++instant->used;
    }
    instant->free = places[place - 1].next;
    return place;
}

/* Somebody has sent it more with a lower rank than the last one. */
static void insert(struct sim_late *places, uint32_t *at, uint32_t place)
{
    const uint64_t sequence = places[place - 1].event.sequence;
    while (*at != 0 && places[*at - 1].event.sequence < sequence) {
        at = &places[*at - 1].next;
    }
    places[place - 1].next = *at;
    *at = place;
}

void sim_instant_push(struct sim_instant *instant, struct sim_late *places,
                      const struct sim_event *event)
{
    const kith_id peer = event->peer;
    const uint32_t place = place_take(instant, places);
    uint32_t *const first = &instant->chains[peer].first;
    uint32_t *const last = &instant->chains[peer].last;
    places[place - 1].event = *event;
    if (*first == 0) {
        places[place - 1].next = 0;
        *first = *last = place;
        instant->bits[peer / 64] |= UINT64_C(1) << peer % 64;
        instant->words |= UINT64_C(1) << peer / 64;
    } else if (places[*last - 1].event.sequence < event->sequence) {
        places[place - 1].next = 0;
        places[*last - 1].next = place;
        *last = place;
    } else {
        insert(places, first, place);
    }
}

static kith_id first_peer(const struct sim_instant *instant)
{
    KITH_ASSERT(instant->words != 0);
    const unsigned word = (unsigned)__builtin_ctzll(instant->words);
    return 64 * word + (unsigned)__builtin_ctzll(instant->bits[word]);
}

const struct sim_event *sim_instant_first(const struct sim_instant *instant,
                                          const struct sim_late *places)
{
    return &places[instant->chains[first_peer(instant)].first - 1].event;
}

void sim_instant_pop(struct sim_instant *instant, struct sim_late *places)
{
    const kith_id peer = first_peer(instant);
    const uint32_t place = instant->chains[peer].first;
    instant->chains[peer].first = places[place - 1].next;
    places[place - 1].next = instant->free;
    instant->free = place;
    if (instant->chains[peer].first == 0) {
        instant->bits[peer / 64] &= ~(UINT64_C(1) << peer % 64);
    }
    if (instant->bits[peer / 64] == 0) {
        instant->words &= ~(UINT64_C(1) << peer / 64);
    }
}
