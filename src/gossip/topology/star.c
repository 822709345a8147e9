/* Peer 0 is everybody's neighbour:  rho = 1 - 1 / n. */
#include "topology_kinds.h"

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    return self == 0 ? topology->peers - 1 : 1;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_list_range(list, 0, list->self == 0 ? topology->peers : 1, 0);
}

const struct kith_topology_kind kith_topology_star = {
    .name = "star",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "all meet peer 0: two hops, and one peer that limits all",
    RULED_GRAPH,
    .degree = degree,
};
