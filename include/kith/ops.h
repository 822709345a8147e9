/* Tensor operations: what models are composed from, forward and backward.
 *
 * Everything is row-major and dense. Images are (rows, height, width,
 * channels) and convolution weights (kernel, kernel, in, out): the innermost
 * loop of every operation runs over channels, and no layout is ever converted.
 * `rows` is the batch; tokens are rows * context rows of `width`.
 * d<name> is the gradient of the loss by <name>. A backward function writes
 * what is not NULL; KITH_ADD_* make it add to what stands there (a tensor with
 * two readers, a tied weight, a further micro-batch). dy may be overwritten
 * where the operation has an activation, and is left alone where it has none.
 * One table per backend, each held against naive64's.
 * Test: unit/test_ops.c; gradients by finite differences in float64. */
#ifndef KITH_OPS_H
#define KITH_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_ADD_DATA 1u    /* dx <- dx + ... */
#define KITH_ADD_WEIGHTS 2u /* dw, dbias, dscale, dshift <- ... + ... */

enum kith_activation {
    KITH_ACTIVATION_NONE,
    KITH_ACTIVATION_RELU, /* max(0, v); NaN stays NaN */
    KITH_ACTIVATION_GELU, /* tanh form: v/2 (1 + tanh(sqrt(2/pi)
                             (v + 0.044715 v^3))) */
};

/* y (rows, out) = activation(x (rows, in) W + bias). */
struct kith_linear {
    size_t in, out;
    bool in_out; /* W is (in, out), as GPT-2 stores it; else (out, in) */
    enum kith_activation activation;
    void *scratch; /* linear_scratch() bytes for one pass; NULL where 0 */
    /* Elements from a row of y and dy to the next: `out` where 0, else what
     * scores_stride said; then there is no activation. */
    size_t stride;
};

/* Square kernels, the same stride and zero padding on both axes;
 * out_height = (height + 2 pad - kernel) / stride + 1. RELU or NONE. */
struct kith_conv {
    size_t height, width, in, out, kernel, stride, pad;
    size_t out_height, out_width;
    enum kith_activation activation;
};

/* y = (x - mean) / sqrt(variance + epsilon) * scale + shift, RELU or NONE.
 *   BATCH  statistics per channel over rows * pixels; in evaluation the
 *          buffers': mean, variance (2, channels). In training
 *          buffer <- buffer + momentum (batch's - buffer), variance unbiased
 *   GROUP  per row and group of channels / groups neighbouring channels
 *   LAYER  per row, over all channels (pixels = 1)
 * Ioffe and Szegedy, ICML 2015; Wu and He, ECCV 2018; Ba et al., 2016. */
enum kith_norm_kind { KITH_NORM_BATCH, KITH_NORM_GROUP, KITH_NORM_LAYER };
struct kith_norm {
    enum kith_norm_kind kind;
    size_t pixels, channels, groups;
    double epsilon, momentum;
    enum kith_activation activation;
};

/* Windows of kernel x kernel at every stride, no padding beyond `pad`. */
struct kith_pool {
    size_t height, width, channels, kernel, stride, pad;
    size_t out_height, out_width;
};

/* Causal self-attention of `heads` heads of width / heads, scaled by
 * 1 / sqrt(width / heads). qkv (rows * context, 3 width): q, k, v in thirds,
 * heads side by side in each. Vaswani et al., NeurIPS 2017; never a
 * (context, context) matrix kept: Dao et al., NeurIPS 2022. */
struct kith_attention {
    size_t context, heads, width;
};

/* token (vocabulary, width) and position (context, width). */
struct kith_embed {
    size_t context, vocabulary, width;
};

/* Which mask: the same for a forward pass and its backward one, and for any
 * number of threads (element i draws from counter i). */
struct kith_dropout {
    double rate; /* share set to 0; the rest grows by 1 / (1 - rate) */
    uint64_t seed, entity, step;
    uint32_t place; /* of this operation in the model */
};

struct kith_ops {
    /* Bytes of op->scratch, 64-byte aligned, for either direction; NULL: none
     * is needed. */
    size_t (*linear_scratch)(const struct kith_linear *op, size_t rows);
    /* pre (rows, out): where GELU leaves its argument for the way back; NULL
     * otherwise, and where no gradient is wanted. bias may be NULL. */
    void (*linear)(const struct kith_linear *op, size_t rows, const void *x,
                   const void *w, const void *bias, void *pre, void *y);
    void (*linear_backward)(const struct kith_linear *op, size_t rows,
                            const void *x, const void *w, const void *pre,
                            const void *y, void *dy, void *dx, void *dw,
                            void *dbias, unsigned add);

    /* Bytes of scratch for either direction. */
    size_t (*conv_scratch)(const struct kith_conv *op, size_t rows);
    void (*conv)(const struct kith_conv *op, size_t rows, const void *x,
                 const void *w, const void *bias, void *y, void *scratch);
    void (*conv_backward)(const struct kith_conv *op, size_t rows,
                          const void *x, const void *w, const void *y, void *dy,
                          void *dx, void *dw, void *dbias, void *scratch,
                          unsigned add);

