/* Everybody is everybody's neighbour:  W = J = 1 1^T / n,  rho = 0. */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_complete;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers - 1;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    uint32_t count = 0;
    for (kith_id peer = 0; peer < topology->peers; peer++)
        if (peer != self)
            out[count++] = peer;
    return count;
}

const struct kith_topology_kind kith_topology_complete = {
    .name = "complete",
    .paper = "Lian et al., NeurIPS 2017 (1705.09056), the centralised case",
    .summary = "all pairs; one round averages exactly",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .degree = degree,
    .neighbours = neighbours,
};
