/* Norms over images on backend cpu. Each tensor is read twice forward (its
 * moments, then its values) and twice backward, in blocks of channels.
 *
 * A channel's moments come from pieces of PIECE pixels that the nearest cache
 * holds: each piece's mean and squared differences in float32, pieces joined in
 * float64 (Chan, Golub and LeVeque, 1979), so that a mean far from 0 costs no
 * digits. Parts and pieces are fixed, and joined in their order. */
#include "cpu_norm.h"

#include <math.h>
#include <string.h>

#include "cpu.h"
#include "kith/assert.h"
#include "pool.h"

enum { PARTS = KITH_IMAGE_PARTS };

void kith_moments_join(struct kith_moments *m, double count, double mean,
                       double square)
{
    const double sum = m->count + count, apart = mean - m->mean;
    m->square += square + apart * apart * (m->count * count / sum);
    m->mean += apart * (count / sum);
    m->count = sum;
}

void kith_moments_add(size_t pixels, size_t n, size_t step, const float *x,
                      struct kith_moments *m)
{
    const struct kith_cpu_image *kernels = kith_cpu_best()->image;
    float mean[CHANNELS], square[CHANNELS];
    for (size_t p = 0; p < pixels; p += PIECE) {
        const size_t now = pixels - p < PIECE ? pixels - p : PIECE;
        kernels->moments(now, n, step, x + p * step, mean, square);
        for (size_t c = 0; c < n; c++)
            kith_moments_join(&m[c], (double)now, (double)mean[c],
                              (double)square[c]);
    }
}

void kith_slopes_add(size_t pixels, const struct kith_cpu_channels *c,
                     const float *x, const float *y, const float *dy,
                     struct kith_slopes *s)
{
    const struct kith_cpu_image *kernels = kith_cpu_best()->image;
    float first[CHANNELS], second[CHANNELS];
    for (size_t p = 0; p < pixels; p += PIECE) {
        const size_t now = pixels - p < PIECE ? pixels - p : PIECE;
        const size_t at = p * c->step;
        kernels->slopes(now, c, x + at, kith_or_null(y, at), dy + at, first,
                        second);
        for (size_t k = 0; k < c->n; k++) {
            s[k].first += (double)first[k];
            s[k].second += (double)second[k];
        }
    }
}

void kith_normalise(size_t pixels, const struct kith_cpu_channels *c,
                    const float *x, bool relu, float *y)
{
    for (size_t p = 0; p < pixels; p += PIECE)
        kith_cpu_best()->image->normalise(kith_least(PIECE, pixels - p), c,
                                          x + p * c->step, relu,
                                          y + p * c->step);
}

void kith_normalise_back(size_t pixels, const struct kith_cpu_channels *c,
                         const float *x, const float *y, const float *dy,
                         bool add, float *dx)
{
    for (size_t p = 0; p < pixels; p += PIECE) {
        const size_t at = p * c->step;
        kith_cpu_best()->image->normalise_back(kith_least(PIECE, pixels - p), c,
                                               x + at, kith_or_null(y, at),
                                               dy + at, add, dx + at);
    }
}

/* One block of channels of a batch norm, either way. */
struct batch {
    size_t pixels; /* rows * pixels */
    const float *x, *y, *dy;
    float *out; /* y or dx */
    bool relu, add;
    struct kith_cpu_channels channels;
    struct kith_moments moments[PARTS][CHANNELS];
    struct kith_slopes slopes[PARTS][CHANNELS];
};

static size_t part_begin(const struct batch *b, size_t part)
{
    return b->pixels * part / PARTS;
}

static void moments_part(void *context, size_t part)
{
    struct batch *b = context;
    const size_t from = part_begin(b, part), step = b->channels.step;
    memset(b->moments[part], 0, sizeof b->moments[part]);
    kith_moments_add(part_begin(b, part + 1) - from, b->channels.n, step,
                     b->x + from * step, b->moments[part]);
}

static void normalise_part(void *context, size_t part)
{
    struct batch *b = context;
    const size_t from = part_begin(b, part), at = from * b->channels.step;
    kith_normalise(part_begin(b, part + 1) - from, &b->channels, b->x + at,
                   b->relu, b->out + at);
}

static void slopes_part(void *context, size_t part)
{
    struct batch *b = context;
    const size_t from = part_begin(b, part), at = from * b->channels.step;
    memset(b->slopes[part], 0, sizeof b->slopes[part]);
    kith_slopes_add(part_begin(b, part + 1) - from, &b->channels, b->x + at,
                    kith_or_null(b->y, at), b->dy + at, b->slopes[part]);
}

static void back_part(void *context, size_t part)
{
    struct batch *b = context;
    const size_t from = part_begin(b, part), at = from * b->channels.step;
    kith_normalise_back(part_begin(b, part + 1) - from, &b->channels, b->x + at,
                        kith_or_null(b->y, at), b->dy + at, b->add,
                        b->out + at);
}

/* All parts of channel c. */
static struct kith_moments moments_of(const struct batch *b, size_t c)
{
    struct kith_moments all = {0, 0, 0};
    for (size_t part = 0; part < PARTS; part++) {
        const struct kith_moments *m = &b->moments[part][c];
        if (m->count > 0)
            kith_moments_join(&all, m->count, m->mean, m->square);
    }
    return all;
}

