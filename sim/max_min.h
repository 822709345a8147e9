/* Max-min fair rates of flows over links.
 *
 *   x_f      rate of flow f, which crosses the links of its path
 *   C_l      capacity of link l; no link carries more: sum of x_f over l <= C_l
 *   fair     each flow has a bottleneck: a full link on its path on which no
 *            other flow is faster. There is one such x, found by filling: all
 *            rates grow at the same speed, and those that cross a link which
 *            becomes full stop there
 *
 * After flows have come or gone, those alone are computed anew whose rates may
 * change. Filling goes through rates in ascending order, so a flow keeps its
 * rate until filling comes to a link on its path that
 *
 *   gets full below it   the flow is faster there than who stops: it gives
 *   was its bottleneck   and is not full any more at its rate: it takes more
 *
 * and is open from then on: it stops at a link as the others do.
 *
 * Source  Bertsekas, Gallager, "Data Networks", 1992, 6.5.2; who is affected:
 *         Ros-Giralt et al., "On the bottleneck structure of congestion-
 *         controlled networks", SIGMETRICS 2020.
 * Cost    O(1) for a flow alone on its links; else the flows on the links that
 *         are touched, and O(log n) for each that is affected.
 * Order   a function of the order of calls: no pointer, no hash.
 * Test    unit/test_max_min.c: another algorithm's rates, 1e-9. */
#ifndef KITH_SIM_MAX_MIN_H
#define KITH_SIM_MAX_MIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"

/* An uplink, a zone's line out and another's in, a downlink; or in place of the
 * zones' two one between them. */
#define SIM_PATH_LINKS 4u
/* Relative; ties that rounding has broken are ties. */
#define SIM_RATE_TOLERANCE 1e-12

struct sim_rate_link {
    double capacity; /* > 0, bytes a nanosecond */
    uint32_t first;  /* chain of its flows: 1 + place */
    bool changed;    /* flows have come or gone since the last solution */
    /* Of the solution in which it was touched last: */
    uint32_t touched;
    double rest;    /* what flows with a rate leave */
    uint32_t open;  /* flows without */
    double level;   /* rate of those that have their bottleneck here; 0: none */
    double key;     /* the rate at which it is looked at */
    uint32_t place; /* in the heap: 1 + index; 0: not there */
};

struct sim_rate_flow {
    double rate;     /* 0: until the next solution; -1: open, within one */
    double old_rate; /* before the solution that last affected it */
    uint32_t link[SIM_PATH_LINKS];
    uint32_t next[SIM_PATH_LINKS], previous[SIM_PATH_LINKS]; /* 1 + place */
    uint32_t bottleneck;
    uint32_t affected;
    uint8_t links; /* on its path; 0: the flow is none */
};

/* Grows by doubling: a list that is worked off. */
struct sim_rate_list {
    uint32_t *items;
    uint32_t count, capacity;
};

struct sim_rates {
    struct sim_rate_link *links; /* (link_count) */
    struct sim_rate_flow *flows; /* (flow_capacity), by their owner's numbers */
    uint32_t *heap;              /* (link_count) links, by key, then number */
    uint32_t link_count, flow_capacity, heap_count;
    uint32_t solution;
    bool out_of_memory;
    struct sim_rate_list seeds, flows_affected;
};

KITH_MUST_CHECK enum kith_err sim_rates_open(struct sim_rates *rates,
                                             uint32_t link_count);
/* Accepts what sim_rates_open() left of it, and zeros. */
void sim_rates_close(struct sim_rates *rates);
/* Before flows cross it. */
void sim_rates_capacity(struct sim_rates *rates, uint32_t link,
                        double capacity);
/* Flow `flow`, which is none now, crosses 1 to SIM_PATH_LINKS links, each once.
 * KITH_ENOMEM: nothing has changed. */
KITH_MUST_CHECK enum kith_err sim_rates_add(struct sim_rates *rates,
                                            uint32_t flow, const uint32_t *path,
                                            unsigned links);
void sim_rates_remove(struct sim_rates *rates, uint32_t flow);
/* flows_affected has those whose rates were computed anew, each once.
 * KITH_ENOMEM: a list cannot grow, no rate is of use. */
KITH_MUST_CHECK enum kith_err sim_rates_solve(struct sim_rates *rates);

#endif
