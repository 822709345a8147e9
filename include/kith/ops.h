/* Tensor operations: what models are composed from, forward and backward.
 *
 * Everything is row-major and dense. Images are (rows, height, width,
 * channels) and convolution weights (kernel, kernel, in, out): the innermost
 * loop of every operation runs over channels, and no layout is ever converted.
 * Each operation has a shape (struct kith_linear, ...), and every backend has a
 * kernel for it: two functions of one argument, struct kith_arguments.
 * KITH_OPERATIONS lists them; src/training/model/operations/NAME.c says what a
 * network needs to know of each (net.h).
 * Test: unit/test_ops.c; gradients by finite differences in float64. */
#ifndef KITH_OPS_H
#define KITH_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name), in the order in which kernels are numbered. */
#define KITH_OPERATIONS(X)                                                     \
    X(EMBED, embed)                                                            \
    X(LINEAR, linear)                                                          \
    X(CONV, conv)                                                              \
    X(NORM, norm)                                                              \
    X(MAX_POOL, max_pool)                                                      \
    X(MEAN_POOL, mean_pool)                                                    \
    X(SUM, sum)                                                                \
    X(DROPOUT, dropout)                                                        \
    X(ATTENTION, attention)                                                    \
    X(RMS_NORM, rms_norm)                                                      \
    X(ROTARY, rotary)
#define KITH_X(NAME, name) KITH_OP_##NAME,
enum kith_op_kind { KITH_OPERATIONS(KITH_X) };
#undef KITH_X
#define KITH_X(NAME, name) +1
enum { KITH_OP_COUNT = 0 KITH_OPERATIONS(KITH_X) };
#undef KITH_X

#define KITH_ADD_DATA 1u    /* dx <- dx + ... */
#define KITH_ADD_WEIGHTS 2u /* dweight, dbias <- ... + ... */
#define KITH_STATISTICS 4u  /* norms of kind BATCH use the batch's */

/* What a kernel is given: of shape's operation, on `rows` rows.
 *
 * d<name> is the gradient of the loss by <name>. A backward kernel writes what
 * is not NULL; KITH_ADD_* make it add to what stands there (a tensor with two
 * readers, a tied weight, a further micro-batch). dy may be overwritten where
 * the operation has an activation, and is left alone where it has none. */
struct kith_arguments {
    const void *shape; /* struct kith_linear, ... */
    size_t rows;
    const void *x, *other; /* inputs; int32_t tokens (rows, context) */
    const void *weight, *bias;
    void *buffers; /* running statistics */
    void *saved;   /* from forward to backward; NULL: no gradient is wanted */
    void *scratch; /* kith_kernel_scratch() bytes, 64-byte aligned, for one
                      direction; NULL where 0 */
    void *y, *dy;
    void *dx, *dweight, *dbias;
    unsigned flags;
};

/* One operation on one backend, each held against naive64's. */
struct kith_kernel {
    /* Bytes of scratch that either direction needs; NULL: none. */
    size_t (*scratch)(const void *shape, size_t rows);
    void (*forward)(const struct kith_arguments *arguments);
    void (*backward)(const struct kith_arguments *arguments);
};

enum kith_activation {
    KITH_ACTIVATION_NONE,
    KITH_ACTIVATION_RELU, /* max(0, v); NaN stays NaN */
    KITH_ACTIVATION_GELU, /* tanh form: v/2 (1 + tanh(sqrt(2/pi)
                             (v + 0.044715 v^3))) */
};

/* y (rows, out) = activation(x (rows, in) W + bias); bias may be NULL. saved
 * (rows, out): where GELU leaves its argument for the way back. */
