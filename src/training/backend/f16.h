/* Sixteen floats at a time: what the loops of backend cpu are written in. f16:
 * sixteen float32 lanes, d16: float64, w16: 32-bit words.
 *
 * A vector is PARTS of LANES lanes, as many as a register of the instruction
 * set holds. Here is what the compiler's vector types can say. The header
 * F16_SET, which is included below, has the rest for one part; the including
 * file names it and defines LANES:
 *
 *   lanes_fma, lanes_max and lanes_min (b where either is NaN), lanes_sqrt,
 *   lanes_round, lanes_scale_two, lanes_sum, lanes_most, lanes_bits (one per
 *   lane of a mask), lanes_where_nan (b where a is NaN, else c),
 *   lanes_load_part and lanes_store_part (the first `count`, or all),
 *   lanes_at_least (bits), lanes_count (sum + 1 where a >= bound),
 *   lanes_stream and f16_fence, lanes_transpose, lanes_half (in float64),
 *   words_multiply; all sixteen: bytes_widen, words_widen, words_narrow */
#ifndef KITH_TRAINING_BACKEND_F16_H
#define KITH_TRAINING_BACKEND_F16_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define FORCE static inline __attribute__((always_inline))
/* Loops are laid out for whole vectors. */
#define LIKELY(condition) __builtin_expect(condition, 1)

#define F16_VECTOR(count, element)                                             \
    __attribute__((vector_size((count) * sizeof(element))))
typedef float f16_part F16_VECTOR(LANES, float);
typedef uint32_t w16_part F16_VECTOR(LANES, uint32_t);
typedef double d16_part F16_VECTOR(LANES / 2, double);

enum { PARTS = 16 / LANES };
#define EACH UNROLL for (int k = 0; k < PARTS; k++)

#include F16_SET

/* AVX-512 alone has other masks than vectors of words. */
#if LANES < 16
FORCE f16_part lanes_where_positive(f16_part y, f16_part a)
{
    return (f16_part)((w16_part)(y > 0.0f) & (w16_part)a);
}

FORCE f16_part lanes_where_least(f16_part x, float limit, f16_part a)
{
    return (f16_part)(~(w16_part)(x < limit) & (w16_part)a);
}

FORCE unsigned lanes_equal(f16_part a, f16_part b)
{
    return lanes_bits((w16_part)(a == b));
}

FORCE unsigned lanes_at_least(f16_part a, f16_part b)
{
    return lanes_bits((w16_part)(a >= b));
}

FORCE w16_part lanes_count(w16_part sum, f16_part a, float bound)
{
    return sum - (w16_part)(a >= bound);
}
#endif

typedef struct {
    f16_part v[PARTS];
} f16;
typedef struct {
    d16_part v[2 * PARTS];
} d16;
typedef struct {
    w16_part v[PARTS];
} w16;

FORCE f16 f16_all(float value)
{
    f16 out;
    EACH out.v[k] = value - (f16_part){0};
    return out;
}

FORCE f16 f16_load(const float *from)
{
    f16 out;
    EACH memcpy(&out.v[k], from + k * LANES, sizeof out.v[k]);
    return out;
}

FORCE void f16_store(float *to, f16 a)
{
    EACH memcpy(to + k * LANES, &a.v[k], sizeof a.v[k]);
}

/* Past the caches where the instruction set can; `to` is aligned to 64. */
FORCE void f16_stream(float *to, f16 a)
{
    EACH lanes_stream(to + k * LANES, a.v[k]);
}

/* The first `count` <= 16 f16_part; the others are 0, and not read. */
FORCE f16 f16_load_part(const float *from, size_t count)
{
    f16 out = f16_all(0);
    EACH
    {
        if (count > (size_t)k * LANES)
            out.v[k] =
                lanes_load_part(from + k * LANES, count - (size_t)k * LANES);
    }
    return out;
}

FORCE void f16_store_part(float *to, f16 a, size_t count)
{
    EACH
    {
        if (count > (size_t)k * LANES)
            lanes_store_part(to + k * LANES, a.v[k], count - (size_t)k * LANES);
    }
}

