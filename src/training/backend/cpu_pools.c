/* Pools and sums of backend cpu: one pass each, cut into parts. */
#include <string.h>

#include "cpu.h"
#include "cpu_image.h"
#include "kith/assert.h"
#include "pool.h"

enum {
    PARTS = KITH_IMAGE_PARTS,
    KERNEL_MAX = 15, /* ops.h */
    WINDOW_MAX = KERNEL_MAX * KERNEL_MAX,
    SUM_PART = 1 << 14 /* elements of a sum's part: one is not worth a thread */
};

struct window {
    const struct kith_pool *op;
    size_t rows;
    const float *x, *dy;
    float *y, *dx;
    uint8_t *which;
    const uint8_t *taken;
    bool add;   /* to what stands in dx */
    bool tiled; /* every input pixel lies in exactly one window */
};

/* The input pixels under the window of output pixel (row, y, x), and their
 * places in it. Returns how many. */
static size_t window_of(const struct kith_pool *op, size_t row, size_t y,
                        size_t x, size_t *pixel, uint8_t *tap)
{
    size_t count = 0;
    for (size_t i = 0; i < op->kernel; i++) {
        const size_t down = y * op->stride + i;
        if (down < op->pad || down - op->pad >= op->height)
            continue;
        const size_t line = (row * op->height + down - op->pad) * op->width;
        for (size_t j = 0; j < op->kernel; j++) {
            const size_t across = x * op->stride + j;
            if (across < op->pad || across - op->pad >= op->width)
                continue;
            pixel[count] = line + across - op->pad;
            tap[count++] = (uint8_t)(i * op->kernel + j);
        }
    }
    return count;
}

static void max_part(void *context, size_t part)
{
    const struct window *w = context;
    const struct kith_pool *op = w->op;
    const size_t lines = w->rows * op->out_height;
    for (size_t i = lines * part / PARTS; i < lines * (part + 1) / PARTS; i++) {
        for (size_t x = 0; x < op->out_width; x++) {
            size_t pixel[WINDOW_MAX];
            uint8_t tap[WINDOW_MAX];
            const float *from[WINDOW_MAX];
            const size_t to = (i * op->out_width + x) * op->channels;
            const size_t count = window_of(op, i / op->out_height,
                                           i % op->out_height, x, pixel, tap);
            KITH_ASSERT(count > 0);
            for (size_t k = 0; k < count; k++)
                from[k] = w->x + pixel[k] * op->channels;
            kith_cpu_best()->image->largest(op->channels, count, from, tap,
                                            w->y + to, w->which + to);
        }
    }
}

void kith_cpu_max_pool(const struct kith_pool *op, size_t rows, const void *x,
                       void *y, uint8_t *which)
{
    KITH_ASSERT(op->kernel <= KERNEL_MAX);
    struct window w = {.op = op, .rows = rows, .x = x, .y = y, .which = which};
    kith_pool_run(PARTS, max_part, &w);
}

/* Output line y of image `row` sends back what came. */
static void max_back_line(const struct window *w, size_t row, size_t y)
{
    const struct kith_pool *op = w->op;
    for (size_t x = 0; x < op->out_width; x++) {
        size_t pixel[WINDOW_MAX];
        uint8_t tap[WINDOW_MAX];
        float *to[WINDOW_MAX];
        const size_t from =
            ((row * op->out_height + y) * op->out_width + x) * op->channels;
        const size_t count = window_of(op, row, y, x, pixel, tap);
        for (size_t k = 0; k < count; k++)
            to[k] = w->dx + pixel[k] * op->channels;
        kith_cpu_best()->image->scatter(op->channels, count, to, tap,
                                        w->dy + from, w->taken + from,
                                        w->add || !w->tiled);
    }
}

static void max_back_part(void *context, size_t part)
{
    const struct window *w = context;
    const struct kith_pool *op = w->op;
    const size_t image = op->height * op->width * op->channels;
    const size_t end = w->rows * (part + 1) / PARTS;
    for (size_t row = w->rows * part / PARTS; row < end; row++) {
        if (!w->add && !w->tiled)
            memset(w->dx + row * image, 0, image * sizeof *w->dx);
        for (size_t y = 0; y < op->out_height; y++)
            max_back_line(w, row, y);
    }
}

