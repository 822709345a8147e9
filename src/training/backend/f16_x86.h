/* What AVX2 and AVX-512 have alike: MM(name) is the intrinsic of that name, W
 * its registers' integers. */
#include <immintrin.h>

FORCE f16_part lanes_fma(f16_part a, f16_part b, f16_part c)
{
    return MM(fmadd_ps)(a, b, c);
}

FORCE f16_part lanes_max(f16_part a, f16_part b)
{
    return MM(max_ps)(a, b);
}

FORCE f16_part lanes_min(f16_part a, f16_part b)
{
    return MM(min_ps)(a, b);
}

FORCE f16_part lanes_sqrt(f16_part a)
{
    return MM(sqrt_ps)(a);
}

FORCE void lanes_stream(float *to, f16_part a)
{
    MM(stream_ps)(to, a);
}

FORCE void f16_fence(void)
{
    _mm_sfence();
}

/* Groups of four columns of a square, each transposed within 128 bits. */
FORCE void transpose_fours(const float *from, size_t stride, f16_part r[LANES])
{
    f16_part t[LANES];
    UNROLL
    for (size_t i = 0; i < LANES; i++)
        memcpy(&r[i], from + i * stride, sizeof r[i]);
    UNROLL
    for (size_t i = 0; i < LANES; i += 2) {
        t[i] = MM(unpacklo_ps)(r[i], r[i + 1]);
        t[i + 1] = MM(unpackhi_ps)(r[i], r[i + 1]);
    }
    UNROLL
    for (size_t i = 0; i < LANES; i += 4) {
        r[i] = MM(shuffle_ps)(t[i], t[i + 2], 0x44);
        r[i + 1] = MM(shuffle_ps)(t[i], t[i + 2], 0xee);
        r[i + 2] = MM(shuffle_ps)(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = MM(shuffle_ps)(t[i + 1], t[i + 3], 0xee);
    }
}

/* Products of the even words, and of the odd ones. */
FORCE void words_products(w16_part a, uint32_t factor, wide_words *even,
                          wide_words *odd)
{
    const wide_words f = MM(set1_epi32)((int)factor);
    *even = MM(mul_epu32)((wide_words)a, f);
    *odd = MM(mul_epu32)(MM(srli_epi64)((wide_words)a, 32), f);
}
