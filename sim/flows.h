/* Flows in time: bytes that leave at max-min fair rates (max_min.h).
 *
 *   left(t)   bytes that have not left; falls at rate x, which is constant
 *             between two changes of the flows affected
 *   end       t + ceil(left(t) / x), to a thousandth of a nanosecond
 *
 * The caller's time is an argument and never runs backwards; a change counts
 * from sim_flows_share() on, which the caller asks for once all flows of an
 * instant have come and gone.
 *
 * Cost    O(log n) for each flow whose rate changes; nothing for the others.
 * Order   flows that end at once are taken in the order in which they began.
 * Test    unit/test_sim_flows.c, tests/long/accept_flows.sh */
#ifndef KITH_SIM_FLOWS_H
#define KITH_SIM_FLOWS_H

#include "kith/types.h"
#include "sim/max_min.h"

struct sim_flow {
    double left; /* bytes, at at_ns */
    kith_ns at_ns, end_ns;
    uint64_t sequence; /* of its beginning */
    uint32_t place;    /* 1 + index in the heap; 0: not there */
};

struct sim_flows_in_time {
    struct sim_rates rates;
    struct sim_flow *flows; /* (capacity), by their owner's numbers */
    uint32_t *heap;         /* (capacity) flows, by end, then sequence */
    uint32_t capacity, count;
    uint64_t begun;
};

/* Links without a capacity: sim_rates_capacity(&flows->rates, ...). */
KITH_MUST_CHECK enum kith_err sim_flows_open(struct sim_flows_in_time *flows,
                                             uint32_t link_count);
void sim_flows_close(struct sim_flows_in_time *flows);
/* bytes > 0 begin to leave over the links of this path. */
KITH_MUST_CHECK enum kith_err sim_flows_begin(struct sim_flows_in_time *flows,
                                              uint32_t flow,
                                              const uint32_t *path,
                                              unsigned links, uint64_t bytes,
                                              kith_ns now_ns);
/* The flow is over, whatever has left. Returns the bytes that have not. */
double sim_flows_end(struct sim_flows_in_time *flows, uint32_t flow,
                     kith_ns now_ns);
/* Rates and ends of all flows are right from now on. */
KITH_MUST_CHECK enum kith_err sim_flows_share(struct sim_flows_in_time *flows,
                                              kith_ns now_ns);
/* When the next flow will end, and which; KITH_NEVER: none does in the time
 * that there is. */
static inline kith_ns sim_flows_next(const struct sim_flows_in_time *flows,
                                     uint32_t *flow)
{
    *flow = flows->count > 0 ? flows->heap[0] : UINT32_MAX;
    return flows->count > 0 ? flows->flows[*flow].end_ns : KITH_NEVER;
}

#endif
