/* OD-EquiDyn: each round all draw the same p from 1..n-1, and
 *
 *   x_i <- (1 - b) x_i + b x_(i + p mod n),   b = eta (n - 1) / n.
 *
 * E Gamma' / Gamma = a^2 + b^2 - 2 a b / (n - 1), a = 1 - b: least for
 * eta = n / (2 (n - 1)), that is b = 1/2, which is the default; the paper's
 * code has eta 0.53 for n = 17, and eta = 1 hardly contracts. */
#include "topology_kinds.h"

static enum kith_err prepare(struct kith_topology *topology, char *error)
{
    const double n = topology->peers;
    (void)error;
    if (topology->options.eta == 0 && topology->peers > 1)
        topology->options.eta = n / (2 * (n - 1));
    return KITH_OK;
}

static double share_of(const struct kith_topology *topology)
{
    const double n = topology->peers;
    return topology->options.eta * (n - 1) / n;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    struct kith_rng rng = kith_topology_stream(topology, list->round);
    const uint32_t back = 1 + kith_rng_below(&rng, topology->peers - 1);
    kith_list_shift(topology, list, topology->peers - back, share_of(topology));
}

static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double b = share_of(topology), a = 1 - b;
    const double left =
        topology->peers > 1
            ? a * a + b * b - 2 * a * b / (topology->peers - 1.0)
            : 0;
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_od_equidyn = {
    .name = "od-equidyn",
    .paper = "Song et al., NeurIPS 2022 (2210.07881), Algorithm 1",
    .summary = "a random shift each round, the same for all; directed",
    .directed = true,
    .weighted = true,
    .keys = KITH_TOPOLOGY_READS(ETA),
    .prepare = prepare,
    .degree = kith_degree_one,
    .neighbours = neighbours,
    .contraction = contraction,
};
