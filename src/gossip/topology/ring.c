/* Neighbours self - 1 and self + 1 modulo n:  rho = (1 + 2 cos(2 pi / n)) / 3
 * for n >= 3. Two peers are one edge. */
#include "topology_kinds.h"

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers < 3 ? topology->peers - 1 : 2;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_list_shift(topology, list, 1, 0);
    if (topology->peers > 2)
        kith_list_shift(topology, list, topology->peers - 1, 0);
}

const struct kith_topology_kind kith_topology_ring = {
    .name = "ring",
    .paper = "Lian et al., NeurIPS 2017 (1705.09056), section 5",
    .summary = "two neighbours each; the sparsest symmetric cycle",
    RULED_GRAPH,
    .degree = degree,
};
