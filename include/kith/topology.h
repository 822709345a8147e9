/* Topologies: who may talk to whom, and with which weight.
 *
 * Static undirected graphs carry Metropolis-Hastings weights
 *     W_ij = 1 / (1 + max(deg_i, deg_j)),  W_ii = 1 - sum_j W_ij,
 * directed ones give the share 1 / (1 + out-degree) to each out-neighbour and
 * keep one; schedules (one-peer exponential) give one out-neighbour per round,
 * `random` draws a partner from the live set.
 * One file, one line in src/topology/topologies.def.
 * Test: property/test_topologies.c. */
#ifndef KITH_TOPOLOGY_H
#define KITH_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/rng.h"
#include "kith/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_topology; /* an opened one */

struct kith_topology_kind {
    const char *name, *paper, *summary;
    bool is_static; /* the same graph at every round */
    bool directed;  /* out- and in-neighbours differ */
    bool any_pair;  /* partner() may return anybody */
    /* Out-neighbours of `self`, the same at every round; NULL for any_pair. */
    uint32_t (*degree)(uint32_t peers, kith_id self);
    /* Out-neighbours of `self` at `round`, ascending, at most KITH_DEGREE_MAX;
     * returns how many. NULL for any_pair kinds. */
    uint32_t (*neighbours)(uint32_t peers, kith_id self, uint64_t round,
                           kith_id out[KITH_DEGREE_MAX]);
};

struct kith_topology {
    const struct kith_topology_kind *kind;
    uint32_t peers;
};

/* NULL-terminated, in the order of topologies.def. A name is written with '-';
 * find takes '_' for it. */
extern const struct kith_topology_kind *const kith_topology_kinds[];
const struct kith_topology_kind *kith_topology_find(const char *name);

/* KITH_ELIMIT: this graph would give a peer more than KITH_DEGREE_MAX
 * neighbours. 1 peer is allowed everywhere: it has no neighbours. */
KITH_MUST_CHECK enum kith_err
kith_topology_open(const struct kith_topology_kind *kind, uint32_t peers,
                   struct kith_topology *topology);
/* Neighbours of `self` at `round` with the weight it gives to each; returns
 * how many. weights may be NULL. Directed kinds: the column share
 * 1 / (1 + out-degree). */
uint32_t kith_topology_neighbours(const struct kith_topology *topology,
                                  kith_id self, uint64_t round,
                                  kith_id out[KITH_DEGREE_MAX],
                                  double weights[KITH_DEGREE_MAX]);
/* The longest avoid list. */
#define KITH_AVOID_MAX 64u
/* A partner for one two-party exchange, never self; KITH_NOBODY when alone.
 * Uniform over all others (any_pair) or over the neighbours of this round,
 * leaving out those in avoid[avoid_count] unless nobody else is left.
 * *weight: 1/2 for an undirected pair, the column share for a directed one. */
kith_id kith_topology_partner(const struct kith_topology *topology,
                              kith_id self, uint64_t round,
                              struct kith_rng *rng, const kith_id *avoid,
                              uint32_t avoid_count, double *weight);
/* rho = ||W - J||_2 of a static graph by power iteration on (W-J)^T (W-J), in
 * float64; scratch: 3 * peers doubles. Exact to 1e-12 while the iteration fits
 * its budget (rings up to about 1,000 peers), above that a lower bound.
 * Cost O(iterations * edges), at most about 10^9 edge visits. */
double kith_topology_rho(const struct kith_topology *topology, double *scratch);

#ifdef __cplusplus
}
#endif
#endif
