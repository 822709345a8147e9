/* Goal: the kernels of cpu for text and for optimisers are right at every edge
 * of their tiles, panels and parts, for each instruction set that this CPU has
 * and each provider of products. Method: beside naive64 on the same random
 * input; unit/test_ops.c has the small cases of every operation. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/backend.h"
#include "kith/rng.h"
#include "op_pairs.h"

/* GELU over its whole range: relative to its value, also where that is small.
 * An argument z of exp that is rounded to half a unit moves e^z by |z| / 2
 * units, |z| <= 16 here; below -87 float32 has no value left. */
static void gelu_on_variant(void)
{
    enum { COUNT = 4001 };
    const struct kith_linear op = {
        .in = 1, .out = 1, .activation = KITH_ACTIVATION_GELU};
    struct pair x = pair_new(COUNT, 0, 1), y = pair_new(COUNT, 0, 2);
    struct pair dy = pair_new(COUNT, 0, 3), pre = pair_new(COUNT, 0, 4);
    float one = 1;
    double one64 = 1;
    for (size_t i = 0; i < COUNT; i++) {
        x.f[i] = (float)((double)i * 0.0025 - 5);
        x.d[i] = (double)x.f[i];
        dy.f[i] = 1;
        dy.d[i] = 1;
    }

    cpu()->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = COUNT,
                                 .x = x.f,
                                 .weight = &one,
                                 .saved = pre.f,
                                 .y = y.f});
    exact_ops()->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = COUNT,
                                 .x = x.d,
                                 .weight = &one64,
                                 .saved = pre.d,
                                 .y = y.d});
    assert_pair("gelu", y, 1e-38, 24 * UNIT);

    cpu()->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = COUNT,
                                 .x = x.f,
                                 .weight = &one,
                                 .saved = pre.f,
                                 .y = y.f,
                                 .dy = dy.f});
    exact_ops()->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = COUNT,
                                 .x = x.d,
                                 .weight = &one64,
                                 .saved = pre.d,
                                 .y = y.d,
                                 .dy = dy.d});
    assert_pair("gelu's slope", dy, 4 * UNIT, 4 * UNIT);

    /* Far out: v and 0; a NaN is none of them. */
    const float far[] = {200, -200, NAN};
    float out[3], argument[3];
    cpu()->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = 3,
                                 .x = far,
                                 .weight = &one,
                                 .saved = argument,
                                 .y = out});
    assert_true(out[0] >= 200 && out[0] <= 200);
    assert_true(fabsf(out[1]) < 1e-30f);
    assert_true(isnan(out[2]));
    pair_free(x);
    pair_free(y);
    pair_free(dy);
    pair_free(pre);
}

static void test_gelu(void **state)
{
    (void)state;
    for_each_variant(gelu_on_variant);
}

static void one_attention(size_t rows, struct kith_attention op, double spread)
{
    const size_t tokens = rows * op.context, n = tokens * op.width;
    struct pair qkv = pair_new(3 * n, spread, 1), dqkv = pair_new(3 * n, 1, 2);
    struct pair y = pair_new(n, 1, 3), dy = pair_new(n, 1, 4);
    struct pair saved = pair_new(tokens * op.heads, 1, 5);
    void *scratch = cpu()->alloc(
        kith_kernel_scratch(cpu()->ops->kernels[KITH_OP_ATTENTION], &op, rows) +
            1,
        false);
    assert_non_null(scratch);
    /* Scores reach 3 spread^2 sqrt(size) at most here, and their rounding is
     * what p is off by, relatively. */
    const double size = (double)(op.width / op.heads);
    const double score = 3 + spread * spread * sqrt(size);
    const double slack = 8 * UNIT * score * spread;

    cpu()->ops->kernels[KITH_OP_ATTENTION]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = qkv.f,
                                 .saved = saved.f,
                                 .y = y.f,
                                 .scratch = scratch});
    exact_ops()->kernels[KITH_OP_ATTENTION]->forward(&(struct kith_arguments){
        .shape = &op, .rows = rows, .x = qkv.d, .saved = saved.d, .y = y.d});
    assert_pair("attention", y, slack, 8 * UNIT);
    assert_pair("sums", saved, 8 * UNIT * score, 4 * UNIT);

    cpu()->ops->kernels[KITH_OP_ATTENTION]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = qkv.f,
                                 .y = y.f,
                                 .saved = saved.f,
                                 .dy = dy.f,
                                 .dx = dqkv.f,
                                 .scratch = scratch});
    exact_ops()->kernels[KITH_OP_ATTENTION]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = qkv.d,
                                 .y = y.d,
                                 .saved = saved.d,
                                 .dy = dy.d,
                                 .dx = dqkv.d});
    assert_pair("attention's gradient", dqkv,
                16 * slack * sqrt((double)op.context), 16 * UNIT);
    pair_free(qkv);
    pair_free(dqkv);
    pair_free(y);
    pair_free(dy);
    pair_free(saved);
    cpu()->release(scratch);
}

