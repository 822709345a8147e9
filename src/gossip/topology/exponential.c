/* Static exponential graph: self sends to self + 2^j modulo n, j < tau,
 *
 *   W = (I + sum_j P^(2^j)) / (tau + 1),  tau = ceil(log2 n),
 *
 * a directed circulant, so W is doubly stochastic without weights of its own.
 * rho = (tau - 1) / (tau + 1) for even n, strictly smaller for odd n. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_exponential;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return kith_topology_log2(topology->peers);
}

static uint32_t fill_shifts(uint32_t peers, uint32_t shifts[32])
{
    uint32_t count = 0;
    for (uint32_t shift = 1; shift < peers; shift *= 2)
        shifts[count++] = shift;
    return count;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    uint32_t shifts[32];
    (void)round;
    (void)weights;
    return kith_shift_forward(topology->peers, self, shifts,
                              fill_shifts(topology->peers, shifts), out);
}

static uint32_t sources(const struct kith_topology *topology, kith_id self,
                        uint64_t round, kith_id in[KITH_DEGREE_MAX],
                        double weights[KITH_DEGREE_MAX])
{
    uint32_t shifts[32];
    (void)round;
    (void)weights;
    return kith_shift_backward(topology->peers, self, shifts,
                               fill_shifts(topology->peers, shifts), in);
}

const struct kith_topology_kind kith_topology_exponential = {
    .name = "exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 3",
    .summary = "send to self + 1, 2, 4, ...: gap 2 / (ceil(log2 n) + 1)",
    .is_static = true,
    .directed = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
};
