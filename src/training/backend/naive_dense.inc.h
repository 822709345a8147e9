/* Plain loops of ops.h, part 1: linear layers, sums, dropout, the loss and
 * AdamW. REAL is float or double. Products sum in REAL, losses in float64. */
#include <math.h>
#include <string.h>

#include "dropout.h"
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

static void naive_linear(const struct kith_linear *op, size_t rows,
                         const void *x, const void *w, const void *bias,
                         void *pre, void *y)
{
    const size_t in = op->in, out = op->out;
    const REAL *input = x, *weight = w, *b = bias;
    REAL *argument = pre, *output = y;
    for (size_t i = 0; i < rows; i++) {
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

static void naive_linear_backward(const struct kith_linear *op, size_t rows,
                                  const void *x, const void *w, const void *pre,
                                  const void *y, void *dy, void *dx, void *dw,
                                  void *dbias, unsigned add)
{
    naive_activate_backward(op->activation, rows * op->out, pre, y, dy);
    if (dx != NULL)
        naive_linear_data(op, rows, w, dy, dx, add);
    if (dw != NULL)
        naive_linear_weights(op, rows, x, dy, dw, add);
    if (dbias != NULL)
        naive_bias_backward(rows, op->out, dy, dbias, add);
}

static void naive_add_up(size_t n, enum kith_activation activation,
                         const void *a, const void *b, void *y)
{
    const REAL *left = a, *right = b;
    REAL *out = y;
    for (size_t i = 0; i < n; i++)
        out[i] = naive_activate(activation, left[i] + right[i]);
}

static void naive_sum_backward(size_t n, enum kith_activation activation,
                               const void *y, void *dy, void *da, void *db,
                               unsigned add)
{
    REAL *d = dy;
    void *const targets[] = {da, db};
    naive_activate_backward(activation, n, NULL, y, d);
    for (size_t t = 0; t < 2; t++) {
        REAL *target = targets[t];
        for (size_t i = 0; target != NULL && target != d && i < n; i++)
            naive_put(&target[i], d[i], add & KITH_ADD_DATA);
    }
}

static void naive_dropout(const struct kith_dropout *op, size_t n,
                          const void *x, void *y)
{
    const struct kith_mask mask = kith_mask_of(op);
    const REAL grown = (REAL)(1 / (1 - op->rate)), *in = x;
    REAL *out = y;
    uint32_t word[4] = {0};
    for (size_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            kith_mask_block(&mask, i / 4, word);
        out[i] = word[i % 4] >= mask.threshold ? in[i] * grown : 0;
    }
}

/* One row: returns its loss; its logits become its gradient.
 *   q = (1 - smoothing) one-hot + smoothing / classes
 *   loss = log sum e^z - sum q z,  d loss / d z = p - q */
static double naive_loss_row(size_t classes, size_t label, double smoothing,
                             double factor, REAL *row, bool *right)
{
    size_t best = 0;
    for (size_t j = 1; j < classes; j++) {
        if (row[j] > row[best])
            best = j;
    }
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

static double naive_cross_entropy(size_t rows, size_t classes,
                                  const int32_t *labels, double smoothing,
                                  double scale, void *logits, uint32_t *correct)
{
    REAL *row = logits;
    double loss = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < rows; i++, row += classes) {
        KITH_ASSERT(labels[i] >= 0 && (size_t)labels[i] < classes);
        bool right;
        loss += naive_loss_row(classes, (size_t)labels[i], smoothing,
                               scale / (double)rows, row, &right);
        count += right;
    }
    if (correct != NULL)
        *correct = count;
    return loss / (double)rows;
}

/* b^t by squaring: the same bits everywhere, unlike libm's. */
static double naive_power(double b, uint64_t t)
{
    double power = 1;
    for (; t > 0; t >>= 1, b *= b) {
        if (t & 1)
            power *= b;
    }
    return power;
}

static bool naive_adamw(size_t n, double rate, double beta1, double beta2,
                        double epsilon, double decay, uint64_t t, const void *g,
                        void *m, void *v, void *x)
{
    const REAL b1 = (REAL)beta1, b2 = (REAL)beta2;
    const REAL left1 = (REAL)(1 - beta1), left2 = (REAL)(1 - beta2);
    const REAL fix1 = (REAL)(1 / (1 - naive_power(beta1, t)));
    const REAL fix2 = (REAL)(1 / (1 - naive_power(beta2, t)));
    const REAL eta = (REAL)rate, small = (REAL)epsilon;
    const REAL kept = (REAL)(1 - rate * decay);
    const REAL *gradient = g;
    REAL *first = m, *second = v, *w = x;
    for (size_t i = 0; i < n; i++) {
        first[i] = b1 * first[i] + left1 * gradient[i];
        second[i] = b2 * second[i] + left2 * gradient[i] * gradient[i];
        const REAL deviation = (REAL)sqrt((double)(second[i] * fix2));
        w[i] = kept * w[i] - eta * (first[i] * fix1 / (deviation + small));
    }
    return naive_finite(n, x);
}
