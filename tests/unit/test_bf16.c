/* Goal: backend cpu-bf16 rounds to the nearest bfloat16, multiplies exactly
 * that, whatever the shape, adds in float32, and leaves all else to cpu.
 * Method: rounding beside an arithmetic of its own, for each instruction set;
 * linear layers beside naive64 on values that are bfloat16 already, so that
 * only float32's sums remain, and on any values with the bound of rounding
 * both factors. Where the backend is not here, the last two are skipped. */
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
#include "src/training/backend/cpu.h"

/* A factor of bfloat16 is off by at most this share of itself. */
#define HALF_UNIT (1.0 / 256)

static const struct kith_backend *bf16(void)
{
    const struct kith_backend *backend = kith_backend_find("cpu-bf16");
    assert_non_null(backend);
    if (backend->missing() != NULL) {
        print_message("%s\n", backend->missing());
        skip();
    }
    return backend;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The neighbour that is closer; of two equally close the even one. */
static uint16_t nearest(uint32_t bits)
{
    const uint16_t below = (uint16_t)(bits >> 16);
    const uint32_t rest = bits & 0xffff;
    if (rest > 0x8000 || (rest == 0x8000 && below % 2 == 1))
        return (uint16_t)(below + 1);
    return below;
}

static void rounding_on(const struct kith_cpu_loops *loops)
{
    static const uint32_t rests[] = {0,      1,      0x7fff, 0x8000,
                                     0x8001, 0xffff, 0x1234};
    enum { RESTS = sizeof rests / sizeof *rests };
    for (uint32_t high = 0; high <= UINT16_MAX; high++) {
        float x[RESTS * 3];
        uint16_t y[RESTS * 3 + 1] = {0};
        for (size_t i = 0; i < RESTS * 3; i++)
            x[i] = float_of(high << 16 | rests[i % RESTS]);
        y[RESTS * 3] = 0x5a5a;
        loops->to_bf16(RESTS * 3, x, y);
        for (size_t i = 0; i < RESTS * 3; i++) {
            const uint32_t bits = high << 16 | rests[i % RESTS];
            const uint32_t got = (uint32_t)y[i] << 16;
            if (isnan(x[i]) ? !isnan(float_of(got)) : y[i] != nearest(bits))
                fail_msg("%s: %08x becomes %04x", loops->name, (unsigned)bits,
                         (unsigned)y[i]);
        }
        assert_int_equal(y[RESTS * 3], 0x5a5a);
    }
}

static void test_rounding(void **state)
{
    (void)state;
    for (size_t i = 0; kith_cpu_loops[i] != NULL; i++)
        if (kith_cpu_loops[i]->supported())
            rounding_on(kith_cpu_loops[i]);
}

/* The same values in both precisions, and their sizes. */
struct vector {
    size_t n;
    float *f;
    double *d, *size;
};

static struct vector vector_new(size_t n, bool narrow, uint64_t seed)
{
    const struct vector v = {n, bf16()->alloc(n * sizeof(float), false),
                             malloc((n + 1) * sizeof(double)),
                             malloc((n + 1) * sizeof(double))};
    struct kith_rng rng;
    assert_true(v.f != NULL && v.d != NULL && v.size != NULL);
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++) {
        const float x = (float)(2 * kith_rng_double(&rng) - 1);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        v.f[i] = narrow ? float_of((uint32_t)nearest(bits) << 16) : x;
        v.d[i] = (double)v.f[i];
        v.size[i] = fabs(v.d[i]);
    }
    return v;
}

static void vector_free(struct vector v)
{
    bf16()->release(v.f);
    free(v.d);
    free(v.size);
}

/* Everything of one linear layer. */
struct layer {
    struct vector x, w, bias, y, pre, dy, dx, dw, dbias;
    void *scratch;
};

static void layer_open(struct layer *l, size_t rows,
                       const struct kith_linear *op, bool narrow)
{
    l->x = vector_new(rows * op->in, narrow, 1);
    l->w = vector_new(op->in * op->out, narrow, 2);
    l->bias = vector_new(op->out, false, 3);
    l->y = vector_new(rows * op->out, false, 4);
    l->pre = vector_new(rows * op->out, false, 5);
    l->dy = vector_new(rows * op->out, narrow, 6);
    l->dx = vector_new(rows * op->in, false, 7);
    l->dw = vector_new(op->in * op->out, false, 8);
    l->dbias = vector_new(op->out, false, 9);
    l->scratch = bf16()->alloc(
        kith_kernel_scratch(bf16()->ops->kernels[KITH_OP_LINEAR], op, rows),
        false);
    assert_non_null(l->scratch);
}

