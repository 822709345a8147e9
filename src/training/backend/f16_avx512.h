/* Sixteen floats at a time with AVX-512: what the loops of backend cpu are
 * written in. f16: sixteen float32 lanes, d16: float64, w16: 32-bit words. For
 * a file that compiles for that instruction set. */
#ifndef KITH_TRAINING_BACKEND_F16_AVX512_H
#define KITH_TRAINING_BACKEND_F16_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef __m512 f16;
typedef struct {
    __m512d low, high;
} d16;

static inline f16 f16_all(float value)
{
    return _mm512_set1_ps(value);
}

static inline f16 f16_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline void f16_store(float *to, f16 a)
{
    _mm512_storeu_ps(to, a);
}

/* Past the caches; `to` is aligned to 64. */
static inline void f16_stream(float *to, f16 a)
{
    _mm512_stream_ps(to, a);
}

static inline void f16_fence(void)
{
    _mm_sfence();
}

static inline f16 f16_add(f16 a, f16 b)
{
    return _mm512_add_ps(a, b);
}

static inline f16 f16_sub(f16 a, f16 b)
{
    return _mm512_sub_ps(a, b);
}

static inline f16 f16_mul(f16 a, f16 b)
{
    return _mm512_mul_ps(a, b);
}

static inline f16 f16_div(f16 a, f16 b)
{
    return _mm512_div_ps(a, b);
}

/* max(0, a); the instruction gives its second operand for a NaN. */
static inline f16 f16_relu(f16 a)
{
    return _mm512_max_ps(_mm512_setzero_ps(), a);
}

/* a where y > 0, else 0. */
static inline f16 f16_where_positive(f16 y, f16 a)
{
    const __mmask16 positive =
        _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_maskz_mov_ps(positive, a);
}

static inline bool f16_finite(f16 a)
{
    const f16 difference = _mm512_sub_ps(a, a);
    return _mm512_cmp_ps_mask(difference, difference, _CMP_UNORD_Q) == 0;
}

static inline f16 f16_from_bf16(const uint16_t *from)
{
    const __m256i half = _mm256_loadu_si256((const __m256i_u *)from);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* To the nearest, of two equally near to the even; a NaN stays one. */
static inline void f16_to_bf16(uint16_t *to, f16 a)
{
    const __m512i bits = _mm512_castps_si512(a);
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(
        bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(1 << 22));
    _mm256_storeu_si256((__m256i_u *)to,
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}

static inline f16 f16_from_bytes(const uint8_t *from)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i_u *)from);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

static inline __m512d f16_low(f16 a)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(a));
}

static inline __m512d f16_high(f16 a)
{
    const __m512d whole = _mm512_castps_pd(a);
    return _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(whole, 1)));
}

static inline d16 d16_zero(void)
{
    return (d16){_mm512_setzero_pd(), _mm512_setzero_pd()};
}

static inline d16 d16_add(d16 sums, f16 a)
{
    return (d16){_mm512_add_pd(sums.low, f16_low(a)),
                 _mm512_add_pd(sums.high, f16_high(a))};
}

static inline d16 d16_add_square(d16 sums, f16 a)
{
    const __m512d low = f16_low(a), high = f16_high(a);
    return (d16){_mm512_add_pd(sums.low, _mm512_mul_pd(low, low)),
                 _mm512_add_pd(sums.high, _mm512_mul_pd(high, high))};
}

static inline void d16_store(double *to, d16 sums)
{
    _mm512_storeu_pd(to, sums.low);
    _mm512_storeu_pd(to + 8, sums.high);
}

/* a b + c, rounded once. */
static inline f16 f16_fma(f16 a, f16 b, f16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* The larger; b where either is NaN. */
static inline f16 f16_max(f16 a, f16 b)
{
    return _mm512_max_ps(a, b);
}

/* The smaller; b where either is NaN. */
static inline f16 f16_min(f16 a, f16 b)
{
    return _mm512_min_ps(a, b);
}

static inline f16 f16_sqrt(f16 a)
{
    return _mm512_sqrt_ps(a);
}

static inline f16 f16_round(f16 a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT);
}

/* a 2^n, n whole and in [-126, 127]. */
static inline f16 f16_scale_two(f16 a, f16 n)
{
    return _mm512_scalef_ps(a, n);
}

/* a where x >= limit or x is NaN, else 0. */
static inline f16 f16_where_least(f16 x, float limit, f16 a)
{
    return _mm512_maskz_mov_ps(
        _mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), a);
}

/* Bit i: lane i of both is equal. */
static inline unsigned f16_equal(f16 a, f16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline __mmask16 f16_first(size_t count)
{
    return (__mmask16)((1u << count) - 1);
}

/* The first `count` <= 16 lanes; the others are 0, and not read. */
static inline f16 f16_load_part(const float *from, size_t count)
{
    return _mm512_maskz_loadu_ps(f16_first(count), from);
}

static inline void f16_store_part(float *to, f16 a, size_t count)
{
    _mm512_mask_storeu_ps(to, f16_first(count), a);
}

static inline float f16_sum(f16 a)
{
    return _mm512_reduce_add_ps(a);
}

static inline float f16_most(f16 a)
{
    return _mm512_reduce_max_ps(a);
}

/* to (16, 16) <- from (16, 16) transposed; rows are their strides apart. */
static inline void f16_transpose(const float *from, size_t from_stride,
                                 float *to, size_t to_stride)
{
    __m512 r[16], t[16];
    for (size_t i = 0; i < 16; i++)
        r[i] = _mm512_loadu_ps(from + i * from_stride);
    /* Pairs, then fours within 128 bits, then the 128-bit pieces. */
    for (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (size_t i = 0; i < 4; i++) {
        _mm512_storeu_ps(to + i * to_stride,
                         _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
        _mm512_storeu_ps(to + (i + 4) * to_stride,
                         _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
        _mm512_storeu_ps(to + (i + 8) * to_stride,
                         _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
        _mm512_storeu_ps(to + (i + 12) * to_stride,
                         _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd));
    }
}

/* Sixteen words of 32 bits, for Philox. */
typedef __m512i w16;

static inline w16 w16_all(uint32_t value)
{
    return _mm512_set1_epi32((int)value);
}

static inline w16 w16_load(const uint32_t *from)
{
    return _mm512_loadu_si512(from);
}

static inline w16 w16_xor(w16 a, w16 b)
{
    return _mm512_xor_si512(a, b);
}

/* The lower half of factor * a; the upper one into *high. */
static inline w16 w16_multiply(w16 a, uint32_t factor, w16 *high)
{
    const __m512i f = _mm512_set1_epi32((int)factor);
    const __m512i even = _mm512_mul_epu32(a, f);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), f);
    *high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* a where w >= least, else 0. */
static inline f16 w16_where_least(w16 w, uint32_t least, f16 a)
{
    return _mm512_maskz_mov_ps(
        _mm512_cmpge_epu32_mask(w, _mm512_set1_epi32((int)least)), a);
}

#endif
