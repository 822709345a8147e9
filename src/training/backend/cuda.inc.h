/* One backend of the CUDA module, as a constant record of this program: every
 * call is handed on to the module. Compiled once per record:
 *
 *   RECORD  its name, NAME and SUMMARY its texts
 *   MEMBER  which of the module's backends
 *
 * Only `missing` and `alloc` may be called before `missing` answered NULL. */
#include "kith/cuda_module.h"

#include "kith/assert.h"

extern const struct kith_backend kith_backend_cpu;

/* Loading answers the same every time, at the price of one test. */
static const struct kith_backend *module(void)
{
    const char *why;
    const struct kith_cuda_module *const found = kith_cuda_load(&why);
    KITH_ASSERT(found != NULL);
    return found->MEMBER;
}

static const char *cuda_missing(void)
{
    const char *why;
    const struct kith_cuda_module *const found = kith_cuda_load(&why);
    return found == NULL ? why : found->MEMBER->missing();
}

/* Whoever did not ask `missing` gets no memory, and so no further. */
static void *cuda_alloc(size_t bytes, bool shared)
{
    return cuda_missing() == NULL ? module()->alloc(bytes, shared) : NULL;
}

static void cuda_release(void *memory)
{
    module()->release(memory);
}

static void cuda_copy(size_t n, void *target, const void *source)
{
    module()->copy(n, target, source);
}

static void cuda_clear(size_t n, void *x)
{
    module()->clear(n, x);
}

static void cuda_scale(size_t n, double factor, void *x)
{
    module()->scale(n, factor, x);
}

static void cuda_add(size_t n, double factor, const void *x, void *y)
{
    module()->add(n, factor, x, y);
}

static double cuda_mix(size_t n, double weight, const void *received,
                       const void *sent, void *x)
{
    return module()->mix(n, weight, received, sent, x);
}

static double cuda_swap_mix(size_t n, double weight, const void *received,
                            const void *sent, void *x)
{
    return module()->swap_mix(n, weight, received, sent, x);
}

static double cuda_mix_bf16(size_t n, double weight, const uint16_t *received,
                            const void *sent, void *x)
{
    return module()->mix_bf16(n, weight, received, sent, x);
}

static double cuda_sum(size_t n, const void *x)
{
    return module()->sum(n, x);
}

static double cuda_distance_squared(size_t n, const void *x, const void *y)
{
    return module()->distance_squared(n, x, y);
}

static bool cuda_finite(size_t n, const void *x)
{
    return module()->finite(n, x);
}

static void cuda_read(size_t n, const void *x, double *out)
{
    module()->read(n, x, out);
}

static void cuda_write(size_t n, const double *in, void *x)
{
    module()->write(n, in, x);
}

static void cuda_gemm(bool transpose_a, bool transpose_b, size_t m, size_t n,
                      size_t k, double alpha, const void *a, const void *b,
                      double beta, void *c)
{
    module()->gemm(transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c);
}

static bool cuda_sgd(size_t n, double rate, double momentum, double decay,
                     bool nesterov, const void *gradient, void *velocity,
                     void *x)
{
    return module()->sgd(n, rate, momentum, decay, nesterov, gradient, velocity,
                         x);
}

static void cuda_from_bytes(size_t n, const uint8_t *bytes, void *y)
{
    module()->from_bytes(n, bytes, y);
}

static void cuda_narrow(size_t n, const void *elements, void *activations)
{
    module()->narrow(n, elements, activations);
}

static void cuda_widen(size_t n, const void *activations, void *elements)
{
    module()->widen(n, activations, elements);
}

static void cuda_step_begin(void)
{
    module()->step_begin();
}

static void cuda_step_end(struct kith_found *found)
{
    module()->step_end(found);
}

static double cuda_clip(size_t n, double limit, void *g)
{
    return module()->clip(n, limit, g);
}

static bool cuda_settled(const void *shared, bool wait)
{
    return module()->settled(shared, wait);
}

