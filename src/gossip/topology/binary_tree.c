/* A heap's tree: self is below (self - 1) / 2. A spanning tree of degree 3 and
 * depth log2(n). */
#include "topology_kinds.h"

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const kith_id child = 2 * self + 1;
    return (self > 0 ? 1u : 0u) + (child < topology->peers ? 1u : 0u) +
           (child + 1 < topology->peers ? 1u : 0u);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    if (list->self > 0)
        kith_list_add(list, (list->self - 1) / 2, 0);
    for (kith_id child = 2 * list->self + 1; child <= 2 * list->self + 2;
         child++)
        if (child < topology->peers)
            kith_list_add(list, child, 0);
}

const struct kith_topology_kind kith_topology_binary_tree = {
    .name = "binary-tree",
    .paper = "Vogels et al., NeurIPS 2021 (2110.04175), section 5",
    .summary = "a spanning tree of depth log2(n), at most three neighbours",
    RULED_GRAPH,
    .degree = degree,
};
