/* n = 2^D peers, neighbours differ in one bit:  rho = (D - 1) / (D + 1). */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_hypercube;

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t peers = topology->peers;
    if ((peers & (peers - 1)) != 0)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "found hypercube with %u peers; allowed: a power of two of them",
            peers);
    return KITH_OK;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return kith_topology_log2(topology->peers);
}

/* Bits that are set lead down, the highest furthest; the others lead up. */
static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    uint32_t count = 0;
    (void)round;
    (void)weights;
    for (uint32_t bit = topology->peers / 2; bit > 0; bit /= 2)
        if (self & bit)
            out[count++] = self ^ bit;
    for (uint32_t bit = 1; bit < topology->peers; bit *= 2)
        if (!(self & bit))
            out[count++] = self ^ bit;
    return count;
}

const struct kith_topology_kind kith_topology_hypercube = {
    .name = "hypercube",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "log2(n) neighbours, one for each bit; n a power of two",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS),
    .prepare = prepare,
    .degree = degree,
    .neighbours = neighbours,
};