struct kith_linear {
    size_t in, out;
    bool in_out; /* W is (in, out), as GPT-2 stores it; else (out, in) */
    enum kith_activation activation;
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
 * weight is scale, bias is shift. saved (kith_norm_saved): the sets' means,
 * then their 1 / deviation; BATCH in training works in it, wanted or not. Ioffe
 * and Szegedy, ICML 2015; Wu and He, ECCV 2018; Ba et al., 2016. */
enum kith_norm_kind { KITH_NORM_BATCH, KITH_NORM_GROUP, KITH_NORM_LAYER };
struct kith_norm {
    enum kith_norm_kind kind;
    size_t pixels, channels, groups;
    double epsilon, momentum;
    enum kith_activation activation;
};

/* The largest of each window of kernel x kernel at every stride, no padding
 * beyond `pad`. saved, uint8_t (rows, out_height, out_width, channels): the
 * place of the largest in its window, the first of equals; kernel <= 15. */
struct kith_pool {
    size_t height, width, channels, kernel, stride, pad;
    size_t out_height, out_width;
};

/* y (rows, channels) <- mean over pixels of x (rows, pixels, channels) */
struct kith_mean {
    size_t pixels, channels;
};

/* y <- activation(x + other), NONE or RELU, a value a row; y may be either. The
 * way back is dy <- dy where y > 0 (RELU), in place. */
struct kith_sum {
    enum kith_activation activation;
};

/* Causal self-attention of `heads` heads of width / heads, scaled by
 * 1 / sqrt(width / heads). qkv (rows * context, 3 width): q, k, v in thirds,
 * heads side by side in each. saved (rows, heads, context): log of each row's
 * sum of exponentials. The way back writes dx and cannot add to it.
 * Vaswani et al., NeurIPS 2017; never a (context, context) matrix kept: Dao et
 * al., NeurIPS 2022. */
struct kith_attention {
    size_t context, heads, width;
};

/* y (rows * context, width) <- token[x] + position: weight is token
 * (vocabulary, width), bias is position (context, width), or NULL: none. */
struct kith_embed {
    size_t context, vocabulary, width;
};

/* y <- mask x / (1 - rate), a value a row; y may be x. The way back is the same
 * of dy and dx. The mask is the same for both, and for any number of threads
 * (element i draws from counter i). */
struct kith_dropout {
    double rate; /* share set to 0; the rest grows by 1 / (1 - rate) */
    uint64_t seed, entity, step;
    uint32_t place; /* of this operation in the model */
};

/* logits (rows, classes), 0 <= labels < classes -> the gradient of the mean
 * loss times `scale`, in place; returns the mean loss (not scaled), float64,
 * against (1 - smoothing) one-hot + smoothing / classes. */
struct kith_loss {
    size_t rows, classes;
    size_t stride; /* elements from a row to the next; 0: classes */
    const int32_t *labels;
    double smoothing, scale;
    void *logits;
    uint32_t *correct; /* rows whose arg-max is the label; or NULL */
};

/* AdamW, Loshchilov and Hutter, ICLR 2019, t counted from 1:
 *   m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
 *   x <- x - rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)
 *                  + decay x) */
struct kith_adamw {
    size_t n;
    double rate, beta1, beta2, epsilon, decay;
    uint64_t t;
    const void *g;
    void *m, *v, *x;
};

struct kith_ops {
    const struct kith_kernel *kernels[KITH_OP_COUNT];
    double (*cross_entropy)(const struct kith_loss *loss);
    /* Optional, for a backend whose products are faster where each row of
     * scores begins at a multiple of some bytes: elements from a row to the
     * next, >= classes. A linear operation of that stride writes -infinity
     * into the elements between; cross_entropy leaves 0 there; the way back
     * reads them as 0. Neither weights nor their gradients have them. */
    size_t (*scores_stride)(size_t classes);
    /* Returns whether every new value of x is finite. */
    bool (*adamw)(const struct kith_adamw *adamw);
};

static inline size_t kith_kernel_scratch(const struct kith_kernel *kernel,
                                         const void *shape, size_t rows)
{
    return kernel->scratch == NULL ? 0 : kernel->scratch(shape, rows);
}

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
