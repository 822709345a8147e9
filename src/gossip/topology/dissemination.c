/* Dissemination: at round k a peer sends to the one 2^(k mod tau) places on,
 * and all change places every tau = ceil(log2 n) rounds.
 *
 *   W_k = (I + P^(2^(k mod tau))) / 2 over places
 *
 * As one-peer-exponential, but everybody meets everybody; for n = 2^tau the tau
 * rounds of one arrangement average exactly. */
#include "permutation.h"
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_dissemination;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

/* Who stands 2^k places behind (back) or on. */
static uint32_t find(const struct kith_topology *topology, kith_id self,
                     uint64_t round, bool back, kith_id *id, double *weight)
{
    const uint64_t peers = topology->peers;
    const uint32_t tau = kith_topology_log2(topology->peers);
    const uint64_t offset = UINT64_C(1) << (round % tau);
    struct kith_rng rng;
    struct kith_permutation permutation;
    kith_topology_stream(topology, round / tau, &rng);
    kith_permutation_draw(&permutation, topology->peers, &rng);
    const uint64_t place = kith_permutation_place(&permutation, self);
    const uint64_t other = place + (back ? peers - offset : offset);
    *id = kith_permutation_peer(&permutation, (uint32_t)(other % peers));
    *weight = 0.5;
    return 1;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    return find(topology, self, round, false, out, weights);
}

static uint32_t sources(const struct kith_topology *topology, kith_id self,
                        uint64_t round, kith_id in[KITH_DEGREE_MAX],
                        double weights[KITH_DEGREE_MAX])
{
    return find(topology, self, round, true, in, weights);
}

const struct kith_topology_kind kith_topology_dissemination = {
    .name = "dissemination",
    .paper = "Daily et al., GossipGraD, 2018 (1803.05880)",
    .summary = "one neighbour a round, 2^k places on; places change every "
               "log2(n) rounds",
    .directed = true,
    .weighted = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
};
