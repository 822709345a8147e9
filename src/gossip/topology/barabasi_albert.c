/* The rich get richer: peers 0..m are a complete graph, every later one brings
 * m edges to different earlier peers, drawn with a chance proportional to their
 * degree: uniformly from the list of all ends of edges. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_barabasi_albert;

#define DEGREE_DEFAULT 2u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t most = topology->peers - 1;
    uint32_t *degree = &topology->options.degree;
    if (*degree == 0)
        *degree = DEGREE_DEFAULT < most ? DEGREE_DEFAULT : most;
    if (topology->peers > 1 && *degree > most)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: up to %u", *degree,
            topology->peers, most);
    return KITH_OK;
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
    return kith_adjacency_room(topology, kith_adjacency_width(topology),
                               2 * (size_t)topology->peers *
                                   (topology->options.degree + 1));
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    return kith_adjacency_draw(topology, memory, kith_adjacency_width(topology),
                               draw, error);
}

const struct kith_topology_kind kith_topology_barabasi_albert = {
    .name = "barabasi-albert",
    .paper = "Barabasi and Albert, Science 286, 1999",
    .summary = "newcomers bring `degree` edges [2], to popular peers",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = kith_adjacency_degree,
    .neighbours = kith_adjacency_neighbours,
};
