/* Sixteen floats at a time with AVX2 and FMA: what the loops of backend cpu are
 * written in. f16: sixteen float32 lanes, d16: float64, w16: 32-bit words. For
 * a file that compiles for that instruction set. */
#ifndef KITH_TRAINING_BACKEND_F16_AVX2_H
#define KITH_TRAINING_BACKEND_F16_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    __m256 low, high;
} f16;
typedef struct {
    __m256d quarter[4];
} d16;

static inline f16 f16_all(float value)
{
    return (f16){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

static inline f16 f16_load(const float *from)
{
    return (f16){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

static inline void f16_store(float *to, f16 a)
{
    _mm256_storeu_ps(to, a.low);
    _mm256_storeu_ps(to + 8, a.high);
}

/* Past the caches; `to` is aligned to 64. */
static inline void f16_stream(float *to, f16 a)
{
    _mm256_stream_ps(to, a.low);
    _mm256_stream_ps(to + 8, a.high);
}

static inline void f16_fence(void)
{
    _mm_sfence();
}

static inline f16 f16_add(f16 a, f16 b)
{
    return (f16){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline f16 f16_sub(f16 a, f16 b)
{
    return (f16){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

static inline f16 f16_mul(f16 a, f16 b)
{
    return (f16){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline f16 f16_div(f16 a, f16 b)
{
    return (f16){_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

/* max(0, a); the instruction gives its second operand for a NaN. */
static inline f16 f16_relu(f16 a)
{
    const __m256 zero = _mm256_setzero_ps();
    return (f16){_mm256_max_ps(zero, a.low), _mm256_max_ps(zero, a.high)};
}

/* a where y > 0, else 0. */
static inline f16 f16_where_positive(f16 y, f16 a)
{
    const __m256 zero = _mm256_setzero_ps();
    return (f16){
        _mm256_and_ps(_mm256_cmp_ps(y.low, zero, _CMP_GT_OQ), a.low),
        _mm256_and_ps(_mm256_cmp_ps(y.high, zero, _CMP_GT_OQ), a.high)};
}

static inline bool f16_finite(f16 a)
{
    const __m256 low = _mm256_sub_ps(a.low, a.low);
    const __m256 high = _mm256_sub_ps(a.high, a.high);
    /* A NaN on either side makes the pair unordered. */
    return _mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q)) == 0;
}

static inline f16 f16_from_bf16(const uint16_t *from)
{
    const __m128i low = _mm_loadu_si128((const __m128i_u *)from);
    const __m128i high = _mm_loadu_si128((const __m128i_u *)(from + 8));
    return (f16){
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(low), 16)),
        _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16))};
}

static inline __m256i bf16_bits(__m256 a)
{
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(
        bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(1 << 22));
    return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
}

/* To the nearest, of two equally near to the even; a NaN stays one. */
static inline void f16_to_bf16(uint16_t *to, f16 a)
{
    const __m256i both =
        _mm256_packus_epi32(bf16_bits(a.low), bf16_bits(a.high));
    _mm256_storeu_si256((__m256i_u *)to, _mm256_permute4x64_epi64(both, 0xd8));
}

static inline f16 f16_from_bytes(const uint8_t *from)
{
    const __m128i low = _mm_loadu_si128((const __m128i_u *)from);
    const __m128i high = _mm_srli_si128(low, 8);
    return (f16){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low)),
                 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high))};
}

static inline __m256d quarter_low(__m256 half)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(half));
}

static inline __m256d quarter_high(__m256 half)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(half, 1));
}

static inline d16 d16_zero(void)
{
    const __m256d zero = _mm256_setzero_pd();
    return (d16){{zero, zero, zero, zero}};
}

static inline d16 d16_add(d16 s, f16 a)
{
    return (d16){{_mm256_add_pd(s.quarter[0], quarter_low(a.low)),
                  _mm256_add_pd(s.quarter[1], quarter_high(a.low)),
                  _mm256_add_pd(s.quarter[2], quarter_low(a.high)),
                  _mm256_add_pd(s.quarter[3], quarter_high(a.high))}};
}

static inline __m256d plus_square(__m256d sum, __m256d a)
{
    return _mm256_add_pd(sum, _mm256_mul_pd(a, a));
}

static inline d16 d16_add_square(d16 s, f16 a)
{
    return (d16){{plus_square(s.quarter[0], quarter_low(a.low)),
                  plus_square(s.quarter[1], quarter_high(a.low)),
                  plus_square(s.quarter[2], quarter_low(a.high)),
                  plus_square(s.quarter[3], quarter_high(a.high))}};
}

static inline void d16_store(double *to, d16 s)
{
    for (int k = 0; k < 4; k++)
        _mm256_storeu_pd(to + 4 * k, s.quarter[k]);
}

/* a b + c, rounded once. */
static inline f16 f16_fma(f16 a, f16 b, f16 c)
{
    return (f16){_mm256_fmadd_ps(a.low, b.low, c.low),
                 _mm256_fmadd_ps(a.high, b.high, c.high)};
}

