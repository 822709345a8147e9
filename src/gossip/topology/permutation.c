/* Permutations of peers over places: see permutation.h. */
#include "permutation.h"

#include "kith/assert.h"
#include "topology_kinds.h"

#define FEISTEL_ROUNDS 8u

static uint32_t scramble(const struct kith_permutation *permutation,
                         uint32_t round, uint32_t half)
{
    const uint32_t counter[4] = {half, round, 0, 0};
    uint32_t word[4];
    kith_philox(permutation->key, counter, word);
    return word[0];
}

/* One way or back: even rounds change the low half, odd ones the high half. */
static uint32_t once(const struct kith_permutation *permutation, bool back,
                     uint32_t value)
{
    const uint32_t low_mask = (1u << permutation->low) - 1;
    const uint32_t high_mask = (1u << permutation->high) - 1;
    uint32_t low = value & low_mask, high = value >> permutation->low;
    for (uint32_t step = 0; step < FEISTEL_ROUNDS; step++) {
        const uint32_t round = back ? FEISTEL_ROUNDS - 1 - step : step;
        if (round % 2 == 0)
            low ^= scramble(permutation, round, high) & low_mask;
        else
            high ^= scramble(permutation, round, low) & high_mask;
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

void kith_permutation_draw(struct kith_permutation *permutation,
                           const struct kith_topology *topology, uint64_t round)
{
    const uint32_t peers = topology->peers;
    struct kith_rng rng = kith_topology_stream(topology, round);
    const uint32_t bits = kith_topology_log2(peers);
    KITH_ASSERT(peers > 0);
    permutation->peers = peers;
    permutation->low = bits / 2;
    permutation->high = bits - bits / 2;
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
