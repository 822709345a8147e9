/* One-peer exponential: at round k self sends to self + 2^(k mod tau) modulo n,
 *
 *   W_k = (I + P^(2^(k mod tau))) / 2,  tau = ceil(log2 n).
 *
 * For n = 2^tau the product over any tau consecutive rounds is exactly J. */
#include <stddef.h>

#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_one_peer_exponential;

static uint32_t degree(uint32_t peers, kith_id self)
{
    (void)self;
    return peers > 1 ? 1 : 0;
}

static uint32_t neighbours(uint32_t peers, kith_id self, uint64_t round,
                           kith_id out[KITH_DEGREE_MAX])
{
    if (peers == 1)
        return 0;
    uint32_t tau = 0;
    while (UINT64_C(1) << tau < peers)
        tau++;
    const uint64_t offset = UINT64_C(1) << (round % tau);
    out[0] = (kith_id)((self + offset) % peers);
    return 1;
}

const struct kith_topology_kind kith_topology_one_peer_exponential = {
    .name = "one-peer-exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 4",
    .summary = "one neighbour a round, exact average after log2(n) rounds",
    .directed = true,
    .degree = degree,
    .neighbours = neighbours,
};
