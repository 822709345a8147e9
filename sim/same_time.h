/* Events that are due at once, by peer: what is sent without latency is due
 * at once, and peers in lockstep send to everybody.
 *
 *   words   bit w: bits[w] is not 0
 *   bits    bit of each peer that has events
 *   chains  its events, by sequence
 *
 * Two looks for a bit find the next peer, however many events there are, and
 * what a peer is sent mostly comes in order: a push and a pop are O(1). */
#ifndef KITH_SIM_SAME_TIME_H
#define KITH_SIM_SAME_TIME_H

#include "sim/queue.h"

struct sim_same_time_event {
    struct sim_event event;
    uint32_t next; /* 1 + index: of the peer's chain, of the free ones */
};

struct sim_same_time {
    uint32_t used, free; /* of the places */
    uint64_t words;
    uint64_t bits[SIM_SAME_TIME_PEERS / 64];
    struct {
        uint32_t first, last; /* 1 + index */
    } chains[SIM_SAME_TIME_PEERS];
};

/* `places` has room for one more; event->peer < SIM_SAME_TIME_PEERS. */
void sim_same_time_push(struct sim_same_time *same_time,
                        struct sim_same_time_event *places,
                        const struct sim_event *event);
/* There is one. */
const struct sim_event *
sim_same_time_first(const struct sim_same_time *same_time,
                    const struct sim_same_time_event *places);
void sim_same_time_pop(struct sim_same_time *same_time,
                       struct sim_same_time_event *places);

#endif
