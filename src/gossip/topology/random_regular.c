/* A random graph in which everybody has `degree` neighbours: a circulant whose
 * edges change ends, four times as often as there are edges: a b and c d become
 * a d and c b where both are new, which keeps all degrees and tends to the
 * uniform distribution over all such graphs. (Pairing ends at random and
 * drawing again what is a loop or a copy is not uniform: its gaps are 3 % too
 * small at 64 peers and degree 3.) rho tends to (1 + 2 sqrt(d - 1)) / (d + 1),
 * Friedman 2008. One that would take long to draw is not drawn but computed:
 * random_cycles.c. */
#include "permutation.h"
#include "topology_kinds.h"

#include <string.h>

#include "kith/assert.h"

#define DEGREE_DEFAULT 4u
/* Changes for each edge. */
#define SWAPS 4u
/* Ends of edges that are drawn in seconds: 4 for each of a million peers. */
#define ENDS_MAX (1u << 22)

static bool is_drawn(const struct kith_topology *topology)
{
    return (uint64_t)topology->options.degree * topology->peers <= ENDS_MAX;
}

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers, most = peers - 1;
    const uint32_t degree =
        *kith_degree_default(topology, DEGREE_DEFAULT, most);
    topology->own = degree;
    if (peers == 1)
        return KITH_OK;
    if (degree > most || (degree == 1 && peers > 2))
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: %u to %u", degree, peers,
            peers > 2 ? 2u : 1u, most);
    if (!is_drawn(topology) && degree > KITH_DEGREE_MAX)
        return kith_topology_refuse_dense(topology, KITH_DEGREE_MAX, error);
    return kith_degree_check_even(topology, error);
}

/* Every edge as two ends, once. */
static uint32_t list_edges(const struct kith_adjacency *graph, uint32_t *ends)
{
    uint32_t count = 0;
    for (kith_id i = 0; i < graph->peers; i++) {
        const kith_id *row = graph->table + (size_t)i * graph->width;
        for (uint32_t k = 0; k < graph->degree[i] && row[k] < i; k++) {
            ends[count++] = i;
            ends[count++] = row[k];
        }
    }
    return count / 2;
}

/* In the row of i `from` gives its place to `to`: rows are put in order when
 * all have changed. */
static void turn(struct kith_adjacency *graph, kith_id i, kith_id from,
                 kith_id to)
{
    kith_id *row = graph->table + (size_t)i * graph->width;
    uint32_t at = 0;
    for (uint32_t k = 0; k < graph->width; k++)
        at += row[k] == from ? k : 0;
    KITH_ASSERT(row[at] == from);
    row[at] = to;
}

/* Edges a b and c d become a d and c b, where both are new. */
static void swap_ends(struct kith_adjacency *graph, uint32_t *one,
                      uint32_t *two, bool turned)
{
    const kith_id a = one[0], b = one[1];
    const kith_id c = two[turned], d = two[!turned];
    if (a == c || a == d || b == c || b == d ||
        kith_adjacency_has(graph, a, d) || kith_adjacency_has(graph, c, b))
        return;
    turn(graph, a, b, d);
    turn(graph, b, a, c);
    turn(graph, c, d, b);
    turn(graph, d, c, a);
    one[1] = d;
    two[0] = c;
    two[1] = b;
}

/* All rows are full, and a table of both ends is its own transpose, whose rows
 * are filled by ascending peers. */
static void put_in_order(struct kith_adjacency *graph, kith_id *scratch)
{
    const uint32_t width = graph->width;
    const size_t bytes = graph->peers * sizeof *graph->degree;
    memcpy(scratch, graph->table, width * bytes);
    memset(graph->degree, 0, bytes);
    for (kith_id i = 0; i < graph->peers; i++)
        for (uint32_t k = 0; k < width; k++) {
            const kith_id j = scratch[(size_t)i * width + k];
            graph->table[(size_t)j * width + graph->degree[j]++] = i;
        }
}

static bool draw(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *ends,
                 struct kith_rng *rng)
{
    if (!kith_adjacency_lattice(graph, topology->options.degree))
        return false;
    const uint32_t edges = list_edges(graph, ends);
    for (uint64_t k = 0; k < (uint64_t)SWAPS * edges; k++) {
        const uint32_t one = kith_rng_below(rng, edges);
        const uint32_t two = kith_rng_below(rng, edges);
        const bool turned = kith_rng_u32(rng) & 1u;
        swap_ends(graph, ends + 2 * (size_t)one, ends + 2 * (size_t)two,
                  turned);
    }
    put_in_order(graph, ends);
    return true;
}

/* scratch: all ends. */
static size_t size(const struct kith_topology *topology)
{
    return is_drawn(topology)
               ? kith_adjacency_room(topology, (size_t)topology->peers *
                                                   topology->options.degree)
               : sizeof(struct kith_networks);
}

static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    if (is_drawn(topology))
        return kith_adjacency_build(topology, memory, error);
    kith_random_cycles_draw(topology, memory);
    return KITH_OK;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    if (is_drawn(topology))
        kith_adjacency_neighbours(topology, list);
    else
        kith_random_cycles(topology, topology->built, list);
}

const struct kith_topology_kind kith_topology_random_regular = {
    .name = "random-regular",
    .paper = "Cooper, Dyer and Greenhill, Comb., Prob. and Computing 16, 2007",
    .summary = "a random graph, `degree` neighbours for everybody [4]",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .draw = draw,
    .degree = kith_degree_option,
    .neighbours = neighbours,
};