static void attention_on_variant(void)
{
    static const struct kith_attention shapes[] = {
        {1, 1, 1},   {2, 2, 6},   {15, 1, 16}, {17, 3, 24},
        {33, 2, 80}, {64, 4, 64}, {100, 1, 40}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        one_attention(1 + i % 3, shapes[i], 1);
        one_attention(2, shapes[i], 3);
    }
}

static void test_attention(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        kith_backend_threads(threads);
        for_each_variant(attention_on_variant);
    }
    kith_backend_threads(1);
}

static void layer_norm_on_variant(void)
{
    static const size_t channels[] = {1, 5, 16, 31, 128, 768};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const size_t n = channels[i], rows = 70;
        const struct kith_norm op = {
            .kind = KITH_NORM_LAYER,
            .pixels = 1,
            .channels = n,
            .epsilon = 1e-5,
            .activation = i % 2 ? KITH_ACTIVATION_RELU : KITH_ACTIVATION_NONE};
        struct pair x = pair_new(rows * n, 2, 1), y = pair_new(rows * n, 1, 2);
        struct pair a = pair_new(n, 1, 3), b = pair_new(n, 1, 4);
        struct pair dy = pair_new(rows * n, 1, 5),
                    saved = pair_new(2 * rows, 1, 6);
        struct pair dx = pair_new(rows * n, 1, 7);
        struct pair da = pair_new(n, 1, 8), db = pair_new(n, 1, 9);
        cpu()->ops->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = rows,
                                     .x = x.f,
                                     .weight = a.f,
                                     .bias = b.f,
                                     .saved = saved.f,
                                     .y = y.f,
                                     .flags = KITH_STATISTICS});
        exact_ops()->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = rows,
                                     .x = x.d,
                                     .weight = a.d,
                                     .bias = b.d,
                                     .saved = saved.d,
                                     .y = y.d,
                                     .flags = KITH_STATISTICS});
        /* With few channels a row may be flat: 1 / deviation up to 300. */
        const double steep = n > 8 ? 4 : 400;
        assert_pair("norm", y, 16 * steep * UNIT, 8 * UNIT);
        for (size_t j = 0; j < y.n; j++)
            y.d[j] = (double)y.f[j];
        cpu()->ops->kernels[KITH_OP_NORM]->backward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = rows,
                                     .x = x.f,
                                     .weight = a.f,
                                     .y = y.f,
                                     .saved = saved.f,
                                     .dy = dy.f,
                                     .dx = dx.f,
                                     .dweight = da.f,
                                     .dbias = db.f,
                                     .flags = 3});
        exact_ops()->kernels[KITH_OP_NORM]->backward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = rows,
                                     .x = x.d,
                                     .weight = a.d,
                                     .y = y.d,
                                     .saved = saved.d,
                                     .dy = dy.d,
                                     .dx = dx.d,
                                     .dweight = da.d,
                                     .dbias = db.d,
                                     .flags = 3});
        assert_pair("norm's dx", dx, 32 * steep * steep * UNIT, 16 * UNIT);
        assert_pair("dscale", da, 64 * steep * UNIT, 16 * UNIT);
        assert_pair("dshift", db, sum_slack(rows), 4 * UNIT);
        const struct pair all[] = {x, y, a, b, dy, saved, dx, da, db};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            pair_free(all[j]);
    }
}

static void test_layer_norm(void **state)
{
    (void)state;
    for_each_variant(layer_norm_on_variant);
}

