/* Goal: rows of scores whose length 8 does not divide lie apart in the CUDA
 * module, and their loss and the way back are as in naive64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"

static const struct kith_backend *single, *half;

/* Scores, their loss and the way back, as a network makes them. */
struct head {
    struct kith_linear op;
    size_t rows, stride; /* of a row of scores in memory */
    bool biased;
    unsigned add;
};
enum { HEAD_SCORES, HEAD_SLOPES, HEAD_DX, HEAD_DW, HEAD_DBIAS, HEAD_PARTS };

static size_t head_size(const struct head *h, int part)
{
    const size_t sizes[HEAD_PARTS] = {h->rows * h->stride, h->rows * h->stride,
                                      h->rows * h->op.in, h->op.in * h->op.out,
                                      h->op.out};
    return sizes[part];
}

static double *head_values(size_t n, uint64_t seed)
{
    double *const values = malloc((n + 1) * sizeof *values);
    assert_non_null(values);
    cuda_fill(values, n, seed);
    return values;
}

/* An output of n values, NaN where it is to be written, with one value behind
 * that must stay. */
static void *head_output(const struct kith_backend *on, bool activation,
                         size_t n, bool adds)
{
    void *const x = cuda_room(on, n + 1);
    double *const values = head_values(n + 1, 31);
    for (size_t i = 0; i < n && !adds; i++)
        values[i] = (double)NAN;
    values[n] = 7;
    cuda_put(on, activation, n + 1, values, x);
    free(values);
    return x;
}

static double *head_result(const struct kith_backend *on, bool activation,
                           size_t n, void *x)
{
    double *const values = head_values(n + 1, 0);
    cuda_get(on, activation, n + 1, x, values);
    assert_true(values[n] > 6.9 && values[n] < 7.1);
    return values;
}

/* The loss; out (HEAD_PARTS), to be freed. */
static double head_run(const struct kith_backend *on, const struct head *h,
                       double *out[HEAD_PARTS])
{
    const size_t in = h->rows * h->op.in, weights = h->op.in * h->op.out;
    const bool adds = (h->add & KITH_ADD_DATA) != 0;
    double *const x_in = head_values(in, 1), *const w_in =
                                                 head_values(weights, 2);
    double *const bias_in = head_values(h->op.out, 3);
    void *const x = cuda_room(on, in), *const w = cuda_room(on, weights);
    void *const bias = cuda_room(on, h->op.out);
    int32_t *const labels = on->alloc(h->rows * sizeof *labels, true);
    void *at[HEAD_PARTS];
    cuda_put(on, true, in, x_in, x);
    on->write(weights, w_in, w);
    on->write(h->op.out, bias_in, bias);
    for (size_t i = 0; i < h->rows; i++)
        labels[i] = (int32_t)(i * 7919 % h->op.out);
    for (int part = 0; part < HEAD_PARTS; part++)
        at[part] = head_output(
            on, part<HEAD_DW, head_size(h, part), part> HEAD_SLOPES && adds);
    void *const scores = at[HEAD_SCORES];
    on->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &h->op,
                                 .rows = h->rows,
                                 .x = x,
                                 .weight = w,
                                 .bias = h->biased ? bias : NULL,
                                 .y = scores});
    out[HEAD_SCORES] = head_result(on, true, head_size(h, 0), scores);
    const double loss =
        h->op.stride > 0
            ? on->ops->cross_entropy(&(struct kith_loss){.rows = h->rows,
                                                         .classes = h->op.out,
                                                         .stride = h->stride,
                                                         .labels = labels,
                                                         .smoothing = 0.1,
                                                         .scale = 1,
                                                         .logits = scores})
            : on->ops->cross_entropy(&(struct kith_loss){.rows = h->rows,
                                                         .classes = h->op.out,
                                                         .labels = labels,
                                                         .smoothing = 0.1,
                                                         .scale = 1,
                                                         .logits = scores});
    on->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &h->op,
                                 .rows = h->rows,
                                 .x = x,
                                 .weight = w,
                                 .dy = scores,
                                 .dx = at[HEAD_DX],
                                 .dweight = at[HEAD_DW],
                                 .dbias = h->biased ? at[HEAD_DBIAS] : NULL,
                                 .flags = h->add});
    out[HEAD_SLOPES] = head_result(on, true, head_size(h, 0), scores);
    for (int part = HEAD_DX; part < HEAD_PARTS; part++)
        out[part] =
            head_result(on, part == HEAD_DX, head_size(h, part), at[part]);
    for (int part = 0; part < HEAD_PARTS; part++)
        on->release(at[part]);
    on->release(x);
    on->release(w);
    on->release(bias);
    on->release(labels);
    free(x_in);
    free(w_in);
    free(bias_in);
    return loss;
}

/* What stands between two rows is `pad`; rows are moved together. */
static void head_close_rows(const struct head *h, double pad, double *values)
{
    for (size_t i = 0; i < h->rows; i++) {
        for (size_t j = 0; j < h->stride; j++) {
            const double v = values[i * h->stride + j];
            if (j >= h->op.out)
                assert_true(v == pad);
            else
                values[i * h->op.out + j] = v;
        }
    }
}

static void head_on(const struct kith_backend *backend, size_t rows, size_t in,
                    size_t out, bool in_out, bool biased, unsigned add)
{
    static const char *const names[] = {"scores", "slopes of scores", "dx",
                                        "dw", "dbias"};
    char where[96];
    double *got[HEAD_PARTS], *want[HEAD_PARTS];
    struct head h = {.op = {.in = in, .out = out, .in_out = in_out},
                     .rows = rows,
                     .stride = out,
                     .biased = biased,
                     .add = add};
    const double exact = head_run(kith_backend_find("naive64"), &h, want);
    h.op.stride = h.stride = backend->ops->scores_stride(out);
    const double loss = head_run(backend, &h, got);
    (void)snprintf(where, sizeof where, "%s, %zu classes in rows of %zu",
                   backend->name, out, h.stride);
    head_close_rows(&h, -(double)INFINITY, got[HEAD_SCORES]);
    head_close_rows(&h, 0, got[HEAD_SLOPES]);
    assert_true(fabs(loss / exact - 1) < cuda_tolerance(backend) / 4);
    /* dx is a sum over classes: one of 50,257 float32 products. */
    const double tolerance = cuda_tolerance(backend) * (out > 10000 ? 4 : 1);
    h.stride = out;
    for (int part = 0; part < HEAD_PARTS; part++) {
        if (part != HEAD_DBIAS || biased)
            cuda_close(where, names[part], head_size(&h, part), got[part],
                       want[part], tolerance);
        free(got[part]);
        free(want[part]);
    }
}

static void test_padded_scores(void **state)
{
    (void)state;
    const struct kith_backend *const both[] = {single, half};
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(both[k]->ops->scores_stride(50257), 50304);
        assert_int_equal(both[k]->ops->scores_stride(50304), 50304);
        assert_int_equal(both[k]->ops->scores_stride(10), 16);
        for (unsigned form = 0; form < 8; form++) {
            const unsigned add =
                form & 4 ? KITH_ADD_DATA | KITH_ADD_WEIGHTS : 0;
            head_on(both[k], 5, 24, 61, form & 1, form & 2, add);
            head_on(both[k], 70, 12, 131, form & 1, form & 2, add);
        }
        head_on(both[k], 3, 8, 1031, false, false, 0);
        head_on(both[k], 2, 4, 50257, false, true, 0);
    }
}

int main(void)
{
    if (!cuda_module_found(&single, &half))
        return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_padded_scores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
