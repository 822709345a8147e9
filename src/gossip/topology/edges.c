/* A graph from a list of edges, for the kinds file and file-directed. Weights
 * of the list are W's own entries, W_to,from; without them the rule's (or, one
 * way, shares by degree) stand. */
#include "edges.h"

#include <math.h>

/* How far two sums of weights may differ and be the same. */
#define SAME 1e-12

struct edges {
    struct side {
        struct kith_adjacency *graph;
        double *weights; /* (peers, width); NULL: not given */
    } out, in;           /* the same where both ways */
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
    return (kith_adjacency_size(topology) + 7) / 8 * 8;
}

static size_t side_bytes(const struct kith_topology *topology)
{
    const size_t entries =
        (size_t)topology->peers * kith_adjacency_width(topology);
    return table_bytes(topology) +
           (has_weights(topology) ? entries * sizeof(double) : 0);
}

size_t kith_edges_size(const struct kith_topology *topology)
{
    return sizeof(struct edges) +
           (topology->kind->directed ? 2 : 1) * side_bytes(topology);
}

/* One entry more: i's row takes j in. */
static bool put(const struct side *side, kith_id i, kith_id j, double weight)
{
    struct kith_adjacency *const graph = side->graph;
    const size_t start = (size_t)i * graph->width;
    if (graph->degree[i] == graph->width)
        return false;
    kith_topology_insert(graph->table + start,
                         side->weights == NULL ? NULL : side->weights + start,
                         graph->degree[i]++, j, weight);
    return true;
}

static enum kith_err fill(const struct kith_topology *topology,
                          struct edges *edges, char *error)
{
    for (uint32_t k = 0; k < topology->options.edge_count; k++) {
        const struct kith_topology_edge *edge = &topology->options.edges[k];
        if (put(&edges->out, edge->from, edge->to, edge->weight) &&
            put(&edges->in, edge->to, edge->from, edge->weight))
            continue;
        return kith_topology_refuse(
            error, KITH_ELIMIT,
            "path: found the edge %u %u, which gives a peer more than %u "
            "neighbours",
            edge->from, edge->to, edges->out.graph->width);
    }
    return KITH_OK;
}

static double sum_of(const struct side *side, kith_id i)
{
    double sum = 0;
    for (uint32_t k = 0; k < side->graph->degree[i]; k++)
        sum += side->weights[(size_t)i * side->graph->width + k];
    return sum;
}

/* Nobody gives more than there is; *doubly: gives as much as it gets. */
static enum kith_err check_sums(const struct kith_topology *topology,
                                const struct edges *edges, bool *doubly,
                                char *error)
{
    const uint32_t *out_degree = edges->out.graph->degree;
    for (kith_id i = 0; i < topology->peers; i++) {
        if (edges->out.weights == NULL) {
            *doubly =
                *doubly && out_degree[i] == edges->in.graph->degree[i] &&
                (!topology->kind->directed || out_degree[i] == out_degree[0]);
            continue;
        }
        const double out = sum_of(&edges->out, i), in = sum_of(&edges->in, i);
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

static struct side init_side(const struct kith_topology *topology, char *at)
{
    struct side side = {
        .graph = kith_adjacency_init(at, topology->peers,
                                     kith_adjacency_width(topology))};
    if (has_weights(topology))
        side.weights = (double *)(void *)(at + table_bytes(topology));
    return side;
}

enum kith_err kith_edges_build(struct kith_topology *topology, void *memory,
                               char *error)
{
    struct edges *edges = memory;
    char *const at = (char *)(edges + 1);
    edges->out = edges->in = init_side(topology, at);
    if (topology->kind->directed)
        edges->in = init_side(topology, at + side_bytes(topology));
    enum kith_err err = fill(topology, edges, error);
    if (err == KITH_OK)
        err = check_sums(topology, edges, &topology->doubly, error);
    if (err == KITH_OK)
        err = check_reach(topology, edges->out.graph, true, error);
    return err == KITH_OK ? check_reach(topology, edges->in.graph, false, error)
                          : err;
}

uint32_t kith_edges_degree(const struct kith_topology *topology, kith_id self)
{
    const struct edges *edges = topology->built;
    return edges->out.graph->degree[self];
}

void kith_edges_neighbours(const struct kith_topology *topology,
                           struct kith_neighbours *list)
{
    const struct edges *edges = topology->built;
    const struct side *const side = list->sources ? &edges->in : &edges->out;
    const size_t start = (size_t)list->self * side->graph->width;
    list->count = side->graph->degree[list->self];
    for (uint32_t k = 0; k < list->count; k++) {
        list->ids[k] = side->graph->table[start + k];
        list->weights[k] =
            side->weights == NULL
                ? kith_topology_weigh(topology, list->count, list->ids[k])
                : side->weights[start + k];
    }
}
