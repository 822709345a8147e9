/* The rounds of an all-reduce along a binomial tree: sums go up, the result
 * comes down.
 *
 *   round p < K, K = ceil(log2 n)   i = 2^p (mod 2^(p+1)) sends to i - 2^p
 *   round K + q, k = K - 1 - q      i = 0 (mod 2^(k+1)) sends to i + 2^k
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_collective_tree;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t height = kith_topology_log2(topology->peers);
    return height == 0 ? 1 : 2 * (uint64_t)height;
}

/* From child to parent at a round, and the other way on the way down. */
static uint32_t pair_of(const struct kith_topology *topology, kith_id self,
                        uint64_t round, bool sends, kith_id *other)
{
    const uint64_t phase = round % period(topology),
                   half = period(topology) / 2;
    const bool up = phase < half;
    const uint64_t span = UINT64_C(1) << (up ? phase : 2 * half - 1 - phase);
    const bool parent = self % (2 * span) == 0 && self + span < topology->peers;
    const bool child = self % (2 * span) == span;
    if (topology->peers == 1 || !(sends == up ? child : parent))
        return 0;
    *other = (kith_id)(sends == up ? self - span : self + span);
    return 1;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)weights;
    return pair_of(topology, self, round, true, out);
}

static uint32_t sources(const struct kith_topology *topology, kith_id self,
                        uint64_t round, kith_id in[KITH_DEGREE_MAX],
                        double weights[KITH_DEGREE_MAX])
{
    (void)weights;
    return pair_of(topology, self, round, false, in);
}

const struct kith_topology_kind kith_topology_collective_tree = {
    .name = "collective-tree",
    .paper = "Thakur et al., 2005",
    .summary = "of allreduce-tree: sums go up a binomial tree, the mean down",
    .directed = true,
    .collective = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
    .period = period,
};
