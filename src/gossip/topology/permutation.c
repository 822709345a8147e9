/* Permutations of peers over places: see permutation.h. */
#include "permutation.h"

#include "kith/assert.h"
#include "topology_kinds.h"

#define FEISTEL_ROUNDS 8u

/* Each round's own function of a half: a key that moves on by the golden ratio,
 * and what makes each bit of 32 depend on all. A whole Philox for each round
 * took half of the time of a run of a million peers.
 *
 * Source: Wellons, Prospecting for Hash Functions, 2018 (lowbias32). */
static uint32_t scramble(const struct kith_permutation *permutation,
                         uint32_t round, uint32_t half)
{
    uint32_t x = half ^ (permutation->key.word[round % 2] +
                         round * UINT32_C(0x9E3779B9));
    x = (x ^ x >> 16) * UINT32_C(0x7FEB352D);
    x = (x ^ x >> 15) * UINT32_C(0x846CA68B);
    return x ^ x >> 16;
}

/* One way or back: even rounds change the low half, odd ones the high half. */
static uint32_t once(const struct kith_permutation *permutation, bool back,
                     uint32_t value)
{
    const uint32_t low_mask = (1u << permutation->low) - 1;
    const uint32_t high_mask = (1u << permutation->high) - 1;
    uint32_t low = value & low_mask, high = value >> permutation->low;
    for (uint32_t round = 0; !back && round < FEISTEL_ROUNDS; round += 2) {
        low ^= scramble(permutation, round, high) & low_mask;
        high ^= scramble(permutation, round + 1, low) & high_mask;
    }
    for (uint32_t round = FEISTEL_ROUNDS; back && round > 0; round -= 2) {
        high ^= scramble(permutation, round - 1, low) & high_mask;
        low ^= scramble(permutation, round - 2, high) & low_mask;
    }
    return high << permutation->low | low;
}

static uint32_t walk(const struct kith_permutation *permutation, bool back,
                     uint32_t value)
{
    do
        value = once(permutation, back, value);
    while (value >= permutation->peers);
    return value;
}

void kith_permutation_keyed(struct kith_permutation *permutation,
                            uint32_t peers,
                            const struct kith_permutation_key *key)
{
    const uint32_t bits = kith_topology_log2(peers);
    KITH_ASSERT(peers > KITH_SHUFFLED_MAX);
    permutation->peers = peers;
    permutation->low = bits / 2;
    permutation->high = bits - bits / 2;
    permutation->key = *key;
}

void kith_permutation_draw(struct kith_permutation *permutation,
                           const struct kith_topology *topology, uint64_t round)
{
    const uint32_t peers = topology->peers;
    struct kith_rng rng = kith_topology_stream(topology, round);
    KITH_ASSERT(peers > 0);
    if (peers > KITH_SHUFFLED_MAX) {
        struct kith_permutation_key key;
        for (unsigned i = 0; i < 2; i++)
            key.word[i] = kith_rng_u32(&rng);
        kith_permutation_keyed(permutation, peers, &key);
        return;
    }
    permutation->peers = peers;
    for (uint32_t i = 0; i < peers; i++)
        permutation->order[i] = i;
    kith_rng_shuffle(&rng, permutation->order, peers);
}

uint32_t kith_permutation_place(const struct kith_permutation *permutation,
                                kith_id peer)
{
    uint32_t place = 0;
    KITH_ASSERT(peer < permutation->peers);
    if (permutation->peers > KITH_SHUFFLED_MAX)
        return walk(permutation, false, peer);
    while (permutation->order[place] != peer)
        place++;
    return place;
}

kith_id kith_permutation_peer(const struct kith_permutation *permutation,
                              uint32_t place)
{
    KITH_ASSERT(place < permutation->peers);
    return permutation->peers > KITH_SHUFFLED_MAX
               ? walk(permutation, true, place)
               : permutation->order[place];
}
