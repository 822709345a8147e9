/* Sixteen floats at a time, in plain C: what the loops of backend cpu are
 * written in. f16: sixteen float32 lanes, d16: float64, w16: 32-bit words. Only
 * this variant rounds a product before it is added. */
#ifndef KITH_TRAINING_BACKEND_F16_PORTABLE_H
#define KITH_TRAINING_BACKEND_F16_PORTABLE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    float v[16];
} f16;
typedef struct {
    double v[16];
} d16;

#define EACH for (int k = 0; k < 16; k++)

static inline f16 f16_all(float value)
{
    f16 out;
    EACH out.v[k] = value;
    return out;
}

static inline f16 f16_load(const float *from)
{
    f16 out;
    memcpy(out.v, from, sizeof out.v);
    return out;
}

static inline void f16_store(float *to, f16 a)
{
    memcpy(to, a.v, sizeof a.v);
}

/* Plain C knows no way past the caches. */
static inline void f16_stream(float *to, f16 a)
{
    f16_store(to, a);
}

static inline void f16_fence(void)
{
}

static inline f16 f16_add(f16 a, f16 b)
{
    EACH a.v[k] += b.v[k];
    return a;
}

static inline f16 f16_sub(f16 a, f16 b)
{
    EACH a.v[k] -= b.v[k];
    return a;
}

static inline f16 f16_mul(f16 a, f16 b)
{
    EACH a.v[k] *= b.v[k];
    return a;
}

static inline f16 f16_div(f16 a, f16 b)
{
    EACH a.v[k] /= b.v[k];
    return a;
}

/* max(0, a); NaN stays NaN. */
static inline f16 f16_relu(f16 a)
{
    EACH a.v[k] = a.v[k] < 0 ? 0 : a.v[k];
    return a;
}

/* a where y > 0, else 0. */
static inline f16 f16_where_positive(f16 y, f16 a)
{
    EACH a.v[k] = y.v[k] > 0 ? a.v[k] : 0;
    return a;
}

static inline bool f16_finite(f16 a)
{
    int finite = 0;
    EACH
    {
        const float difference = a.v[k] - a.v[k];
        finite += difference <= 0;
    }
    return finite == 16;
}

static inline f16 f16_from_bf16(const uint16_t *from)
{
    uint32_t bits[16];
    EACH bits[k] = (uint32_t)from[k] << 16;
    f16 out;
    memcpy(out.v, bits, sizeof out.v);
    return out;
}

/* To the nearest, of two equally near to the even; a NaN stays one. */
static inline void f16_to_bf16(uint16_t *to, f16 a)
{
    uint32_t bits[16];
    memcpy(bits, a.v, sizeof bits);
    EACH
    {
        const bool nan = (bits[k] & 0x7fffffff) > 0x7f800000;
        const uint32_t up = bits[k] + 0x7fff + (bits[k] >> 16 & 1);
        to[k] = (uint16_t)((nan ? bits[k] | 1u << 22 : up) >> 16);
    }
}

static inline f16 f16_from_bytes(const uint8_t *from)
{
    f16 out;
    EACH out.v[k] = (float)from[k];
    return out;
}

static inline d16 d16_zero(void)
{
    return (d16){{0}};
}

static inline d16 d16_add(d16 sums, f16 a)
{
    EACH sums.v[k] += (double)a.v[k];
    return sums;
}

static inline d16 d16_add_square(d16 sums, f16 a)
{
    EACH sums.v[k] += (double)a.v[k] * (double)a.v[k];
    return sums;
}

static inline void d16_store(double *to, d16 sums)
{
    memcpy(to, sums.v, sizeof sums.v);
}

/* a b + c, rounded twice: fused only where the instruction set has it. */
static inline f16 f16_fma(f16 a, f16 b, f16 c)
{
    EACH a.v[k] = a.v[k] * b.v[k] + c.v[k];
    return a;
}

