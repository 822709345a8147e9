/* A random graph in which everybody has `degree` neighbours, by pairing: each
 * peer brings `degree` ends, ends are shuffled and paired, and a pair that is a
 * loop or a copy goes back to be shuffled again; where only such are left the
 * draw begins anew (Steger and Wormald 1999: near uniform). Above half of all
 * neighbours the complement is drawn. rho tends to
 * (1 + 2 sqrt(d - 1)) / (d + 1), Friedman 2008. */
#include "private.h"

extern const struct kith_topology_kind kith_topology_random_regular;

#define DEGREE_DEFAULT 4u
/* Shuffles of what is left without a pair fitting, before all begins anew. */
#define STUCK_MAX 20u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers, most = peers - 1;
    uint32_t *degree = &topology->options.degree;
    if (*degree == 0)
        *degree = DEGREE_DEFAULT < most ? DEGREE_DEFAULT : most;
    if (peers == 1)
        return KITH_OK;
    if (*degree > most || (*degree == 1 && peers > 2))
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: %u to %u", *degree, peers,
            peers > 2 ? 2u : 1u, most);
    if (*degree % 2 == 1 && peers % 2 == 1)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: an even degree, or an "
            "even number of peers",
            *degree, peers);
    return KITH_OK;
}

/* Pairs neighbours in order what fits; the other ends move to the front. */
static uint32_t pair_ends(struct kith_adjacency *graph, uint32_t *ends,
                          uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t k = 0; k + 1 < count; k += 2) {
        const kith_id i = ends[k], j = ends[k + 1];
        if (i != j && !kith_adjacency_has(graph, i, j) &&
            kith_adjacency_add(graph, i, j))
            continue;
        ends[left++] = i;
        ends[left++] = j;
    }
    return left;
}

/* False: stuck. */
static bool draw_pairs(struct kith_adjacency *graph, uint32_t degree,
                       uint32_t *ends, struct kith_rng *rng)
{
    uint32_t count = 0;
    for (kith_id i = 0; i < graph->peers; i++)
        for (uint32_t k = 0; k < degree; k++)
            ends[count++] = i;
    for (uint32_t stuck = 0; count > 0; stuck++) {
        kith_rng_shuffle(rng, ends, count);
        const uint32_t left = pair_ends(graph, ends, count);
        if (left < count)
            stuck = 0;
        if (stuck > STUCK_MAX)
            return false;
        count = left;
    }
    return true;
}

/* Every row becomes what it lacked. At most 2 KITH_DEGREE_MAX + 1 peers. */
static void complement(struct kith_adjacency *graph)
{
    for (kith_id i = 0; i < graph->peers; i++) {
        kith_id others[2 * KITH_DEGREE_MAX];
        uint32_t count = 0;
        for (kith_id j = 0; j < graph->peers; j++)
            if (j != i && !kith_adjacency_has(graph, i, j))
                others[count++] = j;
        graph->degree[i] = 0;
        for (uint32_t k = 0; k < count; k++)
            (void)kith_adjacency_arc(graph, i, others[k]);
    }
}

static bool draw(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *scratch,
                 struct kith_rng *rng)
{
    const uint32_t most = graph->peers - 1, degree = topology->options.degree;
    const bool dense = 2 * degree > most;
    while (!draw_pairs(graph, dense ? most - degree : degree, scratch, rng))
        kith_adjacency_clear(graph);
    if (dense)
        complement(graph);
    return true;
}

/* Rows hold the denser of the graph and its complement; scratch: all ends. */
static size_t size(const struct kith_topology *topology)
{
    return kith_adjacency_room(topology, topology->options.degree + 1,
                               (size_t)topology->peers *
                                   topology->options.degree);
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    return kith_adjacency_draw(topology, memory, topology->options.degree + 1,
                               draw, error);
}

const struct kith_topology_kind kith_topology_random_regular = {
    .name = "random-regular",
    .paper = "Steger and Wormald, Combinatorics, Prob. and Computing 8, 1999",
    .summary = "a random graph, `degree` neighbours for everybody [4]",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = kith_adjacency_degree,
    .neighbours = kith_adjacency_neighbours,
};
