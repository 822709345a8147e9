/* The trace hash: 64 bits over a sequence of 64-bit words. Not cryptographic;
 * it answers "did these two runs decide the same". Same value on every
 * compiler and byte order. */
#ifndef KITH_HASH_H
#define KITH_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KITH_HASH_START UINT64_C(0x6b69746867726170)

/* hash <- mix(hash, word): two multiplications (wyhash's folded multiply). */
static inline uint64_t kith_hash_word(uint64_t hash, uint64_t word)
{
    const uint64_t a = hash ^ UINT64_C(0xa0761d6478bd642f);
    const uint64_t b = word ^ UINT64_C(0xe7037ed1a0b428db);
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    const uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
#else
    /* 64x64 -> 128 by halves. */
    const uint64_t al = a & 0xffffffffu, ah = a >> 32;
    const uint64_t bl = b & 0xffffffffu, bh = b >> 32;
    const uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    const uint64_t middle =
        (ll >> 32) + (lh & 0xffffffffu) + (hl & 0xffffffffu);
    const uint64_t low = (ll & 0xffffffffu) | (middle << 32);
    const uint64_t high = hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
#endif
    return low ^ high ^ (hash << 1 | hash >> 63);
}

/* Bytes are read as little-endian words, the tail zero-padded, length added. */
uint64_t kith_hash_bytes(uint64_t hash, const void *bytes, size_t size);

#endif