static void loss_on_variant(void)
{
    static const size_t classes[] = {1, 2, 16, 65, 1025, 50304};
    for (size_t i = 0; i < 12; i++) {
        const size_t n = classes[i / 2], rows = 5;
        const double smoothing = i % 2 ? 0.1 : 0, scale = 0.5;
        struct pair z = pair_new(rows * n, 6, i + 1);
        int32_t labels[5];
        for (size_t row = 0; row < rows; row++)
            labels[row] = (int32_t)((row * 31 + 7) % n);
        /* The largest twice: the first counts. */
        for (size_t j = n / 2; j < n; j += n / 2 + 1) {
            z.f[j] = 7;
            z.d[j] = 7;
        }
        uint32_t right = 99, exact_right = 98;
        const double loss = cpu()->ops->cross_entropy(
            &(struct kith_loss){.rows = rows,
                                .classes = n,
                                .labels = labels,
                                .smoothing = smoothing,
                                .scale = scale,
                                .logits = z.f,
                                .correct = &right});
        const double wanted = exact_ops()->cross_entropy(
            &(struct kith_loss){.rows = rows,
                                .classes = n,
                                .labels = labels,
                                .smoothing = smoothing,
                                .scale = scale,
                                .logits = z.d,
                                .correct = &exact_right});
        assert_int_equal(right, exact_right);
        /* Sums in float32 lanes of 64, then float64. */
        assert_true(fabs(loss - wanted) <= 16 * UNIT * (1 + wanted));
        assert_pair("loss", z, 4 * UNIT, 32 * UNIT);
        pair_free(z);
    }
}

static void test_loss(void **state)
{
    (void)state;
    for_each_variant(loss_on_variant);

    float bad[4] = {0, NAN, 1, 2};
    const int32_t label = 0;
    assert_true(
        isnan(cpu()->ops->cross_entropy(&(struct kith_loss){.rows = 1,
                                                            .classes = 4,
                                                            .labels = &label,
                                                            .scale = 1,
                                                            .logits = bad})));
}

static void dropout_on_variant(void)
{
    const size_t n = 40001;
    const struct kith_dropout op = {
        .rate = 0.3, .seed = 5, .entity = 7, .step = 9, .place = 2};
    struct pair x = pair_new(n, 1, 1), y = pair_new(n, 1, 2);
    cpu()->ops->kernels[KITH_OP_DROPOUT]->forward(
        &(struct kith_arguments){.shape = &op, .rows = n, .x = x.f, .y = y.f});
    exact_ops()->kernels[KITH_OP_DROPOUT]->forward(
        &(struct kith_arguments){.shape = &op, .rows = n, .x = x.d, .y = y.d});
    /* The same mask, so zeros are exact. */
    assert_pair("dropout", y, 0, 2 * UNIT);
    pair_free(x);
    pair_free(y);
}

static void test_dropout(void **state)
{
    (void)state;
    for_each_variant(dropout_on_variant);
}

static void adamw_on_variant(void)
{
    const size_t n = 33001;
    struct pair g = pair_new(n, 1, 1), m = pair_new(n, 0, 2);
    struct pair v = pair_new(n, 0, 3), x = pair_new(n, 1, 4);
    for (uint64_t t = 1; t <= 3; t++) {
        assert_true(cpu()->ops->adamw(&(struct kith_adamw){.n = n,
                                                           .rate = 1e-2,
                                                           .beta1 = 0.9,
                                                           .beta2 = 0.99,
                                                           .epsilon = 1e-8,
                                                           .decay = 0.1,
                                                           .t = t,
                                                           .g = g.f,
                                                           .m = m.f,
                                                           .v = v.f,
                                                           .x = x.f}));
        assert_true(exact_ops()->adamw(&(struct kith_adamw){.n = n,
                                                            .rate = 1e-2,
                                                            .beta1 = 0.9,
                                                            .beta2 = 0.99,
                                                            .epsilon = 1e-8,
                                                            .decay = 0.1,
                                                            .t = t,
                                                            .g = g.d,
                                                            .m = m.d,
                                                            .v = v.d,
                                                            .x = x.d}));
    }
    /* 1 - beta is rounded in float32: 1e-6 of a step of 1e-2. */
    assert_pair("adamw", x, 8 * UNIT, 0);
    g.f[n - 2] = INFINITY;
    assert_false(cpu()->ops->adamw(&(struct kith_adamw){.n = n,
                                                        .rate = 1e-2,
                                                        .beta1 = 0.9,
                                                        .beta2 = 0.99,
                                                        .epsilon = 1e-8,
                                                        .decay = 0.1,
                                                        .t = 4,
                                                        .g = g.f,
                                                        .m = m.f,
                                                        .v = v.f,
                                                        .x = x.f}));
    pair_free(g);
    pair_free(m);
    pair_free(v);
    pair_free(x);
}

