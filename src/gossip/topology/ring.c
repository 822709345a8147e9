/* Neighbours self - 1 and self + 1 modulo n:  rho = (1 + 2 cos(2 pi / n)) / 3
 * for n >= 3. Two peers are one edge. */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_ring;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers < 3 ? topology->peers - 1 : 2;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const uint32_t peers = topology->peers;
    (void)round;
    (void)weights;
    const kith_id next = self + 1 == peers ? 0 : self + 1;
    const kith_id last = self == 0 ? peers - 1 : self - 1;
    out[0] = next < last ? next : last;
    out[1] = next < last ? last : next;
    return peers == 2 ? 1 : 2;
}

const struct kith_topology_kind kith_topology_ring = {
    .name = "ring",
    .paper = "Lian et al., NeurIPS 2017 (1705.09056), section 5",
    .summary = "two neighbours each; the sparsest symmetric cycle",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .degree = degree,
    .neighbours = neighbours,
};
