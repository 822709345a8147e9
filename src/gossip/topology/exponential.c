/* Static exponential graph: self sends to self + 2^j modulo n, j < tau,
 *
 *   W = (I + sum_j P^(2^j)) / (tau + 1),  tau = ceil(log2 n),
 *
 * a directed circulant, so W is doubly stochastic without weights of its own.
 * rho = (tau - 1) / (tau + 1) for even n, strictly smaller for odd n. */
#include "topology_kinds.h"

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    for (uint32_t shift = 1; shift < topology->peers; shift *= 2)
        kith_list_shift(topology, list, shift, 0);
}

const struct kith_topology_kind kith_topology_exponential = {
    .name = "exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 3",
    .summary = "send to self + 1, 2, 4, ...: gap 2 / (ceil(log2 n) + 1)",
    .is_static = true,
    .directed = true,
    .degree = kith_degree_log2,
    .neighbours = neighbours,
};
