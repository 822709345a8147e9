/* One backend on the CPU as a constant record: vectors in float32 by the widest
 * loops this CPU has. Compiled once per record:
 *
 *   RECORD, NAME, SUMMARY  its name and texts
 *   OPS                    its operations
 *   MISSING                backend.h's `missing` */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu.h"
#include "cpu_ops.h"
#include "kith/backend.h"
#include "memory.h"
#include "pool.h"
#include "products.h"

enum { STEP_PART = 1 << 14 };

static void cpu_copy(size_t n, void *target, const void *source)
{
    if (n > 0)
        memmove(target, source, n * sizeof(float));
}

static void cpu_clear(size_t n, void *x)
{
    if (n > 0)
        memset(x, 0, n * sizeof(float));
}

static void cpu_scale(size_t n, double factor, void *x)
{
    kith_cpu_best()->scale(n, (float)factor, x);
}

static void cpu_add(size_t n, double factor, const void *x, void *y)
{
    kith_cpu_best()->add(n, (float)factor, x, y);
}

static double cpu_mix(size_t n, double weight, const void *received,
                      const void *sent, void *x)
{
    return kith_cpu_best()->mix(n, (float)weight, received, sent, x);
}

static double cpu_swap_mix(size_t n, double weight, const void *received,
                           const void *sent, const void *base, void *x)
{
    return kith_cpu_best()->swap_mix(n, (float)weight, received, sent, base, x);
}

static double cpu_mix_bf16(size_t n, double weight, const uint16_t *received,
                           const uint16_t *sent, void *x)
{
    return kith_cpu_best()->mix_bf16(n, (float)weight, received, sent, x);
}

static void cpu_combine(size_t n, unsigned count,
                        const struct kith_update *updates)
{
    kith_cpu_best()->combine(n, count, updates);
}

static double cpu_sum(size_t n, const void *x)
{
    return kith_cpu_best()->sum(n, x);
}

static double cpu_distance_squared(size_t n, const void *x, const void *y)
{
    return kith_cpu_best()->distance_squared(n, x, y);
}

static bool cpu_finite(size_t n, const void *x)
{
    return kith_cpu_best()->finite(n, x);
}

static void cpu_read(size_t n, const void *x, double *out)
{
    const float *v = x;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)v[i];
}

static void cpu_write(size_t n, const double *in, void *x)
{
    float *v = x;
    for (size_t i = 0; i < n; i++)
        v[i] = (float)in[i];
}

/* A vector's step in parts that are worth a thread. */
struct sgd {
    struct kith_sgd whole;
    atomic_bool spoilt; /* some new value is not finite */
};

static void sgd_part(void *context, size_t i)
{
    struct sgd *s = context;
    const size_t from = i * STEP_PART, left = s->whole.n - from;
    struct kith_sgd part = s->whole;
    part.n = left < STEP_PART ? left : STEP_PART;
    part.gradient = (const float *)part.gradient + from;
    part.velocity =
        part.velocity == NULL ? NULL : (float *)part.velocity + from;
    part.x = (float *)part.x + from;
    if (!kith_cpu_best()->sgd(&part))
        atomic_store_explicit(&s->spoilt, true, memory_order_relaxed);
}

static bool cpu_sgd(const struct kith_sgd *sgd)
{
    struct sgd s = {.whole = *sgd};
    kith_pool_run((sgd->n + STEP_PART - 1) / STEP_PART, sgd_part, &s);
    return !atomic_load(&s.spoilt);
}

/* A quotient and a root in float64 for each value: no wider loop is quicker. */
static void cpu_adam_direction(const struct kith_adam *moments)
{
    const double beta1 = moments->beta1, beta2 = moments->beta2;
    const float *m = moments->first, *v = moments->second;
    float *g = moments->gradient;
    for (size_t i = 0; i < moments->n; i++) {
        const double slope = (double)g[i];
        const double square =
            beta2 * (double)v[i] + (1 - beta2) * slope * slope;
        g[i] = (float)((beta1 * (double)m[i] + slope) /
                       (sqrt(square) + moments->epsilon));
    }
}

static void cpu_from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    kith_cpu_best()->from_bytes(n, bytes, y);
}

static void cpu_to_bf16(size_t n, const void *x, uint16_t *y)
{
    kith_cpu_best()->to_bf16(n, x, y);
}

static void cpu_from_bf16(size_t n, const uint16_t *x, void *y)
{
    kith_cpu_best()->from_bf16(n, x, y);
}

static double cpu_distance_bf16(size_t n, const uint16_t *x, const uint16_t *y)
{
    return kith_cpu_best()->distance_bf16(n, x, y);
}

static float cpu_to_int8(size_t n, const void *x, int8_t *y)
{
    return kith_cpu_best()->to_int8(n, x, y);
}

static void cpu_from_int8(size_t n, float scale, const int8_t *x, void *y)
{
    kith_cpu_best()->from_int8(n, scale, x, y);
}

static const struct kith_residues *cpu_residues(void)
{
    return kith_cpu_best()->residues;
}

static const struct kith_magnitudes *cpu_magnitudes(void)
{
    return kith_cpu_best()->magnitudes;
}

extern const struct kith_backend RECORD;
const struct kith_backend RECORD = {
    .name = NAME,
    .summary = SUMMARY,
    .element_bytes = sizeof(float),
    .host = &RECORD,
    .missing = MISSING,
    .alloc = kith_host_alloc,
    .release = kith_host_release,
    .copy = cpu_copy,
    .clear = cpu_clear,
    .scale = cpu_scale,
    .add = cpu_add,
    .mix = cpu_mix,
    .swap_mix = cpu_swap_mix,
    .mix_bf16 = cpu_mix_bf16,
    .combine = cpu_combine,
    .sum = cpu_sum,
    .distance_squared = cpu_distance_squared,
    .finite = cpu_finite,
    .read = cpu_read,
    .write = cpu_write,
    .gemm = kith_product_gemm,
    .sgd = cpu_sgd,
    .adam_direction = cpu_adam_direction,
    .ops = &OPS,
    .from_bytes = cpu_from_bytes,
    .to_bf16 = cpu_to_bf16,
    .from_bf16 = cpu_from_bf16,
    .distance_bf16 = cpu_distance_bf16,
    .to_int8 = cpu_to_int8,
    .from_int8 = cpu_from_int8,
    .residues = cpu_residues,
    .magnitudes = cpu_magnitudes,
};
