/* A heap's tree: self is below (self - 1) / 2. A spanning tree of degree 3 and
 * depth log2(n). */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_binary_tree;

/* The parent and the children, in order. */
static uint32_t list(uint32_t peers, kith_id self, kith_id out[3])
{
    uint32_t count = 0;
    if (self > 0)
        out[count++] = (self - 1) / 2;
    for (kith_id child = 2 * self + 1; child <= 2 * self + 2; child++)
        if (child < peers)
            out[count++] = child;
    return count;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    kith_id out[3];
    return list(topology->peers, self, out);
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    return list(topology->peers, self, out);
}

const struct kith_topology_kind kith_topology_binary_tree = {
    .name = "binary-tree",
    .paper = "Vogels et al., NeurIPS 2021 (2110.04175), section 5",
    .summary = "a spanning tree of depth log2(n), at most three neighbours",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .degree = degree,
    .neighbours = neighbours,
};