static void cuda_arrived(const void *shared, size_t bytes)
{
    module()->arrived(shared, bytes);
}

/* What never was here has not failed: `missing` says why. */
static const char *cuda_failed(void)
{
    return cuda_missing() == NULL ? module()->failed() : NULL;
}

static void ops_linear(const struct kith_linear *op, size_t rows, const void *x,
                       const void *w, const void *bias, void *pre, void *y)
{
    module()->ops->linear(op, rows, x, w, bias, pre, y);
}

static void ops_linear_backward(const struct kith_linear *op, size_t rows,
                                const void *x, const void *w, const void *pre,
                                const void *y, void *dy, void *dx, void *dw,
                                void *dbias, unsigned add)
{
    module()->ops->linear_backward(op, rows, x, w, pre, y, dy, dx, dw, dbias,
                                   add);
}

static size_t ops_conv_scratch(const struct kith_conv *op, size_t rows)
{
    return module()->ops->conv_scratch(op, rows);
}

static void ops_conv(const struct kith_conv *op, size_t rows, const void *x,
                     const void *w, const void *bias, void *y, void *scratch)
{
    module()->ops->conv(op, rows, x, w, bias, y, scratch);
}

static void ops_conv_backward(const struct kith_conv *op, size_t rows,
                              const void *x, const void *w, const void *y,
                              void *dy, void *dx, void *dw, void *dbias,
                              void *scratch, unsigned add)
{
    module()->ops->conv_backward(op, rows, x, w, y, dy, dx, dw, dbias, scratch,
                                 add);
}

static void ops_norm(const struct kith_norm *op, size_t rows, bool training,
                     const void *x, const void *scale, const void *shift,
                     void *buffers, void *saved, void *y)
{
    module()->ops->norm(op, rows, training, x, scale, shift, buffers, saved, y);
}

static void ops_norm_backward(const struct kith_norm *op, size_t rows,
                              const void *x, const void *scale, const void *y,
                              const void *saved, void *dy, void *dx,
                              void *dscale, void *dshift, unsigned add)
{
    module()->ops->norm_backward(op, rows, x, scale, y, saved, dy, dx, dscale,
                                 dshift, add);
}

static void ops_max_pool(const struct kith_pool *op, size_t rows, const void *x,
                         void *y, uint8_t *which)
{
    module()->ops->max_pool(op, rows, x, y, which);
}

static void ops_max_pool_backward(const struct kith_pool *op, size_t rows,
                                  const uint8_t *which, const void *dy,
                                  void *dx, unsigned add)
{
    module()->ops->max_pool_backward(op, rows, which, dy, dx, add);
}

static void ops_mean_pool(size_t rows, size_t pixels, size_t channels,
                          const void *x, void *y)
{
    module()->ops->mean_pool(rows, pixels, channels, x, y);
}

static void ops_mean_pool_backward(size_t rows, size_t pixels, size_t channels,
                                   const void *dy, void *dx, unsigned add)
{
    module()->ops->mean_pool_backward(rows, pixels, channels, dy, dx, add);
}

static void ops_sum(size_t n, enum kith_activation activation, const void *a,
                    const void *b, void *y)
{
    module()->ops->sum(n, activation, a, b, y);
}

static void ops_sum_backward(size_t n, enum kith_activation activation,
                             const void *y, void *dy, void *da, void *db,
                             unsigned add)
{
    module()->ops->sum_backward(n, activation, y, dy, da, db, add);
}

static void ops_dropout(const struct kith_dropout *op, size_t n, const void *x,
                        void *y)
{
    module()->ops->dropout(op, n, x, y);
}

static void ops_embed(const struct kith_embed *op, size_t rows,
                      const int32_t *tokens, const void *token,
                      const void *position, void *y)
{
    module()->ops->embed(op, rows, tokens, token, position, y);
}

static void ops_embed_backward(const struct kith_embed *op, size_t rows,
                               const int32_t *tokens, const void *dy,
                               void *dtoken, void *dposition, unsigned add)
{
    module()->ops->embed_backward(op, rows, tokens, dy, dtoken, dposition, add);
}

