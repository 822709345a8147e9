/* OU-EquiDyn: each round all draw the same p from 1..n-1 and start s, and scan
 * i = s, s + 1, ..., s + n - 1: i and i + p pair where both are free, and
 * average. What the scan leaves has a closed form in u = i - s mod n:
 *
 *   p <= n / 2  the chains u, u + p, u + 2 p, ... (u < p) below n pair from
 *               their start; an odd one's last stays alone, for the head of the
 *               chain that it would wrap to is taken;
 *   p > n / 2   q = n - p: u < q pairs with u + p, and the chains of step q in
 *               q..p-1 pair from their start. */
#include "topology_kinds.h"

#include <math.h>

/* Place of the partner in a chain of `step` over first..end-1, or end. */
static uint32_t chain_partner(uint32_t u, uint32_t first, uint32_t end,
                              uint32_t step)
{
    const bool even = (u - first) / step % 2 == 0;
    if (!even)
        return u - step;
    return u + step < end ? u + step : end;
}

/* Of u among n with shift p; n: alone. */
static uint32_t partner_of(uint32_t n, uint32_t p, uint32_t u)
{
    const uint32_t q = n - p;
    if (p <= q)
        return chain_partner(u, 0, n, p);
    if (u < q)
        return u + p;
    if (u >= p)
        return u - p;
    const uint32_t partner = chain_partner(u, q, p, q);
    return partner == p ? n : partner;
}

static void neighbours(const struct kith_topology *topology,
                       struct kith_neighbours *list)
{
    const uint32_t n = topology->peers;
    struct kith_rng rng = kith_topology_stream(topology, list->round);
    const uint32_t p = 1 + kith_rng_below(&rng, n - 1);
    const uint32_t s = kith_rng_below(&rng, n);
    const uint32_t u = list->self >= s ? list->self - s : list->self + (n - s);
    const uint32_t partner = partner_of(n, p, u);
    if (partner < n)
        kith_list_add(list, (kith_id)(((uint64_t)partner + s) % n), 0.5);
}

/* Pairs that a scan with shift p finds. */
static uint32_t pairs_of(uint32_t n, uint32_t p)
{
    const uint32_t q = n - p, step = p <= q ? p : q;
    const uint32_t first = p <= q ? 0 : q, end = p <= q ? n : p;
    uint32_t pairs = p <= q ? 0 : q;
    const uint32_t whole = (end - first) / step, over = (end - first) % step;
    /* `over` chains have one place more than the others. */
    pairs += over * ((whole + 1) / 2) + (step - over) * (whole / 2);
    return pairs;
}

/* W projects, and s is uniform: E W^T W = E W is a circulant with eigenvalues
 * 1 - 1 / (n - 1) sum_p pairs(p) / n (1 - cos(2 pi k p / n)). */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const uint32_t n = topology->peers;
    const double turn = 6.283185307179586476925286766559;
    struct kith_topology_contraction left = {0, 0};
    for (uint32_t k = 1; k < n; k++) {
        double value = 1;
        for (uint32_t p = 1; p < n; p++) {
            const double angle = turn * (double)((uint64_t)k * p % n) / n;
            value -= pairs_of(n, p) * (1 - cos(angle)) / (n - 1.0) / n;
        }
        left.mean += value / (n - 1.0);
        left.worst = value > left.worst ? value : left.worst;
    }
    return left;
}

const struct kith_topology_kind kith_topology_ou_equidyn = {
    .name = "ou-equidyn",
    .paper = "Song et al., NeurIPS 2022 (2210.07881), Algorithm 2",
    .summary = "pairs at a random shift each round, the same for all",
    .weighted = true,
    .degree = kith_degree_one,
    .neighbours = neighbours,
    .contraction = contraction,
};
