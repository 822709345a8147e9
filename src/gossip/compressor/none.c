/* Compressor none: vectors travel raw, little-endian, as the backend has them.
 *
 *   C(v) = v */
#include <string.h>

#include "chunks.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "vectors are little-endian in memory as on the wire");

static size_t none_bytes(const struct kith_compression *how, size_t n)
{
    return n * how->backend->element_bytes;
}

static double none_contraction(const struct kith_compression *how, size_t n)
{
    (void)how;
    (void)n;
    return 1;
}

static bool none_encode(const struct kith_compression *how, size_t n,
                        const void *v, struct kith_rng *rng, uint8_t *wire)
{
    (void)rng;
    memcpy(wire, v, none_bytes(how, n));
    return true;
}

static bool none_decode(const struct kith_compression *how, size_t n,
                        const uint8_t *wire, struct kith_rng *rng, void *out)
{
    (void)rng;
    memcpy(out, wire, none_bytes(how, n));
    return true;
}

const struct kith_compressor kith_compressor_none = {
    .name = "none",
    .paper = "-",
    .summary = "dense, 4 bytes per parameter in float32",
    .unbiased = true,
    .raw = true,
    CODEC(none),
};
