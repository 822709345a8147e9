/* Everybody is everybody's neighbour:  W = J = 1 1^T / n,  rho = 0. */
#include <stddef.h>

#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_complete;

static uint32_t degree(uint32_t peers, kith_id self)
{
    (void)self;
    return peers - 1;
}

static uint32_t neighbours(uint32_t peers, kith_id self, uint64_t round,
                           kith_id out[KITH_DEGREE_MAX])
{
    (void)round;
    uint32_t count = 0;
    for (kith_id peer = 0; peer < peers; peer++)
        if (peer != self)
            out[count++] = peer;
    return count;
}

const struct kith_topology_kind kith_topology_complete = {
    .name = "complete",
    .paper = "Lian et al., NeurIPS 2017 (1705.09056), the centralised case",
    .summary = "all pairs; one round averages exactly",
    .is_static = true,
    .degree = degree,
    .neighbours = neighbours,
};
