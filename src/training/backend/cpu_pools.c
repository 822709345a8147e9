/* Pools and sums of backend cpu: one pass each, cut into parts. */
#include <string.h>

#include "cpu.h"
#include "cpu_image.h"
#include "cpu_ops.h"
#include "kith/assert.h"
#include "pool.h"

enum {
    PARTS = KITH_IMAGE_PARTS,
    KERNEL_MAX = 15, /* ops.h */
    WINDOW_MAX = KERNEL_MAX * KERNEL_MAX,
    SUM_PART = 1 << 14 /* elements of a sum's part: one is not worth a thread */
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

static void max_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_pool *op = a->shape;
    const size_t lines = a->rows * op->out_height;
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
                from[k] = (const float *)a->x + pixel[k] * op->channels;
            kith_cpu_best()->image->largest(op->channels, count, from, tap,
                                            (float *)a->y + to,
                                            (uint8_t *)a->saved + to);
        }
    }
}

static void max_pool(const struct kith_arguments *a)
{
    const struct kith_pool *op = a->shape;
    KITH_ASSERT(op->kernel <= KERNEL_MAX);
    kith_cpu_parts(PARTS, max_part, a);
}

/* Output line y of image `row` sends back what came. */
static void max_back_line(const struct kith_arguments *a, size_t row, size_t y,
                          bool add)
{
    const struct kith_pool *op = a->shape;
    for (size_t x = 0; x < op->out_width; x++) {
        size_t pixel[WINDOW_MAX];
        uint8_t tap[WINDOW_MAX];
        float *to[WINDOW_MAX];
        const size_t from =
            ((row * op->out_height + y) * op->out_width + x) * op->channels;
        const size_t count = window_of(op, row, y, x, pixel, tap);
        for (size_t k = 0; k < count; k++)
            to[k] = (float *)a->dx + pixel[k] * op->channels;
        kith_cpu_best()->image->scatter(op->channels, count, to, tap,
                                        (const float *)a->dy + from,
                                        (const uint8_t *)a->saved + from, add);
    }
}

static void max_back_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_pool *op = a->shape;
    const size_t image = op->height * op->width * op->channels;
    const size_t end = a->rows * (part + 1) / PARTS;
    const bool add = a->flags & KITH_ADD_DATA;
    /* Every input pixel lies in exactly one window. */
    const bool tiled = op->kernel == op->stride && op->pad == 0 &&
                       op->out_height * op->stride == op->height &&
                       op->out_width * op->stride == op->width;
    float *dx = a->dx;
    for (size_t row = a->rows * part / PARTS; row < end; row++) {
        if (!add && !tiled)
            memset(dx + row * image, 0, image * sizeof *dx);
        for (size_t y = 0; y < op->out_height; y++)
            max_back_line(a, row, y, add || !tiled);
    }
}

static void max_pool_backward(const struct kith_arguments *a)
{
    kith_cpu_parts(PARTS, max_back_part, a);
}

const struct kith_kernel kith_cpu_max_pool_kernel = {
    .forward = max_pool, .backward = max_pool_backward};

static void mean_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_mean *op = a->shape;
    const size_t end = a->rows * (part + 1) / PARTS;
    for (size_t row = a->rows * part / PARTS; row < end; row++)
        kith_cpu_best()->image->mean(
            op->pixels, op->channels, 1 / (float)op->pixels,
            (const float *)a->x + row * op->pixels * op->channels,
            (float *)a->y + row * op->channels);
}

static void mean_pool(const struct kith_arguments *a)
{
    kith_cpu_parts(PARTS, mean_part, a);
}

static void mean_back_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_mean *op = a->shape;
    const size_t end = a->rows * (part + 1) / PARTS;
    for (size_t row = a->rows * part / PARTS; row < end; row++)
        kith_cpu_best()->image->mean_back(
            op->pixels, op->channels, 1 / (float)op->pixels,
            (const float *)a->dy + row * op->channels, a->flags & KITH_ADD_DATA,
            (float *)a->dx + row * op->pixels * op->channels);
}

static void mean_pool_backward(const struct kith_arguments *a)
{
    kith_cpu_parts(PARTS, mean_back_part, a);
}

const struct kith_kernel kith_cpu_mean_pool_kernel = {
    .forward = mean_pool, .backward = mean_pool_backward};

static size_t sum_count(size_t n, size_t part)
{
    const size_t from = part * SUM_PART;
    return n - from < SUM_PART ? n - from : SUM_PART;
}

static void sum_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_sum *op = a->shape;
    const size_t from = part * SUM_PART;
    kith_cpu_best()->image->sum(
        sum_count(a->rows, part), (const float *)a->x + from,
        (const float *)a->other + from, op->activation == KITH_ACTIVATION_RELU,
        (float *)a->y + from);
}

static void sum(const struct kith_arguments *a)
{
    kith_cpu_parts((a->rows + SUM_PART - 1) / SUM_PART, sum_part, a);
}

static void sum_back_part(const struct kith_arguments *a, size_t part)
{
    const size_t from = part * SUM_PART;
    kith_cpu_best()->image->gate(1, sum_count(a->rows, part),
                                 (const float *)a->y + from,
                                 (float *)a->dy + from, NULL);
}

static void sum_backward(const struct kith_arguments *a)
{
    const struct kith_sum *op = a->shape;
    if (op->activation == KITH_ACTIVATION_RELU)
        kith_cpu_parts((a->rows + SUM_PART - 1) / SUM_PART, sum_back_part, a);
}

const struct kith_kernel kith_cpu_sum_kernel = {.forward = sum,
                                                .backward = sum_backward};
