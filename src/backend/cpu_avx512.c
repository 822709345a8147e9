/* The loops of backend cpu with AVX-512. Compiled for that
 * instruction set whatever the build's flags say; used where the CPU has it. */
#include "cpu.h"

#ifdef KITH_CPU_X86
#include <immintrin.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))),               \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

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

static bool avx512_supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

#define VARIANT kith_cpu_avx512
#define TEXT "avx512"
#define SUPPORTED avx512_supported
#include "cpu_loops.inc.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
