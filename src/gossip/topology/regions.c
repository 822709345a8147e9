/* Cloud regions: R blocks of consecutive peers, near to each other and far from
 * the next. Two rounds in turn:
 *
 *   even  within each region, complete: W = J of the region
 *   odd   between regions, W_R = Metropolis weights of the ring of regions: the
 *         k-th of a region meets the k-th of both neighbouring regions, or only
 *         the first of each does (`leaders`)
 *
 * With regions of m peers each a cycle leaves lambda_2(W_R) where all members
 * talk, and 1 - (1 - lambda_2(W_R)) / m where leaders do. Where the peers do
 * not divide, the first regions have one more; the last of these meet along
 * what is left of the ring. */
#include "topology_kinds.h"

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    uint32_t *regions = &topology->options.regions;
    if (*regions == 0)
        for (*regions = 1; (*regions + 1) * (*regions + 1) <= peers;)
            ++*regions;
    if (*regions > peers)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "regions: found %u with %u peers; allowed: up to %u", *regions,
            peers, peers);
    return KITH_OK;
}

struct place {
    uint32_t region, member; /* of self */
    uint32_t first, size;    /* of its region */
};

/* region <= regions: the next one's first ends a region. */
static kith_id first_of(const struct kith_topology *topology, uint32_t region)
{
    const uint32_t size = topology->peers / topology->options.regions;
    const uint32_t more = topology->peers % topology->options.regions;
    return region * size + (region < more ? region : more);
}

static struct place place_of(const struct kith_topology *topology, kith_id self)
{
    const uint32_t size = topology->peers / topology->options.regions;
    const uint32_t more = topology->peers % topology->options.regions;
    const uint32_t large = more * (size + 1); /* peers of the larger ones */
    struct place place;
    place.region =
        self < large ? self / (size + 1) : more + (self - large) / size;
    place.first = first_of(topology, place.region);
    place.size = first_of(topology, place.region + 1) - place.first;
    place.member = self - place.first;
    return place;
}

/* Who `member` of `region` meets: the same of the regions beside it that have
 * as many; only leaders may. */
static uint32_t beside(const struct kith_topology *topology, uint32_t region,
                       uint32_t member, uint32_t out[2])
{
    const uint32_t regions = topology->options.regions;
    const uint32_t around[] = {(region + 1) % regions,
                               (region + regions - 1) % regions};
    uint32_t count = 0;
    if (topology->options.leaders && member > 0)
        return 0;
    for (uint32_t i = 0; i < 2 && i + 1 < regions; i++)
        if (first_of(topology, around[i]) + member <
            first_of(topology, around[i] + 1))
            out[count++] = around[i];
    return count;
}

static void add_between(const struct kith_topology *topology,
                        const struct place *place, struct kith_neighbours *list)
{
    uint32_t others[2], theirs[2];
    const uint32_t count =
        beside(topology, place->region, place->member, others);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t degree =
            beside(topology, others[i], place->member, theirs);
        kith_list_add(list, first_of(topology, others[i]) + place->member,
                      1.0 / (1.0 + (degree > count ? degree : count)));
    }
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const struct place place = place_of(topology, list->self);
    if (list->round % 2 == 0)
        kith_list_range(list, place.first, place.first + place.size,
                        1.0 / place.size);
    else
        add_between(topology, &place, list);
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const struct place place = place_of(topology, self);
    uint32_t others[2];
    const uint32_t outside =
        beside(topology, place.region, place.member, others);
    return place.size - 1 > outside ? place.size - 1 : outside;
}

static uint64_t period(const struct kith_topology *topology)
{
    (void)topology;
    return 2;
}

const struct kith_topology_kind kith_topology_regions = {
    .name = "regions",
    .paper = "Lin et al., ICLR 2020 (1808.07217), hierarchical local SGD",
    .summary = "all of a region, then the next regions; all or leaders alone",
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(REGIONS) | KITH_TOPOLOGY_READS(LEADERS),
    .prepare = prepare,
    .degree = degree,
    .neighbours = neighbours,
    .period = period,
};
