/* A static graph, and everybody with everybody every so often:
 *
 *   W_t = W of `graph`, but J in each round t with (t + 1) mod `period` = 0
 *
 * A cycle ends in exact agreement. */
#include "topology_kinds.h"

#define PERIOD_DEFAULT 8u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    if (topology->options.period == 0)
        topology->options.period = PERIOD_DEFAULT;
    return kith_beneath_prepare(topology, error);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t peers = topology->peers;
    if ((list->round + 1) % topology->options.period == 0)
        kith_list_range(list, 0, peers, 1.0 / peers);
    else
        list->count = kith_topology_neighbours(topology->built, list->self, 0,
                                               list->ids, list->weights);
}

static uint64_t period(const struct kith_topology *topology)
{
    return topology->options.period;
}

const struct kith_topology_kind kith_topology_global_rounds = {
    .name = "global-rounds",
    .paper = "Chen et al., ICML 2021 (2105.09080)",
    .summary = "the edges of `graph`, but everybody in every `period`-th [8] "
               "round",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(GRAPH) | KITH_TOPOLOGY_READS(PERIOD),
    .prepare = prepare,
    .size = kith_beneath_size,
    .build = kith_beneath_build,
    .degree = kith_degree_rest,
    .neighbours = neighbours,
    .period = period,
};
