/* The network of the experiment file, applied in user space to sealed bytes.
 *
 *   leaves   = max(now, line free) + bits / rate      (one line per peer out)
 *   released = max(leaves + latency + jitter [+ retransmissions], the last)
 *
 * Pure: time is an argument, the queue is socket.c's. A stalled flow (a
 * partition) releases nothing until it is healed. Where nothing is shaped
 * kith_shaper_passes() is true and no other function is called.
 * Test: unit/test_shaper.c. */
#ifndef KITH_PEER_SHAPER_H
#define KITH_PEER_SHAPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/rng.h"
#include "kith/types.h"

struct kith_shape {
    kith_ns latency_ns, jitter_ns; /* one way; jitter: exponential mean */
    uint64_t rate_bits;            /* per peer and direction; 0: no limit */
    double loss;                   /* share of records sent twice */
};

/* One per peer: its line out and its line in. */
struct kith_shaper {
    struct kith_shape shape;
    bool shaped;
    kith_ns out_free_ns, in_free_ns;
};

/* One per connection and direction. */
struct kith_shaper_flow {
    struct kith_rng rng;
    kith_ns last_ns; /* nothing overtakes */
    bool stalled;
};

void kith_shaper_init(struct kith_shaper *shaper,
                      const struct kith_shape *shape);
void kith_shaper_flow_init(struct kith_shaper_flow *flow, uint64_t seed,
                           kith_id from, kith_id to);

static inline bool kith_shaper_passes(const struct kith_shaper *shaper,
                                      const struct kith_shaper_flow *flow)
{
    return !shaper->shaped && !flow->stalled;
}

/* The instant at which `bytes` handed over now reach the socket. */
kith_ns kith_shaper_release(struct kith_shaper *shaper,
                            struct kith_shaper_flow *flow, kith_ns now_ns,
                            size_t bytes);
/* The line in: the instant until which reading rests after `bytes`. */
kith_ns kith_shaper_arrive(struct kith_shaper *shaper, kith_ns now_ns,
                           size_t bytes);

#endif
