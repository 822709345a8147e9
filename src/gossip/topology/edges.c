/* A graph from a list of edges, for the kinds file and file-directed. Weights
 * of the list are W's own entries, W_to,from; without them the rule's (or, one
 * way, shares by degree) stand. */
#include "edges.h"

#include <math.h>
#include <string.h>

/* How far two sums of weights may differ and be the same. */
#define SAME 1e-12

struct edges {
    struct kith_adjacency *out, *in;  /* one table where both ways */
    double *out_weights, *in_weights; /* (peers, width); NULL: not given */
};

static bool has_weights(const struct kith_topology *topology)
{
    const struct kith_topology_options *options = &topology->options;
    return options->edge_count > 0 && options->edges[0].weight > 0;
}

enum kith_err kith_edges_prepare(struct kith_topology *topology, char *error)
{
    const struct kith_topology_options *options = &topology->options;
    if (options->edges == NULL && topology->peers > 1)
        return kith_topology_refuse(error, KITH_EINVAL,
                                    "found %s without a list of edges",
                                    topology->kind->name);
    for (uint32_t i = 0; i < options->edge_count; i++) {
        const struct kith_topology_edge *edge = &options->edges[i];
        if (edge->from >= topology->peers || edge->to >= topology->peers ||
            edge->from == edge->to)
            return kith_topology_refuse(
                error, KITH_EINVAL,
                "path: found the edge %u %u; allowed: two different ranks "
                "below %u",
                edge->from, edge->to, topology->peers);
    }
    if (has_weights(topology) && options->weights != KITH_WEIGHTS_METROPOLIS)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "weights: found %s, but the list of edges has weights of its own; "
            "take one of them out",
            kith_weights_name(options->weights));
    return KITH_OK;
}

static size_t table_bytes(const struct kith_topology *topology)
{
    return (kith_adjacency_room(topology, kith_adjacency_width(topology), 0) +
            7) /
           8 * 8;
}

static size_t weight_bytes(const struct kith_topology *topology)
{
    return has_weights(topology)
               ? (size_t)topology->peers * kith_adjacency_width(topology) *
                     sizeof(double)
               : 0;
}

size_t kith_edges_size(const struct kith_topology *topology)
{
    const size_t tables = topology->kind->directed ? 2 : 1;
    return sizeof(struct edges) +
           tables * (table_bytes(topology) + weight_bytes(topology));
}

/* One entry more: i's row takes j in. */
static bool put(struct kith_adjacency *graph, double *weights, kith_id i,
                kith_id j, double weight)
{
    const size_t start = (size_t)i * graph->width;
    if (graph->degree[i] == graph->width)
        return false;
    kith_topology_insert(graph->table + start,
                         weights == NULL ? NULL : weights + start,
                         graph->degree[i]++, j, weight);
    return true;
}

static enum kith_err fill(const struct kith_topology *topology,
                          struct edges *edges, char *error)
{
    for (uint32_t k = 0; k < topology->options.edge_count; k++) {
        const struct kith_topology_edge *edge = &topology->options.edges[k];
        if (put(edges->out, edges->out_weights, edge->from, edge->to,
                edge->weight) &&
            put(edges->in, edges->in_weights, edge->to, edge->from,
                edge->weight))
            continue;
        return kith_topology_refuse(
            error, KITH_ELIMIT,
            "path: found the edge %u %u, which gives a peer more than %u "
            "neighbours",
            edge->from, edge->to, edges->out->width);
    }
    return KITH_OK;
}

static double sum_of(const struct kith_adjacency *graph, const double *weights,
                     kith_id i)
{
    double sum = 0;
    for (uint32_t k = 0; k < graph->degree[i]; k++)
        sum += weights[(size_t)i * graph->width + k];
    return sum;
}

