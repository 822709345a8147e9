/* The network of the experiment file, applied in user space to sealed bytes.
 *
 *   leaves   = max(now, line free) + bits / rate      (one line per peer out)
 *   released = max(leaves + latency + jitter [+ retransmissions], the last)
 *
 * Pure: time is an argument, the queue is socket.c's. A stalled flow (a
 * partition) releases nothing until it is healed. Where the terms of a flow are
 * plain (kith/link_law.h) none of these functions is called.
 * Test: unit/test_shaper.c. */
#ifndef KITH_PEER_SHAPER_H
#define KITH_PEER_SHAPER_H

#include <stddef.h>
#include <stdint.h>

#include "kith/link_law.h"
#include "kith/rng.h"
#include "kith/types.h"

/* One per peer: its line out and its line in. */
struct kith_shaper {
    struct kith_link_terms usual;
    kith_ns out_free_ns, in_free_ns;
};

/* One per member: what we send to it, over whatever connection. */
struct kith_shaper_flow {
    struct kith_link_terms terms;
    struct kith_rng rng;
    kith_ns last_ns; /* nothing overtakes */
};

void kith_shaper_init(struct kith_shaper *shaper,
                      const struct kith_link_terms *usual);
void kith_shaper_flow_init(struct kith_shaper_flow *flow,
                           const struct kith_link_terms *usual, uint64_t seed,
                           kith_id from, kith_id to);

/* The instant at which `bytes` handed over now reach the socket. */
kith_ns kith_shaper_release(struct kith_shaper *shaper,
                            struct kith_shaper_flow *flow, kith_ns now_ns,
                            size_t bytes);
/* The line in: the instant until which reading rests after `bytes`. */
kith_ns kith_shaper_arrive(struct kith_shaper *shaper, kith_ns now_ns,
                           size_t bytes);

#endif