static void layer_close(struct layer *l)
{
    const struct vector all[] = {l->x,  l->w,  l->bias, l->y,    l->pre,
                                 l->dy, l->dx, l->dw,   l->dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        vector_free(all[i]);
    bf16()->release(l->scratch);
}

/* Partial sums of n products of random sign below 1: see test_ops_text.c. */
static double sum_slack(size_t n)
{
    return 2 * (double)FLT_EPSILON * (double)(n + 4);
}

static void assert_near(const char *what, const struct kith_linear *op,
                        const struct vector *v, double absolute, double share)
{
    for (size_t i = 0; i < v->n; i++) {
        const double error = fabs((double)v->f[i] - v->d[i]);
        if (!(error <= absolute + share * v->size[i]))
            fail_msg("%zu -> %zu, %s: element %zu of %zu is %.9g, not %.17g",
                     op->in, op->out, what, i, v->n, (double)v->f[i], v->d[i]);
    }
}

/* What is only written may hold anything before, even what is no number. */
static void spoil(struct vector *v)
{
    for (size_t i = 0; i < v->n; i++)
        v->f[i] = NAN;
}

static void forward(struct layer *l, const struct kith_linear *op, size_t rows)
{
    const bool gelu = op->activation == KITH_ACTIVATION_GELU;
    spoil(&l->y);
    spoil(&l->pre);
    bf16()->ops->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = op,
                                 .scratch = l->scratch,
                                 .rows = rows,
                                 .x = l->x.f,
                                 .weight = l->w.f,
                                 .bias = l->bias.f,
                                 .saved = gelu ? l->pre.f : NULL,
                                 .y = l->y.f});
}

static void backward(struct layer *l, const struct kith_linear *op, size_t rows,
                     unsigned add)
{
    if (!(add & KITH_ADD_DATA))
        spoil(&l->dx);
    if (!(add & KITH_ADD_WEIGHTS)) {
        spoil(&l->dw);
        spoil(&l->dbias);
    }
    bf16()->ops->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = op,
                                 .scratch = l->scratch,
                                 .rows = rows,
                                 .x = l->x.f,
                                 .weight = l->w.f,
                                 .saved = l->pre.f,
                                 .y = l->y.f,
                                 .dy = l->dy.f,
                                 .dx = l->dx.f,
                                 .dweight = l->dw.f,
                                 .dbias = l->dbias.f,
                                 .flags = add});
}

/* Values that are bfloat16 lose nothing, and ReLU makes no others of them. */
static void exact_products(size_t rows, struct kith_linear op, unsigned add)
{
    const struct kith_ops *exact = kith_backend_find("naive64")->ops;
    struct layer l;
    layer_open(&l, rows, &op, true);

    forward(&l, &op, rows);
    exact->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .bias = l.bias.d,
                                 .y = l.y.d});
    assert_near("y", &op, &l.y, sum_slack(op.in), 0);
    /* What stands at ReLU's edge may fall on either side: the same y. */
    for (size_t i = 0; i < l.y.n; i++)
        l.y.d[i] = (double)l.y.f[i];
    backward(&l, &op, rows, add);
    exact->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .y = l.y.d,
                                 .dy = l.dy.d,
                                 .dx = l.dx.d,
                                 .dweight = l.dw.d,
                                 .dbias = l.dbias.d,
                                 .flags = add});

    assert_near("dx", &op, &l.dx, sum_slack(op.out), 0);
    assert_near("dw", &op, &l.dw, sum_slack(rows), 0);
    assert_near("dbias", &op, &l.dbias, sum_slack(rows), 0);
    layer_close(&l);
}

/* Both factors are rounded: a sum is off by at most one unit of bfloat16 of the
 * sum of its products' sizes, which is what the exact layer makes of |x|, |W|.
 */
static void rounded_products(size_t rows, struct kith_linear op)
{
    const struct kith_ops *exact = kith_backend_find("naive64")->ops;
    const double share = 2 * HALF_UNIT + HALF_UNIT * HALF_UNIT;
    struct layer l;
    layer_open(&l, rows, &op, false);

    forward(&l, &op, rows);
    exact->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .bias = l.bias.d,
                                 .y = l.y.d});
    exact->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.size,
                                 .weight = l.w.size,
                                 .bias = l.bias.size,
                                 .y = l.y.size});
    assert_near("y", &op, &l.y, sum_slack(op.in), share);
    backward(&l, &op, rows, 0);
    exact->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .y = l.y.d,
                                 .dy = l.dy.d,
                                 .dx = l.dx.d,
                                 .dweight = l.dw.d,
                                 .dbias = l.dbias.d});
    exact->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.size,
                                 .weight = l.w.size,
                                 .y = l.y.size,
                                 .dy = l.dy.size,
                                 .dx = l.dx.size,
                                 .dweight = l.dw.size,
                                 .dbias = l.dbias.size});
    assert_near("dx", &op, &l.dx, sum_slack(op.out), share);
    assert_near("dw", &op, &l.dw, sum_slack(rows), share);
    assert_near("dbias", &op, &l.dbias, sum_slack(rows), 0);
    layer_close(&l);
}

