/* Neighbours self - 1 and self + 1, without wrapping round:
 * rho = (1 + 2 cos(pi / n)) / 3 for n >= 3, a ring of twice the peers. */
#include "topology_kinds.h"

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    return (self > 0 ? 1u : 0u) + (self + 1 < topology->peers ? 1u : 0u);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    if (list->self > 0)
        kith_list_add(list, list->self - 1, 0);
    if (list->self + 1 < topology->peers)
        kith_list_add(list, list->self + 1, 0);
}

const struct kith_topology_kind kith_topology_path = {
    .name = "path",
    .paper = "Boyd, Diaconis and Xiao, SIAM Review 46(4), 2004",
    .summary = "a chain: the slowest graph, and a tree",
    RULED_GRAPH,
    .degree = degree,
};
