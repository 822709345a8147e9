/* Any pair: a partner is drawn uniformly from all other live peers, anew for
 * every exchange. For one random pair a tick, E|x - mean|^2 shrinks by
 * 1 - 1 / (n - 1). */
#include "kith/topology.h"

extern const struct kith_topology_kind kith_topology_random;

static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double left =
        topology->peers > 1 ? 1 - 1 / (topology->peers - 1.0) : 0;
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_random = {
    .name = "random",
    .paper = "Boyd et al., IEEE Trans. Information Theory 52(6), 2006",
    .summary = "a partner drawn uniformly from all live peers",
    .contraction = contraction,
};
