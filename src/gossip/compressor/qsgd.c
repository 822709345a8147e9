/* s levels of a block's norm, rounded at random so that the mean is right:
 *
 *   Q(v)_i = |v| sign(v_i) l_i / s,   l_i = floor(a + u),  a = s |v_i| / |v|,
 *                                     u uniform in [0, 1)
 *   E Q(v) = v,   E|v - Q(v)|^2 <= b |v|^2,   b = min(n / s^2, sqrt(n) / s)
 *   C(v) = Q(v) / (1 + b):  w = 1 / (1 + b)      unbiased: C(v) = Q(v)
 *
 * On the wire: the norm, then 1 + log2(s + 1) bits a value, the sign highest.
 *
 * Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization
 * and Encoding", NeurIPS 2017; the factor: Koloskova, Stich and Jaggi,
 * "Decentralized Stochastic Optimization and Gossip Algorithms with Compressed
 * Communication", ICML 2019, section 3.5. */
#include <math.h>

#include "chunks.h"

/* Of a level, 0 to s; its sign is one more. */
static unsigned level_bits(const struct kith_compression *how)
{
    unsigned bits = 1;
    while (how->config.levels >> bits > 0)
        bits++;
    return bits;
}

static size_t qsgd_bytes(const struct kith_compression *how, size_t n)
{
    return how->backend->element_bytes +
           kith_bits_bytes(n * (level_bits(how) + 1));
}

static double variance_bound(const struct kith_compression *how, size_t n)
{
    const double root = sqrt((double)n) / how->config.levels;
    return root < 1 ? root * root : root;
}

static double qsgd_contraction(const struct kith_compression *how, size_t n)
{
    const double bound = variance_bound(how, n);
    if (!how->config.unbiased)
        return 1 / (1 + bound);
    return bound < 1 ? 1 - bound : 0;
}

/* Of Q(v), in C(v). */
static double factor_of(const struct kith_compression *how, size_t n)
{
    return how->config.unbiased ? 1 : 1 / (1 + variance_bound(how, n));
}

/* Through the largest value, so that no square is too large or too small. */
static double norm_of(const struct kith_compression *how, size_t n,
                      const void *v)
{
    const double most = kith_block_max(how, n, v);
    double sum = 0;
    for (size_t i = 0; i < n && most > 0; i++) {
        const double part = kith_value_get(how, v, i) / most;
        sum += part * part;
    }
    return most * sqrt(sum);
}

/* s |value| / norm, rounded down or up. */
static uint32_t level_of(uint32_t levels, double value, double norm,
                         struct kith_rng *rng)
{
    const double exact = fabs(value) / norm * levels;
    const uint32_t below = exact < levels ? (uint32_t)exact : levels;
    return below + (kith_rng_double(rng) < exact - below);
}

static bool qsgd_encode(const struct kith_compression *how, size_t n,
                        const void *v, struct kith_rng *rng, uint8_t *wire)
{
    const unsigned width = level_bits(how);
    /* Rounded, and still no value is above it: they are elements too. */
    const double norm = kith_number_put(how, norm_of(how, n, v), wire);
    struct kith_bits bits = {0};
    if (!kith_number_finite(norm))
        return false;
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++) {
        const double value = kith_value_get(how, v, i);
        uint32_t field = 0;
        if (norm > 0)
            field = level_of(how->config.levels, value, norm, rng);
        if (value < 0 && field > 0)
            field |= 1u << width;
        wire = kith_bits_put(&bits, wire, field, width + 1);
    }
    kith_bits_end(&bits, wire);
    return true;
}

static bool qsgd_decode(const struct kith_compression *how, size_t n,
                        const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    const unsigned width = level_bits(how);
    const uint32_t negative = 1u << width;
    const double norm = kith_number_get(how, wire);
    const double factor = factor_of(how, n);
    struct kith_bits bits = {0};
    if (!(norm >= 0))
        return false;
    wire += how->backend->element_bytes;
    for (size_t i = 0; i < n; i++) {
        uint32_t field;
        wire = kith_bits_get(&bits, wire, &field, width + 1);
        const uint32_t level = field & (negative - 1);
        if (level > how->config.levels || field == negative)
            return false;
        const double size = norm * (factor * level / how->config.levels);
        kith_value_put(how, out, i, field & negative ? -size : size);
    }
    return bits.held == 0;
}

static struct kith_levels levels_of(const struct kith_compression *how,
                                    const struct kith_cut *cut)
{
    const size_t rest = cut->n % cut->block;
    return (struct kith_levels){
        .most = how->config.levels,
        .width = level_bits(how),
        .factor = {factor_of(how, cut->block),
                   factor_of(how, rest > 0 ? rest : cut->block)}};
}

static bool qsgd_pack(const struct kith_compression *how, const void *v,
                      struct kith_rng *rng, void *wire)
{
    const struct kith_cut cut = kith_cut_of(how);
    const struct kith_levels levels = levels_of(how, &cut);
    return how->backend->compressed->pack_qsgd(&cut, &levels, rng->seed, v,
                                               wire);
}

static bool qsgd_unpack(const struct kith_compression *how, const void *wire,
                        struct kith_rng *rng, void *out)
{
    (void)rng;
    const struct kith_cut cut = kith_cut_of(how);
    const struct kith_levels levels = levels_of(how, &cut);
    return how->backend->compressed->unpack_qsgd(&cut, &levels, wire, out);
}

const struct kith_compressor kith_compressor_qsgd = {
    .name = "qsgd",
    .paper = "Alistarh et al., NeurIPS 2017",
    .summary = "levels of a block's norm, rounded at random",
    .keys = KITH_COMPRESSOR_READS(LEVELS) | KITH_COMPRESSOR_READS(BLOCK) |
            KITH_COMPRESSOR_READS(UNBIASED),
    .block = 512,
    .keyed = true,
    .feedback = true,
    CODEC(qsgd),
    DEVICE_CODEC(qsgd),
};
