/* The plain loops every other backend is held against. Compiled twice:
 *
 *   REAL   float or double
 *   RECORD name of the backend's record, NAME and SUMMARY its texts
 *
 * Each operation states in one loop what backend.h promises. Sums run in 16
 * float64 lanes, element i in lane i mod 16, folded from lane 0 to 15: the
 * order of the vectorised variants, so that their sums can be compared bit for
 * bit. No libm: the same bits on every CPU. */
#include <math.h>
#include <string.h>

#include "memory.h"

#define LANES 16

static double lanes_fold(const double lanes[LANES])
{
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static void naive_copy(size_t n, void *target, const void *source)
{
    if (n > 0)
        memmove(target, source, n * sizeof(REAL));
}

static void naive_clear(size_t n, void *x)
{
    if (n > 0)
        memset(x, 0, n * sizeof(REAL));
}

static void naive_scale(size_t n, double factor, void *x)
{
    const REAL f = (REAL)factor;
    REAL *v = x;
    for (size_t i = 0; i < n; i++)
        v[i] = f * v[i];
}

static void naive_add(size_t n, double factor, const void *x, void *y)
{
    const REAL f = (REAL)factor, *source = x;
    REAL *target = y;
    for (size_t i = 0; i < n; i++)
        target[i] += f * source[i];
}

/* x <- base + weight (received - sent) */
static double naive_swap_mix(size_t n, double weight, const void *received,
                             const void *sent, const void *base, void *x)
{
    const REAL w = (REAL)weight, *r = received, *s = sent, *from = base;
    REAL *to = x;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const REAL delta = w * (r[i] - s[i]);
        to[i] = from[i] + delta;
        lanes[i % LANES] += (double)delta;
    }
    return lanes_fold(lanes);
}

static double naive_mix(size_t n, double weight, const void *received,
                        const void *sent, void *x)
{
    return naive_swap_mix(n, weight, received, sent, x, x);
}

static REAL of_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return (REAL)wide;
}

static double naive_mix_bf16(size_t n, double weight, const uint16_t *received,
                             const uint16_t *sent, void *x)
{
    const REAL w = (REAL)weight;
    REAL *v = x;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const REAL delta = w * (of_bf16(received[i]) - of_bf16(sent[i]));
        v[i] = v[i] + delta;
        lanes[i % LANES] += (double)delta;
    }
    return lanes_fold(lanes);
}

static double naive_distance_bf16(size_t n, const uint16_t *x,
                                  const uint16_t *y)
{
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const double difference =
            (double)(y == NULL ? of_bf16(x[i]) : of_bf16(x[i]) - of_bf16(y[i]));
        lanes[i % LANES] += difference * difference;
    }
    return lanes_fold(lanes);
}

/* What term t of an update adds. */
static REAL naive_term(const struct kith_update *update, unsigned t, size_t i)
{
    const struct kith_term *term = &update->terms[t];
    const REAL *plus = term->plus, *minus = term->minus;
    const REAL value =
        (REAL)term->factor * (minus == NULL ? plus[i] : plus[i] - minus[i]);
    return update->squared ? value * value : value;
}

static void naive_update(size_t n, const struct kith_update *update)
{
    const double own = update->own;
    const bool reads = own < 0 || own > 0;
    const bool plain = own >= 1 && own <= 1 && update->count == 1;
    REAL *v = update->y;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const REAL old = update->change != NULL || reads ? v[i] : 0;
        REAL value = reads ? (REAL)own * old : naive_term(update, 0, i);
        for (unsigned t = reads ? 0 : 1; t < update->count; t++)
            value += naive_term(update, t, i);
        const REAL delta = plain ? naive_term(update, 0, i) : value - old;
        lanes[i % LANES] += (double)delta;
        v[i] = value;
    }
    if (update->change != NULL)
        *update->change = lanes_fold(lanes);
}

static void naive_combine(size_t n, unsigned count,
                          const struct kith_update *updates)
{
    for (unsigned u = 0; u < count; u++)
        naive_update(n, &updates[u]);
}

static double naive_sum(size_t n, const void *x)
{
    const REAL *v = x;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i % LANES] += (double)v[i];
    return lanes_fold(lanes);
}

static double naive_distance_squared(size_t n, const void *x, const void *y)
{
    const REAL *v = x, *u = y;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        const double difference = (double)(u == NULL ? v[i] : v[i] - u[i]);
        lanes[i % LANES] += difference * difference;
    }
    return lanes_fold(lanes);
}

static bool naive_finite(size_t n, const void *x)
{
    const REAL *v = x;
    for (size_t i = 0; i < n; i++) {
        /* Infinity - infinity and NaN - NaN are NaN, which equals nothing. */
        const REAL difference = v[i] - v[i];
        if (!(difference <= 0))
            return false;
    }
    return true;
}

static void naive_read(size_t n, const void *x, double *out)
{
    const REAL *v = x;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)v[i];
}

static void naive_write(size_t n, const double *in, void *x)
{
    REAL *v = x;
    for (size_t i = 0; i < n; i++)
        v[i] = (REAL)in[i];
}

