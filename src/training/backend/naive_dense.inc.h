/* Plain loops of ops.h, part 1: linear layers, sums, dropout, the loss and
 * AdamW. REAL is float or double. Products sum in REAL, losses in float64. */
#include <math.h>
#include <string.h>

#include "kith/dropout.h"
#include "kith/assert.h"
#include "kith/ops.h"
#include "kith/exp_log.h"

#define ROOT_TWO_OVER_PI 0.7978845608028654

/* sigma(2 u), u = sqrt(2/pi) (v + 0.044715 v^3): gelu(v) = v sigma(2 u), since
 * (1 + tanh u) / 2 = 1 / (1 + e^-2u). */
static double naive_gelu_gate(double v)
{
    const double u = ROOT_TWO_OVER_PI * (v + 0.044715 * v * v * v);
    return 1 / (1 + kith_exp(-2 * u));
}

static double naive_gelu_slope(double v)
{
    const double gate = naive_gelu_gate(v);
    const double du = ROOT_TWO_OVER_PI * (1 + 3 * 0.044715 * v * v);
    return gate + v * gate * (1 - gate) * 2 * du;
}

static REAL naive_activate(enum kith_activation activation, REAL v)
{
    switch (activation) {
    case KITH_ACTIVATION_NONE:
        break;
    case KITH_ACTIVATION_RELU:
        return v < 0 ? 0 : v; /* NaN stays NaN */
    case KITH_ACTIVATION_GELU:
        return (REAL)((double)v * naive_gelu_gate((double)v));
    }
    return v;
}

/* dy <- dy activation'(.), from the output y or, for GELU, its argument. */
static void naive_activate_backward(enum kith_activation activation, size_t n,
                                    const REAL *pre, const REAL *y, REAL *dy)
{
    switch (activation) {
    case KITH_ACTIVATION_NONE:
        break;
    case KITH_ACTIVATION_RELU:
        for (size_t i = 0; i < n; i++)
            dy[i] = y[i] > 0 ? dy[i] : 0;
        break;
    case KITH_ACTIVATION_GELU:
        for (size_t i = 0; i < n; i++)
            dy[i] *= (REAL)naive_gelu_slope((double)pre[i]);
        break;
    }
}

/* out <- value, or out + value. */
static void naive_put(REAL *out, REAL value, unsigned add)
{
    *out = add ? *out + value : value;
}

static void naive_linear(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    const size_t in = op->in, out = op->out;
    const REAL *input = a->x, *weight = a->weight, *b = a->bias;
    REAL *argument = a->saved, *output = a->y;
    for (size_t i = 0; i < a->rows; i++) {
        for (size_t j = 0; j < out; j++) {
            REAL sum = 0;
            for (size_t l = 0; l < in; l++)
                sum += input[i * in + l] *
                       weight[op->in_out ? l * out + j : j * in + l];
            if (b != NULL)
                sum += b[j];
            if (argument != NULL)
                argument[i * out + j] = sum;
            output[i * out + j] = naive_activate(op->activation, sum);
        }
    }
}

/* dx = dy W^T (W as (in, out)). */
static void naive_linear_data(const struct kith_linear *op, size_t rows,
                              const REAL *w, const REAL *dy, REAL *dx,
                              unsigned add)
{
    const size_t in = op->in, out = op->out;
    for (size_t i = 0; i < rows; i++) {
        for (size_t l = 0; l < in; l++) {
            REAL sum = 0;
            for (size_t j = 0; j < out; j++)
                sum +=
                    dy[i * out + j] * w[op->in_out ? l * out + j : j * in + l];
            naive_put(&dx[i * in + l], sum, add & KITH_ADD_DATA);
        }
    }
}

/* dW = x^T dy (W as (in, out)). */
static void naive_linear_weights(const struct kith_linear *op, size_t rows,
                                 const REAL *x, const REAL *dy, REAL *dw,
                                 unsigned add)
{
    const size_t in = op->in, out = op->out;
    for (size_t l = 0; l < in; l++) {
        for (size_t j = 0; j < out; j++) {
            REAL sum = 0;
            for (size_t i = 0; i < rows; i++)
                sum += x[i * in + l] * dy[i * out + j];
            naive_put(&dw[op->in_out ? l * out + j : j * in + l], sum,
                      add & KITH_ADD_WEIGHTS);
        }
    }
}

/* dbias (n) = the sum of dy's rows. */
static void naive_bias_backward(size_t rows, size_t n, const REAL *dy,
                                REAL *dbias, unsigned add)
{
    for (size_t j = 0; j < n; j++) {
        REAL sum = 0;
        for (size_t i = 0; i < rows; i++)
            sum += dy[i * n + j];
        naive_put(&dbias[j], sum, add & KITH_ADD_WEIGHTS);
    }
}

