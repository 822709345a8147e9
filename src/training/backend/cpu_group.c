/* Group norm on backend cpu: each row on its own. A span is as many whole
 * groups as fit CHANNELS, or one group that is wider and taken in pieces. */
#include <math.h>
#include <string.h>

#include "cpu.h"
#include "cpu_norm.h"
#include "pool.h"

enum { PARTS = KITH_IMAGE_PARTS };

struct group {
    const struct kith_norm *op;
    size_t rows, size; /* size: channels of a group */
    const float *x, *scale, *shift, *y, *dy;
    float *saved, *out; /* out: y or dx */
    bool relu, add_data;
    /* The gradient of the weights of one block of channels. */
    size_t first, n;
    struct kith_slopes slopes[PARTS][CHANNELS];
};

static size_t span_of(const struct group *g)
{
    return g->size >= CHANNELS ? g->size : CHANNELS / g->size * g->size;
}

/* Mean and 1 / deviation of each group of a span (at most CHANNELS groups). */
struct known {
    float mean[CHANNELS], inverse[CHANNELS];
};

/* Groups of channels [c, end) of one row. */
static void span_moments(const struct group *g, size_t row, size_t c,
                         size_t end, struct known *known)
{
    const size_t all = g->op->channels, pixels = g->op->pixels;
    const size_t sets = g->rows * g->op->groups;
    struct kith_moments group[CHANNELS];
    memset(group, 0, sizeof group);
    for (size_t at = c; at < end; at += CHANNELS) {
        struct kith_moments m[CHANNELS];
        memset(m, 0, sizeof m);
        const size_t n = kith_least(CHANNELS, end - at);
        kith_moments_add(pixels, n, all, g->x + row * pixels * all + at, m);
        for (size_t k = 0; k < n; k++)
            kith_moments_join(&group[(at + k - c) / g->size], m[k].count,
                              m[k].mean, m[k].square);
    }
    for (size_t i = 0; i < (end - c) / g->size; i++) {
        const double variance = group[i].square / group[i].count;
        const size_t set = row * g->op->groups + c / g->size + i;
        known->mean[i] = (float)group[i].mean;
        known->inverse[i] = (float)(1 / sqrt(variance + g->op->epsilon));
        if (g->saved != NULL) {
            g->saved[set] = known->mean[i];
            g->saved[sets + set] = known->inverse[i];
        }
    }
}

static void span_forward(const struct group *g, size_t row, size_t c,
                         size_t end)
{
    const size_t all = g->op->channels, pixels = g->op->pixels;
    struct known known;
    span_moments(g, row, c, end, &known);
    for (size_t at = c; at < end; at += CHANNELS) {
        struct kith_cpu_channels to = {.n = kith_least(CHANNELS, end - at),
                                       .step = all};
        const size_t from = row * pixels * all + at;
        for (size_t k = 0; k < to.n; k++) {
            const size_t i = (at + k - c) / g->size;
            to.mean[k] = known.mean[i];
            to.gain[k] = known.inverse[i] * g->scale[at + k];
            to.first[k] = g->shift[at + k];
        }
        kith_normalise(pixels, &to, g->x + from, g->relu, g->out + from);
    }
}

/* Runs `one` for each span of a part's rows. */
static void each_span(const struct group *g, size_t part,
                      void (*one)(const struct group *g, size_t row, size_t c,
                                  size_t end))
{
    const size_t span = span_of(g), all = g->op->channels;
    const size_t end = g->rows * (part + 1) / PARTS;
    for (size_t row = g->rows * part / PARTS; row < end; row++)
        for (size_t c = 0; c < all; c += span)
            one(g, row, c, kith_least(all, c + span));
}

static void forward_part(void *context, size_t part)
{
    each_span(context, part, span_forward);
}

void kith_cpu_group(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    struct group g = {.op = op,
                      .rows = a->rows,
                      .size = op->channels / op->groups,
                      .x = a->x,
                      .scale = a->weight,
                      .shift = a->bias,
                      .saved = a->saved,
                      .out = a->y,
                      .relu = op->activation == KITH_ACTIVATION_RELU};
    kith_pool_run(PARTS, forward_part, &g);
}

/* The channels from `first` on of one row: their groups' means. */
static void fill_means(const struct group *g, size_t row, size_t first,
                       struct kith_cpu_channels *to)
{
    for (size_t k = 0; k < to->n; k++)
        to->mean[k] = g->saved[row * g->op->groups + (first + k) / g->size];
}

