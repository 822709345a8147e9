/* Rotary positions of backend cpu. A part is some positions, whose sines serve
 * every row and every head. */
#include <math.h>
#include <string.h>

#include "cpu_ops.h"

/* Pairs whose sines are kept at once. */
enum { PAIRS = 128 };

struct turns {
    size_t first, count; /* pairs [first, first + count) of each head */
    float cosine[PAIRS], sine[PAIRS];
};

static void fill(struct turns *t, size_t position, size_t size, double sign)
{
    for (size_t i = 0; i < t->count; i++) {
        const double angle =
            (double)position *
            pow(10000, -2.0 * (double)(t->first + i) / (double)size);
        t->cosine[i] = (float)cos(angle);
        t->sine[i] = (float)(sign * sin(angle));
    }
}

static void turn_head(const struct turns *t, size_t half, const float *from,
                      float *to)
{
    for (size_t i = 0; i < t->count; i++) {
        const float x = from[t->first + i], y = from[t->first + half + i];
        to[t->first + i] = x * t->cosine[i] - y * t->sine[i];
        to[t->first + half + i] = y * t->cosine[i] + x * t->sine[i];
    }
}

static void turn(const struct kith_arguments *a, size_t position,
                 const float *from, float *to, double sign)
{
    const struct kith_attention *op = a->shape;
    const size_t size = op->width / op->heads, half = size / 2;
    const size_t token = 3 * op->width;
    struct turns t;
    for (t.first = 0; t.first < half; t.first += PAIRS) {
        t.count = half - t.first < PAIRS ? half - t.first : PAIRS;
        fill(&t, position, size, sign);
        for (size_t row = 0; row < a->rows; row++) {
            const size_t at = (row * op->context + position) * token;
            for (size_t head = 0; head < 2 * op->heads; head++)
                turn_head(&t, half, from + at + head * size,
                          to + at + head * size);
        }
    }
    for (size_t row = 0; from != to && row < a->rows; row++) {
        const size_t v = (row * op->context + position) * token + 2 * op->width;
        memcpy(to + v, from + v, op->width * sizeof *to);
    }
}

static void forward_part(const struct kith_arguments *a, size_t position)
{
    turn(a, position, a->x, a->y, 1);
}

static void backward_part(const struct kith_arguments *a, size_t position)
{
    turn(a, position, a->dy, a->dx, -1);
}

static void rotary(const struct kith_arguments *a)
{
    const struct kith_attention *op = a->shape;
    kith_cpu_parts(op->context, forward_part, a);
}

static void rotary_backward(const struct kith_arguments *a)
{
    const struct kith_attention *op = a->shape;
    kith_cpu_parts(op->context, backward_part, a);
}

const struct kith_kernel kith_cpu_rotary_kernel = {.forward = rotary,
                                                   .backward = rotary_backward};