/* buffer <- buffer + momentum (batch's - buffer), variance unbiased. */
static void buffers_move(double momentum, const struct kith_moments *m,
                         float *mean, float *variance)
{
    const double unbiased =
        m->square / (m->count > 1 ? m->count - 1 : m->count);
    *mean += (float)(momentum * (m->mean - (double)*mean));
    *variance += (float)(momentum * (unbiased - (double)*variance));
}

/* Channels first to first + n of a batch norm. */
static void batch_block(const struct kith_arguments *a, struct batch *b,
                        size_t first)
{
    const struct kith_norm *op = a->shape;
    const size_t all = op->channels;
    const bool statistics = a->flags & KITH_STATISTICS;
    const float *scale = a->weight, *shift = a->bias;
    float *buffers = a->buffers, *saved = a->saved;
    struct kith_cpu_channels *to = &b->channels;
    if (statistics)
        kith_pool_run(PARTS, moments_part, b);
    for (size_t k = 0; k < to->n; k++) {
        const size_t c = first + k;
        double mean, variance;
        if (statistics) {
            const struct kith_moments m = moments_of(b, k);
            mean = m.mean;
            variance = m.square / m.count;
            buffers_move(op->momentum, &m, &buffers[c], &buffers[all + c]);
        } else {
            mean = (double)buffers[c];
            variance = (double)buffers[all + c];
        }
        const double inverse = 1 / sqrt(variance + op->epsilon);
        if (saved != NULL) {
            saved[c] = (float)mean;
            saved[all + c] = (float)inverse;
        }
        to->mean[k] = (float)mean;
        to->gain[k] = (float)(inverse * (double)scale[c]);
        to->first[k] = shift[c];
    }
    kith_pool_run(PARTS, normalise_part, b);
}

void kith_cpu_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    if (op->kind == KITH_NORM_GROUP) {
        kith_cpu_group(a);
        return;
    }
    KITH_ASSERT(op->kind == KITH_NORM_BATCH);
    struct batch b = {.pixels = a->rows * op->pixels,
                      .relu = op->activation == KITH_ACTIVATION_RELU};
    for (size_t c = 0; c < op->channels; c += CHANNELS) {
        const size_t left = op->channels - c;
        b.x = (const float *)a->x + c;
        b.out = (float *)a->y + c;
        b.channels.n = left < CHANNELS ? left : CHANNELS;
        b.channels.step = op->channels;
        batch_block(a, &b, c);
    }
}

struct kith_slopes kith_slopes_total(const struct kith_slopes *slopes,
                                     size_t count, size_t step)
{
    struct kith_slopes all = {0, 0};
    for (size_t i = 0; i < count; i++) {
        all.first += slopes[i * step].first;
        all.second += slopes[i * step].second;
    }
    return all;
}

void kith_norm_weights(const struct kith_arguments *a, size_t c,
                       struct kith_slopes total)
{
    const bool add = a->flags & KITH_ADD_WEIGHTS;
    float *scale = a->dweight, *shift = a->dbias;
    if (scale != NULL)
        scale[c] = (add ? scale[c] : 0) + (float)total.second;
    if (shift != NULL)
        shift[c] = (add ? shift[c] : 0) + (float)total.first;
}

static void batch_block_back(const struct kith_arguments *a, struct batch *b,
                             size_t first)
{
    struct kith_cpu_channels *to = &b->channels;
    const double count = (double)b->pixels;
    const float *scale = a->weight, *means = a->saved;
    const float *inverses = means + to->step;
    for (size_t k = 0; k < to->n; k++)
        to->mean[k] = means[first + k];
    kith_pool_run(PARTS, slopes_part, b);
    for (size_t k = 0; k < to->n; k++) {
        const size_t c = first + k;
        const double inverse = (double)inverses[c];
        const double gain = inverse * (double)scale[c];
        struct kith_slopes total =
            kith_slopes_total(&b->slopes[0][k], PARTS, CHANNELS);
        total.second *= inverse;
        kith_norm_weights(a, c, total);
        to->gain[k] = (float)gain;
        to->first[k] = (float)(gain * total.first / count);
        to->second[k] = (float)(gain * inverse * total.second / count);
    }
    if (b->out != NULL)
        kith_pool_run(PARTS, back_part, b);
}

void kith_cpu_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    const bool relu = op->activation == KITH_ACTIVATION_RELU;
    if (op->kind == KITH_NORM_GROUP) {
        kith_cpu_group_backward(a);
        return;
    }
    KITH_ASSERT(op->kind == KITH_NORM_BATCH);
    struct batch b = {.pixels = a->rows * op->pixels,
                      .add = a->flags & KITH_ADD_DATA};
    for (size_t c = 0; c < op->channels; c += CHANNELS) {
        const size_t left = op->channels - c;
        b.x = (const float *)a->x + c;
        b.y = relu ? (const float *)a->y + c : NULL;
        b.dy = (const float *)a->dy + c;
        b.out = a->dx == NULL ? NULL : (float *)a->dx + c;
        b.channels.n = left < CHANNELS ? left : CHANNELS;
        b.channels.step = op->channels;
        batch_block_back(a, &b, c);
    }
}
