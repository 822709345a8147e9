/* The rounds of a ring all-reduce: parts of a vector travel to the next peer,
 *
 *   2 (n - 1) rounds, 1 / n of the vector in each, self -> self + 1
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
 */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_collective_ring;

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

static uint64_t period(const struct kith_topology *topology)
{
    return topology->peers > 1 ? 2 * ((uint64_t)topology->peers - 1) : 1;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    out[0] = (self + 1) % topology->peers;
    return degree(topology, self);
}

static uint32_t sources(const struct kith_topology *topology, kith_id self,
                        uint64_t round, kith_id in[KITH_DEGREE_MAX],
                        double weights[KITH_DEGREE_MAX])
{
    (void)round;
    (void)weights;
    in[0] = (self + topology->peers - 1) % topology->peers;
    return degree(topology, self);
}

const struct kith_topology_kind kith_topology_collective_ring = {
    .name = "collective-ring",
    .paper = "Patarasuk and Yuan, 2009",
    .summary = "of allreduce-ring: n-ths of a vector go round twice",
    .directed = true,
    .collective = true,
    .degree = degree,
    .neighbours = neighbours,
    .sources = sources,
    .period = period,
};
