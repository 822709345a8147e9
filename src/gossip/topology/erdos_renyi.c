/* G(n, p): every pair is an edge with probability p, drawn anew until the graph
 * is connected. The distance to the next edge is geometric: the largest g with
 * (1 - p)^g >= u, found bit by bit from the powers (1 - p)^(2^b), so a draw
 * costs O(edges) and needs no logarithm. */
#include "topology_kinds.h"

#define POWERS 40u /* pairs of a million peers are fewer than 2^40 */
/* Mean degree above log2(n) where no probability is given: natural logarithms
 * are what connects. */
#define SPARE 2.0

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    double *probability = &topology->options.probability;
    (void)error;
    if (*probability == 0 && peers > 1)
        *probability = (kith_topology_log2(peers) + SPARE) / (peers - 1.0);
    if (*probability > 1)
        *probability = 1;
    return KITH_OK;
}

static uint64_t skip(const double powers[POWERS], double u)
{
    uint64_t gap = 0;
    double product = 1;
    for (uint32_t b = POWERS; b-- > 0;)
        if (product * powers[b] >= u) {
            product *= powers[b];
            gap += UINT64_C(1) << b;
        }
    return gap;
}

/* Pairs (i, j), j < i, row by row. */
static bool draw(const struct kith_topology *topology,
                 struct kith_adjacency *graph, uint32_t *scratch,
                 struct kith_rng *rng)
{
    const uint64_t peers = graph->peers;
    double powers[POWERS];
    uint64_t i = 1, j = 0;
    (void)scratch;
    powers[0] = 1 - topology->options.probability;
    for (uint32_t b = 1; b < POWERS; b++)
        powers[b] = powers[b - 1] * powers[b - 1];
    for (;;) {
        j += skip(powers, 1 - kith_rng_double(rng));
        while (j >= i && i < peers)
            j -= i++;
        if (i >= peers)
            return true;
        if (!kith_adjacency_add(graph, (kith_id)i, (kith_id)j))
            return false;
        j++;
    }
}

const struct kith_topology_kind kith_topology_erdos_renyi = {
    .name = "erdos-renyi",
    .paper = "Erdos and Renyi, Publicationes Mathematicae 6, 1959",
    .summary = "every pair with `probability`, until connected",
    RANDOM_GRAPH,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(PROBABILITY),
    .size = kith_adjacency_size,
};
