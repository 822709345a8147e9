/* Philox4x32-10: ten rounds of two 32x32 -> 64 multiplications over a counter,
 * with a Weyl sequence on the key. Salmon et al., SC 2011, section 3.3.
 *
 *   counter = {block, entity low, entity high, stream}, key = {seed low, high}
 *
 * All arithmetic is on integers: the same draws in every build. */
#include "kith/rng.h"

#include <string.h>

#include "kith/assert.h"
#include "rng_table.h"

enum { ROUNDS = 10 };
#define MULTIPLIER_0 UINT32_C(0xD2511F53)
#define MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9)
#define WEYL_1 UINT32_C(0xBB67AE85)

/* Streams are few; the counter's fourth word has room above them, where a
 * stream that outlives 2^32 blocks goes on without repeating itself. */
#define STREAM_CARRY (UINT32_C(1) << 16)
_Static_assert(KITH_STREAM_COUNT < 1 << 16, "streams leave room for the carry");

void kith_philox(const uint32_t key[2], const uint32_t counter[4],
                 uint32_t word[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1];
    uint32_t c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0;
        const uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

void kith_rng_init(struct kith_rng *rng, uint64_t seed, enum kith_stream stream,
                   uint64_t entity)
{
    KITH_ASSERT(stream < KITH_STREAM_COUNT);
    *rng = (struct kith_rng){
        .seed = seed, .entity = entity, .stream = (uint32_t)stream, .used = 4};
}

static void next_block(struct kith_rng *rng)
{
    const uint32_t key[2] = {(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)};
    const uint32_t counter[4] = {rng->block, (uint32_t)rng->entity,
                                 (uint32_t)(rng->entity >> 32), rng->stream};
    kith_philox(key, counter, rng->word);
    rng->used = 0;
    rng->block++;
    if (rng->block == 0)
        rng->stream += STREAM_CARRY;
}

uint32_t kith_rng_u32(struct kith_rng *rng)
{
    if (rng->used == 4)
        next_block(rng);
    return rng->word[rng->used++];
}

uint64_t kith_rng_u64(struct kith_rng *rng)
{
    const uint64_t low = kith_rng_u32(rng);
    const uint64_t high = kith_rng_u32(rng);
    return high << 32 | low;
}

/* Lemire, "Fast random integer generation in an interval", TOMACS 2019: the
 * high half of u32 * n, redrawn while the low half is in the biased part. */
uint32_t kith_rng_below(struct kith_rng *rng, uint32_t n)
{
    KITH_ASSERT(n > 0);
    uint64_t product = (uint64_t)kith_rng_u32(rng) * n;
    if ((uint32_t)product < n) {
        const uint32_t threshold = (0u - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)kith_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

enum { LANES = KITH_RNG_LANES };

void kith_rng_blocks(const struct kith_rng *rng, uint32_t stride,
                     uint32_t word[4][KITH_RNG_LANES])
{
    uint32_t k0 = (uint32_t)rng->seed, k1 = (uint32_t)(rng->seed >> 32);
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = rng->block + i * stride;
        c1[i] = (uint32_t)rng->entity;
        c2[i] = (uint32_t)(rng->entity >> 32);
        c3[i] = rng->stream;
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < LANES; i++) {
            const uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0[i];
            const uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    memcpy(word[0], c0, sizeof c0);
    memcpy(word[1], c1, sizeof c1);
    memcpy(word[2], c2, sizeof c2);
    memcpy(word[3], c3, sizeof c3);
}

/* The draws of whole blocks, up to `count`; none where they are few, or where
 * one may have to be drawn again. */
static size_t draw_blocks(struct kith_rng *rng, uint32_t n, uint32_t *values,
                          size_t count)
{
    const uint32_t blocks = count / 4 < LANES ? (uint32_t)(count / 4) : LANES;
    uint32_t word[4][LANES], biased = 0;
    if (rng->used < 4 || blocks < LANES / 4 || rng->block > UINT32_MAX - LANES)
        return 0;
    kith_rng_blocks(rng, 1, word);
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < LANES; i++) {
            const uint64_t product = (uint64_t)word[k][i] * n;
            biased |= (uint32_t)product < n;
            word[k][i] = (uint32_t)(product >> 32);
        }
    }
    if (biased != 0)
        return 0;
    for (uint32_t i = 0; i < blocks; i++)
        for (uint32_t k = 0; k < 4; k++)
            values[4 * i + k] = word[k][i];
    rng->block += blocks;
    return (size_t)4 * blocks;
}

void kith_rng_below_each(struct kith_rng *rng, uint32_t n, uint32_t *values,
                         size_t count)
{
    for (size_t at = 0; at < count;) {
        const size_t drawn = draw_blocks(rng, n, values + at, count - at);
        if (drawn == 0)
            values[at] = kith_rng_below(rng, n);
        at += drawn == 0 ? 1 : drawn;
    }
}

double kith_rng_double(struct kith_rng *rng)
{
    return (double)(kith_rng_u64(rng) >> 11) * 0x1p-53;
}

/* -ln(u) in units of 2^-32 for u = bits / 2^64, bits > 0:
 * u = m 2^-k with m in [1, 2), so -ln u = k ln 2 - ln m. */
static uint64_t minus_log(uint64_t bits)
{
    const uint64_t k = 1 + (uint64_t)__builtin_clzll(bits);
    bits <<= k - 1;
    const uint32_t index = (uint32_t)(bits >> 55) & 0xffu;
    const uint64_t fraction = bits >> 23 & 0xffffffffu;
    const uint64_t low = log_table[index];
    const uint64_t step = log_table[index + 1] - low;
    return k * log_table[256] - (low + (step * fraction >> 32));
}

kith_ns kith_rng_exponential(struct kith_rng *rng, kith_ns mean_ns)
{
    /* The largest draw is 64 ln 2 = 44.4 means: no product overflows. */
    KITH_ASSERT((uint64_t)mean_ns <= KITH_NEVER / 64);
    const uint64_t variate = minus_log(kith_rng_u64(rng) | 1u);

    const uint64_t mean = (uint64_t)mean_ns;
    const uint64_t whole = variate >> 32, part = variate & 0xffffffffu;
    const uint64_t high = mean >> 32, low = mean & 0xffffffffu;
    return (kith_ns)(mean * whole + high * part + (low * part >> 32));
}

void kith_rng_fill(struct kith_rng *rng, void *bytes, size_t size)
{
    uint8_t *target = bytes;
    uint32_t word = 0;
    for (size_t i = 0; i < size; i++) {
        if (i % 4 == 0)
            word = kith_rng_u32(rng);
        target[i] = (uint8_t)(word >> (8 * (i % 4)));
    }
}

void kith_rng_shuffle(struct kith_rng *rng, uint32_t *values, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = kith_rng_below(rng, i);
        const uint32_t value = values[i - 1];
        values[i - 1] = values[j];
        values[j] = value;
    }
}
