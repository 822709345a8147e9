/* Goal: every backend's operations do what ops.h says, and their gradients are
 * right. Method: naive64's backward passes beside central differences of its
 * forward passes; every other backend, and every instruction set of cpu, beside
 * naive64, for one thread and for three. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/rng.h"
#include "ops_cases.h"
#include "src/training/backend/cpu.h"
#include "kith/dropout.h"

#define N_MAX 16384 /* elements of one tensor */

/* Values in [-1, 1) that float32 holds exactly. */
static void fill(double *values, size_t n, uint64_t seed)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)(float)(2 * kith_rng_double(&rng) - 1);
}

/* A case on one backend: its memory, and what it computes, read as float64. */
struct bench {
    const struct kith_backend *backend;
    const struct ops_case *c;
    struct ops_shape shape;
    struct ops_pass pass;
    void *gradient[INPUTS_MAX];
};

static void *room(const struct kith_backend *backend, size_t n)
{
    assert_true(n <= N_MAX * 64);
    void *memory = backend->alloc((n + 1) * backend->element_bytes, false);
    assert_non_null(memory);
    return memory;
}

static void bench_open(struct bench *b, const struct kith_backend *backend,
                       const struct ops_case *c)
{
    double values[N_MAX];
    *b = (struct bench){.backend = backend, .c = c};
    c->kind->shape(c, backend->ops, &b->shape);
    b->pass.ops = backend->ops;
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        const size_t n = b->shape.in[i];
        if (n == 0)
            continue;
        assert_true(n <= N_MAX);
        b->pass.in[i] = room(backend, n);
        b->gradient[i] = room(backend, n);
        fill(values, n, 10 + i);
        backend->write(n, values, b->pass.in[i]);
    }
    for (size_t i = 0; i < SLOTS_MAX; i++)
        b->pass.slot[i] = room(backend, b->shape.slot[i]);
    b->pass.y = room(backend, b->shape.out);
    b->pass.dy = room(backend, b->shape.out);
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
}

/* dy is drawn; gradients start from `start` (what KITH_ADD_* adds to). */
static void bench_back(struct bench *b, unsigned asked, unsigned add,
                       double start)
{
    double values[N_MAX];
    fill(values, b->shape.out, 99);
    b->backend->write(b->shape.out, values, b->pass.dy);
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        for (size_t j = 0; j < b->shape.in[i]; j++)
            values[j] = start;
        b->backend->write(b->shape.in[i], values, b->gradient[i]);
        b->pass.gradient[i] = asked >> i & 1 ? b->gradient[i] : NULL;
    }
    b->pass.add = add;
    b->c->kind->backward(b->c, &b->pass);
}

static double peak_of(size_t n, const double *values)
{
    double peak = 0;
    for (size_t i = 0; i < n; i++)
        peak = fabs(values[i]) > peak ? fabs(values[i]) : peak;
    return peak;
}

static void assert_close(const struct bench *b, const char *what, size_t n,
                         const double *got, const double *want,
                         double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= tolerance))
            fail_msg("%s, %s: %s[%zu] is %.9g, not %.9g (within %.1e)",
                     b->backend->name, b->c->name, what, i, got[i], want[i],
                     tolerance);
    }
}

/* sum of weights[i] y[i] after a forward pass. */
static double objective(struct bench *b, const double *weights)
{
    double y[N_MAX], sum = 0;
    b->c->kind->forward(b->c, &b->pass);
    b->backend->read(b->shape.out, b->pass.y, y);
    for (size_t i = 0; i < b->shape.out; i++)
        sum += weights[i] * y[i];
    return sum;
}

/* Central differences: error h^2 f''' / 6 + unit / h, and a norm over three
 * neighbouring values has an f''' of 1e5. */
