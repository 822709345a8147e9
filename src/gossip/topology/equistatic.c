/* D-EquiStatic: M different shifts u from the shared seed,
 *
 *   W = 1/n I + (n - 1) / (n M) sum_u P^u,
 *
 * a directed circulant, doubly stochastic, whose expectation is J: its gap does
 * not shrink as n grows. The paper draws with replacement; without it M
 * neighbours are M, and M = n - 1 is J itself. */
#include "topology_kinds.h"

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    return kith_degree_prepare(topology, kith_topology_log2(topology->peers),
                               topology->peers - 1, error);
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
    while (b > 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t size(const struct kith_topology *topology)
{
    (void)topology;
    return KITH_DEGREE_MAX * sizeof(uint32_t);
}

/* Shifts that have a divisor in common with n and with each other leave groups
 * that never meet: drawn anew. */
static enum kith_err build(struct kith_topology *topology, void *memory,
                           char *error)
{
    const uint32_t peers = topology->peers, degree = topology->options.degree;
    uint32_t *shifts = memory;
    (void)error;
    for (uint32_t attempt = 0, common = 0; peers > 1 && common != 1;
         attempt++) {
        struct kith_rng rng = kith_topology_stream(topology, attempt);
        common = peers;
        /* Floyd's sampling: each set of M is equally likely. */
        for (uint32_t i = 0; i < degree; i++) {
            const uint32_t last = peers - degree + i;
            uint32_t shift = 1 + kith_rng_below(&rng, last);
            for (uint32_t k = 0; k < i; k++)
                if (shifts[k] == shift) {
                    shift = last;
                    break;
                }
            kith_topology_insert(shifts, NULL, i, shift, 0);
            common = divisor(common, shift);
        }
    }
    return KITH_OK;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t *shifts = topology->built;
    const uint32_t degree = topology->options.degree;
    const double n = topology->peers;
    for (uint32_t i = 0; i < degree; i++)
        kith_list_shift(topology, list, shifts[i], (n - 1) / (n * degree));
}

const struct kith_topology_kind kith_topology_equistatic = {
    .name = "equistatic",
    .paper = "Song et al., NeurIPS 2022 (2210.07881), D-EquiStatic",
    .summary = "send at `degree` random shifts [log2 n]: a gap at any size",
    .is_static = true,
    .directed = true,
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = size,
    .build = build,
    .degree = kith_degree_option,
    .neighbours = neighbours,
};