static void naive_gemm(const struct kith_gemm *g)
{
    const REAL *left = g->a, *right = g->b;
    REAL *out = g->c;
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            REAL sum = 0;
            for (size_t l = 0; l < g->k; l++)
                sum += left[g->transpose_a ? l * g->m + i : i * g->k + l] *
                       right[g->transpose_b ? j * g->k + l : l * g->n + j];
            /* As in BLAS, beta = 0 does not read C. */
            const REAL kept = g->beta > 0 || g->beta < 0
                                  ? (REAL)g->beta * out[i * g->n + j]
                                  : (REAL)0;
            out[i * g->n + j] = (REAL)g->alpha * sum + kept;
        }
    }
}

static REAL naive_moment(REAL moment)
{
    const REAL least = (REAL)KITH_MOMENT_LEAST;
    return moment < least && moment > -least ? 0 : moment;
}

static bool naive_sgd(const struct kith_sgd *s)
{
    const REAL eta = (REAL)s->rate, beta = (REAL)s->momentum;
    const REAL lambda = (REAL)s->decay;
    const REAL *g = s->gradient;
    REAL *v = s->velocity, *w = s->x;
    for (size_t i = 0; i < s->n; i++) {
        const REAL slope = g[i] + lambda * w[i];
        REAL direction = slope;
        if (beta > 0) {
            v[i] = naive_moment(beta * v[i] + slope);
            direction = s->nesterov ? slope + beta * v[i] : v[i];
        }
        w[i] = w[i] - eta * direction;
    }
    return naive_finite(s->n, s->x);
}

static void naive_adam_direction(const struct kith_adam *moments)
{
    const double beta1 = moments->beta1, beta2 = moments->beta2;
    const REAL *m = moments->first, *v = moments->second;
    REAL *g = moments->gradient;
    for (size_t i = 0; i < moments->n; i++) {
        const double slope = (double)g[i];
        const double square =
            beta2 * (double)v[i] + (1 - beta2) * slope * slope;
        g[i] = (REAL)((beta1 * (double)m[i] + slope) /
                      (sqrt(square) + moments->epsilon));
    }
}

static void naive_from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    REAL *v = y;
    for (size_t i = 0; i < n; i++)
        v[i] = (REAL)bytes[i] / (REAL)255;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void naive_to_bf16(size_t n, const void *x, uint16_t *y)
{
    const REAL *v = x;
    for (size_t i = 0; i < n; i++) {
        const float value = (float)v[i];
        const uint32_t bits = bits_of(value);
        const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        y[i] = (uint16_t)((is_nan ? bits | 1u << 22
                                  : bits + ((bits >> 16 & 1) + 0x7fff)) >>
                          16);
    }
}

static void naive_from_bf16(size_t n, const uint16_t *x, void *y)
{
    REAL *v = y;
    for (size_t i = 0; i < n; i++)
        v[i] = of_bf16(x[i]);
}

/* To the nearest whole number without libm: from 2^23 to 2^24 floats are whole.
 */
static float naive_to_int8(size_t n, const void *x, int8_t *y)
{
    const REAL *v = x;
    const float whole = 0x1.8p23f, least = 0x1p-126f;
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t size = bits_of((float)v[i]) & 0x7fffffffu;
        most = size > most ? size : most;
    }
    const float largest = float_of(most);
    const float scale = largest / 127;
    const bool scales = most < 0x7f800000u && scale >= least;
    for (size_t i = 0; i < n; i++) {
        const float level = (float)v[i] * (127 / largest);
        y[i] = scales ? (int8_t)(level + whole - whole) : 0;
    }
    return most >= 0x7f800000u ? (float)INFINITY : scales ? scale : 0;
}

static void naive_from_int8(size_t n, float scale, const int8_t *x, void *y)
{
    REAL *v = y;
    for (size_t i = 0; i < n; i++)
        v[i] = (REAL)(scale * (float)x[i]);
}

#include "residues.inc.h"

/* Of blocks that are float32 already. */
static const struct kith_residues *naive_residues(void)
{
    return &residues;
}

#include "naive_magnitudes.inc.h"
#include "naive_ops.inc.h"

extern const struct kith_backend RECORD;
const struct kith_backend RECORD = {
    .name = NAME,
    .summary = SUMMARY,
    .element_bytes = sizeof(REAL),
    .host = &RECORD,
    .missing = kith_host_missing,
    .alloc = kith_host_alloc,
    .release = kith_host_release,
    .copy = naive_copy,
    .clear = naive_clear,
    .scale = naive_scale,
    .add = naive_add,
    .mix = naive_mix,
    .swap_mix = naive_swap_mix,
    .mix_bf16 = naive_mix_bf16,
    .combine = naive_combine,
    .sum = naive_sum,
    .distance_squared = naive_distance_squared,
    .finite = naive_finite,
    .read = naive_read,
    .write = naive_write,
    .gemm = naive_gemm,
    .sgd = naive_sgd,
    .adam_direction = naive_adam_direction,
    .ops = &naive_ops,
    .from_bytes = naive_from_bytes,
    .to_bf16 = naive_to_bf16,
    .from_bf16 = naive_from_bf16,
    .distance_bf16 = naive_distance_bf16,
    .to_int8 = naive_to_int8,
    .from_int8 = naive_from_int8,
    .residues = naive_residues,
    .magnitudes = naive_magnitudes,
};
