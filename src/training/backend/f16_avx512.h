/* What f16.h leaves to AVX-512: a vector is one register. */
#define MM(name) _mm512_##name
typedef __m512i wide_words;
#include "f16_x86.h"

FORCE f16_part lanes_scale_two(f16_part a, f16_part n)
{
    return _mm512_scalef_ps(a, n);
}

FORCE float lanes_sum(f16_part a)
{
    return _mm512_reduce_add_ps(a);
}

FORCE float lanes_most(f16_part a)
{
    return _mm512_reduce_max_ps(a);
}

FORCE f16_part lanes_where_positive(f16_part y, f16_part a)
{
    const __m512 zero = _mm512_setzero_ps();
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, zero, _CMP_GT_OQ), a);
}

FORCE f16_part lanes_where_least(f16_part x, float limit, f16_part a)
{
    return _mm512_maskz_mov_ps(
        _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), a);
}

FORCE unsigned lanes_equal(f16_part a, f16_part b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

FORCE unsigned lanes_at_least(f16_part a, f16_part b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}

FORCE w16_part lanes_count(w16_part sum, f16_part a, float bound)
{
    return (w16_part)_mm512_mask_add_epi32(
        (__m512i)sum, _mm512_cmp_ps_mask(a, _mm512_set1_ps(bound), _CMP_GE_OQ),
        (__m512i)sum, _mm512_set1_epi32(1));
}

FORCE f16_part lanes_load_part(const float *from, size_t count)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}

FORCE void lanes_store_part(float *to, f16_part a, size_t count)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), a);
}

FORCE void lanes_transpose(const float *from, size_t from_stride, float *to,
                           size_t to_stride)
{
    f16_part r[LANES], t[LANES];
    transpose_fours(from, from_stride, r);
    UNROLL
    for (size_t i = 0; i < 16; i += 8) {
        for (size_t j = i; j < i + 4; j++) {
            t[j] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0x88);
            t[j + 4] = _mm512_shuffle_f32x4(r[j], r[j + 4], 0xdd);
        }
    }
    UNROLL
    for (size_t i = 0; i < 8; i++) {
        _mm512_storeu_ps(to + i * to_stride,
                         _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
        _mm512_storeu_ps(to + (i + 8) * to_stride,
                         _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
    }
}

FORCE w16_part words_multiply(w16_part a, uint32_t factor, w16_part *high)
{
    wide_words even, odd;
    words_products(a, factor, &even, &odd);
    *high = (w16_part)_mm512_mask_blend_epi32(0xaaaa,
                                              _mm512_srli_epi64(even, 32), odd);
    return (w16_part)_mm512_mask_blend_epi32(0xaaaa, even,
                                             _mm512_slli_epi64(odd, 32));
}

FORCE d16_part lanes_half(f16_part a, int h)
{
    const __m512d whole = (__m512d)a;
    return _mm512_cvtps_pd(h == 0 ? _mm512_castps512_ps256(a)
                                  : (__m256)_mm512_extractf64x4_pd(whole, 1));
}

FORCE void bytes_widen(f16_part to[PARTS], const uint8_t *from)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i_u *)from);
    to[0] = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

FORCE void words_widen(w16_part to[PARTS], const uint16_t *from)
{
    to[0] = (w16_part)_mm512_cvtepu16_epi32(
        _mm256_loadu_si256((const __m256i_u *)from));
}

FORCE void words_narrow(uint16_t *to, const w16_part a[PARTS])
{
    _mm256_storeu_si256((__m256i_u *)to, _mm512_cvtepi32_epi16((__m512i)a[0]));
}

FORCE w16_part lanes_where_nan(f16_part a, w16_part b, w16_part c)
{
    return (w16_part)_mm512_mask_mov_epi32(
        (__m512i)c, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), (__m512i)b);
}

FORCE f16_part lanes_round(f16_part a)
{
    return _mm512_roundscale_ps(a,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