/* The first `left` f16_part, where fewer than sixteen are left. */
FORCE f16 part_load(const float *from, size_t left)
{
    return LIKELY(left >= 16) ? f16_load(from) : f16_load_part(from, left);
}

FORCE void part_store(float *to, f16 a, size_t left)
{
    if (LIKELY(left >= 16))
        f16_store(to, a);
    else
        f16_store_part(to, a, left);
}

/* Runs the body for each sixteen of n elements: i is the first, `left` how many
 * there are, a constant but for the last ones. */
#define EACH_SIXTEEN(n, i, left, ...)                                          \
    do {                                                                       \
        size_t i = 0;                                                          \
        for (; i + 16 <= (n); i += 16) {                                       \
            const size_t left = 16;                                            \
            __VA_ARGS__;                                                       \
        }                                                                      \
        if (i < (n)) {                                                         \
            const size_t left = (n)-i;                                         \
            __VA_ARGS__;                                                       \
        }                                                                      \
    } while (0)

FORCE f16 f16_add(f16 a, f16 b)
{
    EACH a.v[k] += b.v[k];
    return a;
}

FORCE f16 f16_sub(f16 a, f16 b)
{
    EACH a.v[k] -= b.v[k];
    return a;
}

FORCE f16 f16_mul(f16 a, f16 b)
{
    EACH a.v[k] *= b.v[k];
    return a;
}

FORCE f16 f16_div(f16 a, f16 b)
{
    EACH a.v[k] /= b.v[k];
    return a;
}

/* a b + c; the portable variant alone rounds the product. */
FORCE f16 f16_fma(f16 a, f16 b, f16 c)
{
    EACH c.v[k] = lanes_fma(a.v[k], b.v[k], c.v[k]);
    return c;
}

/* The larger; b where either is NaN. */
FORCE f16 f16_max(f16 a, f16 b)
{
    EACH b.v[k] = lanes_max(a.v[k], b.v[k]);
    return b;
}

/* The smaller; b where either is NaN. */
FORCE f16 f16_min(f16 a, f16 b)
{
    EACH b.v[k] = lanes_min(a.v[k], b.v[k]);
    return b;
}

/* max(0, a); NaN stays NaN. */
FORCE f16 f16_relu(f16 a)
{
    return f16_max(f16_all(0), a);
}

FORCE f16 f16_sqrt(f16 a)
{
    EACH a.v[k] = lanes_sqrt(a.v[k]);
    return a;
}

/* To the nearest integer, for |a| < 2^22. */
FORCE f16 f16_round(f16 a)
{
    EACH a.v[k] = lanes_round(a.v[k]);
    return a;
}

/* a 2^n, n whole and in [-126, 127]. */
FORCE f16 f16_scale_two(f16 a, f16 n)
{
    EACH a.v[k] = lanes_scale_two(a.v[k], n.v[k]);
    return a;
}

/* a where y > 0, else 0. */
FORCE f16 f16_where_positive(f16 y, f16 a)
{
    EACH a.v[k] = lanes_where_positive(y.v[k], a.v[k]);
    return a;
}

/* a where x >= limit or x is NaN, else 0. */
FORCE f16 f16_where_least(f16 x, float limit, f16 a)
{
    EACH a.v[k] = lanes_where_least(x.v[k], limit, a.v[k]);
    return a;
}

/* a, or 0 where it is smaller than KITH_MOMENT_LEAST; NaN stays. */
FORCE f16 f16_moment(f16 a)
{
    const f16 size = f16_max(f16_sub(f16_all(0), a), a);
    return f16_where_least(size, KITH_MOMENT_LEAST, a);
}

/* Bit i: lane i of both is equal. */
FORCE unsigned f16_equal(f16 a, f16 b)
{
    unsigned equal = 0;
    EACH equal |= lanes_equal(a.v[k], b.v[k]) << k * LANES;
    return equal;
}

/* The sum of the parts, in pairs. */
FORCE f16_part parts_sum(f16 a)
{
    UNROLL
    for (int width = PARTS / 2; width > 0; width /= 2) {
        UNROLL
        for (int k = 0; k < width; k++)
            a.v[k] += a.v[k + width];
    }
    return a.v[0];
}

