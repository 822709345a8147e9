/* Permutations of peers over places, drawn from a stream.
 *
 * Up to 256 peers a uniform one, shuffled, O(n); above that a Feistel network
 * of eight rounds over the next power of two, with cycle walking, O(1). */
#ifndef KITH_GOSSIP_TOPOLOGY_PERMUTATION_H
#define KITH_GOSSIP_TOPOLOGY_PERMUTATION_H

#include "kith/topology.h"

#define KITH_SHUFFLED_MAX 256u

struct kith_permutation {
    uint32_t peers;
    uint32_t key[2];                   /* of even rounds, of odd ones */
    uint32_t order[KITH_SHUFFLED_MAX]; /* (peers): who stands at a place */
};

/* Of all peers, from the stream of this round. */
void kith_permutation_draw(struct kith_permutation *permutation,
                           const struct kith_topology *topology,
                           uint64_t round);
uint32_t kith_permutation_place(const struct kith_permutation *permutation,
                                kith_id peer);
kith_id kith_permutation_peer(const struct kith_permutation *permutation,
                              uint32_t place);

/* Networks alone, as many as cycles make a graph of the most neighbours. They
 * are evaluated together, each with a value of its own. */
#define KITH_NETWORKS_MAX (KITH_DEGREE_MAX / 2)

struct kith_networks {
    uint32_t peers, count; /* peers > KITH_SHUFFLED_MAX */
    uint32_t even[KITH_NETWORKS_MAX], odd[KITH_NETWORKS_MAX]; /* keys */
};

/* Those of kith_permutation_draw() in rounds 0 up to count. */
void kith_networks_draw(struct kith_networks *networks,
                        const struct kith_topology *topology, uint32_t count);
/* values (count): peers become places, or back. */
void kith_networks_places(const struct kith_networks *networks,
                          uint32_t *values);
void kith_networks_peers(const struct kith_networks *networks,
                         uint32_t *values);

#endif
