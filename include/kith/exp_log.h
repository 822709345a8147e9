/* exp and log in float64 by their series, without libm: the same bits on every
 * compiler, C library and CPU (IEEE additions, products and divisions only).
 * Error below 2 units in the last place; unit/test_backend.c holds them
 * against libm. */
#ifndef KITH_EXP_LOG_H
#define KITH_EXP_LOG_H

#include <stdint.h>
#include <string.h>

/* ln 2 in two parts: the first has 21 trailing zero bits, so k * LN2_HIGH is
 * exact for |k| < 2^21. */
#define KITH_LN2_HIGH 0x1.62e42feep-1
#define KITH_LN2_LOW 0x1.a39ef35793c76p-33
#define KITH_LN2_INVERSE 0x1.71547652b82fep+0

/* 2^k for -1022 <= k <= 1023. */
static inline double kith_power_of_two(int k)
{
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* e^x = 2^k e^r, r = x - k ln 2 in [-ln2/2, ln2/2], 14 terms in Horner's form.
 * 0 below -708, +infinity above 709.7; NaN stays NaN. */
static inline double kith_exp(double x)
{
    if (x != x)
        return x;
    if (x < -708.0)
        return 0.0;
    if (x > 709.7)
        return 0x1p1023 * 2.0;
    const int k = (int)(x * KITH_LN2_INVERSE + (x < 0 ? -0.5 : 0.5));
    const double r = (x - k * KITH_LN2_HIGH) - k * KITH_LN2_LOW;
    double sum = 1.0;
    for (int i = 14; i > 0; i--)
        sum = 1.0 + sum * r / i;
    return sum * kith_power_of_two(k);
}

/* ln x = k ln 2 + 2 atanh(s), x = 2^k m, m in [sqrt(1/2), sqrt 2),
 * s = (m - 1) / (m + 1). For normal x > 0; -infinity for 0 and below. */
static inline double kith_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return x;
    if (x <= 0)
        return -0x1p1023 * 2.0;
    if (bits >= UINT64_C(0x7ff0000000000000))
        return x;
    int k = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    const double s = (m - 1.0) / (m + 1.0), square = s * s;
    double sum = 0.0;
    for (int i = 21; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return k * KITH_LN2_HIGH + (2.0 * s * sum + k * KITH_LN2_LOW);
}

#endif
