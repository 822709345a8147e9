/* Groups of a grid: peers stand in the cells of a grid of D dimensions, M =
 * `degree` + 1 wide; in round r all who share every coordinate but r mod D
 * average exactly, and all change cells every D rounds.
 *
 *   W_ij = 1 / |group|;   exact after D rounds where n = k M^(D-1), k <= M
 *
 * In a round of g equal groups E Gamma' / Gamma = (g - 1) / (n - 1). */
#include "permutation.h"
#include "topology_kinds.h"

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    uint32_t usual = 1;
    while (usual < KITH_DEGREE_MAX && (usual + 1) * (usual + 1) < peers)
        usual++;
    /* Two peers are one group, whatever its size. */
    return kith_degree_prepare(topology, usual,
                               peers > 2 ? peers - 1 : UINT32_MAX, error);
}

/* D: M^D cells are room for all. */
static uint32_t dimensions(const struct kith_topology *topology)
{
    const uint32_t width = topology->options.degree + 1;
    uint32_t count = 1;
    for (uint64_t cells = width; cells < topology->peers; cells *= width)
        count++;
    return count;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint64_t width = topology->options.degree + UINT64_C(1);
    const uint32_t every = dimensions(topology);
    uint64_t stride = 1;
    struct kith_permutation permutation;
    kith_permutation_draw(&permutation, topology, list->round / every);
    for (uint64_t d = 0; d < list->round % every; d++)
        stride *= width;
    const uint64_t own = kith_permutation_place(&permutation, list->self);
    const uint64_t first = own - own / stride % width * stride;
    for (uint64_t k = 0; k < width; k++) {
        const uint64_t place = first + k * stride;
        if (place == own || place >= topology->peers)
            continue;
        kith_list_add(list,
                      kith_permutation_peer(&permutation, (uint32_t)place), 0);
    }
    for (uint32_t i = 0; i < list->count; i++)
        list->weights[i] = 1.0 / (list->count + 1);
}

const struct kith_topology_kind kith_topology_grid_groups = {
    .name = "grid-groups",
    .paper = "Ryabinin et al., NeurIPS 2021 (2103.03239)",
    .summary = "groups of `degree` + 1 average exactly, along a grid's "
               "dimensions in turn",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .degree = kith_degree_option,
    .neighbours = neighbours,
};
