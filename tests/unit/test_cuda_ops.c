/* Goal: every operation of the CUDA module does what ops.h and backend.h say.
 * Method: the cases of ops_cases.c, and some that fill several blocks and every
 * size of head, beside naive64 on values that bfloat16 holds exactly. Without a
 * GPU the module's sources run on the host (tests/cuda/emulate.h), which shows
 * their indices and their arithmetic; with one, the module itself. */
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
#include "ops_cases.h"

static const struct kith_backend *single, *half;

/* A case on one backend. */
struct bench {
    const struct kith_backend *backend;
    const struct ops_case *c;
    struct ops_shape shape;
    struct ops_pass pass;
    void *gradient[INPUTS_MAX];
    double *values;
};

static bool is_weight(const struct bench *b, size_t input)
{
    return b->c->kind->weights >> input & 1;
}

static size_t largest(const struct ops_shape *shape)
{
    size_t most = shape->out;
    for (size_t i = 0; i < INPUTS_MAX; i++)
        most = shape->in[i] > most ? shape->in[i] : most;
    return most;
}

static void bench_open(struct bench *b, const struct kith_backend *backend,
                       const struct ops_case *c)
{
    *b = (struct bench){.backend = backend, .c = c};
    c->kind->shape(c, backend->ops, &b->shape);
    b->values = malloc((largest(&b->shape) + 1) * sizeof *b->values);
    assert_non_null(b->values);
    b->pass.ops = backend->ops;
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        const size_t n = b->shape.in[i];
        if (n == 0)
            continue;
        b->pass.in[i] = cuda_room(backend, n);
        b->gradient[i] = cuda_room(backend, n);
        cuda_fill(b->values, n, 10 + i);
        cuda_put(backend, !is_weight(b, i), n, b->values, b->pass.in[i]);
    }
    for (size_t i = 0; i < SLOTS_MAX; i++)
        b->pass.slot[i] = cuda_room(backend, b->shape.slot[i]);
    b->pass.y = cuda_room(backend, b->shape.out);
    b->pass.dy = cuda_room(backend, b->shape.out);
}

static void bench_close(struct bench *b)
{
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        b->backend->release(b->pass.in[i]);
        b->backend->release(b->gradient[i]);
    }
    for (size_t i = 0; i < SLOTS_MAX; i++)
        b->backend->release(b->pass.slot[i]);
    b->backend->release(b->pass.y);
    b->backend->release(b->pass.dy);
    free(b->values);
}

/* Both ways; gradients begin at 0.5 where they are added to, at NaN where they
 * are written. */
static void bench_run(struct bench *b, unsigned add)
{
    const double start = add == 0 ? (double)NAN : 0.5;
    b->c->kind->forward(b->c, &b->pass);
    cuda_fill(b->values, b->shape.out, 99);
    cuda_put(b->backend, true, b->shape.out, b->values, b->pass.dy);
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        for (size_t j = 0; j < b->shape.in[i]; j++)
            b->values[j] = start;
        if (b->shape.in[i] > 0)
            cuda_put(b->backend, !is_weight(b, i), b->shape.in[i], b->values,
                     b->gradient[i]);
        b->pass.gradient[i] = b->gradient[i];
    }
    b->pass.add = add;
    b->c->kind->backward(b->c, &b->pass);
}

static void agrees(const struct kith_backend *backend, const struct ops_case *c,
                   unsigned add)
{
    struct bench b, exact;
    char where[128];
    (void)snprintf(where, sizeof where, "%s, %s%s", backend->name, c->name,
                   add ? ", adding" : "");
    bench_open(&b, backend, c);
    bench_open(&exact, kith_backend_find("naive64"), c);
    bench_run(&b, add);
    bench_run(&exact, add);
    const double tolerance = cuda_tolerance(backend);
    cuda_get(backend, true, b.shape.out, b.pass.y, b.values);
    exact.backend->read(b.shape.out, exact.pass.y, exact.values);
    cuda_close(where, "y", b.shape.out, b.values, exact.values, tolerance);
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        const size_t n = b.shape.in[i];
        char what[32];
        if (n == 0)
            continue;
        (void)snprintf(what, sizeof what, "gradient %zu", i);
        cuda_get(backend, !is_weight(&b, i), n, b.gradient[i], b.values);
        exact.backend->read(n, exact.gradient[i], exact.values);
        cuda_close(where, what, n, b.values, exact.values, tolerance);
    }
    bench_close(&exact);
    bench_close(&b);
}

