/* n = 2^D peers, neighbours differ in one bit:  rho = (D - 1) / (D + 1). */
#include "topology_kinds.h"

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    if ((peers & (peers - 1)) != 0)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "found hypercube with %u peers; allowed: a power of two of them",
            peers);
    return KITH_OK;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    for (uint32_t bit = 1; bit < topology->peers; bit *= 2)
        kith_list_add(list, list->self ^ bit, 0);
}

const struct kith_topology_kind kith_topology_hypercube = {
    .name = "hypercube",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "log2(n) neighbours, one for each bit; n a power of two",
    RULED_GRAPH,
    .prepare = prepare,
    .degree = kith_degree_log2,
};