static void differences(struct bench *b, size_t input, double *slope)
{
    const double h = 1e-6;
    double weights[N_MAX], *x = b->pass.in[input];
    fill(weights, b->shape.out, 99);
    for (size_t i = 0; i < b->shape.in[input]; i++) {
        const double at = x[i];
        x[i] = at + h;
        const double above = objective(b, weights);
        x[i] = at - h;
        slope[i] = (above - objective(b, weights)) / (2 * h);
        x[i] = at;
    }
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t k = 0; k < ops_case_count; k++) {
        struct bench b;
        double want[N_MAX], got[N_MAX];
        bench_open(&b, kith_backend_find("naive64"), &ops_cases[k]);
        for (size_t i = 0; i < INPUTS_MAX; i++) {
            const size_t n = b.shape.in[i];
            if (n == 0)
                continue;
            differences(&b, i, want);
            b.c->kind->forward(b.c, &b.pass);
            bench_back(&b, ~0u, 0, 0);
            b.backend->read(n, b.gradient[i], got);
            assert_close(&b, "gradient", n, got, want,
                         1e-7 * (1 + peak_of(n, want)));
        }
        bench_close(&b);
    }
}

/* KITH_ADD_* adds, and leaving one gradient out leaves the others alone. */
static void check_adding(struct bench *b)
{
    double plain[INPUTS_MAX][N_MAX], got[N_MAX];
    const double unit = b->backend->element_bytes == 4 ? 1e-6 : 1e-14;
    b->c->kind->forward(b->c, &b->pass);
    bench_back(b, ~0u, 0, 0.5);
    for (size_t i = 0; i < INPUTS_MAX; i++)
        b->backend->read(b->shape.in[i], b->gradient[i], plain[i]);
    for (unsigned add = 0; add < 4 && b->c->kind->adds; add++) {
        bench_back(b, ~0u, add, 0.5);
        for (size_t i = 0; i < INPUTS_MAX; i++) {
            const size_t n = b->shape.in[i];
            const bool weight = b->c->kind->weights >> i & 1;
            const bool adds = add & (weight ? KITH_ADD_WEIGHTS : KITH_ADD_DATA);
            b->backend->read(n, b->gradient[i], got);
            for (size_t j = 0; j < n && adds; j++)
                got[j] -= 0.5;
            assert_close(b, "added gradient", n, got, plain[i],
                         unit * (1 + peak_of(n, plain[i])));
        }
    }
    for (unsigned left = 0; left < INPUTS_MAX; left++) {
        bench_back(b, ~(1u << left), 0, 0.25);
        for (size_t i = 0; i < INPUTS_MAX; i++) {
            b->backend->read(b->shape.in[i], b->gradient[i], got);
            for (size_t j = 0; j < b->shape.in[i]; j++)
                assert_true(i == left ? fabs(got[j] - 0.25) <= 0
                                      : fabs(got[j] - plain[i][j]) <= 0);
        }
    }
}

/* Calls check for each backend, and for cpu with each instruction set. */
static void for_each_backend(void (*check)(const struct kith_backend *))
{
    for (size_t i = 0; kith_backends[i] != NULL; i++) {
        const struct kith_backend *backend = kith_backends[i];
        /* What lies on a GPU is test_cuda_ops.c's. */
        if (backend->missing() != NULL || backend->host != backend)
            continue;
        if (strcmp(backend->name, "cpu") != 0) {
            check(backend);
            continue;
        }
        for (size_t v = 0; kith_cpu_loops[v] != NULL; v++) {
            if (!kith_cpu_loops[v]->supported())
                continue;
            kith_cpu_choose(kith_cpu_loops[v]);
            for (unsigned threads = 1; threads <= 3; threads += 2) {
                kith_backend_threads(threads);
                check(backend);
            }
        }
        kith_cpu_choose(NULL);
        kith_backend_threads(1);
    }
}

static void adding_on(const struct kith_backend *backend)
{
    for (size_t k = 0; k < ops_case_count; k++) {
        struct bench b;
        bench_open(&b, backend, &ops_cases[k]);
        check_adding(&b);
        bench_close(&b);
    }
}

static void test_adding(void **state)
{
    (void)state;
    for_each_backend(adding_on);
}

/* Sums of up to 600 products of values below 1 in float32: each of the sums'
 * roundings is at most 6e-8 of a partial sum that stays below some tens. */
#define FLOAT_TOLERANCE 4e-6

/* Rounded factors move what stands at ReLU's edge to the other side; what these
 * layers may be off by is test_bf16.c's. */
static bool rounds(const struct kith_backend *backend, const struct ops_case *c)
{
    return backend->ops->kernels[KITH_OP_LINEAR]->scratch != NULL &&
           strncmp(c->name, "linear", strlen("linear")) == 0;
}