void kith_cpu_max_pool_backward(const struct kith_pool *op, size_t rows,
                                const uint8_t *which, const void *dy, void *dx,
                                unsigned add)
{
    struct window w = {.op = op,
                       .rows = rows,
                       .dy = dy,
                       .dx = dx,
                       .taken = which,
                       .add = add & KITH_ADD_DATA,
                       .tiled = op->kernel == op->stride && op->pad == 0 &&
                                op->out_height * op->stride == op->height &&
                                op->out_width * op->stride == op->width};
    kith_pool_run(PARTS, max_back_part, &w);
}

struct mean {
    size_t rows, pixels, channels;
    const float *from;
    float *to;
    bool add;
};

static void mean_part(void *context, size_t part)
{
    const struct mean *m = context;
    const size_t image = m->pixels * m->channels;
    const size_t end = m->rows * (part + 1) / PARTS;
    for (size_t row = m->rows * part / PARTS; row < end; row++)
        kith_cpu_best()->image->mean(
            m->pixels, m->channels, 1 / (float)m->pixels, m->from + row * image,
            m->to + row * m->channels);
}

void kith_cpu_mean_pool(size_t rows, size_t pixels, size_t channels,
                        const void *x, void *y)
{
    struct mean m = {rows, pixels, channels, x, y, false};
    kith_pool_run(PARTS, mean_part, &m);
}

static void mean_back_part(void *context, size_t part)
{
    const struct mean *m = context;
    const size_t image = m->pixels * m->channels;
    const size_t end = m->rows * (part + 1) / PARTS;
    for (size_t row = m->rows * part / PARTS; row < end; row++)
        kith_cpu_best()->image->mean_back(
            m->pixels, m->channels, 1 / (float)m->pixels,
            m->from + row * m->channels, m->add, m->to + row * image);
}

void kith_cpu_mean_pool_backward(size_t rows, size_t pixels, size_t channels,
                                 const void *dy, void *dx, unsigned add)
{
    struct mean m = {rows, pixels, channels, dy, dx, add & KITH_ADD_DATA};
    kith_pool_run(PARTS, mean_back_part, &m);
}

struct sum {
    size_t n;
    const float *a, *b, *gate;
    float *y, *dy, *da, *db;
    bool relu, add;
};

static size_t sum_count(size_t n, size_t part)
{
    const size_t from = part * SUM_PART;
    return n - from < SUM_PART ? n - from : SUM_PART;
}

static void sum_part(void *context, size_t part)
{
    const struct sum *s = context;
    const size_t from = part * SUM_PART;
    kith_cpu_best()->image->sum(sum_count(s->n, part), s->a + from, s->b + from,
                                s->relu, s->y + from);
}

void kith_cpu_sum(size_t n, enum kith_activation activation, const void *a,
                  const void *b, void *y)
{
    struct sum s = {.n = n,
                    .a = a,
                    .b = b,
                    .y = y,
                    .relu = activation == KITH_ACTIVATION_RELU};
    kith_pool_run((n + SUM_PART - 1) / SUM_PART, sum_part, &s);
}

static void sum_back_part(void *context, size_t part)
{
    const struct sum *s = context;
    const size_t from = part * SUM_PART;
    kith_cpu_best()->image->spread(
        sum_count(s->n, part), s->gate == NULL ? NULL : s->gate + from,
        s->dy + from, s->da == NULL ? NULL : s->da + from,
        s->db == NULL ? NULL : s->db + from, s->add);
}

void kith_cpu_sum_backward(size_t n, enum kith_activation activation,
                           const void *y, void *dy, void *da, void *db,
                           unsigned add)
{
    struct sum s = {.n = n,
                    .gate = activation == KITH_ACTIVATION_RELU ? y : NULL,
                    .dy = dy,
                    .da = da,
                    .db = db,
                    .add = add & KITH_ADD_DATA};
    kith_pool_run((n + SUM_PART - 1) / SUM_PART, sum_back_part, &s);
}
