/* Linear layers: products whose bias and activation follow at once.
 *
 *   y = activation(x W + b);  dv = dy activation'(.)
 *   db = sum of dv's rows;  dx = dv W^T;  dW = x^T dv */
#include "kith/assert.h"
#include "pool.h"
#include "products.h"

/* W as (in, out), and its transpose, however it is stored. */
static struct kith_matrix weights(const struct kith_linear *op, const void *w)
{
    return op->in_out ? (struct kith_matrix){w, op->out, 1}
                      : (struct kith_matrix){w, 1, op->in};
}

static struct kith_matrix turned(struct kith_matrix a)
{
    return (struct kith_matrix){a.at, a.column, a.row};
}

static struct kith_matrix dense(const void *at, size_t columns)
{
    return (struct kith_matrix){at, columns, 1};
}

void kith_cpu_linear(const struct kith_linear *op, size_t rows, const void *x,
                     const void *w, const void *bias, void *pre, void *y)
{
    kith_product_run(&(struct kith_product){.m = rows,
                                            .n = op->out,
                                            .k = op->in,
                                            .a = dense(x, op->in),
                                            .b = weights(op, w),
                                            .c = y,
                                            .pre = pre,
                                            .stride = op->out,
                                            .finish = true,
                                            .bias = bias,
                                            .activation = op->activation});
}

struct finish {
    const struct kith_linear *op;
    size_t rows;
    const float *pre, *y;
    float *dy, *dbias;
    bool add;
};

/* Columns that are summed together: four lines of a row, which the processor
 * fetches as one stream. */
enum { STRIPE = 64 };

static void finish_stripe(void *context, size_t i)
{
    const struct finish *f = context;
    const size_t j = i * STRIPE, left = f->op->out - j;
    kith_cpu_text()->finish_backward(
        (struct kith_rows){f->rows, left < STRIPE ? left : STRIPE, f->op->out},
        f->op->activation, f->pre == NULL ? NULL : f->pre + j,
        f->y == NULL ? NULL : f->y + j, f->dy + j,
        f->dbias == NULL ? NULL : f->dbias + j, f->add);
}

/* dW (as W is stored) <- [dW +] x^T dy */
static void weights_backward(const struct kith_linear *op, size_t rows,
                             const void *x, const void *dy, void *dw, bool add)
{
    const struct kith_matrix input = dense(x, op->in), d = dense(dy, op->out);
    kith_product_run(
        &(struct kith_product){.m = op->in_out ? op->in : op->out,
                               .n = op->in_out ? op->out : op->in,
                               .k = rows,
                               .a = turned(op->in_out ? input : d),
                               .b = op->in_out ? d : input,
                               .c = dw,
                               .stride = op->in_out ? op->out : op->in,
                               .add = add});
}

void kith_cpu_linear_slope(const struct kith_linear *op, size_t rows,
                           const void *pre, const void *y, void *dy,
                           void *dbias, bool add)
{
    struct finish f = {op, rows, pre, y, dy, dbias, add};
    if (op->activation != KITH_ACTIVATION_NONE || dbias != NULL)
        kith_pool_run((op->out + STRIPE - 1) / STRIPE, finish_stripe, &f);
}

void kith_cpu_linear_backward(const struct kith_linear *op, size_t rows,
                              const void *x, const void *w, const void *pre,
                              const void *y, void *dy, void *dx, void *dw,
                              void *dbias, unsigned add)
{
    KITH_ASSERT(rows > 0);
    kith_cpu_linear_slope(op, rows, pre, y, dy, dbias, add & KITH_ADD_WEIGHTS);
    if (dx != NULL)
        kith_product_run(&(struct kith_product){.m = rows,
                                                .n = op->in,
                                                .k = op->out,
                                                .a = dense(dy, op->out),
                                                .b = turned(weights(op, w)),
                                                .c = dx,
                                                .stride = op->in,
                                                .add = add & KITH_ADD_DATA});
    if (dw != NULL)
        weights_backward(op, rows, x, dy, dw, add & KITH_ADD_WEIGHTS);
}