static void agrees_on(const struct kith_backend *backend)
{
    for (size_t k = 0; k < ops_case_count; k++) {
        if (rounds(backend, &ops_cases[k]))
            continue;
        struct bench b, exact;
        double got[N_MAX], want[N_MAX];
        bench_open(&b, backend, &ops_cases[k]);
        bench_open(&exact, kith_backend_find("naive64"), &ops_cases[k]);
        b.c->kind->forward(b.c, &b.pass);
        exact.c->kind->forward(exact.c, &exact.pass);
        backend->read(b.shape.out, b.pass.y, got);
        exact.backend->read(b.shape.out, exact.pass.y, want);
        assert_close(&b, "y", b.shape.out, got, want,
                     FLOAT_TOLERANCE * (1 + peak_of(b.shape.out, want)));
        bench_back(&b, ~0u, 0, 0);
        bench_back(&exact, ~0u, 0, 0);
        for (size_t i = 0; i < INPUTS_MAX; i++) {
            const size_t n = b.shape.in[i];
            backend->read(n, b.gradient[i], got);
            exact.backend->read(n, exact.gradient[i], want);
            assert_close(&b, "gradient", n, got, want,
                         FLOAT_TOLERANCE * (1 + peak_of(n, want)));
        }
        bench_close(&exact);
        bench_close(&b);
    }
}

static void test_agreement(void **state)
{
    (void)state;
    for_each_backend(agrees_on);
}

/* The bits do not depend on the number of threads. */
static void threads_on(const struct kith_backend *backend)
{
    for (size_t k = 0; k < ops_case_count; k++) {
        struct bench b[2];
        for (unsigned t = 0; t < 2; t++) {
            kith_backend_threads(1 + 2 * t);
            bench_open(&b[t], backend, &ops_cases[k]);
            b[t].c->kind->forward(b[t].c, &b[t].pass);
            bench_back(&b[t], ~0u, 0, 0);
        }
        const size_t bytes = backend->element_bytes;
        assert_memory_equal(b[0].pass.y, b[1].pass.y, b[0].shape.out * bytes);
        for (size_t i = 0; i < INPUTS_MAX; i++) {
            if (b[0].shape.in[i] > 0)
                assert_memory_equal(b[0].gradient[i], b[1].gradient[i],
                                    b[0].shape.in[i] * bytes);
        }
        bench_close(&b[0]);
        bench_close(&b[1]);
    }
    kith_backend_threads(1);
}

static void test_threads(void **state)
{
    (void)state;
    for_each_backend(threads_on);
}

/* Batch norm's buffers follow the batches, and evaluation uses them. */
static void buffers_on(const struct kith_backend *backend)
{
    enum { ROWS = 3, PIXELS = 4, CHANNELS = 18, N = ROWS * PIXELS * CHANNELS };
    const struct kith_norm op = {
        KITH_NORM_BATCH, PIXELS, CHANNELS, 1, 1e-5, 0.1, KITH_ACTIVATION_NONE};
    const struct kith_backend *const both[] = {kith_backend_find("naive64"),
                                               backend};
    double values[N], y[2][N], buffers[2][2 * CHANNELS];
    for (size_t k = 0; k < 2; k++) {
        const struct kith_backend *on = both[k];
        void *x = room(on, N), *out = room(on, N), *scale = room(on, CHANNELS);
        void *kept = room(on, 2 * CHANNELS), *saved = room(on, 2 * CHANNELS);
        fill(values, N, 1);
        on->write(N, values, x);
        on->write(CHANNELS, values, scale);
        on->ops->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = ROWS,
                                     .x = x,
                                     .weight = scale,
                                     .bias = scale,
                                     .buffers = kept,
                                     .saved = saved,
                                     .y = out,
                                     .flags = KITH_STATISTICS});
        on->read(2 * CHANNELS, kept, buffers[k]);
        on->ops->kernels[KITH_OP_NORM]->forward(
            &(struct kith_arguments){.shape = &op,
                                     .rows = ROWS,
                                     .x = x,
                                     .weight = scale,
                                     .bias = scale,
                                     .buffers = kept,
                                     .y = out});
        on->read(N, out, y[k]);
        void *const all[] = {x, out, scale, kept, saved};
        for (size_t i = 0; i < 5; i++)
            on->release(all[i]);
    }
    double mean = 0;
    for (size_t i = 0; i < N; i += CHANNELS)
        mean += values[i] / (ROWS * PIXELS);
    assert_true(fabs(buffers[0][0] - 0.1 * mean) < 1e-12);
    for (size_t i = 0; i < 2 * CHANNELS; i++)
        assert_true(fabs(buffers[1][i] - buffers[0][i]) < 1e-6);
    /* The variances are small: values grow to about 10. */
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(y[1][i] - y[0][i]) < 1e-4);
}

