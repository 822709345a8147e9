/* AEGIS-256X2 where a register holds both halves of a block: VAES and AVX2.
 * Compiled for them whatever the build's flags say. */
#include "src/protocol/session/aegis.h"

#ifdef KITH_AEGIS_X86
#include <immintrin.h>
#include <sodium.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("vaes,avx2"))),             \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("vaes,avx2")
#endif

#define BLOCK __m256i
#define SEAL kith_aegis_vaes_seal
#define OPEN kith_aegis_vaes_open
#define block_xor _mm256_xor_si256
#define block_and _mm256_and_si256
#define block_round _mm256_aesenc_epi128

static inline __m256i block_load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline void block_store(uint8_t *to, __m256i block)
{
    _mm256_storeu_si256((__m256i *)(void *)to, block);
}

static inline __m256i block_twice(const uint8_t *from)
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The halves are added up. */
static inline void block_tag(__m256i sum, uint8_t *tag)
{
    _mm_storeu_si128((__m128i *)(void *)tag,
                     _mm_xor_si128(_mm256_castsi256_si128(sum),
                                   _mm256_extracti128_si256(sum, 1)));
}

static inline void low_registers_clear(void)
{
    _mm256_zeroall();
}

#include "aegis.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
