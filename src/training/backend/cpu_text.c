/* What cuts layer norm, embeddings, the loss, dropout and AdamW of backend cpu
 * into parts. Parts are rows, or stripes of columns where rows are summed: how
 * many there are depends on the shapes alone. */
#include "cpu_text.h"

#include <stdatomic.h>
#include <string.h>

#include "kith/assert.h"
#include "pool.h"

/* Elements of a part: 64 KiB of float32, half a second-level cache with what
 * is read beside it. */
enum { PART = 1 << 14, STRIPE = 32 };

/* Rows of a part where a row has n elements. */
static size_t rows_of(size_t n)
{
    return n >= PART ? 1 : PART / n;
}

static void norm_part(const struct kith_arguments *a, size_t i)
{
    const struct kith_norm *op = a->shape;
    const size_t part = rows_of(op->channels), row = i * part;
    kith_cpu_best()->text->norm(a, row, kith_least(part, a->rows - row));
}

void kith_cpu_layer_norm(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    kith_cpu_parts(kith_part_count(a->rows, rows_of(op->channels)), norm_part,
                   a);
}

static void norm_back_part(const struct kith_arguments *a, size_t i)
{
    const struct kith_norm *op = a->shape;
    const size_t part = rows_of(op->channels), row = i * part;
    kith_cpu_best()->text->norm_backward(a, row,
                                         kith_least(part, a->rows - row));
}

static void norm_stripe(const struct kith_arguments *a, size_t i)
{
    const struct kith_norm *op = a->shape;
    const size_t j = i * STRIPE;
    kith_cpu_best()->text->norm_weights(a, j,
                                        kith_least(STRIPE, op->channels - j));
}

void kith_cpu_layer_norm_backward(const struct kith_arguments *a)
{
    const struct kith_norm *op = a->shape;
    /* First the sums: dx may take the place of dy. */
    if (a->dweight != NULL || a->dbias != NULL)
        kith_cpu_parts(kith_part_count(op->channels, STRIPE), norm_stripe, a);
    if (a->dx != NULL)
        kith_cpu_parts(kith_part_count(a->rows, rows_of(op->channels)),
                       norm_back_part, a);
}

static void mask_part(const struct kith_arguments *a, size_t i, const float *x,
                      float *y)
{
    const struct kith_dropout *op = a->shape;
    const struct kith_mask mask = kith_mask_of(op);
    const size_t at = i * PART;
    kith_cpu_best()->text->dropout(&mask, (float)(1 / (1 - op->rate)), at,
                                   kith_least(PART, a->rows - at), x + at,
                                   y + at);
}

static void dropout_part(const struct kith_arguments *a, size_t i)
{
    mask_part(a, i, a->x, a->y);
}

static void dropout_back_part(const struct kith_arguments *a, size_t i)
{
    mask_part(a, i, a->dy, a->dx);
}

static void dropout(const struct kith_arguments *a)
{
    kith_cpu_parts(kith_part_count(a->rows, PART), dropout_part, a);
}

static void dropout_backward(const struct kith_arguments *a)
{
    kith_cpu_parts(kith_part_count(a->rows, PART), dropout_back_part, a);
}

const struct kith_kernel kith_cpu_dropout_kernel = {
    .forward = dropout, .backward = dropout_backward};

/* b^t by squaring: the same bits everywhere, unlike libm's. */
static double power(double b, uint64_t t)
{
    double product = 1;
    for (; t > 0; t >>= 1, b *= b)
        if (t & 1)
            product *= b;
    return product;
}

struct adamw {
    const struct kith_adamw *whole;
    struct kith_adamw_factors factors;
    atomic_bool infinite;
};

static void adamw_part(void *context, size_t i)
{
    struct adamw *s = context;
    const struct kith_adamw *w = s->whole;
    const size_t at = i * PART;
    if (!kith_cpu_best()->text->adamw(
            kith_least(PART, w->n - at), &s->factors, (const float *)w->g + at,
            (float *)w->m + at, (float *)w->v + at, (float *)w->x + at))
        atomic_store_explicit(&s->infinite, true, memory_order_relaxed);
}

bool kith_cpu_adamw(const struct kith_adamw *a)
{
    struct adamw s = {
        .whole = a,
        .factors = {.beta1 = (float)a->beta1,
                    .left1 = (float)(1 - a->beta1),
                    .fix1 = (float)(1 / (1 - power(a->beta1, a->t))),
                    .beta2 = (float)a->beta2,
                    .left2 = (float)(1 - a->beta2),
                    .fix2 = (float)(1 / (1 - power(a->beta2, a->t))),
                    .rate = (float)a->rate,
                    .epsilon = (float)a->epsilon,
                    .kept = (float)(1 - a->rate * a->decay)}};
    atomic_init(&s.infinite, false);
    kith_pool_run(kith_part_count(a->n, PART), adamw_part, &s);
    return !atomic_load(&s.infinite);
}