static void test_buffers(void **state)
{
    (void)state;
    for_each_backend(buffers_on);
}

static void nan_on(const struct kith_backend *backend)
{
    enum { N = 20 };
    double values[N];
    void *a = room(backend, N), *b = room(backend, N), *y = room(backend, N);
    fill(values, N, 3);
    values[3] = values[18] = (double)NAN;
    backend->write(N, values, a);
    backend->ops->kernels[KITH_OP_SUM]->forward(&(struct kith_arguments){
        .rows = N,
        .shape = &(struct kith_sum){KITH_ACTIVATION_RELU},
        .x = a,
        .other = b,
        .y = y});
    backend->read(N, y, values);
    for (size_t i = 0; i < N; i++)
        assert_true(i == 3 || i == 18 ? isnan(values[i]) : values[i] >= 0);
    backend->release(a);
    backend->release(b);
    backend->release(y);
}

static void test_relu_keeps_nan(void **state)
{
    (void)state;
    for_each_backend(nan_on);
}

/* A mask is the same from any start, keeps 1 - rate of many, and differs
 * between steps, places and peers. */
static void dropout_on(const struct kith_backend *backend)
{
    enum { N = 4096 };
    struct kith_dropout op = {.rate = 0.25, .seed = 5, .entity = 1, .step = 9};
    double ones[N], kept[2][N];
    void *x = room(backend, N), *y = room(backend, N);
    for (size_t i = 0; i < N; i++)
        ones[i] = 1;
    backend->write(N, ones, x);
    backend->ops->kernels[KITH_OP_DROPOUT]->forward(
        &(struct kith_arguments){.shape = &op, .rows = N, .x = x, .y = y});
    backend->read(N, y, kept[0]);
    size_t count = 0;
    const struct kith_mask mask = kith_mask_of(&op);
    for (size_t i = N; i-- > 0;) {
        uint32_t word[4];
        kith_mask_block(&mask, i / 4, word);
        assert_true((kept[0][i] > 0) == (word[i % 4] >= mask.threshold));
        count += kept[0][i] > 0;
        assert_true(kept[0][i] <= 0 || fabs(kept[0][i] - 4.0 / 3) < 1e-6);
    }
    /* Binomial: 3072 with a deviation of 28. */
    assert_true(count > 3072 - 140 && count < 3072 + 140);
    for (int change = 0; change < 3; change++) {
        struct kith_dropout other = op;
        other.step += change == 0;
        other.place += change == 1;
        other.entity += change == 2;
        backend->ops->kernels[KITH_OP_DROPOUT]->forward(&(
            struct kith_arguments){.shape = &other, .rows = N, .x = x, .y = y});
        backend->read(N, y, kept[1]);
        size_t differ = 0;
        for (size_t i = 0; i < N; i++)
            differ += (kept[0][i] > 0) != (kept[1][i] > 0);
        /* 2 * 0.25 * 0.75 of all: 1536 with a deviation of 31. */
        assert_true(differ > 1536 - 155 && differ < 1536 + 155);
    }
    backend->release(x);
    backend->release(y);
}

static void test_dropout(void **state)
{
    (void)state;
    for_each_backend(dropout_on);
}

enum { ROWS = 5, CLASSES = 19 };

