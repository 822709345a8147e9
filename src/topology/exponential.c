/* Static exponential graph: self sends to self + 2^j modulo n, j < tau,
 *
 *   W = (I + sum_j P^(2^j)) / (tau + 1),  tau = ceil(log2 n),
 *
 * a directed circulant, so W is doubly stochastic without weights of its own.
 * rho = (tau - 1) / (tau + 1) for even n, strictly smaller for odd n. */
#include <stddef.h>

#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_exponential;

static uint32_t degree(uint32_t peers, kith_id self)
{
    (void)self;
    uint32_t tau = 0;
    while (UINT64_C(1) << tau < peers)
        tau++;
    return tau;
}

/* Offsets ascend, so those that wrap round come first, in order. */
static uint32_t neighbours(uint32_t peers, kith_id self, uint64_t round,
                           kith_id out[KITH_DEGREE_MAX])
{
    (void)round;
    const uint32_t room = peers - self; /* offsets below it do not wrap */
    uint32_t count = 0;
    for (uint32_t offset = 1; offset < peers; offset *= 2)
        if (offset >= room)
            out[count++] = offset - room;
    for (uint32_t offset = 1; offset < peers && offset < room; offset *= 2)
        out[count++] = self + offset;
    return count;
}

const struct kith_topology_kind kith_topology_exponential = {
    .name = "exponential",
    .paper = "Ying et al., NeurIPS 2021 (2110.13363), section 3",
    .summary = "send to self + 1, 2, 4, ...: gap 2 / (ceil(log2 n) + 1)",
    .is_static = true,
    .directed = true,
    .degree = degree,
    .neighbours = neighbours,
};
