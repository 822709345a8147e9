/* Signs and the mean size of a block, one bit a value:
 *
 *   C(v) = sign(v) |v|_1 / n,    sign(0) = 1
 *   |v - C(v)|^2 = |v|^2 - |v|_1^2 / n:   w = |v|_1^2 / (n |v|^2)
 *
 * which is 2/pi on Gaussian values and 1/n where one value is all there is.
 * On the wire: the mean, then the bits, 1 where v < 0.
 *
 * Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient
 * Compression Schemes", ICML 2019. */
#include "chunks.h"

static size_t sign_bytes(const struct kith_compression *how, size_t n)
{
    return how->backend->element_bytes + kith_bits_bytes(n);
}

static double sign_contraction(const struct kith_compression *how, size_t n)
{
    (void)how;
    return 1 / (double)n;
}

static bool sign_encode(const struct kith_compression *how, size_t n,
                        const void *v, struct kith_rng *rng, uint8_t *wire)
{
    (void)rng;
    const double mean = kith_block_sum(how, n, v) / (double)n;
    if (!kith_number_finite(kith_number_put(how, mean, wire)))
        return false;
    struct kith_bits bits = {0};
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++)
        wire = kith_bits_put(&bits, wire, kith_value_get(how, v, i) < 0, 1);
    kith_bits_end(&bits, wire);
    return true;
}

static bool sign_decode(const struct kith_compression *how, size_t n,
                        const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    const double mean = kith_number_get(how, wire);
    struct kith_bits bits = {0};
    if (!(mean >= 0))
        return false;
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++) {
        uint32_t negative;
        wire = kith_bits_get(&bits, wire, &negative, 1);
        kith_value_put(how, out, i, negative ? -mean : mean);
    }
    return bits.held == 0;
}

static bool sign_pack(const struct kith_compression *how, const void *v,
                      struct kith_rng *rng, void *wire)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    return how->backend->compressed->pack_sign(&cut, v, wire);
}

static bool sign_unpack(const struct kith_compression *how, const void *wire,
                        struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    return how->backend->compressed->unpack_sign(&cut, wire, out);
}

const struct kith_compressor kith_compressor_sign = {
    .name = "sign",
    .paper = "Karimireddy et al., ICML 2019",
    .summary = "signs and the mean size of a block, 1 bit per parameter",
    .keys = KITH_COMPRESSOR_READS(BLOCK),
    .block = 4096,
    .feedback = true,
    CODEC(sign),
    DEVICE_CODEC(sign),
};
