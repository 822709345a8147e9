/* AEGIS-256X2 with AES-NI: a block is two registers. Compiled for it whatever
 * the build's flags say. */
#include "src/protocol/session/aegis.h"

#ifdef KITH_AEGIS_X86
#include <immintrin.h>
#include <sodium.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("aes"))),                   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("aes")
#endif

struct pair {
    __m128i half[2];
};

#define BLOCK struct pair
#define SEAL kith_aegis_aesni_seal
#define OPEN kith_aegis_aesni_open
/* The same on both halves. */
#define EACH(name, instruction)                                                \
    static inline struct pair name(struct pair a, struct pair b)               \
    {                                                                          \
        return (struct pair){{instruction(a.half[0], b.half[0]),               \
                              instruction(a.half[1], b.half[1])}};             \
    }
EACH(block_xor, _mm_xor_si128)
EACH(block_and, _mm_and_si128)
EACH(block_round, _mm_aesenc_si128)

static inline __m128i half_load(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline struct pair block_load(const uint8_t *from)
{
    return (struct pair){{half_load(from), half_load(from + 16)}};
}

static inline void half_store(uint8_t *to, __m128i half)
{
    _mm_storeu_si128((__m128i *)(void *)to, half);
}

static inline void block_store(uint8_t *to, struct pair block)
{
    half_store(to, block.half[0]);
    half_store(to + 16, block.half[1]);
}

static inline struct pair block_twice(const uint8_t *from)
{
    return (struct pair){{half_load(from), half_load(from)}};
}

/* The halves are added up. */
static inline void block_tag(struct pair sum, uint8_t *tag)
{
    half_store(tag, _mm_xor_si128(sum.half[0], sum.half[1]));
}

/* A build for AVX may have put both halves into one register. */
static inline void low_registers_clear(void)
{
#ifdef __AVX__
    _mm256_zeroall();
#else
#define ZERO(n) "xorps %%xmm" #n ",%%xmm" #n "\n\t"
    __asm__ volatile(
        ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(8)
            ZERO(9) ZERO(10) ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15)
        :
        :
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
          "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

#include "aegis.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