static void naive_linear_backward(const struct kith_arguments *a)
{
    const struct kith_linear *op = a->shape;
    naive_activate_backward(op->activation, a->rows * op->out, a->saved, a->y,
                            a->dy);
    if (a->dx != NULL)
        naive_linear_data(op, a->rows, a->weight, a->dy, a->dx, a->flags);
    if (a->dweight != NULL)
        naive_linear_weights(op, a->rows, a->x, a->dy, a->dweight, a->flags);
    if (a->dbias != NULL)
        naive_bias_backward(a->rows, op->out, a->dy, a->dbias, a->flags);
}

static const struct kith_kernel naive_linear_kernel = {
    .forward = naive_linear, .backward = naive_linear_backward};

static void naive_add_up(const struct kith_arguments *a)
{
    const struct kith_sum *op = a->shape;
    const REAL *left = a->x, *right = a->other;
    REAL *out = a->y;
    for (size_t i = 0; i < a->rows; i++)
        out[i] = naive_activate(op->activation, left[i] + right[i]);
}

static void naive_sum_backward(const struct kith_arguments *a)
{
    const struct kith_sum *op = a->shape;
    naive_activate_backward(op->activation, a->rows, NULL, a->y, a->dy);
}

static const struct kith_kernel naive_sum_kernel = {
    .forward = naive_add_up, .backward = naive_sum_backward};

static void naive_mask(const struct kith_arguments *a, const REAL *in,
                       REAL *out)
{
    const struct kith_dropout *op = a->shape;
    const struct kith_mask mask = kith_mask_of(op);
    const REAL grown = (REAL)(1 / (1 - op->rate));
    uint32_t word[4] = {0};
    for (size_t i = 0; i < a->rows; i++) {
        if (i % 4 == 0)
            kith_mask_block(&mask, i / 4, word);
        out[i] = word[i % 4] >= mask.threshold ? in[i] * grown : 0;
    }
}

static void naive_dropout(const struct kith_arguments *a)
{
    naive_mask(a, a->x, a->y);
}

static void naive_dropout_backward(const struct kith_arguments *a)
{
    naive_mask(a, a->dy, a->dx);
}

static const struct kith_kernel naive_dropout_kernel = {
    .forward = naive_dropout, .backward = naive_dropout_backward};

/* One row: returns its loss; its logits become its gradient.
 *   q = (1 - smoothing) one-hot + smoothing / classes
 *   loss = log sum e^z - sum q z,  d loss / d z = p - q */
static double naive_loss_row(size_t classes, size_t label, double smoothing,
                             double factor, REAL *row, bool *right)
{
    size_t best = 0;
    for (size_t j = 1; j < classes; j++)
        if (row[j] > row[best])
            best = j;
    *right = best == label;
    /* Shifted by the largest logit, so that exp cannot overflow. */
    const double top = (double)row[best], spread = smoothing / (double)classes;
    double sum = 0, expected = (1 - smoothing) * ((double)row[label] - top);
    for (size_t j = 0; j < classes; j++) {
        sum += kith_exp((double)row[j] - top);
        expected += spread * ((double)row[j] - top);
    }
    for (size_t j = 0; j < classes; j++) {
        const double p = kith_exp((double)row[j] - top) / sum;
        const double q = (j == label ? 1 - smoothing : 0) + spread;
        row[j] = (REAL)((p - q) * factor);
    }
    return kith_log(sum) - expected;
}

static double naive_cross_entropy(const struct kith_loss *l)
{
    REAL *row = l->logits;
    double loss = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < l->rows; i++, row += l->classes) {
        KITH_ASSERT(l->labels[i] >= 0 && (size_t)l->labels[i] < l->classes);
        bool right;
        loss += naive_loss_row(l->classes, (size_t)l->labels[i], l->smoothing,
                               l->scale / (double)l->rows, row, &right);
        count += right;
    }
    if (l->correct != NULL)
        *l->correct = count;
    return loss / (double)l->rows;
}

/* b^t by squaring: the same bits everywhere, unlike libm's. */
static double naive_power(double b, uint64_t t)
{
    double power = 1;
    for (; t > 0; t >>= 1, b *= b)
        if (t & 1)
            power *= b;
    return power;
}

static bool naive_adamw(const struct kith_adamw *a)
{
    const REAL b1 = (REAL)a->beta1, b2 = (REAL)a->beta2;
    const REAL left1 = (REAL)(1 - a->beta1), left2 = (REAL)(1 - a->beta2);
    const REAL fix1 = (REAL)(1 / (1 - naive_power(a->beta1, a->t)));
    const REAL fix2 = (REAL)(1 / (1 - naive_power(a->beta2, a->t)));
    const REAL eta = (REAL)a->rate, small = (REAL)a->epsilon;
    const REAL kept = (REAL)(1 - a->rate * a->decay);
    const REAL *gradient = a->g;
    REAL *first = a->m, *second = a->v, *w = a->x;
    for (size_t i = 0; i < a->n; i++) {
        first[i] = naive_moment(b1 * first[i] + left1 * gradient[i]);
        second[i] = b2 * second[i] + left2 * gradient[i] * gradient[i];
        const REAL deviation = (REAL)sqrt((double)(second[i] * fix2));
        w[i] = kept * w[i] - eta * (first[i] * fix1 / (deviation + small));
    }
    return naive_finite(a->n, a->x);
}
