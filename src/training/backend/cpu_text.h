/* Kernels of backend cpu for networks of dense layers and for text, one table
 * per instruction set, and the operations of ops.h that are made of them.
 *
 *   cpu_products.inc.h   products: tiles, packed panels, what follows a product
 *   cpu_rows.inc.h       layer norm, cross-entropy, dropout, AdamW
 *   cpu_heads.inc.h      causal attention of one head
 *   cpu_linear.c         linear layers; cpu_attention.c, cpu_text.c: the others
 *
 * Every sum is taken in an order that depends on the shapes alone: the number
 * of threads changes no bit. Test: unit/test_{products,ops_text}.c. */
#ifndef KITH_TRAINING_BACKEND_CPU_TEXT_H
#define KITH_TRAINING_BACKEND_CPU_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "cpu_ops.h"
#include "kith/dropout.h"
#include "kith/ops.h"

/* A matrix (rows, columns) read along either side: element (i, j) stands at
 * at[i * row + j * column]; one of the two strides is 1. */
struct kith_matrix {
    const float *at;
    size_t row, column;
};

/* C (m, n) <- [C +] A (m, k) B (k, n); then, where `finish`,
 *   pre <- C + bias (pre may be NULL), C <- activation(C + bias) */
struct kith_product {
    size_t m, n, k;
    struct kith_matrix a, b;
    float *c, *pre; /* rows are `stride` apart in both */
    size_t stride;
    bool add, finish;
    const float *bias; /* (n) or NULL */
    enum kith_activation activation;
};

/* One pass over (rows, n) whose rows are `stride` apart. */
struct kith_rows {
    size_t rows, n, stride;
};

/* One head of one row. A token is `stride` elements after the one before in
 * q, k, v and their gradients, `width` in y and dy. */
struct kith_head {
    size_t context, size, stride, width;
    const float *q, *k, *v, *dy;
    float *y, *sums; /* sums (context): log of each row's sum */
    float *dq, *dk, *dv;
    float *scratch; /* kith_head_scratch() floats, on a cache line */
};
size_t kith_head_scratch(size_t context, size_t size);

/* m <- beta1 m + left1 g;  v <- beta2 v + left2 g^2;
 * x <- kept x - rate (m fix1 / (sqrt(v fix2) + epsilon)) */
struct kith_adamw_factors {
    float beta1, left1, fix1, beta2, left2, fix2, rate, epsilon, kept;
};

struct kith_cpu_text {
    /* Rows [m0, m1) and columns [n0, n1) of a product; n0 is a multiple of 64.
     */
    void (*product)(const struct kith_product *p, size_t m0, size_t m1,
                    size_t n0, size_t n1);
    void (*finish)(struct kith_rows at, const float *bias,
                   enum kith_activation activation, float *pre, float *y);
    /* dy <- dy activation'(.), and dbias (n; may be NULL) <- [dbias +] the sum
     * of its rows. */
    void (*finish_backward)(struct kith_rows at,
                            enum kith_activation activation, const float *pre,
                            const float *y, float *dy, float *dbias, bool add);

    /* Layer norm of a call's rows [first, first + rows), and the gradients of
     * its columns [first, first + n). */
    void (*norm)(const struct kith_arguments *a, size_t first, size_t rows);
    void (*norm_backward)(const struct kith_arguments *a, size_t first,
                          size_t rows);
    void (*norm_weights)(const struct kith_arguments *a, size_t first,
                         size_t n);

    void (*head)(const struct kith_head *head);
    void (*head_backward)(const struct kith_head *head);

    /* One row: returns its loss; the logits become the gradient. */
    double (*loss)(size_t classes, size_t label, double smoothing,
                   double factor, float *row, bool *right);
    /* Elements [0, n) of x are [first, first + n) of the mask; first is a
     * multiple of 64. */
    void (*dropout)(const struct kith_mask *mask, float grown, uint64_t first,
                    size_t n, const float *x, float *y);
    bool (*adamw)(size_t n, const struct kith_adamw_factors *factors,
                  const float *g, float *m, float *v, float *x);
};

/* The first part of a linear layer's way back: dy <- dy activation'(.), and
 * dbias. */
void kith_cpu_linear_slope(const struct kith_arguments *a);
/* Norms of kind LAYER. */
void kith_cpu_layer_norm(const struct kith_arguments *a);
void kith_cpu_layer_norm_backward(const struct kith_arguments *a);
double kith_cpu_cross_entropy(const struct kith_loss *loss);
bool kith_cpu_adamw(const struct kith_adamw *adamw);

#endif
