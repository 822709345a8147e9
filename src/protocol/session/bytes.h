/* Big-endian integers in byte strings. */
#ifndef KITH_PROTOCOL_SESSION_BYTES_H
#define KITH_PROTOCOL_SESSION_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline void put_be(uint8_t *bytes, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
}

static inline uint64_t get_be(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value = value << 8 | bytes[i];
    return value;
}

#endif
