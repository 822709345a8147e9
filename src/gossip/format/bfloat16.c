/* Format bfloat16: the upper half of a float32, to the nearest, of two equally
 * near to the even.
 *
 *   |Q(v) - v| <= 2^-8 |v|
 *
 * On the wire: 2 bytes a value, little-endian. A value that is not finite stays
 * so, and one above 2^128 - 2^119 becomes infinite: neither passes the gate.
 *
 * Source: Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training",
 * 2019. */
#include <string.h>

#include "kith/assert.h"
#include "kith/format.h"

#define EXPONENT 0x7f80

static size_t bytes(size_t n)
{
    return n * sizeof(uint16_t);
}

static void pack(const struct kith_backend *backend, size_t n, const void *v,
                 void *wire)
{
    KITH_ASSERT(backend->to_bf16 != NULL);
    backend->to_bf16(n, v, wire);
}

static void unpack(const struct kith_backend *backend, size_t n,
                   const void *wire, size_t from, size_t count, void *out)
{
    KITH_ASSERT(backend->from_bf16 != NULL && from + count <= n);
    backend->from_bf16(count, (const uint16_t *)wire + from, out);
}

static double mix(const struct kith_backend *backend, size_t n, double weight,
                  const void *received, const void *sent, void *x)
{
    return backend->mix_bf16(n, weight, received, sent, x);
}

static double distance_squared(const struct kith_backend *backend, size_t n,
                               const void *a, const void *b)
{
    return backend->distance_bf16(n, a, b);
}

/* 2^(2 power), of the powers that bfloat16 has. */
static double square_of(int power)
{
    const uint64_t word = (uint64_t)(1023 + 2 * power) << 52;
    double square;
    KITH_ASSERT(power >= -134 && power <= 121);
    memcpy(&square, &word, sizeof square);
    return square;
}

/* A twelfth of a step squared each, which is 2^-7 of the power of two below. */
static double rounding(size_t n, const void *wire, size_t from, size_t count)
{
    enum { MANTISSA = 7, BIAS = 127 };
    const uint16_t *const values = wire;
    double squared = 0;
    KITH_ASSERT(from + count <= n);
    for (size_t i = from; i < from + count; i++) {
        const int exponent = (values[i] & EXPONENT) >> MANTISSA;
        squared += square_of(exponent - BIAS - MANTISSA) / 12;
    }
    return squared;
}

/* What is infinite or no number has all bits of the exponent, so without its
 * sign it is above all that are finite. Compilers make vectors of this loop. */
static bool all_finite(size_t n, const uint16_t *values)
{
    int16_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const int16_t size = (int16_t)(values[i] & INT16_MAX);
        most = size > most ? size : most;
    }
    return most < EXPONENT;
}

static bool is_sane(size_t size, size_t offset, size_t length, const void *part)
{
    KITH_ASSERT(offset + length <= size && offset % sizeof(uint16_t) == 0);
    return all_finite(length / sizeof(uint16_t), part);
}

const struct kith_format kith_format_bfloat16 = {
    .name = "bfloat16",
    .paper = "Kalamkar et al., 2019",
    .summary = "8 bits of mantissa, 2 bytes a value: half of the bytes",
    .bytes = bytes,
    .pack = pack,
    .unpack = unpack,
    .mix = mix,
    .distance_squared = distance_squared,
    .rounding = rounding,
    .is_sane = is_sane,
};
