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

/* Each once. */
static void add(struct kith_neighbours *list, kith_id id)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->ids[i] == id)
            return;
    kith_list_add(list, id, 0);
}

uint32_t kith_random_cycles_keys(const struct kith_topology *topology,
                                 struct kith_permutation_key *keys)
{
    const uint32_t count = (topology->options.degree + 1) / 2;
    for (uint32_t k = 0; keys != NULL && k < count; k++) {
        struct kith_permutation order;
        kith_permutation_draw(&order, topology, k);
        keys[k] = order.key;
    }
    return count;
}

void kith_random_cycles(const struct kith_topology *topology,
                        const struct kith_permutation_key *keys,
                        struct kith_neighbours *list)
{
    const uint32_t peers = topology->peers, degree = topology->options.degree;
    struct kith_permutation order;
    KITH_ASSERT(peers > 2 && (degree % 2 == 0 || peers % 2 == 0));
    for (uint32_t k = 0; k < (degree + 1) / 2; k++) {
        kith_permutation_keyed(&order, peers, &keys[k]);
        const uint32_t place = kith_permutation_place(&order, list->self);
        if (2 * k + 1 == degree) {
            add(list, kith_permutation_peer(&order, place ^ 1u));
            return;
        }
        add(list, kith_permutation_peer(&order, (place + 1) % peers));
        add(list, kith_permutation_peer(&order, (place + peers - 1) % peers));
    }
}
