/* Permutations of peers over places: see permutation.h. */
#include "permutation.h"

#include "kith/assert.h"
#include "topology_kinds.h"

#define FEISTEL_ROUNDS 8u

/* How a value is cut: the bits of its low half, and the masks of both. */
struct cut {
    uint32_t low, low_mask, high_mask;
};

static struct cut cut_of(uint32_t peers)
{
    const uint32_t bits = kith_topology_log2(peers), low = bits / 2;
    KITH_ASSERT(peers > KITH_SHUFFLED_MAX);
    return (struct cut){low, (1u << low) - 1, (1u << (bits - low)) - 1};
}

/* Each round's own function of a half: a key that moves on by the golden ratio,
 * and what makes each bit of 32 depend on all. A whole Philox for each round
 * took half of the time of a run of a million peers.
 *
 * Source: Wellons, Prospecting for Hash Functions, 2018 (lowbias32). */
static uint32_t scramble(uint32_t key, uint32_t round, uint32_t half)
{
    uint32_t x = half ^ (key + round * UINT32_C(0x9E3779B9));
    x = (x ^ x >> 16) * UINT32_C(0x7FEB352D);
    x = (x ^ x >> 15) * UINT32_C(0x846CA68B);
    return x ^ x >> 16;
}

/* One way or back through `count` networks: even rounds change the low half,
 * odd ones the high half. */
static void pass(const struct cut *cut, const uint32_t *even,
                 const uint32_t *odd, bool back, uint32_t *values,
                 uint32_t count)
{
    uint32_t low[KITH_NETWORKS_MAX], high[KITH_NETWORKS_MAX];
    KITH_ASSERT(count <= KITH_NETWORKS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        low[i] = values[i] & cut->low_mask;
        high[i] = values[i] >> cut->low;
    }
    for (uint32_t k = 0; k < FEISTEL_ROUNDS; k++) {
        const uint32_t round = back ? FEISTEL_ROUNDS - 1 - k : k;
        for (uint32_t i = 0; round % 2 == 0 && i < count; i++)
            low[i] ^= scramble(even[i], round, high[i]) & cut->low_mask;
        for (uint32_t i = 0; round % 2 == 1 && i < count; i++)
            high[i] ^= scramble(odd[i], round, low[i]) & cut->high_mask;
    }
    for (uint32_t i = 0; i < count; i++)
        values[i] = high[i] << cut->low | low[i];
}

/* What is beyond the last peer goes on until it is one. */
static void walk(const uint32_t *even, const uint32_t *odd, bool back,
                 uint32_t peers, uint32_t *values, uint32_t count)
{
    const struct cut cut = cut_of(peers);
    pass(&cut, even, odd, back, values, count);
    for (uint32_t i = 0; i < count; i++)
        while (values[i] >= peers)
            pass(&cut, even + i, odd + i, back, values + i, 1);
}

static uint32_t walk_one(const struct kith_permutation *permutation, bool back,
                         uint32_t value)
{
    walk(&permutation->key[0], &permutation->key[1], back, permutation->peers,
         &value, 1);
    return value;
}

void kith_permutation_draw(struct kith_permutation *permutation,
                           const struct kith_topology *topology, uint64_t round)
{
    const uint32_t peers = topology->peers;
    struct kith_rng rng = kith_topology_stream(topology, round);
    KITH_ASSERT(peers > 0);
    permutation->peers = peers;
    if (peers > KITH_SHUFFLED_MAX) {
        permutation->key[0] = kith_rng_u32(&rng);
        permutation->key[1] = kith_rng_u32(&rng);
        return;
    }
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
        return walk_one(permutation, false, peer);
    while (permutation->order[place] != peer)
        place++;
    return place;
}

kith_id kith_permutation_peer(const struct kith_permutation *permutation,
                              uint32_t place)
{
    KITH_ASSERT(place < permutation->peers);
    return permutation->peers > KITH_SHUFFLED_MAX
               ? walk_one(permutation, true, place)
               : permutation->order[place];
}

void kith_networks_draw(struct kith_networks *networks,
                        const struct kith_topology *topology, uint32_t count)
{
    struct kith_permutation one;
    KITH_ASSERT(topology->peers > KITH_SHUFFLED_MAX);
    KITH_ASSERT(count <= KITH_NETWORKS_MAX);
    networks->peers = topology->peers;
    networks->count = count;
    for (uint32_t k = 0; k < count; k++) {
        kith_permutation_draw(&one, topology, k);
        networks->even[k] = one.key[0];
        networks->odd[k] = one.key[1];
    }
}

void kith_networks_places(const struct kith_networks *networks,
                          uint32_t *values)
{
    walk(networks->even, networks->odd, false, networks->peers, values,
         networks->count);
}

void kith_networks_peers(const struct kith_networks *networks, uint32_t *values)
{
    walk(networks->even, networks->odd, true, networks->peers, values,
         networks->count);
}