static double loss_of(const struct kith_backend *backend, const double *logits,
                      double smoothing, double *gradient, uint32_t *correct)
{
    const int32_t labels[ROWS] = {0, 18, 3, 3, 7};
    void *memory = room(backend, ROWS * CLASSES);
    backend->write(ROWS * CLASSES, logits, memory);
    const double loss =
        backend->ops->cross_entropy(&(struct kith_loss){.rows = ROWS,
                                                        .classes = CLASSES,
                                                        .labels = labels,
                                                        .smoothing = smoothing,
                                                        .scale = 0.5,
                                                        .logits = memory,
                                                        .correct = correct});
    if (gradient != NULL)
        backend->read(ROWS * CLASSES, memory, gradient);
    backend->release(memory);
    return loss;
}

static void loss_on(const struct kith_backend *backend)
{
    const struct kith_backend *exact = kith_backend_find("naive64");
    double logits[ROWS * CLASSES], gradient[ROWS * CLASSES];
    for (unsigned tenths = 0; tenths < 2; tenths++) {
        const double smoothing = 0.1 * tenths;
        uint32_t correct;
        fill(logits, ROWS * CLASSES, 4);
        logits[3] = logits[7] = 2; /* equal: the first counts */
        logits[2 * CLASSES + 3] = 3;
        const double loss =
            loss_of(backend, logits, smoothing, gradient, &correct);
        assert_true(fabs(loss - loss_of(exact, logits, smoothing, NULL, NULL)) <
                    1e-6);
        assert_int_equal(correct, 1);
        for (size_t i = 0; i < ROWS * CLASSES; i++) {
            const double at = logits[i];
            logits[i] = at + 1e-5;
            const double above = loss_of(exact, logits, smoothing, NULL, NULL);
            logits[i] = at - 1e-5;
            const double below = loss_of(exact, logits, smoothing, NULL, NULL);
            logits[i] = at;
            assert_true(fabs(gradient[i] - 0.5 * (above - below) / 2e-5) <
                        1e-7);
        }
    }
}

static void test_loss(void **state)
{
    (void)state;
    for_each_backend(loss_on);
}

/* Three steps of AdamW beside the formula with libm. */
static void adamw_on(const struct kith_backend *backend)
{
    enum { N = 37 };
    double g[N], x[N], m[N] = {0}, v[N] = {0}, got[N];
    void *const gb = room(backend, N), *const xb = room(backend, N);
    void *const mb = room(backend, N), *const vb = room(backend, N);
    fill(x, N, 8);
    backend->write(N, x, xb);
    for (uint64_t t = 1; t <= 3; t++) {
        fill(g, N, 20 + t);
        backend->write(N, g, gb);
        assert_true(backend->ops->adamw(&(struct kith_adamw){.n = N,
                                                             .rate = 0.01,
                                                             .beta1 = 0.9,
                                                             .beta2 = 0.99,
                                                             .epsilon = 1e-8,
                                                             .decay = 0.1,
                                                             .t = t,
                                                             .g = gb,
                                                             .m = mb,
                                                             .v = vb,
                                                             .x = xb}));
        for (size_t i = 0; i < N; i++) {
            m[i] = 0.9 * m[i] + 0.1 * g[i];
            v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
            const double mean = m[i] / (1 - pow(0.9, (double)t));
            const double square = v[i] / (1 - pow(0.99, (double)t));
            x[i] -= 0.01 * (mean / (sqrt(square) + 1e-8) + 0.1 * x[i]);
        }
        backend->read(N, xb, got);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs(got[i] - x[i]) <
                        (backend->element_bytes == 4 ? 1e-6 : 1e-13));
    }
    g[30] = (double)INFINITY;
    backend->write(N, g, gb);
    assert_false(backend->ops->adamw(&(struct kith_adamw){.n = N,
                                                          .rate = 0.01,
                                                          .beta1 = 0.9,
                                                          .beta2 = 0.99,
                                                          .epsilon = 1e-8,
                                                          .t = 4,
                                                          .g = gb,
                                                          .m = mb,
                                                          .v = vb,
                                                          .x = xb}));
    void *const all[] = {gb, xb, mb, vb};
    for (size_t i = 0; i < 4; i++)
        backend->release(all[i]);
}

static void test_adamw(void **state)
{
    (void)state;
    for_each_backend(adamw_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_adding),
        cmocka_unit_test(test_agreement), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_buffers),   cmocka_unit_test(test_relu_keeps_nan),
        cmocka_unit_test(test_dropout),   cmocka_unit_test(test_loss),
        cmocka_unit_test(test_adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
