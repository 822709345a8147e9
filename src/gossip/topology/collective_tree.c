/* The rounds of an all-reduce along a binomial tree: sums go up, the result
 * comes down.
 *
 *   round p < K, K = ceil(log2 n)   i = 2^p (mod 2^(p+1)) sends to i - 2^p
 *   round K + q, k = K - 1 - q      i = 0 (mod 2^(k+1)) sends to i + 2^k
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005. */
#include "topology_kinds.h"

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t height = kith_topology_log2(topology->peers);
    return height == 0 ? 1 : 2 * (uint64_t)height;
}

/* From child to parent at a round, and the other way on the way down. */
static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint64_t phase = list->round % period(topology),
                   half = period(topology) / 2;
    const bool up = phase < half, to_parent = up != list->sources;
    const uint32_t span = UINT32_C(1) << (up ? phase : 2 * half - 1 - phase);
    const kith_id self = list->self;
    if (to_parent && self % (2 * span) == span)
        kith_list_add(list, self - span, 0);
    else if (!to_parent && self % (2 * span) == 0 &&
             self + span < topology->peers)
        kith_list_add(list, self + span, 0);
}

const struct kith_topology_kind kith_topology_collective_tree = {
    .name = "collective-tree",
    .paper = "Thakur et al., 2005",
    .summary = "of allreduce-tree, gtop-k and sync-sgd: sums go up a binomial "
               "tree, what "
               "becomes of them down",
    COLLECTIVE_ROUNDS,
};
