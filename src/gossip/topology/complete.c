/* Everybody is everybody's neighbour:  W = J = 1 1^T / n,  rho = 0. */
#include "topology_kinds.h"

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_list_range(list, 0, topology->peers, 0);
}

const struct kith_topology_kind kith_topology_complete = {
    .name = "complete",
    .paper = "Lian et al., NeurIPS 2017 (1705.09056), the centralised case",
    .summary = "all pairs; one round averages exactly",
    RULED_GRAPH,
    .degree = kith_degree_rest,
};