/* Nobody gives more than there is; *doubly: gives as much as it gets. */
static enum kith_err check_sums(const struct kith_topology *topology,
                                const struct edges *edges, bool *doubly,
                                char *error)
{
    for (kith_id i = 0; i < topology->peers; i++) {
        if (edges->out_weights == NULL) {
            *doubly = *doubly &&
                      edges->out->degree[i] == edges->in->degree[i] &&
                      (!topology->kind->directed ||
                       edges->out->degree[i] == edges->out->degree[0]);
            continue;
        }
        const double out = sum_of(edges->out, edges->out_weights, i);
        const double in = sum_of(edges->in, edges->in_weights, i);
        *doubly = *doubly && fabs(out - in) <= SAME;
        if (out > 1 + SAME || in > 1 + SAME)
            return kith_topology_refuse(
                error, KITH_EINVAL,
                "path: found weights of peer %u that add up to %.12g; allowed: "
                "up to 1",
                i, out > in ? out : in);
    }
    return KITH_OK;
}

static enum kith_err check_reach(const struct kith_topology *topology,
                                 const struct kith_adjacency *graph,
                                 bool forward, char *error)
{
    uint32_t *const scratch =
        graph->table + (size_t)topology->peers * graph->width;
    if (kith_adjacency_connected(graph, scratch))
        return KITH_OK;
    kith_id lost = 0;
    while (scratch[topology->peers + lost] != 0)
        lost++;
    return kith_topology_refuse(
        error, KITH_EINVAL,
        "path: found no way from peer %u to peer %u; allowed: a connected "
        "graph of all %u peers",
        forward ? 0 : lost, forward ? lost : 0, topology->peers);
}

enum kith_err kith_edges_build(struct kith_topology *topology, void *memory,
                               char *error)
{
    struct edges *edges = memory;
    const uint32_t width = kith_adjacency_width(topology);
    const bool directed = topology->kind->directed;
    const size_t weights = weight_bytes(topology);
    char *at = (char *)(edges + 1);
    edges->out = kith_adjacency_init(at, topology->peers, width);
    edges->in = edges->out;
    at += table_bytes(topology);
    if (directed) {
        edges->in = kith_adjacency_init(at, topology->peers, width);
        at += table_bytes(topology);
    }
    edges->out_weights = weights > 0 ? (double *)(void *)at : NULL;
    edges->in_weights = edges->out_weights;
    if (directed && weights > 0)
        edges->in_weights = (double *)(void *)(at + weights);
    enum kith_err err = fill(topology, edges, error);
    if (err == KITH_OK)
        err = check_sums(topology, edges, &topology->doubly, error);
    if (err == KITH_OK)
        err = check_reach(topology, edges->out, true, error);
    return err == KITH_OK ? check_reach(topology, edges->in, false, error)
                          : err;
}

uint32_t kith_edges_degree(const struct kith_topology *topology, kith_id self)
{
    const struct edges *edges = topology->built;
    return edges->out->degree[self];
}

static uint32_t list(const struct kith_topology *topology,
                     const struct kith_adjacency *graph, const double *given,
                     kith_id self, kith_id *out, double *weights)
{
    const size_t start = (size_t)self * graph->width;
    const uint32_t count = graph->degree[self];
    memcpy(out, graph->table + start, count * sizeof *out);
    for (uint32_t k = 0; k < count; k++)
        weights[k] = given == NULL
                         ? kith_topology_weigh(topology, count, out[k])
                         : given[start + k];
    return count;
}

uint32_t kith_edges_neighbours(const struct kith_topology *topology,
                               kith_id self, uint64_t round,
                               kith_id out[KITH_DEGREE_MAX],
                               double weights[KITH_DEGREE_MAX])
{
    const struct edges *edges = topology->built;
    (void)round;
    return list(topology, edges->out, edges->out_weights, self, out, weights);
}

uint32_t kith_edges_sources(const struct kith_topology *topology, kith_id self,
                            uint64_t round, kith_id in[KITH_DEGREE_MAX],
                            double weights[KITH_DEGREE_MAX])
{
    const struct edges *edges = topology->built;
    (void)round;
    return list(topology, edges->in, edges->in_weights, self, in, weights);
}
