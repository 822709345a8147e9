/* Peers of two-level by hand: every peer's algebra, and rounds in which each
 * message is exactly as long as the record says. What is lost, and who is
 * there, is the caller's. */
#ifndef KITH_TESTS_SITES_H
#define KITH_TESTS_SITES_H

#include "kith/algorithm.h"

enum { SITES_SUM, SITES_RESIDUAL, SITES_VECTORS = 4 }; /* as in two_level.h */

struct sites {
    uint32_t peers, sites, members;
    size_t dim, bytes_most;
    struct kith_topology graph;
    double coefficients[KITH_GOSSIP_KEY_COUNT];
    struct sites_peer *each; /* (peers) */
    bool *dead;              /* (peers) */
    /* Loses the message of a round; NULL: none. */
    bool (*loses)(uint64_t round, kith_id from, kith_id to);
    uint64_t round;    /* of the cycle to come */
    uint64_t *between; /* (sites) bytes that came from other sites */
    uint64_t refused;
};

struct sites_peer {
    struct kith_algebra algebra;
    struct kith_work_edge edge;
    double scalars[1], numbers[2];
    void *vectors[SITES_VECTORS];
    float *x, *gradient; /* (dim) the gradient, then the mean */
    unsigned char *sent, *received;
};

void sites_open(struct sites *sites, uint32_t peers, uint32_t regions,
                size_t dim, double share);
void sites_close(struct sites *sites);
/* A cycle over what the gradients hold. */
void sites_cycle(struct sites *sites);
/* Rounds of a cycle. */
uint64_t sites_period(const struct sites *sites);

#endif