/* Its tokens lie in the host's memory. */
static bool is_embed(const struct ops_case *c)
{
    return strncmp(c->name, "embed", 5) == 0;
}

static void all_cases(const struct kith_backend *backend)
{
    for (size_t k = 0; k < ops_case_count; k++) {
        if (is_embed(&ops_cases[k]))
            continue;
        agrees(backend, &ops_cases[k], 0);
        if (ops_cases[k].kind->adds)
            agrees(backend, &ops_cases[k], KITH_ADD_DATA | KITH_ADD_WEIGHTS);
    }
}

static void test_single(void **state)
{
    (void)state;
    all_cases(single);
}

static void test_half(void **state)
{
    (void)state;
    all_cases(half);
}

/* The same operation with other sizes. */
static const struct ops_case *named(const char *name)
{
    for (size_t k = 0; k < ops_case_count; k++)
        if (strncmp(ops_cases[k].name, name, strlen(name)) == 0)
            return &ops_cases[k];
    fail_msg("no case begins with %s", name);
    return NULL;
}

static void on_both(const struct ops_case *c)
{
    agrees(single, c, 0);
    agrees(half, c, 0);
}

/* Every size of head that has a kernel of its own, with contexts that fill
 * tiles and that do not. */
static void test_attention_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][4] = {
        /* rows, context, heads, size */
        {1, 64, 1, 64},  {2, 70, 2, 64}, {1, 130, 1, 32}, {1, 129, 1, 128},
        {1, 65, 2, 96},  {1, 20, 3, 64}, {1, 40, 1, 48},  {1, 200, 1, 128},
        {1, 193, 1, 64}, {1, 97, 1, 96}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct ops_case c = *named("attention");
        c.name = "attention, larger";
        c.rows = sizes[i][0];
        c.op.attention = (struct kith_attention){sizes[i][1], sizes[i][2],
                                                 sizes[i][2] * sizes[i][3]};
        on_both(&c);
    }
}

static void test_larger(void **state)
{
    (void)state;
    struct ops_case c = *named("linear");
    c.name = "linear, larger";
    c.rows = 700; /* the gradient's sums are cut in parts */
    c.op.linear = (struct kith_linear){.in = 72,
                                       .out = 136,
                                       .in_out = true,
                                       .activation = KITH_ACTIVATION_GELU};
    on_both(&c);
    c = *named("norm LAYER");
    c.name = "norm LAYER, larger";
    c.rows = 70;
    c.op.norm.channels = 768;
    on_both(&c);
    c.op.norm.channels = 44; /* bfloat16 one at a time, float32 four */
    on_both(&c);
    c = *named("norm BATCH");
    c.name = "norm BATCH, larger";
    c.rows = 40;
    c.op.norm.pixels = 16;
    c.op.norm.channels = 70;
    on_both(&c);
    c.op.norm.channels = 72;
    on_both(&c);
    c = *named("norm GROUP");
    c.name = "norm GROUP, larger";
    c.rows = 9;
    c.op.norm.pixels = 36;
    c.op.norm.channels = 48;
    on_both(&c);
    c = *named("conv");
    c.name = "conv, larger";
    c.rows = 3;
    c.op.conv =
        (struct kith_conv){14, 14, 20, 70, 3, 2, 1, 7, 7, KITH_ACTIVATION_RELU};
    on_both(&c);
}

/* Sums of many rows, of one block's width and of several, with a last piece
 * that is not full: a plain sum in float32 would be off by more. */
static void test_long_sums(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{20011, 8}, {20011, 3}, {3001, 24},
                                       {131, 520}, {77, 300},  {1, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct ops_case c = *named("linear");
        c.name = "linear, long";
        c.rows = shapes[i][0];
        c.op.linear = (struct kith_linear){.in = 1, .out = shapes[i][1]};
        on_both(&c);
    }
}

/* ---- embeddings, with their tokens where a GPU reads them */