FORCE float f16_sum(f16 a)
{
    return lanes_sum(parts_sum(a));
}

FORCE float f16_most(f16 a)
{
    for (int k = 1; k < PARTS; k++)
        a.v[0] = lanes_max(a.v[0], a.v[k]);
    return lanes_most(a.v[0]);
}

/* All 0 while every `a` was finite; one that is not leaves a NaN. */
FORCE f16_part f16_doubt(f16_part doubt, f16 a)
{
    f16_part none = {0};
    EACH none = lanes_fma(a.v[k], (f16_part){0}, none);
    return (f16_part)((w16_part)doubt | (w16_part)none);
}

FORCE bool lanes_sure(f16_part doubt)
{
    return lanes_equal(doubt, doubt) == (1u << LANES) - 1;
}

FORCE bool f16_finite(f16 a)
{
    return lanes_sure(f16_doubt((f16_part){0}, a));
}

FORCE f16 f16_from_bf16(const uint16_t *from)
{
    w16_part words[PARTS];
    f16 out;
    words_widen(words, from);
    EACH out.v[k] = (f16_part)(words[k] << 16);
    return out;
}

/* To the nearest, of two equally near to the even; a NaN stays one. */
FORCE void f16_to_bf16(uint16_t *to, f16 a)
{
    w16_part half[PARTS];
    EACH
    {
        const w16_part bits = (w16_part)a.v[k];
        const w16_part up = bits + ((bits >> 16 & 1) + 0x7fff);
        half[k] = lanes_where_nan(a.v[k], bits | 1u << 22, up) >> 16;
    }
    words_narrow(to, half);
}

FORCE f16 f16_from_bytes(const uint8_t *from)
{
    f16 out;
    bytes_widen(out.v, from);
    return out;
}

FORCE d16 d16_zero(void)
{
    return (d16){{{0}}};
}

/* Half h of a vector, in float64. */
FORCE d16_part f16_half(f16 a, int h)
{
    return lanes_half(a.v[h / 2], h % 2);
}

FORCE d16 d16_add(d16 sums, f16 a)
{
    UNROLL
    for (int h = 0; h < 2 * PARTS; h++)
        sums.v[h] += f16_half(a, h);
    return sums;
}

FORCE d16 d16_add_square(d16 sums, f16 a)
{
    UNROLL
    for (int h = 0; h < 2 * PARTS; h++)
        sums.v[h] += f16_half(a, h) * f16_half(a, h);
    return sums;
}

/* The sum of the lanes, from 0 to 15. */
FORCE double d16_fold(d16 sums, double sum)
{
    double all[16];
    memcpy(all, sums.v, sizeof all);
    for (int lane = 0; lane < 16; lane++)
        sum += all[lane];
    return sum;
}

/* to (16, 16) <- from (16, 16) transposed; rows are their strides apart. */
FORCE void f16_transpose(const float *from, size_t from_stride, float *to,
                         size_t to_stride)
{
    for (size_t i = 0; i < 16; i += LANES) {
        for (size_t j = 0; j < 16; j += LANES)
            lanes_transpose(from + i * from_stride + j, from_stride,
                            to + j * to_stride + i, to_stride);
    }
}

FORCE w16 w16_all(uint32_t value)
{
    w16 out;
    EACH out.v[k] = value - (w16_part){0};
    return out;
}

FORCE w16 w16_load(const uint32_t *from)
{
    w16 out;
    EACH memcpy(&out.v[k], from + k * LANES, sizeof out.v[k]);
    return out;
}

FORCE w16 w16_xor(w16 a, w16 b)
{
    EACH a.v[k] ^= b.v[k];
    return a;
}

/* The lower half of factor * a; the upper one into *high. */
FORCE w16 w16_multiply(w16 a, uint32_t factor, w16 *high)
{
    EACH a.v[k] = words_multiply(a.v[k], factor, &high->v[k]);
    return a;
}

/* a where w >= least, else 0. */
FORCE f16 w16_where_least(w16 w, uint32_t least, f16 a)
{
    EACH a.v[k] = (f16_part)((w16_part)(w.v[k] >= least) & (w16_part)a.v[k]);
    return a;
}

#endif
