/* The rounds of an all-reduce by recursive doubling.
 *
 *   n = 2^m + r;  first, where r > 0:  2^m + i sends to i
 *   round k < m:                       i and i xor 2^k exchange, i < 2^m
 *   last, where r > 0:                 i sends to 2^m + i
 *
 * Source: Thakur et al., "Optimization of collective communication operations
 * in MPICH", 2005. */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_collective_doubling;

static uint32_t whole_of(const struct kith_topology *topology)
{
    uint32_t whole = 1;
    while (2 * whole <= topology->peers)
        whole *= 2;
    return whole;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

static uint64_t period(const struct kith_topology *topology)
{
    const uint32_t whole = whole_of(topology);
    const uint64_t rounds = kith_topology_log2(whole);
    return topology->peers == 1 ? 1
                                : rounds + (topology->peers > whole ? 2 : 0);
}

static uint32_t pair_of(const struct kith_topology *topology, kith_id self,
                        uint64_t round, bool sends, kith_id *other)
{
    const uint32_t whole = whole_of(topology);
    const bool rest = topology->peers > whole;
    const uint64_t phase = round % period(topology);
    const bool first = rest && phase == 0;
    const bool last = rest && phase + 1 == period(topology);
    if (topology->peers == 1)
        return 0;
    if (!first && !last) {
        *other = self ^ (kith_id)(UINT32_C(1) << (phase - (rest ? 1 : 0)));
        return self < whole ? 1 : 0;
    }
    const bool above = self >= whole;
    const bool below = self < topology->peers - whole;
    if (!(sends == first ? above : below))
        return 0;
    *other = above ? self - whole : self + whole;
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

const struct kith_topology_kind kith_topology_collective_doubling = {
    .name = "collective-doubling",
    .paper = "Thakur et al., 2005",
    .summary = "of allreduce-doubling: pairs 1, 2, 4, ... apart exchange sums",
    .directed = true,
    .collective = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
    .period = period,
};
