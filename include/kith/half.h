/* IEEE float16 in 16 bits: widened exactly, rounded to the nearest, ties to
 * even. On the host and in kernels alike, whatever the processor can.
 * Test: unit/test_outside.c, unit/test_outside_device.c */
#ifndef KITH_HALF_H
#define KITH_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define KITH_HALF static __host__ __device__ inline
#else
#define KITH_HALF static inline
#endif

KITH_HALF float kith_from_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    float value;
    uint32_t bits;
    if (magnitude >= 0x7c00u) { /* infinity, NaN */
        bits = sign | 0x7f800000u | (magnitude & 0x3ffu) << 13;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (magnitude >= 0x400u) {
        bits = sign | ((magnitude << 13) + (112u << 23));
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    value = (float)magnitude * 0x1p-24f; /* subnormal: exact */
    return sign != 0 ? -value : value;
}

KITH_HALF uint16_t kith_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u); /* a NaN stays one */
    if (magnitude >= 0x47800000u)          /* 2^16 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: units of 2^-24 */
        float scaled;
        memcpy(&scaled, &magnitude, sizeof scaled);
        /* 2^23 more than the number of units: its sum is rounded to them. The
         * product is exact, so one rounding or two are the same. */
        scaled = scaled * 0x1p24f + 0x1p23f;
        memcpy(&bits, &scaled, sizeof bits);
        return (uint16_t)(sign | (bits & 0x7fffffu));
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - (112u << 23) + 0xfffu + odd) >> 13);
}

#endif
