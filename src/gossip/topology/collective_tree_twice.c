/* The rounds of two all-reduces along a binomial tree, one after the other: the
 * first says where, the second how much.
 *
 *   round p < 2 K, 2 K <= p < 4 K   as collective-tree's p mod 2 K,
 *                                   K = ceil(log2 n)
 *
 * Source: Dai et al., "gs-SGD", arXiv 2108.06004; the tree: Thakur et al.,
 * 2005. */
#include "topology_kinds.h"

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t height = kith_topology_log2(topology->peers);
    return height == 0 ? 1 : 4 * (uint64_t)height;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_topology_collective_tree.neighbours(topology, list);
}

const struct kith_topology_kind kith_topology_collective_tree_twice = {
    .name = "collective-tree-twice",
    .paper = "Dai et al., 2021",
    .summary = "of gs-sgd: up a binomial tree and down it with sketches, and "
               "again with values",
    COLLECTIVE_ROUNDS,
};
