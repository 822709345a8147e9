/* Eight bits a value, in steps of a block's largest:
 *
 *   C(v) = scale l,   scale = max |v| / 127,   l = v / scale, rounded to
 *                                              nearest, in [-127, 127]
 *
 * No value moves by more than half a step, nor further than 0 is away; the
 * largest stays: w >= max(1 - (n - 1) / 254^2, 1 / n).
 * On the wire: the scale, then the levels, two's complement.
 *
 * Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022,
 * with levels evenly apart. */
#include "chunks.h"

#define LEVELS 127

static size_t int8_bytes(const struct kith_compression *how, size_t n)
{
    return how->backend->element_bytes + n;
}

static double int8_contraction(const struct kith_compression *how, size_t n)
{
    (void)how;
    const double steps = 1 - (double)(n - 1) / (4.0 * LEVELS * LEVELS);
    return steps > 1 / (double)n ? steps : 1 / (double)n;
}

static int8_t level_of(double value, double scale)
{
    const double level = value / scale;
    if (!(level < LEVELS))
        return LEVELS;
    if (!(level > -LEVELS))
        return -LEVELS;
    return (int8_t)(level < 0 ? level - 0.5 : level + 0.5);
}

static bool int8_encode(const struct kith_compression *how, size_t n,
                        const void *v, struct kith_rng *rng, uint8_t *wire)
{
    (void)rng;
    const double most = kith_block_max(how, n, v);
    const double scale = kith_number_put(how, most / LEVELS, wire);
    uint8_t largest[sizeof(double)];
    /* 127 rounded steps may be beyond the largest number. */
    if (!kith_number_finite(kith_number_put(how, scale * LEVELS, largest)))
        return false;
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++)
        wire[i] =
            (uint8_t)(scale > 0 ? level_of(kith_value_get(how, v, i), scale)
                                : 0);
    return true;
}

static bool int8_decode(const struct kith_compression *how, size_t n,
                        const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    const double scale = kith_number_get(how, wire);
    if (!(scale >= 0))
        return false;
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++) {
        const int level = wire[i] < 128 ? wire[i] : wire[i] - 256;
        if (level < -LEVELS)
            return false;
        kith_value_put(how, out, i, scale * level);
    }
    return true;
}

static bool int8_pack(const struct kith_compression *how, const void *v,
                      struct kith_rng *rng, void *wire)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    return how->backend->compressed->pack_int8(&cut, v, wire);
}

static bool int8_unpack(const struct kith_compression *how, const void *wire,
                        struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    return how->backend->compressed->unpack_int8(&cut, wire, out);
}

const struct kith_compressor kith_compressor_int8 = {
    .name = "int8",
    .paper = "Dettmers et al., ICLR 2022",
    .summary = "steps of a block's largest value, 8 bits per parameter",
    .keys = KITH_COMPRESSOR_READS(BLOCK),
    .block = 256,
    CODEC(int8),
    DEVICE_CODEC(int8),
};
