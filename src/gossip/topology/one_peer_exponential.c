/* One-peer exponential: at round k self sends to self + 2^(k mod tau) modulo n,
 *
 *   W_k = (I + P^(2^(k mod tau))) / 2,  tau = ceil(log2 n).
 *
 * For n = 2^tau the product over any tau consecutive rounds is exactly J; else
 * it leaves max_k |sin(pi k 2^tau / n) / sin(pi k / n)| / 2^tau. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_one_peer_exponential;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t tau = kith_topology_log2(topology->peers);
    return tau == 0 ? 1 : tau;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const uint64_t offset = UINT64_C(1) << (round % period(topology));
    (void)weights;
    out[0] = (kith_id)((self + offset) % topology->peers);
    return 1;
}

static uint32_t sources(const struct kith_topology *topology, kith_id self,
                        uint64_t round, kith_id in[KITH_DEGREE_MAX],
                        double weights[KITH_DEGREE_MAX])
{
    const uint64_t peers = topology->peers;
    const uint64_t offset = UINT64_C(1) << (round % period(topology));
    (void)weights;
    in[0] = (kith_id)((self + peers - offset) % peers);
    return 1;
}

const struct kith_topology_kind kith_topology_one_peer_exponential = {
    .name = "one-peer-exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 4",
    .summary = "one neighbour a round, exact average after log2(n) rounds",
    .directed = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
    .period = period,
};
