/* Partners of two-party exchanges: one draw, whatever is avoided. */
#include "kith/assert.h"
#include "kith/topology.h"

static bool contains(const kith_id *ids, uint32_t count, kith_id id)
{
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Self and the avoided peers, ascending, each once; returns how many. */
static uint32_t sort_excluded(uint32_t peers, kith_id self,
                              const kith_id *avoid, uint32_t avoid_count,
                              kith_id out[KITH_AVOID_MAX + 1])
{
    uint32_t count = 0;
    out[count++] = self;
    for (uint32_t i = 0; i < avoid_count; i++) {
        if (avoid[i] >= peers || contains(out, count, avoid[i]))
            continue;
        uint32_t at = count++;
        for (; at > 0 && out[at - 1] > avoid[i]; at--)
            out[at] = out[at - 1];
        out[at] = avoid[i];
    }
    return count;
}

/* One draw, no rejection: the k-th peer that is not excluded. */
static kith_id draw_any(uint32_t peers, kith_id self, struct kith_rng *rng,
                        const kith_id *avoid, uint32_t avoid_count)
{
    kith_id excluded[KITH_AVOID_MAX + 1];
    uint32_t count = sort_excluded(peers, self, avoid, avoid_count, excluded);
    if (count == peers)
        count = sort_excluded(peers, self, NULL, 0, excluded);
    if (count == peers)
        return KITH_NOBODY;

    kith_id id = kith_rng_below(rng, peers - count);
    for (uint32_t i = 0; i < count && excluded[i] <= id; i++)
        id++;
    return id;
}

static kith_id draw_neighbour(const kith_id *neighbours, uint32_t count,
                              struct kith_rng *rng, const kith_id *avoid,
                              uint32_t avoid_count)
{
    kith_id left[2 * KITH_DEGREE_MAX];
    uint32_t left_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!contains(avoid, avoid_count, neighbours[i]))
            left[left_count++] = neighbours[i];
    if (left_count > 0)
        return left[kith_rng_below(rng, left_count)];
    return count > 0 ? neighbours[kith_rng_below(rng, count)] : KITH_NOBODY;
}

kith_id kith_topology_partner(const struct kith_topology *topology,
                              kith_id self, uint64_t round,
                              struct kith_rng *rng, const kith_id *avoid,
                              uint32_t avoid_count, double *weight)
{
    KITH_ASSERT(self < topology->peers);
    KITH_ASSERT(avoid_count <= KITH_AVOID_MAX);
    *weight = 0.5;
    if (kith_topology_is_any_pair(topology->kind))
        return draw_any(topology->peers, self, rng, avoid, avoid_count);

    kith_id out[KITH_DEGREE_MAX];
    double shares[KITH_DEGREE_MAX];
    const uint32_t count = kith_topology_neighbours(
        topology, self, round, out, topology->kind->directed ? shares : NULL);
    const kith_id partner = draw_neighbour(out, count, rng, avoid, avoid_count);
    for (uint32_t i = 0; topology->kind->directed && i < count; i++)
        if (out[i] == partner)
            *weight = shares[i];
    return partner;
}

kith_id kith_topology_donor(const struct kith_topology *topology, kith_id self,
                            uint64_t round, struct kith_rng *rng,
                            const kith_id *avoid, uint32_t avoid_count)
{
    kith_id both[2 * KITH_DEGREE_MAX];
    double weights[KITH_DEGREE_MAX];
    KITH_ASSERT(topology->kind->directed);
    uint32_t count =
        kith_topology_neighbours(topology, self, round, both, weights);
    count +=
        kith_topology_sources(topology, self, round, both + count, weights);
    return draw_neighbour(both, count, rng, avoid, avoid_count);
}
