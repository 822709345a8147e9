/* A random graph of degree d that is not stored: the union of d / 2 cycles
 * through all peers in a random order each, and for odd d of random pairs.
 * Where two of them have an edge in common it counts once: about d^2 / 2 peers,
 * however many there are, have a neighbour less. Any one cycle connects it; its
 * gap is that of random regular graphs.
 *
 * Source: Friedman, A proof of Alon's second eigenvalue conjecture, 2008 (the
 * model H_n,d). */
#include "kith/assert.h"
#include "permutation.h"
#include "topology_kinds.h"

void kith_random_cycles_draw(const struct kith_topology *topology,
                             struct kith_networks *orders)
{
    KITH_ASSERT(topology->options.degree <= KITH_DEGREE_MAX);
    kith_networks_draw(orders, topology, (topology->options.degree + 1) / 2);
}

/* Ascending, each once: equal ones have the same place, and the next one, which
 * would be the second's, stays empty. All comparisons are made, for they depend
 * on nothing and no branch on them. */
static void put_in_order(const uint32_t *ids, uint32_t count,
                         struct kith_neighbours *list)
{
    uint32_t place[KITH_DEGREE_MAX] = {0};
    kith_id sorted[KITH_DEGREE_MAX];
    KITH_ASSERT(count <= KITH_DEGREE_MAX);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < count; k++)
            place[k] += (int32_t)ids[i] < (int32_t)ids[k];
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = KITH_NOBODY;
    for (uint32_t i = 0; i < count; i++)
        sorted[place[i]] = ids[i];
    for (uint32_t i = 0; i < count; i++)
        if (sorted[i] != KITH_NOBODY)
            kith_list_add(list, sorted[i], 0);
}

void kith_random_cycles(const struct kith_topology *topology,
                        const struct kith_networks *orders,
                        struct kith_neighbours *list)
{
    const uint32_t peers = topology->peers, count = orders->count;
    const bool pairs = topology->options.degree % 2 == 1;
    uint32_t places[KITH_NETWORKS_MAX], ids[2 * KITH_NETWORKS_MAX];
    KITH_ASSERT(count > 0 && (!pairs || peers % 2 == 0));
    for (uint32_t k = 0; k < count; k++)
        places[k] = list->self;
    kith_networks_places(orders, places);
    for (uint32_t k = 0; k < count; k++) {
        ids[k] = places[k] + 1 < peers ? places[k] + 1 : 0;
        ids[count + k] = places[k] > 0 ? places[k] - 1 : peers - 1;
    }
    if (pairs)
        ids[count - 1] = ids[2 * count - 1] = places[count - 1] ^ 1u;
    kith_networks_peers(orders, ids);
    kith_networks_peers(orders, ids + count);
    put_in_order(ids, 2 * count, list);
}
