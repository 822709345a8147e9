/* Whole numbers of the frames beside the protocol: big-endian, as the lengths
 * of records are. */
#ifndef KITH_PEER_FRAME_BYTES_H
#define KITH_PEER_FRAME_BYTES_H

#include <stdint.h>

static inline void kith_frame_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static inline uint64_t kith_frame_get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

#endif
