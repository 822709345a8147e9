/* The loops of backend cpu with AVX2. Compiled for that
 * instruction set whatever the build's flags say; used where the CPU has it. */
#include "cpu.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))),                  \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

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

static bool avx2_supported(void)
{
    return __builtin_cpu_supports("avx2");
}

#define VARIANT kith_cpu_avx2
#define TEXT "avx2"
#define SUPPORTED avx2_supported
#include "cpu_loops.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
