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

static void linear(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    kith_product_run(&(struct kith_product){.m = a->rows,
                                            .n = op->out,
                                            .k = op->in,
                                            .a = dense(a->x, op->in),
                                            .b = weights(op, a->weight),
                                            .c = a->y,
                                            .pre = a->saved,
                                            .stride = op->out,
                                            .finish = true,
                                            .bias = a->bias,
                                            .activation = op->activation});
}

/* Columns that are summed together: four lines of a row, which the processor
 * fetches as one stream. */
enum { STRIPE = 64 };

static float *from_column(void *rows, size_t j)
{
    return rows == NULL ? NULL : (float *)rows + j;
}

static void finish_stripe(const struct kith_arguments *a, size_t i)
{
    const struct kith_linear *op = a->shape;
    const size_t j = i * STRIPE, left = op->out - j;
    kith_cpu_text()->finish_backward(
        (struct kith_rows){a->rows, left < STRIPE ? left : STRIPE, op->out},
        op->activation, from_column(a->saved, j), from_column(a->y, j),
        from_column(a->dy, j), from_column(a->dbias, j),
        a->flags & KITH_ADD_WEIGHTS);
}

/* dW (as W is stored) <- [dW +] x^T dy */
static void weights_backward(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    const struct kith_matrix input = dense(a->x, op->in);
    const struct kith_matrix d = dense(a->dy, op->out);
    kith_product_run(
        &(struct kith_product){.m = op->in_out ? op->in : op->out,
                               .n = op->in_out ? op->out : op->in,
                               .k = a->rows,
                               .a = turned(op->in_out ? input : d),
                               .b = op->in_out ? d : input,
                               .c = a->dweight,
                               .stride = op->in_out ? op->out : op->in,
                               .add = a->flags & KITH_ADD_WEIGHTS});
}

void kith_cpu_linear_slope(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    if (op->activation != KITH_ACTIVATION_NONE || a->dbias != NULL)
        kith_cpu_parts((op->out + STRIPE - 1) / STRIPE, finish_stripe, a);
}

static void linear_backward(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    KITH_ASSERT(a->rows > 0);
    kith_cpu_linear_slope(a);
    if (a->dx != NULL)
        kith_product_run(
            &(struct kith_product){.m = a->rows,
                                   .n = op->in,
                                   .k = op->out,
                                   .a = dense(a->dy, op->out),
                                   .b = turned(weights(op, a->weight)),
                                   .c = a->dx,
                                   .stride = op->in,
                                   .add = a->flags & KITH_ADD_DATA});
    if (a->dweight != NULL)
        weights_backward(a);
}

const struct kith_kernel kith_cpu_linear_kernel = {.forward = linear,
                                                   .backward = linear_backward};