static void embed_on(const struct kith_backend *backend,
                     const struct kith_embed *op, size_t rows, unsigned add)
{
    const struct kith_backend *exact = kith_backend_find("naive64");
    const size_t n = rows * op->context, out = n * op->width;
    const size_t words = op->vocabulary * op->width;
    const size_t places = op->context * op->width;
    const size_t sizes[5] = {words, places, out, words, places};
    double *values[2][5];
    const struct kith_backend *const both[2] = {backend, exact};
    for (size_t k = 0; k < 2; k++) {
        const struct kith_backend *on = both[k];
        int32_t *const tokens = on->alloc(n * sizeof *tokens, true);
        void *v[5];
        for (size_t i = 0; i < n; i++)
            tokens[i] = (int32_t)(i * i % (op->vocabulary - 1));
        for (size_t i = 0; i < 5; i++) {
            v[i] = cuda_room(on, sizes[i]);
            values[k][i] = malloc(sizes[i] * sizeof(double));
            cuda_fill(values[k][i], sizes[i], 3 + i);
            cuda_put(on, i == 2, sizes[i], values[k][i], v[i]);
        }
        on->ops->kernels[KITH_OP_EMBED]->backward(
            &(struct kith_arguments){.shape = op,
                                     .rows = rows,
                                     .x = tokens,
                                     .dy = v[2],
                                     .dweight = v[3],
                                     .dbias = v[4],
                                     .flags = add});
        on->ops->kernels[KITH_OP_EMBED]->forward(
            &(struct kith_arguments){.shape = op,
                                     .rows = rows,
                                     .x = tokens,
                                     .weight = v[0],
                                     .bias = v[1],
                                     .y = v[2]});
        for (size_t i = 0; i < 5; i++) {
            cuda_get(on, i == 2, sizes[i], v[i], values[k][i]);
            on->release(v[i]);
        }
        on->release(tokens);
    }
    static const char *const names[] = {"token", "position", "y", "dtoken",
                                        "dposition"};
    for (size_t i = 0; i < 5; i++) {
        cuda_close(backend->name, names[i], sizes[i], values[0][i],
                   values[1][i], cuda_tolerance(backend));
        free(values[0][i]);
        free(values[1][i]);
    }
}

static void test_embed(void **state)
{
    (void)state;
    const struct kith_embed shapes[] = {{5, 12, 7}, {40, 30, 300}};
    for (size_t i = 0; i < 2; i++) {
        for (unsigned add = 0; add < 4; add += 2) {
            embed_on(single, &shapes[i], 17, add);
            embed_on(half, &shapes[i], 17, add);
        }
    }
}

/* ---- the loss */

static void loss_on(const struct kith_backend *backend, size_t rows,
                    size_t classes, double smoothing)
{
    const struct kith_backend *const both[2] = {backend,
                                                kith_backend_find("naive64")};
    const size_t n = rows * classes;
    double *values[2], loss[2];
    uint32_t correct[2];
    for (size_t k = 0; k < 2; k++) {
        const struct kith_backend *on = both[k];
        int32_t *const labels = on->alloc(rows * sizeof *labels, true);
        void *const logits = cuda_room(on, n);
        values[k] = malloc(n * sizeof(double));
        cuda_fill(values[k], n, 7);
        for (size_t i = 0; i < rows; i++)
            labels[i] = (int32_t)(i * 7919 % classes);
        values[k][(size_t)labels[1] + classes] = 3; /* one is right */
        values[k][2 * classes + 1] = values[k][2 * classes + 2] = 2.5;
        labels[2] = 1; /* the first of equals */
        cuda_put(on, true, n, values[k], logits);
        loss[k] =
            on->ops->cross_entropy(&(struct kith_loss){.rows = rows,
                                                       .classes = classes,
                                                       .labels = labels,
                                                       .smoothing = smoothing,
                                                       .scale = 0.5,
                                                       .logits = logits,
                                                       .correct = &correct[k]});
        cuda_get(on, true, n, logits, values[k]);
        on->release(labels);
        on->release(logits);
    }
    assert_true(fabs(loss[0] - loss[1]) < 2e-6 * (1 + loss[1]));
    assert_int_equal(correct[0], correct[1]);
    assert_true(correct[0] >= 2);
    cuda_close(backend->name, "gradient of the loss", n, values[0], values[1],
               cuda_tolerance(backend));
    free(values[0]);
    free(values[1]);
}

