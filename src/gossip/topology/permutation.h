/* Permutations of peers over places, drawn from a stream.
 *
 * Up to 256 peers a uniform one, shuffled, O(n); above that a Feistel network
 * of eight rounds over the next power of two, with cycle walking, O(1). */
#ifndef KITH_GOSSIP_TOPOLOGY_PERMUTATION_H
#define KITH_GOSSIP_TOPOLOGY_PERMUTATION_H

#include "kith/topology.h"

#define KITH_SHUFFLED_MAX 256u

/* All that is drawn of a network. */
struct kith_permutation_key {
    uint32_t word[2];
};

struct kith_permutation {
    uint32_t peers, low, high; /* bits of the halves */
    struct kith_permutation_key key;
    uint32_t order[KITH_SHUFFLED_MAX]; /* (peers): who stands at a place */
};

/* Of all peers, from the stream of this round. */
void kith_permutation_draw(struct kith_permutation *permutation,
                           const struct kith_topology *topology,
                           uint64_t round);
/* The same from the key that such a draw has left, of more peers than are
 * shuffled. */
void kith_permutation_keyed(struct kith_permutation *permutation,
                            uint32_t peers,
                            const struct kith_permutation_key *key);
uint32_t kith_permutation_place(const struct kith_permutation *permutation,
                                kith_id peer);
kith_id kith_permutation_peer(const struct kith_permutation *permutation,
                              uint32_t place);

#endif
