/* k values at random places, the same for all who have the key:
 *
 *   C(v)_i = v_i where i is drawn, else 0       E|v - C(v)|^2 = (1 - k/n) |v|^2
 *   unbiased: C(v)_i = (n/k) v_i                E|v - C(v)|^2 = (n/k - 1) |v|^2
 *
 * On the wire: the k values, no index. The places are drawn in order: index i
 * with probability (still wanted) / (still to come), which gives every set of k
 * the same chance.
 *
 * Wangni et al., "Gradient Sparsification for Communication-Efficient
 * Distributed Optimization", NeurIPS 2018; Fan, Muller and Rezucha, J. Am.
 * Stat. Assoc. 1962 (the drawing). */
#include <string.h>

#include "kith/assert.h"
#include "chunks.h"

static size_t random_k_bytes(const struct kith_compression *how, size_t n)
{
    return kith_kept(how, n) * how->backend->element_bytes;
}

static double random_k_contraction(const struct kith_compression *how, size_t n)
{
    const double kept = (double)kith_kept(how, n) / (double)n;
    if (!how->config.unbiased)
        return kept;
    return kept > 0.5 ? 2 - 1 / kept : 0;
}

/* The first drawn index from `from` on; `wanted` > 0 are still to be drawn. */
static size_t draw(struct kith_rng *rng, size_t n, size_t from, size_t wanted)
{
    while (kith_rng_below(rng, (uint32_t)(n - from)) >= wanted)
        from++;
    return from;
}

/* Of what is kept, on the wire. */
static double factor_of(const struct kith_compression *how, size_t n,
                        size_t kept)
{
    return how->config.unbiased ? (double)n / (double)kept : 1;
}

static bool random_k_encode(const struct kith_compression *how, size_t n,
                            const void *v, struct kith_rng *rng, uint8_t *wire)
{
    const size_t element = how->backend->element_bytes;
    const size_t kept = kith_kept(how, n);
    const double factor = factor_of(how, n, kept);
    size_t index = 0;
    for (size_t i = 0; i < kept; i++, index++) {
        index = draw(rng, n, index, kept - i);
        const double value = factor * kith_value_get(how, v, index);
        if (!kith_number_finite(
                kith_number_put(how, value, wire + i * element)))
            return false;
    }
    return true;
}

static bool random_k_decode(const struct kith_compression *how, size_t n,
                            const uint8_t *wire, struct kith_rng *rng,
                            void *out)
{
    const size_t element = how->backend->element_bytes;
    const size_t kept = kith_kept(how, n);
    size_t index = 0;
    memset(out, 0, n * element);
    for (size_t i = 0; i < kept; i++, index++) {
        const double value = kith_number_get(how, wire + i * element);
        index = draw(rng, n, index, kept - i);
        kith_value_put(how, out, index, value);
    }
    return true;
}

static size_t random_k_places(const struct kith_compression *how)
{
    return kith_kept(how, how->dim);
}

/* All places, in the order of the draws. */
static struct kith_places draw_all(const struct kith_compression *how,
                                   struct kith_rng *rng)
{
    const size_t n = how->dim, kept = kith_kept(how, n);
    size_t index = 0;
    KITH_ASSERT(how->places != NULL);
    for (size_t i = 0; i < kept; i++, index++) {
        index = draw(rng, n, index, kept - i);
        how->places[i] = (uint32_t)index;
    }
    return (struct kith_places){kept, how->places, factor_of(how, n, kept)};
}

static bool random_k_pack(const struct kith_compression *how, const void *v,
                          struct kith_rng *rng, void *wire)
{
    const struct kith_places places = draw_all(how, rng);
    return how->backend->compressed->pack_random_k(&places, v, wire);
}

static bool random_k_unpack(const struct kith_compression *how,
                            const void *wire, struct kith_rng *rng, void *out)
{
    const struct kith_places places = draw_all(how, rng);
    return how->backend->compressed->unpack_random_k(&places, wire, how->dim,
                                                     out);
}

const struct kith_compressor kith_compressor_random_k = {
    .name = "random-k",
    .paper = "Wangni et al., NeurIPS 2018",
    .summary = "values at random places that both sides draw alike",
    .keys = KITH_COMPRESSOR_READS(DENSITY) | KITH_COMPRESSOR_READS(UNBIASED),
    .keyed = true,
    .feedback = true,
    CODEC(random_k),
    DEVICE_CODEC(random_k),
    .places = random_k_places,
};