/* Rows, in, out: edges of vectors, of parts (128, 256) and of the cut. */
static const size_t sizes[][3] = {
    {1, 1, 1},      {2, 3, 5},      {7, 17, 16},     {9, 31, 33},
    {64, 784, 10},  {65, 257, 65},  {128, 16, 64},   {130, 300, 97},
    {3, 520, 129},  {260, 100, 40}, {16, 33, 256},   {257, 7, 31},
    {300, 256, 65}, {1, 512, 512},  {1100, 64, 600}, {20, 1025, 1030}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static struct kith_linear layer_of(size_t i, enum kith_activation activation)
{
    return (struct kith_linear){.in = sizes[i][1],
                                .out = sizes[i][2],
                                .in_out = (i + (size_t)activation) % 2 == 0,
                                .activation = activation};
}

static void test_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (int a = 0; a <= KITH_ACTIVATION_RELU; a++)
            exact_products(sizes[i][0], layer_of(i, (enum kith_activation)a),
                           i % 3 == 0 ? KITH_ADD_DATA | KITH_ADD_WEIGHTS : 0);
        rounded_products(sizes[i][0], layer_of(i, KITH_ACTIVATION_NONE));
    }
}

/* GELU follows in float32: pre is the sum, y and dy are cpu's of that. */
static void test_activation(void **state)
{
    (void)state;
    const struct kith_ops *exact = kith_backend_find("naive64")->ops;
    struct kith_linear op = layer_of(5, KITH_ACTIVATION_GELU);
    const struct kith_linear plain = layer_of(5, KITH_ACTIVATION_NONE);
    const size_t rows = sizes[5][0];
    struct layer l;
    op.in_out = plain.in_out;
    layer_open(&l, rows, &op, true);

    forward(&l, &op, rows);
    exact->kernels[KITH_OP_LINEAR]->forward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .bias = l.bias.d,
                                 .saved = l.pre.d,
                                 .y = l.y.d});
    assert_near("pre", &op, &l.pre, sum_slack(op.in), 0);
    assert_near("y", &op, &l.y, 2 * sum_slack(op.in), 0);
    for (size_t i = 0; i < l.pre.n; i++)
        l.pre.d[i] = (double)l.pre.f[i];
    backward(&l, &op, rows, 0);
    exact->kernels[KITH_OP_LINEAR]->backward(
        &(struct kith_arguments){.shape = &op,
                                 .rows = rows,
                                 .x = l.x.d,
                                 .weight = l.w.d,
                                 .saved = l.pre.d,
                                 .y = l.y.d,
                                 .dy = l.dy.d,
                                 .dx = l.dx.d,
                                 .dweight = l.dw.d,
                                 .dbias = l.dbias.d});
    assert_near("dy", &op, &l.dy, 8 * (double)FLT_EPSILON, 0);
    assert_near("dbias", &op, &l.dbias, sum_slack(rows), 0);
    layer_close(&l);
}

static void same_bits(size_t i)
{
    struct layer l[2];
    for (unsigned t = 0; t < 2; t++) {
        struct kith_linear op = layer_of(i, KITH_ACTIVATION_RELU);
        kith_backend_threads(1 + 2 * t);
        layer_open(&l[t], sizes[i][0], &op, false);
        forward(&l[t], &op, sizes[i][0]);
        backward(&l[t], &op, sizes[i][0], 0);
    }
    kith_backend_threads(1);
    assert_memory_equal(l[0].y.f, l[1].y.f, l[0].y.n * sizeof(float));
    assert_memory_equal(l[0].dx.f, l[1].dx.f, l[0].dx.n * sizeof(float));
    assert_memory_equal(l[0].dw.f, l[1].dw.f, l[0].dw.n * sizeof(float));
    layer_close(&l[0]);
    layer_close(&l[1]);
}

static void test_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        same_bits(i);
}

/* Whoever cannot run stands in by one that can, of the same element. */
static void test_stand_in(void **state)
{
    (void)state;
    for (size_t i = 0; kith_backends[i] != NULL; i++) {
        const struct kith_backend *backend = kith_backends[i];
        const struct kith_backend *there = kith_backend_stand_in(backend);
        assert_null(there->missing());
        assert_ptr_equal(there->host, there);
        assert_int_equal(there->element_bytes, backend->element_bytes);
        if (backend->missing() == NULL)
            assert_ptr_equal(there, backend->host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_products),
        cmocka_unit_test(test_activation), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stand_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