static void test_loss(void **state)
{
    (void)state;
    for (unsigned tenths = 0; tenths < 2; tenths++) {
        loss_on(single, 5, 19, 0.1 * tenths);
        loss_on(half, 5, 19, 0.1 * tenths);
        loss_on(single, 3, 50304, 0.1 * tenths);
        loss_on(half, 3, 50304, 0.1 * tenths);
        loss_on(single, 3, 2052, 0.1 * tenths); /* float32 takes four */
        loss_on(half, 3, 2052, 0.1 * tenths);   /* bfloat16 one at a time */
    }
}

/* Dropout's masks are the host's, element by element. */
static void test_dropout(void **state)
{
    (void)state;
    enum { N = 4099 };
    const struct kith_dropout op = {0.25, 5, UINT64_C(1) << 40, 9, 3};
    static double ones[N], got[N], want[N];
    const struct kith_backend *exact = kith_backend_find("naive64");
    for (size_t i = 0; i < N; i++)
        ones[i] = 1;
    exact->ops->kernels[KITH_OP_DROPOUT]->forward(&(struct kith_arguments){
        .shape = &op, .rows = N, .x = ones, .y = want});
    const struct kith_backend *const both[] = {single, half};
    for (size_t k = 0; k < 2; k++) {
        void *const x = cuda_room(both[k], N);
        cuda_put(both[k], true, N, ones, x);
        both[k]->ops->kernels[KITH_OP_DROPOUT]->forward(
            &(struct kith_arguments){.shape = &op, .rows = N, .x = x, .y = x});
        cuda_get(both[k], true, N, x, got);
        for (size_t i = 0; i < N; i++)
            assert_true((got[i] > 0) == (want[i] > 0));
        both[k]->release(x);
    }
}

/* Batch norm's buffers, and evaluation by them. */
static void test_buffers(void **state)
{
    (void)state;
    enum { ROWS = 3, PIXELS = 4, CHANNELS = 18, N = ROWS * PIXELS * CHANNELS };
    const struct kith_norm op = {
        KITH_NORM_BATCH, PIXELS, CHANNELS, 1, 1e-5, 0.1, KITH_ACTIVATION_NONE};
    const struct kith_backend *const all[] = {kith_backend_find("naive64"),
                                              single, half};
    static const double zeros[2 * CHANNELS];
    double values[N], y[3][N], kept[3][2 * CHANNELS];
    for (size_t k = 0; k < 3; k++) {
        const struct kith_backend *on = all[k];
        void *x = cuda_room(on, N), *out = cuda_room(on, N);
        void *scale = cuda_room(on, CHANNELS);
        void *buffers = cuda_room(on, 2 * CHANNELS);
        void *saved = cuda_room(on, 2 * CHANNELS);
        cuda_fill(values, N, 1);
        cuda_put(on, true, N, values, x);
        on->write(CHANNELS, values, scale);
        on->write(2 * CHANNELS, zeros, buffers);
        on->ops->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = ROWS,
                                     .x = x,
                                     .weight = scale,
                                     .bias = scale,
                                     .buffers = buffers,
                                     .saved = saved,
                                     .y = out,
                                     .flags = KITH_STATISTICS});
        on->read(2 * CHANNELS, buffers, kept[k]);
        on->ops->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = ROWS,
                                     .x = x,
                                     .weight = scale,
                                     .bias = scale,
                                     .buffers = buffers,
                                     .y = out});
        cuda_get(on, true, N, out, y[k]);
        void *const everything[] = {x, out, scale, buffers, saved};
        for (size_t i = 0; i < 5; i++)
            on->release(everything[i]);
    }
    for (size_t k = 1; k < 3; k++) {
        cuda_close(all[k]->name, "buffers", 2 * CHANNELS, kept[k], kept[0],
                   8e-6);
        cuda_close(all[k]->name, "evaluation", N, y[k], y[0],
                   cuda_tolerance(all[k]));
    }
}

int main(void)
{
    if (!cuda_module_found(&single, &half))
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_attention_sizes),
        cmocka_unit_test(test_larger),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
