/* A regular graph whose peers change places each round: a random one of
 * `degree` neighbours is drawn once, and a fresh permutation of all peers says
 * who stands where.
 *
 *   W_ij = 1 / (s + 1),   E Gamma' / Gamma = (1 - s / (n - 1)) / (s + 1)
 *
 * for any regular graph underneath, as E tr(W^2) = n / (s + 1). */
#include "permutation.h"
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_random_regular;

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    topology->options.graph = &kith_topology_random_regular;
    return kith_beneath_prepare(topology, error);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_id places[KITH_DEGREE_MAX];
    struct kith_permutation permutation;
    kith_permutation_draw(&permutation, topology, list->round);
    const uint32_t count = kith_topology_neighbours(
        topology->built, kith_permutation_place(&permutation, list->self), 0,
        places, NULL);
    for (uint32_t i = 0; i < count; i++)
        kith_list_add(list, kith_permutation_peer(&permutation, places[i]), 0);
}

/* Places are drawn alike: the same from every start. */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double n = topology->peers, s = topology->options.degree;
    const double left = topology->peers > 1 ? (1 - s / (n - 1)) / (s + 1) : 0;
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_regular_rounds = {
    .name = "regular-rounds",
    .paper = "de Vos et al., NeurIPS 2023 (2310.01972), EL-Oracle",
    .summary = "a random graph of `degree` [4], its peers permuted each round",
    .keys = KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .size = kith_beneath_size,
    .build = kith_beneath_build,
    .degree = kith_degree_option,
    .neighbours = neighbours,
    .contraction = contraction,
};
