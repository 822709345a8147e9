/* The rounds of an all-reduce on two levels: m sites of g ranks beside each
 * other, i is member i mod g of site i / g.
 *
 *   g - 1 rounds    r = 1, 2, ...: to the member r places on, of the own site
 *   m - 1 rounds    r = 1, 2, ...: to the same member of the site r places on
 *   g - 1 rounds    as the first
 *   1 round         with `norms`: to all others of the own site
 *
 * Everybody sends what is its own to whom it is meant for: nothing is handed
 * on, so that a peer that is lost takes its own numbers with it alone.
 *
 * Source: Shi et al., "Towards Scalable Distributed Training of Deep Learning
 * on Public Cloud Clusters", MLSys 2021, HiTopKComm. */
#include "topology_kinds.h"

uint32_t kith_topology_sites(const struct kith_topology *topology,
                             uint32_t peers)
{
    uint32_t sites = 1;
    if (topology != NULL && topology->peers == peers &&
        topology->kind == &kith_topology_collective_sites &&
        topology->options.regions > 0)
        return topology->options.regions;
    for (uint32_t m = 2; (uint64_t)m * m <= peers; m++)
        sites = peers % m == 0 ? m : sites;
    return sites;
}

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    uint32_t *const sites = &topology->options.regions;
    if (*sites == 0)
        *sites = kith_topology_sites(NULL, peers);
    if (*sites > peers || peers % *sites != 0)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "regions: found %u with %u peers; allowed: a divisor of %u, for "
            "all sites have as many members",
            *sites, peers, peers);
    if (*sites - 1 + peers / *sites - 1 > KITH_LINKS_MAX)
        return kith_topology_refuse(
            error, KITH_ELIMIT,
            "regions: found %u with %u peers, %u links of each; allowed: up "
            "to %u of them",
            *sites, peers, *sites - 1 + peers / *sites - 1, KITH_LINKS_MAX);
    return KITH_OK;
}

static uint64_t period(const struct kith_topology *topology)
{
    const uint64_t sites = topology->options.regions;
    const uint64_t members = topology->peers / sites;
    return topology->peers == 1
               ? 1
               : 2 * (members - 1) + sites - 1 + topology->options.norms;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const uint32_t members = topology->peers / topology->options.regions;
    (void)self;
    return topology->options.norms && members > 2 ? members - 1
                                                  : topology->peers > 1;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t sites = topology->options.regions;
    const uint32_t members = topology->peers / sites;
    const uint32_t member = list->self % members, site = list->self / members;
    const struct kith_sites_round at =
        kith_topology_sites_round(topology, list->round);
    if (topology->peers == 1)
        return;
    if (at.way == KITH_SITES_NORMS) {
        for (uint32_t m = 0; m < members; m++)
            if (m != member)
                kith_list_add(list, site * members + m, 0);
        return;
    }
    const bool inside = at.way != KITH_SITES_BETWEEN;
    const uint32_t places = inside ? members : sites;
    const uint32_t by = list->sources ? places - at.shift : at.shift;
    const kith_id id = inside ? site * members + (member + by) % members
                              : (site + by) % sites * members + member;
    kith_list_add(list, id, 0);
}

struct kith_sites_round
kith_topology_sites_round(const struct kith_topology *topology, uint64_t round)
{
    const uint32_t sites = kith_topology_sites(topology, topology->peers);
    const uint32_t reduce = topology->peers / sites - 1;
    const uint32_t between = reduce + sites - 1;
    const uint32_t all = between + reduce + topology->options.norms;
    const uint32_t phase = (uint32_t)(round % (topology->peers == 1 ? 1 : all));
    if (phase < reduce)
        return (struct kith_sites_round){KITH_SITES_REDUCE, phase + 1};
    if (phase < between)
        return (struct kith_sites_round){KITH_SITES_BETWEEN,
                                         phase - reduce + 1};
    if (phase < between + reduce)
        return (struct kith_sites_round){KITH_SITES_GATHER,
                                         phase - between + 1};
    return (struct kith_sites_round){KITH_SITES_NORMS, 1};
}

const struct kith_topology_kind kith_topology_collective_sites = {
    .name = "collective-sites",
    .paper = "Shi et al., MLSys 2021",
    .summary = "of two-level: shards within each of `regions` sites, lists "
               "between them, shards again",
    .keys = KITH_TOPOLOGY_READS(REGIONS) | KITH_TOPOLOGY_READS(NORMS),
    .prepare = prepare,
    .directed = true,
    .collective = true,
    .degree = degree,
    .neighbours = neighbours,
    .period = period,
};
