/* See probe.h. A wait is asked for after an operation, so that a step under a
 * probe is slower than one without; shares matter, not sums. */
#include "probe.h"

#include <math.h>
#include <string.h>

#include "bench_gpu.h"

const char *const probe_kind_names[PROBE_KIND_COUNT] = {
#define X(name, text) text,
    PROBE_KINDS(X)
#undef X
};

static struct {
    const struct kith_backend *inner;
    struct kith_backend outer;
    struct kith_ops ops;
    enum probe_mode mode;
    double start, last, wait; /* PROBE_KIND */
    double loss, backward;    /* PROBE_PHASES: when each was done */
    double spent[PROBE_KIND_COUNT];
} self;

static void mark(enum probe_kind kind)
{
    if (self.mode == PROBE_OFF ||
        (self.mode == PROBE_PHASES && kind != PROBE_LOSS))
        return;
    finish(self.inner);
    const double t = now(), spent = t - self.last - self.wait;
    if (kind == PROBE_LOSS)
        self.loss = t;
    self.spent[kind] += spent > 0 ? spent : 0;
    self.last = t;
}

/* ---- operations */

static void embed(const struct kith_embed *op, size_t rows,
                  const int32_t *tokens, const void *token,
                  const void *position, void *y)
{
    self.inner->ops->embed(op, rows, tokens, token, position, y);
    mark(PROBE_EMBED);
}

static void embed_backward(const struct kith_embed *op, size_t rows,
                           const int32_t *tokens, const void *dy, void *dtoken,
                           void *dposition, unsigned add)
{
    self.inner->ops->embed_backward(op, rows, tokens, dy, dtoken, dposition,
                                    add);
    mark(PROBE_EMBED_BACK);
}

/* A classifier's, or tied to an embedding: no block's layer is stored so. */
static bool is_head(const struct kith_linear *op)
{
    return !op->in_out;
}

static void linear(const struct kith_linear *op, size_t rows, const void *x,
                   const void *w, const void *bias, void *pre, void *y)
{
    self.inner->ops->linear(op, rows, x, w, bias, pre, y);
    mark(is_head(op) ? PROBE_HEAD : PROBE_LINEAR);
}

static void linear_backward(const struct kith_linear *op, size_t rows,
                            const void *x, const void *w, const void *pre,
                            const void *y, void *dy, void *dx, void *dw,
                            void *dbias, unsigned add)
{
    self.inner->ops->linear_backward(op, rows, x, w, pre, y, dy, dx, dw, dbias,
                                     add);
    mark(is_head(op) ? PROBE_HEAD_BACK : PROBE_LINEAR_BACK);
}

static void attention(const struct kith_attention *op, size_t rows,
                      const void *qkv, void *saved, void *y, void *scratch)
{
    self.inner->ops->attention(op, rows, qkv, saved, y, scratch);
    mark(PROBE_ATTENTION);
}

static void attention_backward(const struct kith_attention *op, size_t rows,
                               const void *qkv, const void *y,
                               const void *saved, const void *dy, void *dqkv,
                               void *scratch)
{
    self.inner->ops->attention_backward(op, rows, qkv, y, saved, dy, dqkv,
                                        scratch);
    mark(PROBE_ATTENTION_BACK);
}

static void conv(const struct kith_conv *op, size_t rows, const void *x,
                 const void *w, const void *bias, void *y, void *scratch)
{
    self.inner->ops->conv(op, rows, x, w, bias, y, scratch);
    mark(PROBE_CONV);
}

static void conv_backward(const struct kith_conv *op, size_t rows,
                          const void *x, const void *w, const void *y, void *dy,
                          void *dx, void *dw, void *dbias, void *scratch,
                          unsigned add)
{
    self.inner->ops->conv_backward(op, rows, x, w, y, dy, dx, dw, dbias,
                                   scratch, add);
    mark(PROBE_CONV_BACK);
}

static void norm(const struct kith_norm *op, size_t rows, bool training,
                 const void *x, const void *scale, const void *shift,
                 void *buffers, void *saved, void *y)
{
    self.inner->ops->norm(op, rows, training, x, scale, shift, buffers, saved,
                          y);
    mark(PROBE_NORM);
}

static void norm_backward(const struct kith_norm *op, size_t rows,
                          const void *x, const void *scale, const void *y,
                          const void *saved, void *dy, void *dx, void *dscale,
                          void *dshift, unsigned add)
{
    self.inner->ops->norm_backward(op, rows, x, scale, y, saved, dy, dx, dscale,
                                   dshift, add);
    mark(PROBE_NORM_BACK);
}

