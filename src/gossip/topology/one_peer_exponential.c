/* One-peer exponential: at round k self sends to self + 2^(k mod tau) modulo n,
 *
 *   W_k = (I + P^(2^(k mod tau))) / 2,  tau = ceil(log2 n).
 *
 * For n = 2^tau the product over any tau consecutive rounds is exactly J; else
 * it leaves max_k |sin(pi k 2^tau / n) / sin(pi k / n)| / 2^tau. */
#include "topology_kinds.h"

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t tau = kith_topology_log2(topology->peers);
    return tau == 0 ? 1 : tau;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_list_shift(topology, list,
                    UINT64_C(1) << (list->round % period(topology)), 0);
}

const struct kith_topology_kind kith_topology_one_peer_exponential = {
    .name = "one-peer-exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 4",
    .summary = "one neighbour a round, exact average after log2(n) rounds",
    .directed = true,
    .degree = kith_degree_one,
    .neighbours = neighbours,
    .period = period,
};
