/* What a link does to what is sent over it, for both worlds: the experiment's
 * network, and what the faults in force make of it.
 *
 *   terms of i -> j  =  the network's, as the acts of faults between i and j
 *                       have left them (kith_fault.act)
 *
 * The simulator (sim/links.c) and the lab's shaper (src/peer/shaper.c) keep one
 * record for each direction and read nothing else: a new effect on links is a
 * fault of its own, and, where no field says yet what it does, a field here and
 * the law that reads it. */
#ifndef KITH_LINK_LAW_H
#define KITH_LINK_LAW_H

#include <stdbool.h>

#include "kith/types.h"

struct kith_link_terms {
    kith_ns latency_ns, jitter_ns; /* one way; jitter: exponential mean */
    uint64_t rate_bits; /* the peer's line, each direction; 0: no limit */
    double loss;        /* share of records that need a retransmission */
    bool cut;           /* stalls, in order, until it is no longer so */
};

/* Is a message more than latency late, by chance? */
static inline bool kith_link_varies(const struct kith_link_terms *terms)
{
    return terms->jitter_ns > 0 || terms->loss > 0;
}

/* Does what is sent pass at once, unchanged? */
static inline bool kith_link_is_plain(const struct kith_link_terms *terms)
{
    return terms->latency_ns == 0 && terms->rate_bits == 0 && !terms->cut &&
           !kith_link_varies(terms);
}

#endif
