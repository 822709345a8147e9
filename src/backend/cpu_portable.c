/* The loops of backend cpu in plain C, for any processor. */
#include "cpu.h"

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

static bool portable_supported(void)
{
    return true;
}

#define VARIANT kith_cpu_portable
#define TEXT "portable"
#define SUPPORTED portable_supported
#include "cpu_loops.inc.h"
