/* k-regular circulant: neighbours self +- 1, ..., self +- k / 2 modulo n, and
 * for odd k (n even) the peer opposite, self + n / 2:
 *
 *   rho = max over j of |1 + 2 sum_o cos(2 pi j o / n)| / (k + 1). */
#include "topology_kinds.h"

#define DEGREE_DEFAULT 4u

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const enum kith_err err = kith_degree_prepare(topology, DEGREE_DEFAULT,
                                                  topology->peers - 1, error);
    return err == KITH_OK ? kith_degree_check_even(topology, error) : err;
}

/* In ascending order but for those that wrap around: a list is sorted by
 * insertion. */
static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t degree = topology->options.degree;
    for (uint32_t shift = degree / 2; shift > 0; shift--)
        kith_list_shift(topology, list, topology->peers - shift, 0);
    for (uint32_t shift = 1; shift <= degree / 2; shift++)
        kith_list_shift(topology, list, shift, 0);
    if (degree % 2 == 1)
        kith_list_shift(topology, list, topology->peers / 2, 0);
}

const struct kith_topology_kind kith_topology_circulant = {
    .name = "circulant",
    .paper = "Xiao and Boyd, Systems and Control Letters 53, 2004",
    .summary = "the `degree` nearest on a ring [4]",
    .is_static = true,
    .keys = KITH_TOPOLOGY_READS(WEIGHTS) | KITH_TOPOLOGY_READS(DEGREE),
    .prepare = prepare,
    .degree = kith_degree_option,
    .neighbours = neighbours,
};
