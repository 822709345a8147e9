/* The rounds of an all-reduce by recursive doubling.
 *
 *   n = 2^m + r;  first, where r > 0:  2^m + i sends to i
 *   round k < m:                       i and i xor 2^k exchange, i < 2^m
 *   last, where r > 0:                 i sends to 2^m + i
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005. */
#include "topology_kinds.h"

static uint32_t whole_of(const struct kith_topology *topology)
{
    uint32_t whole = 1;
    while (2 * whole <= topology->peers)
        whole *= 2;
    return whole;
}

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t whole = whole_of(topology);
    const uint64_t rounds = kith_topology_log2(whole);
    return topology->peers == 1 ? 1
                                : rounds + (topology->peers > whole ? 2 : 0);
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t whole = whole_of(topology);
    const bool rest = topology->peers > whole;
    const uint64_t phase = list->round % period(topology);
    const bool first = rest && phase == 0;
    const bool last = rest && phase + 1 == period(topology);
    const kith_id self = list->self;
    if (!first && !last) {
        if (self < whole)
            kith_list_add(list, self ^ UINT32_C(1) << (phase - rest), 0);
        return;
    }
    if (first == list->sources) {
        if (self < topology->peers - whole)
            kith_list_add(list, self + whole, 0);
    } else if (self >= whole) {
        kith_list_add(list, self - whole, 0);
    }
}

const struct kith_topology_kind kith_topology_collective_doubling = {
    .name = "collective-doubling",
    .paper = "Thakur et al., 2005",
    .summary = "of allreduce-doubling: pairs 1, 2, 4, ... apart exchange sums",
    COLLECTIVE_ROUNDS,
};
