/* The trace hash over bytes: little-endian words, read the same way by every
 * machine. The word step is inline, in the header. */
#include "kith/hash.h"

#include "kith/assert.h"

static uint64_t load_word(const uint8_t *bytes, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t kith_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    KITH_ASSERT(bytes != NULL || size == 0);
    const uint8_t *at = bytes;
    size_t left = size;

    for (; left >= 8; left -= 8, at += 8)
        hash = kith_hash_word(hash, load_word(at, 8));
    if (left > 0)
        hash = kith_hash_word(hash, load_word(at, left));
    return kith_hash_word(hash, size);
}
