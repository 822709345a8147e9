/* A small world: a circulant of `degree`, each edge (i, i + o) of which keeps i
 * and, with probability `rewire`, goes to a peer drawn uniformly from those
 * that are not yet i's neighbours; drawn anew until connected. */
#include "topology_kinds.h"

#define DEGREE_DEFAULT 4u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t most = topology->peers - 1;
    const uint32_t degree =
        *kith_degree_default(topology, DEGREE_DEFAULT, most);
    if (topology->peers == 1)
        return KITH_OK;
    if (degree > most || (degree % 2 == 1 && topology->peers % 2 == 1))
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: up to %u, even where the "
            "peers are odd",
            degree, topology->peers, most);
    return KITH_OK;
}

/* The k-th peer that is neither i nor a neighbour. */
static kith_id stranger(const struct kith_adjacency *graph, kith_id i,
                        uint32_t k)
{
    const kith_id *row = graph->table + (size_t)i * graph->width;
    kith_id id = k;
    bool self = false;
    for (uint32_t at = 0; at < graph->degree[i] || !self;) {
        const bool own = !self && (at == graph->degree[i] || i < row[at]);
        if (id < (own ? i : row[at]))
            break;
        id++;
        self = self || own;
        at += !own;
    }
    return id;
}

static bool rewire(struct kith_adjacency *graph, kith_id i, kith_id j,
                   struct kith_rng *rng)
{
    const uint32_t strangers = graph->peers - 1 - graph->degree[i];
    if (strangers == 0)
        return true;
    const kith_id to = stranger(graph, i, kith_rng_below(rng, strangers));
    kith_adjacency_remove(graph, i, j);
    return kith_adjacency_add(graph, i, to);
}

static bool draw(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *scratch,
                 struct kith_rng *rng)
{
    const uint32_t peers = graph->peers, degree = topology->options.degree;
    (void)scratch;
    if (!kith_adjacency_lattice(graph, degree))
        return false;
    for (uint32_t o = 1; o <= degree / 2; o++)
        for (kith_id i = 0; i < peers; i++)
            if (kith_rng_double(rng) < topology->options.rewire &&
                kith_adjacency_has(graph, i, (i + o) % peers) &&
                !rewire(graph, i, (i + o) % peers, rng))
                return false;
    return true;
}

const struct kith_topology_kind kith_topology_watts_strogatz = {
    .name = "watts-strogatz",
    .paper = "Watts and Strogatz, Nature 393, 1998",
    .summary = "a circulant, a share `rewire` of whose edges goes astray",
    RANDOM_GRAPH,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE) |
            KITH_TOPOLOGY_READS(REWIRE),
    .size = kith_adjacency_size,
};
