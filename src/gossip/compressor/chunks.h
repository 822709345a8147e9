/* What compressors share: values of vectors, numbers and packed bits on the
 * wire. */
#ifndef KITH_GOSSIP_COMPRESSOR_CHUNKS_H
#define KITH_GOSSIP_COMPRESSOR_CHUNKS_H

#include "kith/compressor.h"

/* The element at `offset` of a vector on the backend. */
static inline void *kith_element(const struct kith_compression *how,
                                 const void *vector, size_t offset)
{
    return (char *)(uintptr_t)vector + offset * how->backend->element_bytes;
}

/* Vectors are a host's, of float32 or float64. */
static inline double kith_value_get(const struct kith_compression *how,
                                    const void *vector, size_t i)
{
    return how->backend->element_bytes == sizeof(double)
               ? ((const double *)vector)[i]
               : (double)((const float *)vector)[i];
}
static inline void kith_value_put(const struct kith_compression *how,
                                  void *vector, size_t i, double value)
{
    if (how->backend->element_bytes == sizeof(double))
        ((double *)vector)[i] = value;
    else
        ((float *)vector)[i] = (float)value;
}
/* Values looked at together: 2 KiB of stack. */
#define KITH_CHUNK 256u
/* The next values of v (n) from `from` on; returns how many, 0 at the end. */
size_t kith_chunk_read(const struct kith_compression *how, size_t n,
                       const void *v, size_t from, double values[KITH_CHUNK]);
/* How many of n values `density` keeps: at least one. */
static inline size_t kith_kept(const struct kith_compression *how, size_t n)
{
    const size_t kept = (size_t)(how->config.density * (double)n + 0.5);
    return kept < 1 ? 1 : kept > n ? n : kept;
}
/* The largest |v|, and the sum of |v|, of finite values. */
double kith_block_max(const struct kith_compression *how, size_t n,
                      const void *v);
double kith_block_sum(const struct kith_compression *how, size_t n,
                      const void *v);

/* One number of element_bytes, little-endian. put returns what get will: the
 * value rounded to the element type, infinite where it does not fit. */
double kith_number_put(const struct kith_compression *how, double value,
                       uint8_t *wire);
double kith_number_get(const struct kith_compression *how, const uint8_t *wire);
static inline bool kith_number_finite(double value)
{
    return value - value == 0;
}

/* Fields of up to 32 bits one after another, the first in the lowest bits. */
struct kith_bits {
    uint64_t held;
    unsigned count; /* of bits held */
};
static inline size_t kith_bits_bytes(size_t bits)
{
    return (bits + 7) / 8;
}
/* Both return the wire behind what was written or read. */
static inline uint8_t *kith_bits_put(struct kith_bits *bits, uint8_t *wire,
                                     uint32_t value, unsigned width)
{
    bits->held |= (uint64_t)value << bits->count;
    for (bits->count += width; bits->count >= 8; bits->count -= 8) {
        *wire++ = (uint8_t)bits->held;
        bits->held >>= 8;
    }
    return wire;
}
static inline const uint8_t *kith_bits_get(struct kith_bits *bits,
                                           const uint8_t *wire, uint32_t *value,
                                           unsigned width)
{
    for (; bits->count < width; bits->count += 8)
        bits->held |= (uint64_t)*wire++ << bits->count;
    *value = (uint32_t)(bits->held & ((UINT64_C(1) << width) - 1));
    bits->held >>= width;
    bits->count -= width;
    return wire;
}
/* The last byte, where it is not full. */
static inline void kith_bits_end(const struct kith_bits *bits, uint8_t *wire)
{
    if (bits->count > 0)
        *wire = (uint8_t)bits->held;
}

/* How a device is told of the blocks of a vector. */
struct kith_cut kith_cut_of(const struct kith_compression *how);

/* The functions of a record, each named after its compressor. */
#define CODEC(name)                                                            \
    .bytes = name##_bytes, .contraction = name##_contraction,                  \
    .encode = name##_encode, .decode = name##_decode
#define DEVICE_CODEC(name) .pack = name##_pack, .unpack = name##_unpack

#endif