/* Sums over each group of a span: of g scale, and of g scale hat. */
static void span_slopes(const struct group *g, size_t row, size_t c, size_t end,
                        struct kith_slopes *group)
{
    const size_t all = g->op->channels, pixels = g->op->pixels;
    const size_t sets = g->rows * g->op->groups;
    for (size_t at = c; at < end; at += CHANNELS) {
        struct kith_cpu_channels to = {.n = kith_least(CHANNELS, end - at),
                                       .step = all};
        struct kith_slopes own[CHANNELS];
        const size_t from = row * pixels * all + at;
        memset(own, 0, sizeof own);
        fill_means(g, row, at, &to);
        kith_slopes_add(pixels, &to, g->x + from, kith_or_null(g->y, from),
                        g->dy + from, own);
        for (size_t k = 0; k < to.n; k++) {
            const size_t set = row * g->op->groups + (at + k) / g->size;
            struct kith_slopes *sum = &group[(at + k - c) / g->size];
            const double scale = (double)g->scale[at + k];
            sum->first += scale * own[k].first;
            sum->second += scale * own[k].second * (double)g->saved[sets + set];
        }
    }
}

static void span_backward(const struct group *g, size_t row, size_t c,
                          size_t end)
{
    const size_t all = g->op->channels, pixels = g->op->pixels;
    const size_t sets = g->rows * g->op->groups;
    const double count = (double)(pixels * g->size);
    struct kith_slopes group[CHANNELS];
    memset(group, 0, sizeof group);
    span_slopes(g, row, c, end, group);
    for (size_t at = c; at < end; at += CHANNELS) {
        struct kith_cpu_channels to = {.n = kith_least(CHANNELS, end - at),
                                       .step = all};
        fill_means(g, row, at, &to);
        for (size_t k = 0; k < to.n; k++) {
            const size_t set = row * g->op->groups + (at + k) / g->size;
            const double inverse = (double)g->saved[sets + set];
            const struct kith_slopes *sum = &group[(at + k - c) / g->size];
            to.gain[k] = (float)(inverse * (double)g->scale[at + k]);
            to.first[k] = (float)(inverse * sum->first / count);
            to.second[k] = (float)(inverse * inverse * sum->second / count);
        }
        const size_t from = row * pixels * all + at;
        kith_normalise_back(pixels, &to, g->x + from, kith_or_null(g->y, from),
                            g->dy + from, g->add_data, g->out + from);
    }
}

static void backward_part(void *context, size_t part)
{
    each_span(context, part, span_backward);
}

/* Sums over some rows, of g and of g hat, for one block of channels. */
static void weights_part(void *context, size_t part)
{
    struct group *g = context;
    const size_t all = g->op->channels, pixels = g->op->pixels;
    const size_t sets = g->rows * g->op->groups;
    const size_t end = g->rows * (part + 1) / PARTS;
    memset(g->slopes[part], 0, sizeof g->slopes[part]);
    for (size_t row = g->rows * part / PARTS; row < end; row++) {
        struct kith_cpu_channels to = {.n = g->n, .step = all};
        struct kith_slopes own[CHANNELS];
        const size_t from = row * pixels * all + g->first;
        memset(own, 0, sizeof own);
        fill_means(g, row, g->first, &to);
        kith_slopes_add(pixels, &to, g->x + from, kith_or_null(g->y, from),
                        g->dy + from, own);
        for (size_t k = 0; k < g->n; k++) {
            const size_t set = row * g->op->groups + (g->first + k) / g->size;
            g->slopes[part][k].first += own[k].first;
            g->slopes[part][k].second +=
                own[k].second * (double)g->saved[sets + set];
        }
    }
}

void kith_cpu_group_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    struct group g = {.op = op,
                      .rows = a->rows,
                      .size = op->channels / op->groups,
                      .x = a->x,
                      .scale = a->weight,
                      .y = op->activation == KITH_ACTIVATION_RELU ? a->y : NULL,
                      .dy = a->dy,
                      .saved = a->saved,
                      .out = a->dx,
                      .add_data = a->flags & KITH_ADD_DATA};
    if (a->dx != NULL)
        kith_pool_run(PARTS, backward_part, &g);
    if (a->dweight == NULL && a->dbias == NULL)
        return;
    for (g.first = 0; g.first < op->channels; g.first += CHANNELS) {
        g.n = kith_least(CHANNELS, op->channels - g.first);
        kith_pool_run(PARTS, weights_part, &g);
        for (size_t k = 0; k < g.n; k++)
            kith_norm_weights(
                a, g.first + k,
                kith_slopes_total(&g.slopes[0][k], PARTS, CHANNELS));
    }
}
