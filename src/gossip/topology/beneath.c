/* The static graph under a schedule of rounds: whose edges are taken by turns
 * (matcha), or left for a round with everybody (global-rounds). */
#include "topology_kinds.h"

static enum kith_err prepare(const struct kith_topology *topology,
                             struct kith_topology *graph, size_t *size,
                             char *error)
{
    struct kith_topology_options options = topology->options;
    options.weights = KITH_WEIGHTS_METROPOLIS;
    return kith_topology_prepare(options.graph, topology->peers, topology->seed,
                                 &options, graph, size, error);
}

enum kith_err kith_beneath_prepare(struct kith_topology *topology, char *error)
{
    struct kith_topology_options *options = &topology->options;
    struct kith_topology graph;
    size_t size;
    if (options->graph == NULL)
        options->graph = &kith_topology_circulant;
    if (!options->graph->is_static || options->graph->directed ||
        kith_topology_is_any_pair(options->graph))
        return kith_topology_refuse(error, KITH_EINVAL,
                                    "graph: found %s; allowed: a static "
                                    "undirected one",
                                    options->graph->name);
    const enum kith_err err = prepare(topology, &graph, &size, error);
    if (err != KITH_OK)
        return err;
    const struct kith_topology_options own = *options;
    *options = graph.options;
    options->weights = own.weights;
    options->graph = own.graph;
    options->budget = own.budget;
    options->period = own.period;
    return KITH_OK;
}

bool kith_beneath_size(const struct kith_topology *topology, size_t *size)
{
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    struct kith_topology graph;
    return prepare(topology, &graph, size, error) == KITH_OK;
}

enum kith_err kith_beneath_build(const struct kith_topology *topology,
                                 struct kith_topology *graph, void *memory,
                                 size_t *size, char *error)
{
    const enum kith_err err = prepare(topology, graph, size, error);
    if (err != KITH_OK)
        return err;
    graph->options.edges = topology->options.edges;
    return kith_topology_build(graph, memory, error);
}
