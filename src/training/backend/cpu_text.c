/* What cuts layer norm, embeddings, the loss, dropout and AdamW of backend cpu
 * into parts. Parts are rows, or stripes of columns where rows are summed: how
 * many there are depends on the shapes alone. */
#include "cpu_text.h"

#include <stdatomic.h>
#include <string.h>

#include "kith/assert.h"
#include "pool.h"

static const struct kith_cpu_text *const texts[] = {
#ifdef KITH_CPU_X86
    &kith_cpu_text_avx512, &kith_cpu_text_avx2,
#endif
    &kith_cpu_text_portable};

/* The same instruction set as that of the other loops. */
const struct kith_cpu_text *kith_cpu_text(void)
{
    const char *const name = kith_cpu_best()->name;
    size_t i = 0;
    while (strcmp(texts[i]->name, name) != 0)
        i++;
    return texts[i];
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Elements of a part: 64 KiB of float32, half a second-level cache with what
 * is read beside it. */
enum { PART = 1 << 14, STRIPE = 32 };

static size_t parts_of(size_t n, size_t part)
{
    return (n + part - 1) / part;
}

/* Rows of a part where a row has n elements. */
static size_t rows_of(size_t n)
{
    return n >= PART ? 1 : PART / n;
}

struct norm {
    const struct kith_norm *op;
    size_t rows, part;
    const float *x, *scale, *shift, *y, *dy;
    float *means, *inverses, *out, *dx, *dscale, *dshift;
    unsigned add;
};

static void norm_part(void *context, size_t i)
{
    const struct norm *n = context;
    const size_t row = i * n->part, at = row * n->op->channels;
    kith_cpu_text()->norm(
        n->op, least(n->part, n->rows - row), n->x + at, n->scale, n->shift,
        n->means == NULL ? NULL : n->means + row,
        n->means == NULL ? NULL : n->inverses + row, n->out + at);
}

void kith_cpu_layer_norm(const struct kith_norm *op, size_t rows, const void *x,
                         const void *scale, const void *shift, void *saved,
                         void *y)
{
    float *const means = saved;
    struct norm n = {.op = op,
                     .rows = rows,
                     .part = rows_of(op->channels),
                     .x = x,
                     .scale = scale,
                     .shift = shift,
                     .means = means,
                     .inverses = means == NULL ? NULL : means + rows,
                     .out = y};
    kith_pool_run(parts_of(rows, n.part), norm_part, &n);
}

static void norm_back_part(void *context, size_t i)
{
    const struct norm *n = context;
    const size_t row = i * n->part, at = row * n->op->channels;
    kith_cpu_text()->norm_backward(
        n->op, least(n->part, n->rows - row), n->x + at, n->scale, n->y + at,
        n->means + row, n->inverses + row, n->dy + at, n->dx + at,
        n->add & KITH_ADD_DATA);
}

static void norm_stripe(void *context, size_t i)
{
    const struct norm *n = context;
    const size_t j = i * STRIPE;
    kith_cpu_text()->norm_weights(
        n->op, n->rows, least(STRIPE, n->op->channels - j), n->x + j, n->y + j,
        n->means, n->inverses, n->dy + j,
        n->dscale == NULL ? NULL : n->dscale + j,
        n->dshift == NULL ? NULL : n->dshift + j, n->add & KITH_ADD_WEIGHTS);
}

void kith_cpu_layer_norm_backward(const struct kith_norm *op, size_t rows,
                                  const void *x, const void *scale,
                                  const void *y, const void *saved,
                                  const void *dy, void *dx, void *dscale,
                                  void *dshift, unsigned add)
{
    /* Means and inverses are read only. */
    float *const means = (float *)(uintptr_t)saved;
    struct norm n = {.op = op,
                     .rows = rows,
                     .part = rows_of(op->channels),
                     .x = x,
                     .scale = scale,
                     .y = y,
                     .dy = dy,
                     .means = means,
                     .inverses = means + rows,
                     .dx = dx,
                     .dscale = dscale,
                     .dshift = dshift,
                     .add = add};
    /* First the sums: dx may take the place of dy. */
    if (dscale != NULL || dshift != NULL)
        kith_pool_run(parts_of(op->channels, STRIPE), norm_stripe, &n);
    if (dx != NULL)
        kith_pool_run(parts_of(rows, n.part), norm_back_part, &n);
}

struct flat {
    size_t n;
    const struct kith_mask *mask;
    const struct kith_adamw_factors *factors;
    float grown;
    const float *in;
    float *m, *v, *out;
    atomic_bool infinite;
};

static void dropout_part(void *context, size_t i)
{
    const struct flat *f = context;
    const size_t at = i * PART;
    kith_cpu_text()->dropout(f->mask, f->grown, at, least(PART, f->n - at),
                             f->in + at, f->out + at);
}

void kith_cpu_dropout(const struct kith_dropout *op, size_t n, const void *x,
                      void *y)
{
    const struct kith_mask mask = kith_mask_of(op);
    struct flat f = {.n = n,
                     .mask = &mask,
                     .grown = (float)(1 / (1 - op->rate)),
                     .in = x,
                     .out = y};
    kith_pool_run(parts_of(n, PART), dropout_part, &f);
}

/* b^t by squaring: the same bits everywhere, unlike libm's. */
static double power(double b, uint64_t t)
{
    double product = 1;
    for (; t > 0; t >>= 1, b *= b) {
        if (t & 1)
            product *= b;
    }
    return product;
}

static void adamw_part(void *context, size_t i)
{
    struct flat *f = context;
    const size_t at = i * PART;
    if (!kith_cpu_text()->adamw(least(PART, f->n - at), f->factors, f->in + at,
                                f->m + at, f->v + at, f->out + at))
        atomic_store_explicit(&f->infinite, true, memory_order_relaxed);
}

bool kith_cpu_adamw(size_t n, double rate, double beta1, double beta2,
                    double epsilon, double decay, uint64_t t, const void *g,
                    void *m, void *v, void *x)
{
    const struct kith_adamw_factors factors = {
        .beta1 = (float)beta1,
        .left1 = (float)(1 - beta1),
        .fix1 = (float)(1 / (1 - power(beta1, t))),
        .beta2 = (float)beta2,
        .left2 = (float)(1 - beta2),
        .fix2 = (float)(1 / (1 - power(beta2, t))),
        .rate = (float)rate,
        .epsilon = (float)epsilon,
        .kept = (float)(1 - rate * decay)};
    struct flat f = {
        .n = n, .factors = &factors, .in = g, .m = m, .v = v, .out = x};
    atomic_init(&f.infinite, false);
    kith_pool_run(parts_of(n, PART), adamw_part, &f);
    return !atomic_load(&f.infinite);
}

struct embed {
    const struct kith_embed *op;
    size_t tokens_count, part;
    const int32_t *tokens;
    const float *token, *position, *dy;
    float *y, *dtoken, *dposition;
    bool add;
};

static void embed_part(void *context, size_t part)
{
    const struct embed *e = context;
    const size_t width = e->op->width, first = part * e->part;
    const size_t end = least(e->tokens_count, first + e->part);
    for (size_t i = first; i < end; i++) {
        KITH_ASSERT(e->tokens[i] >= 0 &&
                    (size_t)e->tokens[i] < e->op->vocabulary);
        const float *word = e->token + (size_t)e->tokens[i] * width;
        const float *place = e->position + i % e->op->context * width;
        float *y = e->y + i * width;
        for (size_t j = 0; j < width; j++)
            y[j] = word[j] + place[j];
    }
}

void kith_cpu_embed(const struct kith_embed *op, size_t rows,
                    const int32_t *tokens, const void *token,
                    const void *position, void *y)
{
    struct embed e = {.op = op,
                      .tokens_count = rows * op->context,
                      .part = rows_of(op->width),
                      .tokens = tokens,
                      .token = token,
                      .position = position,
                      .y = y};
    kith_pool_run(parts_of(e.tokens_count, e.part), embed_part, &e);
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
static void embed_stripe(void *context, size_t part)
{
    const struct embed *e = context;
    const size_t width = e->op->width, j = part * STRIPE;
    const size_t n = least(STRIPE, width - j);
    if (!e->add && e->dtoken != NULL)
        clear_stripe(e->op->vocabulary, width, n, e->dtoken + j);
    if (!e->add && e->dposition != NULL)
        clear_stripe(e->op->context, width, n, e->dposition + j);
    for (size_t i = 0; i < e->tokens_count; i++) {
        const float *d = e->dy + i * width + j;
        if (e->dtoken != NULL)
            add_to(n, d, e->dtoken + (size_t)e->tokens[i] * width + j);
        if (e->dposition != NULL)
            add_to(n, d, e->dposition + i % e->op->context * width + j);
    }
}

void kith_cpu_embed_backward(const struct kith_embed *op, size_t rows,
                             const int32_t *tokens, const void *dy,
                             void *dtoken, void *dposition, unsigned add)
{
    struct embed e = {.op = op,
                      .tokens_count = rows * op->context,
                      .tokens = tokens,
                      .dy = dy,
                      .dtoken = dtoken,
                      .dposition = dposition,
                      .add = add & KITH_ADD_WEIGHTS};
    kith_pool_run(parts_of(op->width, STRIPE), embed_stripe, &e);
}

/* Rows are summed part by part, parts in order. */
enum { LOSS_PARTS = 64 };
struct loss {
    size_t rows, classes, part;
    const int32_t *labels;
    double smoothing, factor, sum[LOSS_PARTS];
    uint32_t right[LOSS_PARTS];
    float *logits;
};

static void loss_part(void *context, size_t part)
{
    struct loss *l = context;
    const size_t end = least(l->rows, (part + 1) * l->part);
    double sum = 0;
    uint32_t count = 0;
    for (size_t i = part * l->part; i < end; i++) {
        KITH_ASSERT(l->labels[i] >= 0 && (size_t)l->labels[i] < l->classes);
        bool right;
        sum += kith_cpu_text()->loss(l->classes, (size_t)l->labels[i],
                                     l->smoothing, l->factor,
                                     l->logits + i * l->classes, &right);
        count += right;
    }
    l->sum[part] = sum;
    l->right[part] = count;
}

double kith_cpu_cross_entropy(size_t rows, size_t classes,
                              const int32_t *labels, double smoothing,
                              double scale, void *logits, uint32_t *correct)
{
    struct loss l = {.rows = rows,
                     .classes = classes,
                     .part = parts_of(rows, LOSS_PARTS),
                     .labels = labels,
                     .smoothing = smoothing,
                     .factor = scale / (double)rows,
                     .logits = logits};
    const size_t parts = l.part == 0 ? 0 : parts_of(rows, l.part);
    kith_pool_run(parts, loss_part, &l);
    double sum = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < parts; i++) {
        sum += l.sum[i];
        count += l.right[i];
    }
    if (correct != NULL)
        *correct = count;
    return sum / (double)rows;
}