static void sum(size_t n, enum kith_activation activation, const void *a,
                const void *b, void *y)
{
    self.inner->ops->sum(n, activation, a, b, y);
    mark(PROBE_OTHER);
}

static void sum_backward(size_t n, enum kith_activation activation,
                         const void *y, void *dy, void *da, void *db,
                         unsigned add)
{
    self.inner->ops->sum_backward(n, activation, y, dy, da, db, add);
    mark(PROBE_OTHER);
}

static void max_pool(const struct kith_pool *op, size_t rows, const void *x,
                     void *y, uint8_t *which)
{
    self.inner->ops->max_pool(op, rows, x, y, which);
    mark(PROBE_OTHER);
}

static void max_pool_backward(const struct kith_pool *op, size_t rows,
                              const uint8_t *which, const void *dy, void *dx,
                              unsigned add)
{
    self.inner->ops->max_pool_backward(op, rows, which, dy, dx, add);
    mark(PROBE_OTHER);
}

static void copy(size_t n, void *target, const void *source)
{
    self.inner->copy(n, target, source);
    mark(PROBE_OTHER);
}

static double cross_entropy(size_t rows, size_t classes, const int32_t *labels,
                            double smoothing, double scale, void *logits,
                            uint32_t *correct)
{
    const double loss = self.inner->ops->cross_entropy(
        rows, classes, labels, smoothing, scale, logits, correct);
    mark(PROBE_LOSS);
    return loss;
}

static double padded_cross_entropy(size_t rows, size_t classes, size_t stride,
                                   const int32_t *labels, double smoothing,
                                   double scale, void *logits,
                                   uint32_t *correct)
{
    const double loss = self.inner->ops->padded_cross_entropy(
        rows, classes, stride, labels, smoothing, scale, logits, correct);
    mark(PROBE_LOSS);
    return loss;
}

static bool adamw(size_t n, double rate, double beta1, double beta2,
                  double epsilon, double decay, uint64_t t, const void *g,
                  void *m, void *v, void *x)
{
    const bool finite = self.inner->ops->adamw(n, rate, beta1, beta2, epsilon,
                                               decay, t, g, m, v, x);
    mark(PROBE_OPTIMISER);
    return finite;
}

static bool sgd(size_t n, double rate, double momentum, double decay,
                bool nesterov, const void *gradient, void *velocity, void *x)
{
    const bool finite = self.inner->sgd(n, rate, momentum, decay, nesterov,
                                        gradient, velocity, x);
    mark(PROBE_OPTIMISER);
    return finite;
}

/* ---- the record */

const struct kith_backend *probe_open(const struct kith_backend *inner)
{
    self.inner = inner;
    self.mode = PROBE_OFF;
    self.ops = *inner->ops;
    self.ops.embed = embed;
    self.ops.embed_backward = embed_backward;
    self.ops.linear = linear;
    self.ops.linear_backward = linear_backward;
    self.ops.attention = attention;
    self.ops.attention_backward = attention_backward;
    self.ops.conv = conv;
    self.ops.conv_backward = conv_backward;
    self.ops.norm = norm;
    self.ops.norm_backward = norm_backward;
    self.ops.sum = sum;
    self.ops.sum_backward = sum_backward;
    self.ops.max_pool = max_pool;
    self.ops.max_pool_backward = max_pool_backward;
    self.ops.cross_entropy = cross_entropy;
    if (inner->ops->padded_cross_entropy != NULL)
        self.ops.padded_cross_entropy = padded_cross_entropy;
    self.ops.adamw = adamw;
    self.outer = *inner;
    self.outer.ops = &self.ops;
    self.outer.copy = copy;
    self.outer.sgd = sgd;
    return &self.outer;
}

void probe_start(enum probe_mode mode)
{
    finish(self.inner);
    const double before = now();
    finish(self.inner);
    self.mode = mode;
    memset(self.spent, 0, sizeof self.spent);
    self.start = self.last = now();
    self.loss = self.backward = (double)NAN; /* not seen yet */
    self.wait = self.start - before;
}

void probe_backward(void)
{
    if (self.mode != PROBE_PHASES)
        return;
    finish(self.inner);
    self.backward = now();
}

struct probe_phases probe_phases(void)
{
    finish(self.inner);
    return (struct probe_phases){.forward = self.loss - self.start,
                                 .backward = self.backward - self.loss,
                                 .optimiser = now() - self.backward};
}

const double *probe_kinds(void)
{
    return self.spent;
}
