/* The static graph under a schedule of rounds: whose edges are taken by turns
 * (matcha), left for a round with everybody (global-rounds), or whose peers
 * change places (regular-rounds). */
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

size_t kith_beneath_size(const struct kith_topology *topology)
{
    char error[KITH_TOPOLOGY_ERROR_BYTES];
    struct kith_topology graph;
    size_t size;
    return prepare(topology, &graph, &size, error) == KITH_OK
               ? sizeof graph + (size + 7) / 8 * 8
               : 0;
}

enum kith_err kith_beneath_build(struct kith_topology *topology, void *memory,
                                 char *error)
{
    struct kith_topology *graph = memory;
    size_t size;
    const enum kith_err err = prepare(topology, graph, &size, error);
    return err == KITH_OK ? kith_topology_build(graph, graph + 1, error) : err;
}
