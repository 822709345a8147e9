/* k-regular circulant: neighbours self +- 1, ..., self +- k / 2 modulo n, and
 * for odd k (n even) the peer opposite, self + n / 2:
 *
 *   rho = max over j of |1 + 2 sum_o cos(2 pi j o / n)| / (k + 1). */
#include "topology_kinds.h"

extern const struct kith_topology_kind kith_topology_circulant;

#define DEGREE_DEFAULT 4u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const uint32_t most = topology->peers - 1;
    uint32_t *degree = &topology->options.degree;
    if (*degree == 0)
        *degree = DEGREE_DEFAULT < most ? DEGREE_DEFAULT : most;
    if (*degree > most && topology->peers > 1)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: up to %u", *degree,
            topology->peers, most);
    if (*degree % 2 == 1 && topology->peers % 2 == 1)
        return kith_topology_refuse(
            error, KITH_EINVAL,
            "degree: found %u with %u peers; allowed: an even degree, or an "
            "even number of peers",
            *degree, topology->peers);
    return KITH_OK;
}

static uint32_t degree_of(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers == 1 ? 0 : topology->options.degree;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    const uint32_t peers = topology->peers, degree = topology->options.degree;
    uint32_t shifts[KITH_DEGREE_MAX], count = 0;
    (void)round;
    (void)weights;
    for (uint32_t shift = 1; shift <= degree / 2; shift++)
        shifts[count++] = shift;
    if (degree % 2 == 1)
        shifts[count++] = peers / 2;
    for (uint32_t shift = degree / 2; shift > 0; shift--)
        shifts[count++] = peers - shift;
    return kith_shift_forward(peers, self, shifts, count, out);
}

const struct kith_topology_kind kith_topology_circulant = {
    .name = "circulant",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "the `degree` nearest on a ring [4]",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .degree = degree_of,
    .neighbours = neighbours,
};
