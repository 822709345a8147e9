/* A random perfect matching a round: a permutation of all peers from the shared
 * seed, whose neighbours in pairs average; of an odd number the last sits out.
 *
 *   E Gamma' / Gamma = (n - 2) / (2 (n - 1)), n even; 1 / 2, n odd.
 *
 * Up to 256 peers it is a uniform permutation, shuffled by each call, O(n);
 * above that a Feistel network of eight rounds over the next power of two, with
 * cycle walking, so that a call costs O(1). */
#include "private.h"

#include "kith/assert.h"

extern const struct kith_topology_kind kith_topology_random_matching;

#define SHUFFLED_MAX 256u
#define FEISTEL_ROUNDS 8u

struct feistel {
    uint32_t key[2];
    uint32_t low, high; /* bits of the halves */
};

static uint32_t scramble(const struct feistel *feistel, uint32_t round,
                         uint32_t half)
{
    const uint32_t counter[4] = {half, round, 0, 0};
    uint32_t word[4];
    kith_philox(feistel->key, counter, word);
    return word[0];
}

/* One way or back: even rounds change the low half, odd ones the high half. */
static uint32_t feistel_once(const struct feistel *feistel, bool back,
                             uint32_t value)
{
    const uint32_t low_mask = (1u << feistel->low) - 1;
    const uint32_t high_mask = (1u << feistel->high) - 1;
    uint32_t low = value & low_mask, high = value >> feistel->low;
    for (uint32_t step = 0; step < FEISTEL_ROUNDS; step++) {
        const uint32_t round = back ? FEISTEL_ROUNDS - 1 - step : step;
        if (round % 2 == 0)
            low ^= scramble(feistel, round, high) & low_mask;
        else
            high ^= scramble(feistel, round, low) & high_mask;
    }
    return high << feistel->low | low;
}

static uint32_t feistel_walk(const struct feistel *feistel, bool back,
                             uint32_t peers, uint32_t value)
{
    do
        value = feistel_once(feistel, back, value);
    while (value >= peers);
    return value;
}

static kith_id feistel_partner(uint32_t peers, kith_id self,
                               struct kith_rng *rng)
{
    const uint32_t bits = kith_topology_log2(peers);
    const struct feistel feistel = {
        .key = {kith_rng_u32(rng), kith_rng_u32(rng)},
        .low = bits / 2,
        .high = bits - bits / 2};
    const uint32_t other = feistel_walk(&feistel, false, peers, self) ^ 1u;
    return other < peers ? feistel_walk(&feistel, true, peers, other)
                         : KITH_NOBODY;
}

static kith_id shuffled_partner(uint32_t peers, kith_id self,
                                struct kith_rng *rng)
{
    uint32_t order[SHUFFLED_MAX];
    for (uint32_t i = 0; i < peers; i++)
        order[i] = i;
    kith_rng_shuffle(rng, order, peers);
    uint32_t place = 0;
    while (order[place] != self)
        place++;
    return (place ^ 1u) < peers ? order[place ^ 1u] : KITH_NOBODY;
}

static uint32_t neighbours(const struct kith_topology *topology, kith_id self,
                           uint64_t round, kith_id out[KITH_DEGREE_MAX],
                           double weights[KITH_DEGREE_MAX])
{
    struct kith_rng rng;
    kith_topology_stream(topology, round, &rng);
    out[0] = topology->peers <= SHUFFLED_MAX
                 ? shuffled_partner(topology->peers, self, &rng)
                 : feistel_partner(topology->peers, self, &rng);
    weights[0] = 0.5;
    return out[0] == KITH_NOBODY ? 0 : 1;
}

static uint32_t degree(const struct kith_topology *topology, kith_id self)
{
    (void)self;
    return topology->peers > 1 ? 1 : 0;
}

/* W is a projection and pairs are equally likely: E W^T W = I - n P (I - J) /
 * 2, P the chance of a pair. */
static struct kith_topology_contraction
contraction(const struct kith_topology *topology)
{
    const double n = topology->peers;
    const double left =
        topology->peers % 2 == 1 ? 0.5 : (n - 2) / (2 * (n - 1));
    return (struct kith_topology_contraction){.mean = left, .worst = left};
}

const struct kith_topology_kind kith_topology_random_matching = {
    .name = "random-matching",
    .paper = "Kolehmainen et al., 2025 (2506.10911); Boyd et al. 2006",
    .summary = "everybody in a random pair, anew each round; odd ones sit out",
    .weighted = true,
    .degree = degree,
    .neighbours = neighbours,
    .contraction = contraction,
};