/* The larger; b where either is NaN. */
static inline f16 f16_max(f16 a, f16 b)
{
    return (f16){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

/* The smaller; b where either is NaN. */
static inline f16 f16_min(f16 a, f16 b)
{
    return (f16){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

static inline f16 f16_sqrt(f16 a)
{
    return (f16){_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}

#define TO_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
static inline f16 f16_round(f16 a)
{
    return (f16){_mm256_round_ps(a.low, TO_NEAREST),
                 _mm256_round_ps(a.high, TO_NEAREST)};
}

static inline __m256 half_scale_two(__m256 a, __m256 n)
{
    const __m256i whole =
        _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(whole, 23)));
}

/* a 2^n, n whole and in [-126, 127]. */
static inline f16 f16_scale_two(f16 a, f16 n)
{
    return (f16){half_scale_two(a.low, n.low), half_scale_two(a.high, n.high)};
}

/* a where x >= limit or x is NaN, else 0. */
static inline f16 f16_where_least(f16 x, float limit, f16 a)
{
    const __m256 least = _mm256_set1_ps(limit);
    return (f16){
        _mm256_and_ps(_mm256_cmp_ps(x.low, least, _CMP_NLT_UQ), a.low),
        _mm256_and_ps(_mm256_cmp_ps(x.high, least, _CMP_NLT_UQ), a.high)};
}

/* Bit i: lane i of both is equal. */
static inline unsigned f16_equal(f16 a, f16 b)
{
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ));
    const int high =
        _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ));
    return (unsigned)low | (unsigned)high << 8;
}

static inline __m256i half_first(size_t count)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
}

/* The first `count` <= 16 lanes; the others are 0, and not read. */
static inline f16 f16_load_part(const float *from, size_t count)
{
    const size_t high = count < 8 ? 0 : count - 8;
    const __m256i mask = half_first(high);
    return (f16){_mm256_maskload_ps(from, half_first(count)),
                 high == 0 ? _mm256_setzero_ps()
                           : _mm256_maskload_ps(from + 8, mask)};
}

static inline void f16_store_part(float *to, f16 a, size_t count)
{
    _mm256_maskstore_ps(to, half_first(count), a.low);
    if (count > 8)
        _mm256_maskstore_ps(to + 8, half_first(count - 8), a.high);
}

static inline float f16_sum(f16 a)
{
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline float f16_most(f16 a)
{
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline void transpose_eight(const float *from, size_t from_stride,
                                   float *to, size_t to_stride)
{
    __m256 r[8], t[8];
    for (size_t i = 0; i < 8; i++)
        r[i] = _mm256_loadu_ps(from + i * from_stride);
    /* Pairs, then fours within 128 bits, then the 128-bit halves. */
    for (size_t i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_stride,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride,
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* to (16, 16) <- from (16, 16) transposed; rows are their strides apart. */
static inline void f16_transpose(const float *from, size_t from_stride,
                                 float *to, size_t to_stride)
{
    for (size_t i = 0; i < 16; i += 8) {
        for (size_t j = 0; j < 16; j += 8)
            transpose_eight(from + i * from_stride + j, from_stride,
                            to + j * to_stride + i, to_stride);
    }
}

/* Sixteen words of 32 bits, for Philox. */
typedef struct {
    __m256i low, high;
} w16;

static inline w16 w16_all(uint32_t value)
{
    const __m256i all = _mm256_set1_epi32((int)value);
    return (w16){all, all};
}

static inline w16 w16_load(const uint32_t *from)
{
    return (w16){_mm256_loadu_si256((const __m256i_u *)from),
                 _mm256_loadu_si256((const __m256i_u *)(from + 8))};
}

static inline w16 w16_xor(w16 a, w16 b)
{
    return (w16){_mm256_xor_si256(a.low, b.low),
                 _mm256_xor_si256(a.high, b.high)};
}

static inline __m256i half_multiply(__m256i a, __m256i f, __m256i *high)
{
    const __m256i even = _mm256_mul_epu32(a, f);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), f);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

/* The lower half of factor * a; the upper one into *high. */
static inline w16 w16_multiply(w16 a, uint32_t factor, w16 *high)
{
    const __m256i f = _mm256_set1_epi32((int)factor);
    w16 low;
    low.low = half_multiply(a.low, f, &high->low);
    low.high = half_multiply(a.high, f, &high->high);
    return low;
}

/* a where w >= least, else 0. */
static inline f16 w16_where_least(w16 w, uint32_t least, f16 a)
{
    const __m256i l = _mm256_set1_epi32((int)least);
    const __m256i low = _mm256_cmpeq_epi32(_mm256_max_epu32(w.low, l), w.low);
    const __m256i high =
        _mm256_cmpeq_epi32(_mm256_max_epu32(w.high, l), w.high);
    return (f16){_mm256_and_ps(_mm256_castsi256_ps(low), a.low),
                 _mm256_and_ps(_mm256_castsi256_ps(high), a.high)};
}

#endif
