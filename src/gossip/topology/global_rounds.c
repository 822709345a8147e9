/* A static graph, and everybody with everybody every so often:
 *
 *   W_t = W of `graph`, but J in each round t with (t + 1) mod `period` = 0
 *
 * A cycle ends in exact agreement. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_global_rounds;

#define PERIOD_DEFAULT 8u

/* The graph underneath; its own memory follows. */
struct rounds {
    struct kith_topology graph;
};

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    if (topology->options.period == 0)
        topology->options.period = PERIOD_DEFAULT;
    return kith_beneath_prepare(topology, error);
}

static size_t size(const struct kith_topology *topology)
{
    size_t beneath;
    return kith_beneath_size(topology, &beneath)
               ? sizeof(struct rounds) + beneath
               : 0;
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    struct rounds *rounds = memory;
    size_t size;
    return kith_beneath_build(topology, &rounds->graph, rounds + 1, &size,
                              error);
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers - 1;
}

static bool is_global(const struct kith_topology *topology, uint64_t round)
{
    return (round + 1) % topology->options.period == 0;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const struct rounds *rounds = topology->built;
    uint32_t count = 0;
    if (!is_global(topology, round))
        return kith_topology_neighbours(&rounds->graph, self, 0, out, weights);
    for (kith_id peer = 0; peer < topology->peers; peer++) {
        if (peer == self)
            continue;
        weights[count] = 1.0 / topology->peers;
        out[count++] = peer;
    }
    return count;
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
    .size = size,
    .build = build,
    .degree = degree,
    .neighbours = neighbours,
    .period = period,
};
