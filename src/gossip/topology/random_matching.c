/* A random perfect matching a round: a permutation of all peers from the shared
 * seed, whose neighbours in pairs average; of an odd number the last sits out.
 *
 *   E Gamma' / Gamma = (n - 2) / (2 (n - 1)), n even; 1 / 2, n odd. */
#include "permutation.h"
#include "topology_kinds.h"

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    struct kith_permutation permutation;
    kith_permutation_draw(&permutation, topology, list->round);
    const uint32_t other =
        kith_permutation_place(&permutation, list->self) ^ 1u;
    if (other < topology->peers)
        kith_list_add(list, kith_permutation_peer(&permutation, other), 0.5);
}

/* W is a projection and pairs are equally likely: E W^T W = I - n P (I - J) /
 * 2, P the chance of a pair. */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double n = topology->peers;
    const double left =
        topology->peers % 2 == 1 ? 0.5 : (n - 2) / (2 * (n - 1));
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_random_matching = {
    .name = "random-matching",
    .paper = "Kolehmainen et al., 2025 (2506.10911); Boyd et al. 2006",
    .summary = "everybody in a random pair, anew each round; odd ones sit out",
    .weighted = true,
    .degree = kith_degree_one,
    .neighbours = neighbours,
    .contraction = contraction,
};
