/* Neighbours self - 1 and self + 1, without wrapping round:
 * rho = (1 + 2 cos(pi / n)) / 3 for n >= 3, a ring of twice the peers. */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_path;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    return (self > 0 ? 1u : 0u) + (self + 1 < topology->peers ? 1u : 0u);
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    uint32_t count = 0;
    if (self > 0)
        out[count++] = self - 1;
    if (self + 1 < topology->peers)
        out[count++] = self + 1;
    return count;
}

const struct kith_topology_kind kith_topology_path = {
    .name = "path",
    .paper = "Boyd, Diaconis and Xiao, SIAM Review 46(4), 2004",
    .summary = "a chain: the slowest graph, and a tree",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .degree = degree,
    .neighbours = neighbours,
};