static void test_adamw(void **state)
{
    (void)state;
    for_each_variant(adamw_on_variant);
}

/* Everything once; out keeps the bits. */
enum { ROWS = 6, CONTEXT = 50, WIDTH = 96, TOKENS = ROWS * CONTEXT };
static size_t all_once(float *out)
{
    const struct kith_ops *ops = cpu()->ops;
    const struct kith_linear linear = {.in = WIDTH,
                                       .out = 4 * WIDTH,
                                       .in_out = true,
                                       .activation = KITH_ACTIVATION_GELU};
    const struct kith_attention attention = {CONTEXT, 3, WIDTH};
    const struct kith_embed embed = {CONTEXT, 11, WIDTH};
    const size_t n = TOKENS * WIDTH;
    struct pair x = pair_new(3 * n, 1, 1), dy = pair_new(4 * n, 1, 2);
    struct pair w = pair_new(4 * WIDTH * WIDTH, 1, 3);
    int32_t tokens[TOKENS];
    for (int32_t i = 0; i < TOKENS; i++)
        tokens[i] = i * 7 % 11;
    void *scratch = cpu()->alloc(
        kith_kernel_scratch(ops->kernels[KITH_OP_ATTENTION], &attention, ROWS),
        false);
    assert_non_null(scratch);
    float *at = out, *pre = at, *y = at + 4 * n, *dx = y + 4 * n;
    float *dw = dx + n, *db = dw + w.n;
    ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &linear,
                                 .rows = TOKENS,
                                 .x = x.f,
                                 .weight = w.f,
                                 .bias = w.f,
                                 .saved = pre,
                                 .y = y});
    ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &linear,
                                 .rows = TOKENS,
                                 .x = x.f,
                                 .weight = w.f,
                                 .saved = pre,
                                 .y = y,
                                 .dy = dy.f,
                                 .dx = dx,
                                 .dweight = dw,
                                 .dbias = db});
    float *ya = db + 4 * WIDTH, *saved = ya + n, *dqkv = saved + 3 * TOKENS;
    ops->kernels[KITH_OP_ATTENTION]->forward(
        &(struct kith_arguments){.shape = &attention,
                                 .rows = ROWS,
                                 .x = x.f,
                                 .saved = saved,
                                 .y = ya,
                                 .scratch = scratch});
    ops->kernels[KITH_OP_ATTENTION]->backward(
        &(struct kith_arguments){.shape = &attention,
                                 .rows = ROWS,
                                 .x = x.f,
                                 .y = ya,
                                 .saved = saved,
                                 .dy = dy.f,
                                 .dx = dqkv,
                                 .scratch = scratch});
    float *words = dqkv + 3 * n, *places = words + 11 * WIDTH;
    ops->kernels[KITH_OP_EMBED]->backward(
        &(struct kith_arguments){.shape = &embed,
                                 .rows = ROWS,
                                 .x = tokens,
                                 .dy = dy.f,
                                 .dweight = words,
                                 .dbias = places});
    float *loss = places + CONTEXT * WIDTH;
    *loss = (float)ops->cross_entropy(&(struct kith_loss){.rows = TOKENS,
                                                          .classes = WIDTH,
                                                          .labels = tokens,
                                                          .smoothing = 0.1,
                                                          .scale = 1,
                                                          .logits = x.f});
    memcpy(loss + 1, x.f, n * sizeof *x.f);
    pair_free(x);
    pair_free(dy);
    pair_free(w);
    cpu()->release(scratch);
    return (size_t)(loss + 1 + n - out);
}

static void threads_on_variant(void)
{
    enum { MOST = 20 * TOKENS * WIDTH + 8 * WIDTH * WIDTH };
    float *one = calloc(MOST, sizeof *one), *many = calloc(MOST, sizeof *many);
    assert_non_null(one);
    assert_non_null(many);

    kith_backend_threads(1);
    const size_t n = all_once(one);
    assert_true(n <= MOST);
    for (unsigned threads = 2; threads <= 5; threads++) {
        kith_backend_threads(threads);
        assert_int_equal(all_once(many), n);
        assert_memory_equal(one, many, n * sizeof *one);
    }
    kith_backend_threads(1);
    free(one);
    free(many);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    for_each_variant(threads_on_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, choose_own, NULL);
}
