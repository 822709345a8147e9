/* Groups of a grid: peers stand in the cells of a grid of D dimensions, M =
 * `degree` + 1 wide; in round r all who share every coordinate but r mod D
 * average exactly, and all change cells every D rounds.
 *
 *   W_ij = 1 / |group|;   exact after D rounds where n = k M^(D-1), k <= M
 *
 * In a round of g equal groups E Gamma' / Gamma = (g - 1) / (n - 1). */
#include "permutation.h"
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_grid_groups;

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t most = topology->peers - 1;
    uint32_t *degree = &topology->options.degree;
    if (*degree == 0)
        for (*degree = 1; *degree < KITH_DEGREE_MAX &&
                          (*degree + 1) * (*degree + 1) < topology->peers;)
            ++*degree;
    if (*degree > most && topology->peers > 2)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: up to %u", *degree,
            topology->peers, most);
    return KITH_OK;
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

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const uint32_t most = topology->peers - 1;
    (void)self;
    return topology->options.degree < most ? topology->options.degree : most;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const uint64_t width = topology->options.degree + UINT64_C(1);
    const uint32_t every = dimensions(topology);
    uint64_t stride = 1;
    uint32_t count = 0;
    struct kith_rng rng;
    struct kith_permutation permutation;
    kith_topology_stream(topology, round / every, &rng);
    kith_permutation_draw(&permutation, topology->peers, &rng);
    for (uint64_t d = 0; d < round % every; d++)
        stride *= width;
    const uint64_t own = kith_permutation_place(&permutation, self);
    const uint64_t first = own - own / stride % width * stride;
    for (uint64_t k = 0; k < width; k++) {
        const uint64_t place = first + k * stride;
        if (place == own || place >= topology->peers)
            continue;
        kith_topology_insert(
            out, NULL, count++,
            kith_permutation_peer(&permutation, (uint32_t)place), 0);
    }
    for (uint32_t i = 0; i < count; i++)
        weights[i] = 1.0 / (count + 1);
    return count;
}

const struct kith_topology_kind kith_topology_grid_groups = {
    .name = "grid-groups",
    .paper = "Ryabinin et al., NeurIPS 2021 (2103.03239)",
    .summary = "groups of `degree` + 1 average exactly, along a grid's "
               "dimensions in turn",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .degree = degree,
    .neighbours = neighbours,
};