    /* saved (kith_norm_saved) elements: the sets' means, then their
     * 1 / deviation. NULL where no gradient is wanted, except for BATCH in
     * training, which works in it. */
    void (*norm)(const struct kith_norm *op, size_t rows, bool training,
                 const void *x, const void *scale, const void *shift,
                 void *buffers, void *saved, void *y);
    void (*norm_backward)(const struct kith_norm *op, size_t rows,
                          const void *x, const void *scale, const void *y,
                          const void *saved, void *dy, void *dx, void *dscale,
                          void *dshift, unsigned add);

    /* which (rows, out_height, out_width, channels): the place of the largest
     * in its window, the first of equals; kernel <= 15. */
    void (*max_pool)(const struct kith_pool *op, size_t rows, const void *x,
                     void *y, uint8_t *which);
    void (*max_pool_backward)(const struct kith_pool *op, size_t rows,
                              const uint8_t *which, const void *dy, void *dx,
                              unsigned add);
    /* y (rows, channels) <- mean over pixels of x (rows, pixels, channels) */
    void (*mean_pool)(size_t rows, size_t pixels, size_t channels,
                      const void *x, void *y);
    void (*mean_pool_backward)(size_t rows, size_t pixels, size_t channels,
                               const void *dy, void *dx, unsigned add);

    /* y <- activation(a + b), NONE or RELU; y may be a or b. */
    void (*sum)(size_t n, enum kith_activation activation, const void *a,
                const void *b, void *y);
    /* dy <- dy where y > 0 (RELU), in place; da and db get it: each may be
     * NULL, or dy itself. KITH_ADD_DATA holds for both. */
    void (*sum_backward)(size_t n, enum kith_activation activation,
                         const void *y, void *dy, void *da, void *db,
                         unsigned add);
    /* y <- mask x / (1 - rate); y may be x. The backward pass is the same on
     * dy. */
    void (*dropout)(const struct kith_dropout *op, size_t n, const void *x,
                    void *y);

    /* y (rows * context, width) <- token[tokens] + position */
    void (*embed)(const struct kith_embed *op, size_t rows,
                  const int32_t *tokens, const void *token,
                  const void *position, void *y);
    void (*embed_backward)(const struct kith_embed *op, size_t rows,
                           const int32_t *tokens, const void *dy, void *dtoken,
                           void *dposition, unsigned add);

    size_t (*attention_scratch)(const struct kith_attention *op, size_t rows);
    /* saved (rows, heads, context): log of each row's sum of exponentials. */
    void (*attention)(const struct kith_attention *op, size_t rows,
                      const void *qkv, void *saved, void *y, void *scratch);
    void (*attention_backward)(const struct kith_attention *op, size_t rows,
                               const void *qkv, const void *y,
                               const void *saved, const void *dy, void *dqkv,
                               void *scratch);

    /* logits (rows, classes), 0 <= labels < classes -> the gradient of the
     * mean loss times `scale`, in place; returns the mean loss (not scaled),
     * float64, against (1 - smoothing) one-hot + smoothing / classes.
     * *correct (may be NULL): rows whose arg-max is the label. */
    double (*cross_entropy)(size_t rows, size_t classes, const int32_t *labels,
                            double smoothing, double scale, void *logits,
                            uint32_t *correct);
    /* Optional, both or neither: for a backend whose products are faster where
     * each row of scores begins at a multiple of some bytes. scores_stride:
     * elements from a row to the next, >= classes. A linear operation of that
     * stride writes -infinity into the elements between; padded_cross_entropy
     * is cross_entropy on such rows, and leaves 0 there; the way back reads
     * them as 0. Neither weights nor their gradients have them. */
    size_t (*scores_stride)(size_t classes);
    double (*padded_cross_entropy)(size_t rows, size_t classes, size_t stride,
                                   const int32_t *labels, double smoothing,
                                   double scale, void *logits,
                                   uint32_t *correct);

    /* AdamW, Loshchilov and Hutter, ICLR 2019, t counted from 1:
     *   m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
     *   x <- x - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)
     *                  + decay x)
     * Returns whether every new value of x is finite. */
    bool (*adamw)(size_t n, double rate, double beta1, double beta2,
                  double epsilon, double decay, uint64_t t, const void *g,
                  void *m, void *v, void *x);
};

/* Elements of `saved` for a norm. */
static inline size_t kith_norm_saved(const struct kith_norm *op, size_t rows)
{
    return 2 * (op->kind == KITH_NORM_BATCH   ? op->channels
                : op->kind == KITH_NORM_GROUP ? rows * op->groups
                                              : rows);
}

#ifdef __cplusplus
}
#endif
#endif
