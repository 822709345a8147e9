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

extern const struct kith_topology_kind kith_topology_regions;

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

static kith_id first_of(uint32_t peers, uint32_t regions, uint32_t region)
{
    const uint32_t more = peers % regions;
    return region * (peers / regions) + (region < more ? region : more);
}

static uint32_t size_of(uint32_t peers, uint32_t regions, uint32_t region)
{
    return peers / regions + (region < peers % regions ? 1 : 0);
}

static struct place place_of(uint32_t peers, uint32_t regions, kith_id self)
{
    const uint32_t size = peers / regions, more = peers % regions;
    const uint32_t large = more * (size + 1); /* peers of the larger ones */
    struct place place;
    place.region =
        self < large ? self / (size + 1) : more + (self - large) / size;
    place.first = first_of(peers, regions, place.region);
    place.size = size_of(peers, regions, place.region);
    place.member = self - place.first;
    return place;
}

/* Regions beside `region` that have a member `member`. */
static uint32_t beside(uint32_t peers, uint32_t regions, uint32_t region,
                       uint32_t member, uint32_t out[2])
{
    const uint32_t next = (region + 1) % regions;
    const uint32_t last = (region + regions - 1) % regions;
    uint32_t count = 0;
    if (regions > 1 && member < size_of(peers, regions, next))
        out[count++] = next;
    if (regions > 2 && member < size_of(peers, regions, last))
        out[count++] = last;
    return count;
}

static uint32_t within(const struct place *place, kith_id *out, double *weights)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < place->size; k++) {
        if (k == place->member)
            continue;
        out[count] = place->first + k;
        weights[count++] = 1.0 / place->size;
    }
    return count;
}

static uint32_t between(const struct kith_topology *topology,
                        const struct place *place, kith_id *out,
                        double *weights)
{
    const uint32_t peers = topology->peers, regions = topology->options.regions;
    uint32_t others[2], theirs[2];
    if (topology->options.leaders && place->member > 0)
        return 0;
    const uint32_t count =
        beside(peers, regions, place->region, place->member, others);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t degree =
            beside(peers, regions, others[i], place->member, theirs);
        kith_topology_insert(out, weights, i,
                             first_of(peers, regions, others[i]) +
                                 place->member,
                             1.0 / (1.0 + (degree > count ? degree : count)));
    }
    return count;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const struct place place =
        place_of(topology->peers, topology->options.regions, self);
    return round % 2 == 0 ? within(&place, out, weights)
                          : between(topology, &place, out, weights);
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    const uint32_t regions = topology->options.regions;
    const struct place place = place_of(topology->peers, regions, self);
    uint32_t others[2];
    const bool talks = !topology->options.leaders || place.member == 0;
    const uint32_t outside = talks ? beside(topology->peers, regions,
                                            place.region, place.member, others)
                                   : 0;
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
