/* Peer 0 is everybody's neighbour:  rho = 1 - 1 / n. */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_star;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    return self == 0 ? topology->peers - 1 : 1;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    out[0] = 0;
    if (self > 0)
        return 1;
    for (kith_id peer = 1; peer < topology->peers; peer++)
        out[peer - 1] = peer;
    return topology->peers - 1;
}

const struct kith_topology_kind kith_topology_star = {
    .name = "star",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "all meet peer 0: two hops, and one peer that limits all",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .degree = degree,
    .neighbours = neighbours,
};
