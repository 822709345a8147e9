/* Latency by place: one matrix of one-way times between regions, in place of
 * network.latency and network.jitter (docs/links.md).
 *
 *   region of peer i  =  i mod R
 *   terms of i -> j   =  those of region(i) -> region(j); within a region, of
 *                        the diagonal
 *   one way           =  half of a round trip
 *   two quantiles     p50 and p90 of one way give the law L + Exp(J):
 *                     J = (p90 - p50) / ln 5, L = p50 - J ln 2; where L would
 *                     be below 0, L = 0 and J = p50 / ln 2: the median stays
 *
 * Memory: R x R, and R names or places; never peers x peers. Test:
 * unit/test_latencies.c. */
#ifndef KITH_LATENCIES_H
#define KITH_LATENCIES_H

#include <stdint.h>

#include "kith/link_law.h"
#include "kith/types.h"

/* The longest round trip that a file may name. */
#define KITH_TRIP_MAX_NS (10 * KITH_S)

struct kith_latencies {
    uint32_t regions;      /* R; 0: none, all links are alike */
    kith_ns *latency_ns;   /* (R, R) one way, from the row's to the column's */
    kith_ns *jitter_ns;    /* (R, R); NULL: none */
    kith_ns latency_least; /* of all pairs */
    kith_ns latency_most, jitter_most;
    uint64_t hash; /* of all of it */
    /* For who draws them (kith/zone_map.h), and in no hash: NULL, but of a
     * matrix the names, and of coordinates where each host is, in ms. */
    const char **names; /* (regions): one block with their text */
    double *places;     /* (regions, 2) */
};

/* terms <- latency and jitter of from -> to; without regions they stay. */
void kith_latencies_apply(const struct kith_latencies *latencies, kith_id from,
                          kith_id to, struct kith_link_terms *terms);
/* `link` with the most latency and the most jitter that any pair has: a bound.
 */
struct kith_link_terms
kith_latencies_slowest(const struct kith_latencies *latencies,
                       const struct kith_link_terms *link);
/* Latency and jitter of a link between two of `peers` peers, in the mean, in
 * seconds. Cost: R x R. */
double kith_latencies_mean(const struct kith_latencies *latencies,
                           uint32_t peers, const struct kith_link_terms *link);

/* latencies <- (R, R) round trips, in ns >= 0, row by row; p90: of the same
 * pairs, none below it, or NULL; names, or NULL. All are malloc'd and become
 * their own. */
void kith_latencies_take(struct kith_latencies *latencies, uint32_t regions,
                         kith_ns *trips, kith_ns *trips_p90,
                         const char **names);
void kith_latencies_close(struct kith_latencies *latencies);

#endif