static void embed_part(const struct kith_arguments *a, size_t part)
{
    const struct kith_embed *op = a->shape;
    const int32_t *tokens = a->x;
    const float *places = a->bias;
    const size_t width = op->width, count = rows_of(width);
    const size_t first = part * count;
    const size_t end = kith_least(a->rows * op->context, first + count);
    for (size_t i = first; i < end; i++) {
        KITH_ASSERT(tokens[i] >= 0 && (size_t)tokens[i] < op->vocabulary);
        const float *word =
            (const float *)a->weight + (size_t)tokens[i] * width;
        float *y = (float *)a->y + i * width;
        if (places == NULL) {
            memcpy(y, word, width * sizeof *y);
            continue;
        }
        const float *place = places + i % op->context * width;
        for (size_t j = 0; j < width; j++)
            y[j] = word[j] + place[j];
    }
}

static void embed(const struct kith_arguments *a)
{
    const struct kith_embed *op = a->shape;
    kith_cpu_parts(kith_part_count(a->rows * op->context, rows_of(op->width)),
                   embed_part, a);
}

/* out (rows of n, width apart) <- 0 */
static void clear_stripe(size_t rows, size_t width, size_t n, float *out)
{
    for (size_t i = 0; i < rows; i++)
        memset(out + i * width, 0, n * sizeof *out);
}

static void add_to(size_t n, const float *d, float *out)
{
    for (size_t j = 0; j < n; j++)
        out[j] += d[j];
}

/* A stripe of every word's and every position's gradient: no two parts write
 * the same element, whatever tokens occur twice. */
static void embed_stripe(const struct kith_arguments *a, size_t part)
{
    const struct kith_embed *op = a->shape;
    const size_t width = op->width, j = part * STRIPE;
    const size_t n = kith_least(STRIPE, width - j);
    const int32_t *tokens = a->x;
    const bool add = a->flags & KITH_ADD_WEIGHTS;
    float *words = a->dweight, *places = a->dbias;
    if (!add && words != NULL)
        clear_stripe(op->vocabulary, width, n, words + j);
    if (!add && places != NULL)
        clear_stripe(op->context, width, n, places + j);
    for (size_t i = 0; i < a->rows * op->context; i++) {
        const float *d = (const float *)a->dy + i * width + j;
        if (words != NULL)
            add_to(n, d, words + (size_t)tokens[i] * width + j);
        if (places != NULL)
            add_to(n, d, places + i % op->context * width + j);
    }
}

static void embed_backward(const struct kith_arguments *a)
{
    const struct kith_embed *op = a->shape;
    kith_cpu_parts(kith_part_count(op->width, STRIPE), embed_stripe, a);
}

const struct kith_kernel kith_cpu_embed_kernel = {.forward = embed,
                                                  .backward = embed_backward};

/* Rows are summed part by part, parts in order. */
enum { LOSS_PARTS = 64 };
struct loss {
    const struct kith_loss *of;
    size_t part;
    double sum[LOSS_PARTS];
    uint32_t right[LOSS_PARTS];
};

static void loss_part(void *context, size_t part)
{
    struct loss *l = context;
    const struct kith_loss *of = l->of;
    const size_t end = kith_least(of->rows, (part + 1) * l->part);
    double sum = 0;
    uint32_t count = 0;
    for (size_t i = part * l->part; i < end; i++) {
        KITH_ASSERT(of->labels[i] >= 0 && (size_t)of->labels[i] < of->classes);
        bool right;
        sum += kith_cpu_best()->text->loss(
            of->classes, (size_t)of->labels[i], of->smoothing,
            of->scale / (double)of->rows, (float *)of->logits + i * of->classes,
            &right);
        count += right;
    }
    l->sum[part] = sum;
    l->right[part] = count;
}

double kith_cpu_cross_entropy(const struct kith_loss *of)
{
    struct loss l = {.of = of, .part = kith_part_count(of->rows, LOSS_PARTS)};
    const size_t parts = l.part == 0 ? 0 : kith_part_count(of->rows, l.part);
    kith_pool_run(parts, loss_part, &l);
    double sum = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < parts; i++) {
        sum += l.sum[i];
        count += l.right[i];
    }
    if (of->correct != NULL)
        *of->correct = count;
    return sum / (double)of->rows;
}
