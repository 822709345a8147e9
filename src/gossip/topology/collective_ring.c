/* The rounds of a ring all-reduce: parts of a vector travel to the next peer,
 *
 *   2 (n - 1) rounds, 1 / n of the vector in each, self -> self + 1
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
 */
#include "topology_kinds.h"

static uint64_t period(const struct kith_topology *topology)
{
    return topology->peers > 1 ? 2 * ((uint64_t)topology->peers - 1) : 1;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    kith_list_shift(topology, list, 1, 0);
}

const struct kith_topology_kind kith_topology_collective_ring = {
    .name = "collective-ring",
    .paper = "Patarasuk and Yuan, 2009",
    .summary = "of allreduce-ring: n-ths of a vector go round twice",
    COLLECTIVE_ROUNDS,
};
