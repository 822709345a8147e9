/* Root-mean-square norm of backend cpu. With r = 1 / sqrt(mean x^2 + epsilon),
 * g = dy scale and h = x r: dx = r (g - h mean(g h)); dscale = sum dy h. Parts
 * are rows, or stripes of columns where rows are summed. Sums run in LANES
 * lanes, which the compiler makes vectors of. */
#include <math.h>

#include "cpu_ops.h"
#include "pool.h"

enum { LANES = 16, PART = 1 << 14, STRIPE = 64 };

/* Rows of a part where a row has n elements. */
static size_t rows_of(size_t n)
{
    return n >= PART ? 1 : PART / n;
}

static float fold(const float lanes[LANES])
{
    float sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* Sum of a[j] b[j] c[j]; c may be NULL: 1. */
static float sum_of(size_t n, const float *a, const float *b, const float *c)
{
    float lanes[LANES] = {0};
    size_t j = 0;
    for (; j + LANES <= n && c == NULL; j += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[j + l] * b[j + l];
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[j + l] * b[j + l] * c[j + l];
    float rest = 0;
    for (; j < n; j++)
        rest += a[j] * b[j] * (c == NULL ? 1 : c[j]);
    return fold(lanes) + rest;
}

static void forward_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels, first = part * rows_of(n);
    const size_t end = kith_least(a->rows, first + rows_of(n));
    const float *scale = a->weight;
    float *saved = a->saved;
    for (size_t i = first; i < end; i++) {
        const float *x = (const float *)a->x + i * n;
        float *y = (float *)a->y + i * n;
        const double mean = (double)(sum_of(n, x, x, NULL) / (float)n);
        const float inverse = (float)(1 / sqrt(mean + op->epsilon));
        if (saved != NULL)
            saved[i] = inverse;
        for (size_t j = 0; j < n; j++)
            y[j] = x[j] * inverse * scale[j];
    }
}

static void rms_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t part = rows_of(op->channels);
    kith_cpu_parts((a->rows + part - 1) / part, forward_part, a);
}

static void backward_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_norm *op = a->shape;
    const size_t n = op->channels, first = part * rows_of(n);
    const size_t end = kith_least(a->rows, first + rows_of(n));
    const float *scale = a->weight, *saved = a->saved;
    for (size_t i = first; i < end; i++) {
        const float *x = (const float *)a->x + i * n;
        const float *dy = (const float *)a->dy + i * n;
        float *dx = (float *)a->dx + i * n;
        const float r = saved[i];
        const float share = sum_of(n, dy, scale, x) * r * r / (float)n;
        const bool add = a->flags & KITH_ADD_DATA;
        for (size_t j = 0; j < n; j++) {
            const float d = r * (dy[j] * scale[j] - x[j] * share);
            dx[j] = add ? dx[j] + d : d;
        }
    }
}

static void weights_stripe(const struct kith_arguments *a, size_t stripe)
{
    const struct kith_norm *op = a->shape;
    const size_t all = op->channels, first = stripe * STRIPE;
    const size_t n = kith_least(STRIPE, all - first);
    const float *saved = a->saved;
    float sums[STRIPE] = {0}, *dscale = (float *)a->dweight + first;
    for (size_t i = 0; i < a->rows; i++) {
        const float *x = (const float *)a->x + i * all + first;
        const float *dy = (const float *)a->dy + i * all + first;
        for (size_t j = 0; j < n; j++)
            sums[j] += dy[j] * (x[j] * saved[i]);
    }
    for (size_t j = 0; j < n; j++)
        dscale[j] = (a->flags & KITH_ADD_WEIGHTS ? dscale[j] : 0) + sums[j];
}

static void rms_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const size_t part = rows_of(op->channels);
    /* First the sums: dx may take the place of dy. */
    if (a->dweight != NULL)
        kith_cpu_parts((op->channels + STRIPE - 1) / STRIPE, weights_stripe, a);
    if (a->dx != NULL)
        kith_cpu_parts((a->rows + part - 1) / part, backward_part, a);
}

const struct kith_kernel kith_cpu_rms_norm_kernel = {
    .forward = rms_norm, .backward = rms_norm_backward};
