/* What f16.h leaves to AVX2 and FMA: a vector is two registers. */
#define MM(name) _mm256_##name
typedef __m256i wide_words;
#include "f16_x86.h"

FORCE f16_part lanes_scale_two(f16_part a, f16_part n)
{
    const __m256i whole =
        _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return a * (f16_part)_mm256_slli_epi32(whole, 23);
}

FORCE float lanes_sum(f16_part a)
{
    const __m128 four = _mm256_castps256_ps128(a) + _mm256_extractf128_ps(a, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
}

FORCE float lanes_most(f16_part a)
{
    const __m128 four =
        _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return two[0] > two[1] ? two[0] : two[1];
}

FORCE unsigned lanes_bits(w16_part mask)
{
    return (unsigned)_mm256_movemask_ps((f16_part)mask);
}

FORCE __m256i first_lanes(size_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

FORCE f16_part lanes_load_part(const float *from, size_t count)
{
    return _mm256_maskload_ps(from, first_lanes(count));
}

FORCE void lanes_store_part(float *to, f16_part a, size_t count)
{
    _mm256_maskstore_ps(to, first_lanes(count), a);
}

FORCE void lanes_transpose(const float *from, size_t from_stride, float *to,
                           size_t to_stride)
{
    f16_part r[LANES];
    transpose_fours(from, from_stride, r);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_stride,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

FORCE w16_part words_multiply(w16_part a, uint32_t factor, w16_part *high)
{
    wide_words even, odd;
    words_products(a, factor, &even, &odd);
    *high =
        (w16_part)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return (w16_part)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

FORCE d16_part lanes_half(f16_part a, int h)
{
    return _mm256_cvtps_pd(h == 0 ? _mm256_castps256_ps128(a)
                                  : _mm256_extractf128_ps(a, 1));
}

FORCE void bytes_widen(f16_part to[PARTS], const uint8_t *from)
{
    EACH to[k] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(
        _mm_loadl_epi64((const __m128i_u *)(from + k * LANES))));
}

FORCE void words_widen(w16_part to[PARTS], const uint16_t *from)
{
    EACH to[k] = (w16_part)_mm256_cvtepu16_epi32(
        _mm_loadu_si128((const __m128i_u *)from + k));
}

FORCE void words_narrow(uint16_t *to, const w16_part a[PARTS])
{
    const __m256i both = _mm256_packus_epi32((__m256i)a[0], (__m256i)a[1]);
    _mm256_storeu_si256((__m256i_u *)to, _mm256_permute4x64_epi64(both, 0xd8));
}

FORCE w16_part lanes_where_nan(f16_part a, w16_part b, w16_part c)
{
    return (w16_part)_mm256_blendv_ps((f16_part)c, (f16_part)b,
                                      _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

FORCE f16_part lanes_round(f16_part a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
