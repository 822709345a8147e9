/* Goal: linear layers and products of cpu are right at every edge of their
 * tiles, panels and parts, for each instruction set that this CPU has and each
 * provider. Method: beside naive64 on the same random input. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op_pairs.h"

/* Sizes at the edges of tiles (2, 6, 8), vectors (16), panels (32), parts (64),
 * chunks (128) and depths (256). */
static const struct {
    size_t rows, in, out;
} sizes[] = {{1, 1, 1},     {2, 3, 5},      {7, 17, 16},   {9, 31, 33},
             {64, 64, 10},  {65, 257, 65},  {128, 16, 64}, {130, 300, 97},
             {3, 520, 129}, {260, 100, 40}, {16, 33, 256}, {257, 7, 31}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void one_linear(size_t rows, struct kith_linear op, unsigned add)
{
    const size_t in = op.in, out = op.out;
    struct pair x = pair_new(rows * in, 1, 1), w = pair_new(in * out, 1, 2);
    struct pair b = pair_new(out, 1, 3), y = pair_new(rows * out, 1, 4);
    struct pair pre = pair_new(rows * out, 1, 5),
                dy = pair_new(rows * out, 1, 6);
    struct pair dx = pair_new(rows * in, 1, 7), dw = pair_new(in * out, 1, 8);
    struct pair db = pair_new(out, 1, 9);
    const bool gelu = op.activation == KITH_ACTIVATION_GELU;
    const struct kith_ops *ops = cpu()->ops, *exact = exact_ops();

    ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x.f,
                                 .weight = w.f,
                                 .bias = b.f,
                                 .saved = gelu ? pre.f : NULL,
                                 .y = y.f});
    exact->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x.d,
                                 .weight = w.d,
                                 .bias = b.d,
                                 .saved = gelu ? pre.d : NULL,
                                 .y = y.d});
    /* gelu and its slope are below 1.13 steep. */
    assert_pair("y", y, 2 * sum_slack(in), 4 * UNIT);
    if (gelu)
        assert_pair("pre", pre, sum_slack(in), 2 * UNIT);

    /* What stands at an edge of ReLU may fall on either side: the same y. */
    for (size_t i = 0; i < y.n; i++)
        y.d[i] = (double)y.f[i];
    for (size_t i = 0; i < pre.n; i++)
        pre.d[i] = (double)pre.f[i];
    ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x.f,
                                 .weight = w.f,
                                 .saved = pre.f,
                                 .y = y.f,
                                 .dy = dy.f,
                                 .dx = dx.f,
                                 .dweight = dw.f,
                                 .dbias = db.f,
                                 .flags = add});
    exact->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = x.d,
                                 .weight = w.d,
                                 .saved = pre.d,
                                 .y = y.d,
                                 .dy = dy.d,
                                 .dx = dx.d,
                                 .dweight = dw.d,
                                 .dbias = db.d,
                                 .flags = add});
    assert_pair("dy", dy, 8 * UNIT, 0);
    assert_pair("dx", dx, sum_slack(out), 2 * UNIT);
    assert_pair("dw", dw, sum_slack(rows), 2 * UNIT);
    assert_pair("dbias", db, sum_slack(rows), 2 * UNIT);

    const struct pair all[] = {x, w, b, y, pre, dy, dx, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        pair_free(all[i]);
}

static void linear_on_variant(void)
{
    for (size_t i = 0; i < SIZES; i++) {
        for (int a = 0; a <= KITH_ACTIVATION_GELU; a++) {
            const struct kith_linear op = {.in = sizes[i].in,
                                           .out = sizes[i].out,
                                           .in_out = (i + (size_t)a) % 2 == 0,
                                           .activation =
                                               (enum kith_activation)a};
            one_linear(sizes[i].rows, op, i % 3 == 0 ? 3u : 0u);
        }
    }
}

static void test_linear(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        kith_backend_threads(threads);
        for_each_variant(linear_on_variant);
    }
    kith_backend_threads(1);
}

static void test_providers(void **state)
{
    (void)state;
    assert_int_equal(kith_backend_product("abacus"), KITH_EINVAL);
    assert_string_equal(kith_backend_product_name(), "own");
    kith_backend_threads(2);
    for (size_t i = 0; i < KITH_PRODUCTS; i++) {
        const enum kith_err err =
            kith_backend_product(kith_backend_products[i]);
        if (err == KITH_EUNSUPPORTED)
            continue;
        assert_int_equal(err, KITH_OK);
        assert_string_equal(kith_backend_product_name(),
                            kith_backend_products[i]);
        linear_on_variant();
    }
    assert_null(kith_backend_products[KITH_PRODUCTS]);
    kith_backend_threads(1);
    assert_int_equal(kith_backend_product("own"), KITH_OK);
}

static void test_measure(void **state)
{
    (void)state;
    double gflops[KITH_PRODUCTS];

    const char *const winner = kith_backend_measure_products(gflops);

    assert_string_equal(kith_backend_product_name(), "own");
    assert_true(gflops[0] > 0 && gflops[1] > 0);
    for (size_t i = 0; i < KITH_PRODUCTS; i++) {
        for (size_t j = 0; j < KITH_PRODUCTS; j++)
            assert_true(strcmp(winner, kith_backend_products[i]) != 0 ||
                        gflops[i] >= gflops[j]);
    }
}

/* C <- alpha op(A) op(B) + beta C, also where own products know no factors. */
static void test_gemm(void **state)
{
    (void)state;
    static const double factors[][2] = {{1, 0}, {1, 1}, {0.5, 0}, {-2, 0.25}};
    const size_t m = 70, n = 45, k = 130;
    for (unsigned i = 0; i < 16; i++) {
        const double *f = factors[i / 4];
        struct pair a = pair_new(m * k, 1, 1), b = pair_new(k * n, 1, 2);
        struct pair c = pair_new(m * n, 1, 3);
        cpu()->gemm(&(struct kith_gemm){.transpose_a = i & 1,
                                        .transpose_b = i & 2,
                                        .m = m,
                                        .n = n,
                                        .k = k,
                                        .alpha = f[0],
                                        .a = a.f,
                                        .b = b.f,
                                        .beta = f[1],
                                        .c = c.f});
        kith_backend_find("naive64")->gemm(
            &(struct kith_gemm){.transpose_a = i & 1,
                                .transpose_b = i & 2,
                                .m = m,
                                .n = n,
                                .k = k,
                                .alpha = f[0],
                                .a = a.d,
                                .b = b.d,
                                .beta = f[1],
                                .c = c.d});
        assert_pair("gemm", c, 3 * sum_slack(k), 2 * UNIT);
        pair_free(a);
        pair_free(b);
        pair_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_providers),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_gemm),
    };
    return cmocka_run_group_tests(tests, choose_own, NULL);
}
