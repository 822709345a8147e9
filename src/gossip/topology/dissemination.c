/* Dissemination: at round k a peer sends to the one 2^(k mod tau) places on,
 * and all change places every tau = ceil(log2 n) rounds.
 *
 *   W_k = (I + P^(2^(k mod tau))) / 2 over places
 *
 * As one-peer-exponential, but everybody meets everybody; for n = 2^tau the tau
 * rounds of one arrangement average exactly. */
#include "permutation.h"
#include "topology_kinds.h"

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint64_t peers = topology->peers;
    const uint32_t tau = kith_topology_log2(topology->peers);
    const uint64_t offset = UINT64_C(1) << (list->round % tau);
    struct kith_permutation permutation;
    kith_permutation_draw(&permutation, topology, list->round / tau);
    const uint64_t place = kith_permutation_place(&permutation, list->self) +
                           (list->sources ? peers - offset : offset);
    kith_list_add(
        list, kith_permutation_peer(&permutation, (uint32_t)(place % peers)),
        0.5);
}

const struct kith_topology_kind kith_topology_dissemination = {
    .name = "dissemination",
    .paper = "Daily et al., GossipGraD, 2018 (1803.05880)",
    .summary = "one neighbour a round, 2^k places on; places change every "
               "log2(n) rounds",
    .directed = true,
    .weighted = true,
    .degree = kith_degree_one,
    .neighbours = neighbours,
};