/* The larger; b where either is NaN. */
static inline f16 f16_max(f16 a, f16 b)
{
    EACH a.v[k] = a.v[k] > b.v[k] ? a.v[k] : b.v[k];
    return a;
}

/* The smaller; b where either is NaN. */
static inline f16 f16_min(f16 a, f16 b)
{
    EACH a.v[k] = a.v[k] < b.v[k] ? a.v[k] : b.v[k];
    return a;
}

static inline f16 f16_sqrt(f16 a)
{
    EACH a.v[k] = sqrtf(a.v[k]);
    return a;
}

/* To the nearest integer, for |a| < 2^22. */
static inline f16 f16_round(f16 a)
{
    EACH a.v[k] = (a.v[k] + 0x1.8p23f) - 0x1.8p23f;
    return a;
}

/* a 2^n, n whole and in [-126, 127]: n stands in the low bits of n + 1.5 2^23,
 * also where it is NaN, and no conversion can overflow. */
static inline f16 f16_scale_two(f16 a, f16 n)
{
    EACH
    {
        const float shifted = n.v[k] + 0x1.8p23f;
        uint32_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 127) << 23;
        float power;
        memcpy(&power, &bits, sizeof power);
        a.v[k] *= power;
    }
    return a;
}

/* a where x >= limit or x is NaN, else 0. */
static inline f16 f16_where_least(f16 x, float limit, f16 a)
{
    EACH a.v[k] = x.v[k] < limit ? 0 : a.v[k];
    return a;
}

/* Bit i: lane i of both is equal. */
static inline unsigned f16_equal(f16 a, f16 b)
{
    unsigned equal = 0;
    EACH equal |= (unsigned)(a.v[k] >= b.v[k] && a.v[k] <= b.v[k]) << k;
    return equal;
}

/* The first `count` <= 16 lanes; the others are 0, and not read. */
static inline f16 f16_load_part(const float *from, size_t count)
{
    f16 out = f16_all(0);
    memcpy(out.v, from, count * sizeof *from);
    return out;
}

static inline void f16_store_part(float *to, f16 a, size_t count)
{
    memcpy(to, a.v, count * sizeof *to);
}

static inline float f16_sum(f16 a)
{
    for (int width = 8; width > 0; width /= 2) {
        for (int k = 0; k < width; k++)
            a.v[k] += a.v[k + width];
    }
    return a.v[0];
}

static inline float f16_most(f16 a)
{
    for (int k = 1; k < 16; k++)
        a.v[0] = a.v[0] > a.v[k] ? a.v[0] : a.v[k];
    return a.v[0];
}

/* to (16, 16) <- from (16, 16) transposed; rows are their strides apart. */
static inline void f16_transpose(const float *from, size_t from_stride,
                                 float *to, size_t to_stride)
{
    for (size_t i = 0; i < 16; i++) {
        for (size_t j = 0; j < 16; j++)
            to[j * to_stride + i] = from[i * from_stride + j];
    }
}

/* Sixteen words of 32 bits, for Philox. */
typedef struct {
    uint32_t v[16];
} w16;

static inline w16 w16_all(uint32_t value)
{
    w16 out;
    EACH out.v[k] = value;
    return out;
}

static inline w16 w16_load(const uint32_t *from)
{
    w16 out;
    memcpy(out.v, from, sizeof out.v);
    return out;
}

static inline w16 w16_xor(w16 a, w16 b)
{
    EACH a.v[k] ^= b.v[k];
    return a;
}

/* The lower half of factor * a; the upper one into *high. */
static inline w16 w16_multiply(w16 a, uint32_t factor, w16 *high)
{
    EACH
    {
        const uint64_t product = (uint64_t)a.v[k] * factor;
        high->v[k] = (uint32_t)(product >> 32);
        a.v[k] = (uint32_t)product;
    }
    return a;
}

/* a where w >= least, else 0. */
static inline f16 w16_where_least(w16 w, uint32_t least, f16 a)
{
    EACH a.v[k] = w.v[k] >= least ? a.v[k] : 0;
    return a;
}

#endif