static size_t ops_attention_scratch(const struct kith_attention *op,
                                    size_t rows)
{
    return module()->ops->attention_scratch(op, rows);
}

static void ops_attention(const struct kith_attention *op, size_t rows,
                          const void *qkv, void *saved, void *y, void *scratch)
{
    module()->ops->attention(op, rows, qkv, saved, y, scratch);
}

static void ops_attention_backward(const struct kith_attention *op, size_t rows,
                                   const void *qkv, const void *y,
                                   const void *saved, const void *dy,
                                   void *dqkv, void *scratch)
{
    module()->ops->attention_backward(op, rows, qkv, y, saved, dy, dqkv,
                                      scratch);
}

static double ops_cross_entropy(size_t rows, size_t classes,
                                const int32_t *labels, double smoothing,
                                double scale, void *logits, uint32_t *correct)
{
    return module()->ops->cross_entropy(rows, classes, labels, smoothing, scale,
                                        logits, correct);
}

static size_t ops_scores_stride(size_t classes)
{
    return module()->ops->scores_stride(classes);
}

static double ops_padded_cross_entropy(size_t rows, size_t classes,
                                       size_t stride, const int32_t *labels,
                                       double smoothing, double scale,
                                       void *logits, uint32_t *correct)
{
    return module()->ops->padded_cross_entropy(
        rows, classes, stride, labels, smoothing, scale, logits, correct);
}

static bool ops_adamw(size_t n, double rate, double beta1, double beta2,
                      double epsilon, double decay, uint64_t t, const void *g,
                      void *m, void *v, void *x)
{
    return module()->ops->adamw(n, rate, beta1, beta2, epsilon, decay, t, g, m,
                                v, x);
}

static const char *cuda_notice(void)
{
    return module()->notice();
}

static const struct kith_ops cuda_ops = {
    .linear = ops_linear,
    .linear_backward = ops_linear_backward,
    .conv_scratch = ops_conv_scratch,
    .conv = ops_conv,
    .conv_backward = ops_conv_backward,
    .norm = ops_norm,
    .norm_backward = ops_norm_backward,
    .max_pool = ops_max_pool,
    .max_pool_backward = ops_max_pool_backward,
    .mean_pool = ops_mean_pool,
    .mean_pool_backward = ops_mean_pool_backward,
    .sum = ops_sum,
    .sum_backward = ops_sum_backward,
    .dropout = ops_dropout,
    .embed = ops_embed,
    .embed_backward = ops_embed_backward,
    .attention_scratch = ops_attention_scratch,
    .attention = ops_attention,
    .attention_backward = ops_attention_backward,
    .cross_entropy = ops_cross_entropy,
    .scores_stride = ops_scores_stride,
    .padded_cross_entropy = ops_padded_cross_entropy,
    .adamw = ops_adamw,
};

extern const struct kith_backend RECORD;
const struct kith_backend RECORD = {
    .name = NAME,
    .summary = SUMMARY,
    .element_bytes = sizeof(float),
    .host = &kith_backend_cpu,
    .missing = cuda_missing,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .scale = cuda_scale,
    .add = cuda_add,
    .mix = cuda_mix,
    .swap_mix = cuda_swap_mix,
    .mix_bf16 = cuda_mix_bf16,
    .sum = cuda_sum,
    .distance_squared = cuda_distance_squared,
    .finite = cuda_finite,
    .read = cuda_read,
    .write = cuda_write,
    .gemm = cuda_gemm,
    .sgd = cuda_sgd,
    .from_bytes = cuda_from_bytes,
    .narrow = cuda_narrow,
    .widen = cuda_widen,
    .step_begin = cuda_step_begin,
    .step_end = cuda_step_end,
    .clip = cuda_clip,
    .settled = cuda_settled,
    .arrived = cuda_arrived,
    .failed = cuda_failed,
    .notice = cuda_notice,
    .ops = &cuda_ops,
    .activation_bytes = ACTIVATION_BYTES,
};
