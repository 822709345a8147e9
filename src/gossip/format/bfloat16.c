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
#include "kith/assert.h"
#include "kith/format.h"

#define EXPONENT 0x7f80u

static size_t bytes(size_t n)
{
    return n * sizeof(uint16_t);
}

static void pack(const struct kith_backend *host, size_t n, const void *v,
                 void *wire)
{
    KITH_ASSERT(host->to_bf16 != NULL);
    host->to_bf16(n, v, wire);
}

/* All of its exponent's bits: infinite, or no number. The loop has no way out,
 * so that it becomes one of vectors. */
static bool all_finite(size_t n, const uint16_t *values)
{
    unsigned spoilt = 0;
    for (size_t i = 0; i < n; i++)
        spoilt |= (values[i] & EXPONENT) == EXPONENT;
    return spoilt == 0;
}

static bool unpack(const struct kith_backend *host, size_t n, const void *wire,
                   void *out)
{
    KITH_ASSERT(host->from_bf16 != NULL);
    host->from_bf16(n, wire, out);
    return all_finite(n, wire);
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
    .is_sane = is_sane,
};
