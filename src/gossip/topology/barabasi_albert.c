/* The rich get richer: peers 0..m are a complete graph, every later one brings
 * m edges to different earlier peers, drawn with a chance proportional to their
 * degree: uniformly from the list of all ends of edges. */
#include "topology_kinds.h"

#define DEGREE_DEFAULT 2u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    return kith_degree_prepare(topology, DEGREE_DEFAULT, topology->peers - 1,
                               error);
}

/* ends: the list, two for each edge. */
static bool draw(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *ends,
                 struct kith_rng *rng)
{
    const uint32_t m = topology->options.degree;
    uint32_t count = 0;
    for (kith_id i = 0; i < graph->peers; i++) {
        const uint32_t before = count;
        for (uint32_t k = 0; k < (i <= m ? i : m);) {
            const kith_id j = i <= m ? k : ends[kith_rng_below(rng, before)];
            if (i > m && kith_adjacency_has(graph, i, j))
                continue;
            if (!kith_adjacency_add(graph, i, j))
                return false;
            ends[count++] = i;
            ends[count++] = j;
            k++;
        }
    }
    return true;
}

/* scratch: all ends. */
static size_t size(const struct kith_topology *topology)
{
    return kith_adjacency_room(topology, 2 * (size_t)topology->peers *
                                             (topology->options.degree + 1));
}

const struct kith_topology_kind kith_topology_barabasi_albert = {
    .name = "barabasi-albert",
    .paper = "Barabasi and Albert, Science 286, 1999",
    .summary = "newcomers bring `degree` edges [2], to popular peers",
    RANDOM_GRAPH,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .size = size,
};
