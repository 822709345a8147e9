/* Goal: the CUDA module's arithmetic on flat vectors and its memory are what
 * backend.h promises.
 * Method: naive64 beside it, vectors that are aligned and that are not, sizes
 * around a block; shared vectors written by either side. */
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

static const struct kith_backend *gpu, *half, *exact;

enum { SIZES = 5, VECTORS = 4 };
static const size_t sizes[SIZES] = {1, 3, 255, 1024, 100003};

/* Four vectors on both backends, from element `skip` of their memory on. */
struct set {
    size_t n, skip;
    void *memory[VECTORS];
    float *x[VECTORS];
    double *y[VECTORS], *got;
};

static void set_open(struct set *s, size_t n, size_t skip, uint64_t seed)
{
    s->n = n;
    s->skip = skip;
    s->got = malloc(n * sizeof(double));
    for (size_t i = 0; i < VECTORS; i++) {
        s->memory[i] = cuda_room(gpu, n + skip);
        s->x[i] = (float *)s->memory[i] + skip;
        s->y[i] = malloc(n * sizeof(double));
        cuda_fill(s->y[i], n, seed + i);
        gpu->write(n, s->y[i], s->x[i]);
    }
}

static void set_close(struct set *s)
{
    for (size_t i = 0; i < VECTORS; i++) {
        gpu->release(s->memory[i]);
        free(s->y[i]);
    }
    free(s->got);
}

static void same(struct set *s, const char *what, size_t vector)
{
    gpu->read(s->n, s->x[vector], s->got);
    cuda_close("cuda", what, s->n, s->got, s->y[vector], 2e-6);
}

static void close_to(double got, double want, size_t n)
{
    assert_true(fabs(got - want) <= 1e-6 * (double)(n + 1));
}

static void test_arithmetic(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t skip = 0; skip < 2; skip++) {
            const size_t n = sizes[i];
            struct set s;
            set_open(&s, n, skip, 1);
            gpu->scale(n, 0.3, s.x[0]);
            exact->scale(n, 0.3, s.y[0]);
            same(&s, "scale", 0);
            gpu->add(n, -0.7, s.x[1], s.x[0]);
            exact->add(n, -0.7, s.y[1], s.y[0]);
            same(&s, "add", 0);
            gpu->copy(n, s.x[2], s.x[0]);
            exact->copy(n, s.y[2], s.y[0]);
            same(&s, "copy", 2);
            gpu->clear(n - 1, (float *)s.x[3] + 1);
            exact->clear(n - 1, s.y[3] + 1);
            same(&s, "clear", 3);
            close_to(gpu->sum(n, s.x[1]), exact->sum(n, s.y[1]), n);
            close_to(gpu->distance_squared(n, s.x[0], s.x[1]),
                     exact->distance_squared(n, s.y[0], s.y[1]), n);
            close_to(gpu->distance_squared(n, s.x[1], NULL),
                     exact->distance_squared(n, s.y[1], NULL), n);
            close_to(gpu->mix(n, 0.5, s.x[1], s.x[2], s.x[3]),
                     exact->mix(n, 0.5, s.y[1], s.y[2], s.y[3]), n);
            same(&s, "mix", 3);
            close_to(gpu->swap_mix(n, 0.25, s.x[1], s.x[2], s.x[0], s.x[3]),
                     exact->swap_mix(n, 0.25, s.y[1], s.y[2], s.y[0], s.y[3]),
                     n);
            same(&s, "swap_mix", 3);
            same(&s, "swap_mix's snapshot", 2);
            const double norm = sqrt(exact->distance_squared(n, s.y[1], NULL));
            close_to(gpu->clip(n, norm / 3, s.x[1]), norm, n);
            exact->scale(n, 1.0 / 3, s.y[1]);
            same(&s, "clip", 1);
            close_to(gpu->clip(n, norm, s.x[1]), norm / 3, n);
            same(&s, "clip that leaves alone", 1);
            set_close(&s);
        }
    }
}

static void test_mix_bf16(void **state)
{
    (void)state;
    struct set s;
    const size_t n = 1025;
    uint16_t *const received = gpu->alloc(2 * n * sizeof *received, true);
    uint16_t *const sent = received + n;
    set_open(&s, n, 0, 5);
    for (size_t i = 0; i < 2 * n; i++)
        received[i] = (uint16_t)(0x3f80 + i % 67);
    close_to(gpu->mix_bf16(n, 0.5, received, sent, s.x[1]),
             exact->mix_bf16(n, 0.5, received, sent, s.y[1]), n);
    same(&s, "mix_bf16", 1);
    gpu->release(received);
    set_close(&s);
}

/* Deltas and their sums are exact negatives on the two sides of a pair, and
 * swap_mix is mix out of place, bit for bit. */
static void test_pair_is_exact(void **state)
{
    (void)state;
    const double weights[] = {0.5, 1.0 / 3, 0.1};
    for (size_t w = 0; w < 3; w++) {
        struct set s;
        const size_t n = 100003;
        double *const other = malloc(n * sizeof *other);
        set_open(&s, n, 0, 7);
        gpu->scale(n, 1.0 / 3, s.x[0]);
        const double a = gpu->mix(n, weights[w], s.x[0], s.x[1], s.x[2]);
        const double b = gpu->mix(n, weights[w], s.x[1], s.x[0], s.x[3]);
        assert_true(fabs(a + b) <= 0);
        const double one =
            gpu->swap_mix(n, weights[w], s.x[0], s.x[1], s.x[1], s.x[2]);
        gpu->copy(n, s.x[3], s.x[1]);
        const double two = gpu->mix(n, weights[w], s.x[0], s.x[1], s.x[3]);
        assert_true(fabs(one - two) <= 0);
        gpu->read(n, s.x[2], s.got);
        gpu->read(n, s.x[3], other);
        assert_memory_equal(s.got, other, n * sizeof *other);
        free(other);
        set_close(&s);
    }
}

/* What two peers add must be the same bits, whatever computes them. */
static void test_deltas_are_the_cpus(void **state)
{
    (void)state;
    enum { N = 1000 };
    const struct kith_backend *cpu = kith_backend_find("cpu");
    static double r[N], s[N], x[N], got[N], want[N];
    void *v[2][3];
    cuda_fill(r, N, 1);
    cuda_fill(s, N, 2);
    cuda_fill(x, N, 3);
    for (size_t k = 0; k < 2; k++) {
        const struct kith_backend *on = k == 0 ? gpu : cpu;
        double *const values[] = {r, s, x};
        for (size_t i = 0; i < 3; i++) {
            v[k][i] = cuda_room(on, N);
            on->write(N, values[i], v[k][i]);
        }
        on->scale(N, 1.0 / 7, v[k][0]);
        (void)on->mix(N, 1.0 / 3, v[k][0], v[k][1], v[k][2]);
        on->read(N, v[k][2], k == 0 ? got : want);
        for (size_t i = 0; i < 3; i++)
            on->release(v[k][i]);
    }
    assert_memory_equal(got, want, sizeof got);
}

static void test_finite(void **state)
{
    (void)state;
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < SIZES; i++) {
        struct set s;
        const size_t n = sizes[i];
        set_open(&s, n, 1, 9);
        assert_true(gpu->finite(n, s.x[0]));
        for (size_t k = 0; k < 3; k++) {
            const double kept = s.y[0][n - 1];
            s.y[0][n - 1] = bad[k];
            gpu->write(n, s.y[0], s.x[0]);
            assert_false(gpu->finite(n, s.x[0]));
            s.y[0][n - 1] = kept;
        }
        set_close(&s);
    }
}

static void test_gemm(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{3, 5, 7}, {70, 65, 33}, {8, 9, 2000}};
    for (size_t i = 0; i < 3; i++) {
        for (unsigned flags = 0; flags < 8; flags++) {
            const size_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            const bool ta = flags & 1, tb = flags & 2;
            const double beta = flags & 4 ? 0.5 : 0;
            const size_t most = (m + n) * k + m * n;
            struct set s;
            set_open(&s, most, 0, 11);
            if (!(flags & 4)) {
                cuda_poison(gpu, m * n, s.x[2]);
                cuda_poison(exact, m * n, s.y[2]);
            }
            gpu->gemm(&(struct kith_gemm){.transpose_a = ta,
                                          .transpose_b = tb,
                                          .m = m,
                                          .n = n,
                                          .k = k,
                                          .alpha = 0.5,
                                          .a = s.x[0],
                                          .b = s.x[1],
                                          .beta = beta,
                                          .c = s.x[2]});
            exact->gemm(&(struct kith_gemm){.transpose_a = ta,
                                            .transpose_b = tb,
                                            .m = m,
                                            .n = n,
                                            .k = k,
                                            .alpha = 0.5,
                                            .a = s.y[0],
                                            .b = s.y[1],
                                            .beta = beta,
                                            .c = s.y[2]});
            gpu->read(m * n, s.x[2], s.got);
            cuda_close("cuda", "gemm", m * n, s.got, s.y[2], 1e-5);
            set_close(&s);
        }
    }
}

static void test_optimisers(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        const size_t n = sizes[i];
        for (unsigned kind = 0; kind < 3; kind++) {
            struct set s;
            set_open(&s, n, kind == 2, 21);
            const double momentum = kind == 0 ? 0 : 0.9;
            assert_true(gpu->sgd(&(struct kith_sgd){.n = n,
                                                    .rate = 0.1,
                                                    .momentum = momentum,
                                                    .decay = 0.01,
                                                    .nesterov = kind == 2,
                                                    .gradient = s.x[0],
                                                    .velocity = s.x[1],
                                                    .x = s.x[2]}));
            assert_true(exact->sgd(&(struct kith_sgd){.n = n,
                                                      .rate = 0.1,
                                                      .momentum = momentum,
                                                      .decay = 0.01,
                                                      .nesterov = kind == 2,
                                                      .gradient = s.y[0],
                                                      .velocity = s.y[1],
                                                      .x = s.y[2]}));
            same(&s, "sgd", 2);
            same(&s, "sgd's velocity", 1);
            set_close(&s);
        }
        struct set s;
        set_open(&s, n, i % 2, 31);
        gpu->scale(n, 0, s.x[1]);
        gpu->scale(n, 0, s.x[2]);
        exact->scale(n, 0, s.y[1]);
        exact->scale(n, 0, s.y[2]);
        for (uint64_t t = 1; t <= 3; t++) {
            assert_true(gpu->ops->adamw(&(struct kith_adamw){.n = n,
                                                             .rate = 0.01,
                                                             .beta1 = 0.9,
                                                             .beta2 = 0.99,
                                                             .epsilon = 1e-8,
                                                             .decay = 0.1,
                                                             .t = t,
                                                             .g = s.x[0],
                                                             .m = s.x[1],
                                                             .v = s.x[2],
                                                             .x = s.x[3]}));
            assert_true(exact->ops->adamw(&(struct kith_adamw){.n = n,
                                                               .rate = 0.01,
                                                               .beta1 = 0.9,
                                                               .beta2 = 0.99,
                                                               .epsilon = 1e-8,
                                                               .decay = 0.1,
                                                               .t = t,
                                                               .g = s.y[0],
                                                               .m = s.y[1],
                                                               .v = s.y[2],
                                                               .x = s.y[3]}));
        }
        same(&s, "adamw", 3);
        s.y[0][n / 2] = (double)INFINITY;
        gpu->write(n, s.y[0], s.x[0]);
        assert_false(gpu->ops->adamw(&(struct kith_adamw){.n = n,
                                                          .rate = 0.01,
                                                          .beta1 = 0.9,
                                                          .beta2 = 0.99,
                                                          .epsilon = 1e-8,
                                                          .decay = 0.1,
                                                          .t = 4,
                                                          .g = s.x[0],
                                                          .m = s.x[1],
                                                          .v = s.x[2],
                                                          .x = s.x[3]}));
        set_close(&s);
    }
}

/* ---- memory */

static void test_memory(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        double values[100];
        void *const memory = gpu->alloc(400, shared);
        assert_non_null(memory);
        assert_true((uintptr_t)memory % 64 == 0);
        gpu->read(100, memory, values);
        for (size_t i = 0; i < 100; i++)
            assert_true(fabs(values[i]) <= 0);
        gpu->release(memory);
    }
    assert_null(gpu->alloc(SIZE_MAX - 10, false));
    gpu->release(NULL);
    assert_ptr_equal(gpu->host, kith_backend_find("cpu"));
    assert_null(gpu->failed());
}

/* A block of four slots: what a peer sends is copied out while it goes on, what
 * it receives is fetched early, late or not at all. */
static void test_shared(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double values[N], got[N], want[N], older[N];
    float *const block = gpu->alloc(4 * N * sizeof(float), true);
    float *const sent = block, *const again = block + N;
    float *const early = block + 2 * N, *const late = block + 3 * N;
    void *const x = cuda_room(gpu, N);
    cuda_fill(older, N, 1);
    cuda_fill(want, N, 1);
    gpu->write(N, older, x);
    gpu->copy(N, sent, x);
    gpu->scale(N, 2, x); /* training goes on */
    gpu->copy(N, again, x);
    assert_true(gpu->settled(sent, true));
    assert_true(gpu->settled(sent, false));
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)sent[i] - older[i]) <= 0);
    exact->scale(N, 2, want);
    assert_true(gpu->settled(again + 5, true));
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)again[i] - want[i]) <= 0);

    cuda_fill(values, N, 2);
    for (size_t round = 0; round < 3; round++) {
        float *const inbox = round == 1 ? late : early;
        for (size_t i = 0; i < N; i++)
            inbox[i] = (float)(values[i] + (double)round);
        if (round != 1)
            gpu->arrived(inbox, N * sizeof(float));
        const double shift = gpu->mix(N, 0.5, inbox, sent, x);
        double sum = 0;
        for (size_t i = 0; i < N; i++) {
            const double delta = 0.5 * (values[i] + (double)round - older[i]);
            want[i] += delta;
            sum += delta;
        }
        assert_true(fabs(shift - sum) < 1e-2);
        gpu->read(N, x, got);
        cuda_close("cuda", "mix of what was received", N, got, want, 1e-6);
    }
    gpu->copy(N, x, late); /* adopt */
    gpu->read(N, x, got);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(got[i] - (double)late[i]) <= 0);
    gpu->copy(N, sent, late); /* a new snapshot over the old one */
    gpu->scale(N, 0.5, sent);
    assert_true(gpu->settled(sent, true));
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)sent[i] - 0.5 * (double)late[i]) < 1e-6);
    gpu->release(block);
    gpu->release(x);
}

/* What is sent is written in pieces, by the device and then again: it has
 * settled when all of it has, however late copies are. */
static void test_pieces(void **state)
{
    (void)state;
    enum { N = 4096, FIRST = N - 64 };
    static double values[N], got[N];
    void (*late)(long queries) = NULL;
    void *const symbol = cuda_emulation("kith_emulate_late");
    float *const sent = gpu->alloc(N * sizeof(float), true);
    void *const x = cuda_room(gpu, N), *const y = cuda_room(gpu, N);
    if (symbol != NULL) {
        memcpy(&late, &symbol, sizeof late);
        late(1000);
    }
    cuda_fill(values, N, 3);
    gpu->write(N, values, x);
    gpu->copy(FIRST, sent, x);
    gpu->copy(N - FIRST, sent + FIRST, (float *)x + FIRST);
    gpu->scale(0, 3, sent + FIRST); /* nothing of a slot of its own */
    gpu->copy(N, y, sent);          /* whole, while its pieces leave */
    assert_true(gpu->settled(sent, true));
    gpu->read(N, y, got);
    for (size_t i = 0; i < N; i++) {
        assert_true(fabs((double)sent[i] - values[i]) <= 0);
        assert_true(fabs(got[i] - values[i]) <= 0);
    }
    gpu->copy(N, sent, x);
    gpu->add(N, 1, x, sent);
    assert_true(gpu->settled(sent, true));
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)sent[i] - 2 * values[i]) <= 0);
    if (late != NULL)
        late(0);
    gpu->release(sent);
    gpu->release(x);
    gpu->release(y);
}

static void test_conversions(void **state)
{
    (void)state;
    enum { N = 255 };
    double values[N], got[N];
    uint8_t *const bytes = gpu->alloc(N, true);
    void *const x = cuda_room(gpu, N), *const y = cuda_room(gpu, N);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i + 1);
    gpu->from_bytes(N, bytes, x);
    gpu->read(N, x, got);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(got[i] - (double)(i + 1) / 255) < 1e-7);
    /* Halfway between two neighbours: to the even one. */
    for (size_t i = 0; i < N; i++)
        values[i] = (double)(i + 1) * (1 + 1.0 / 256);
    gpu->write(N, values, x);
    gpu->narrow(N, x, y);
    gpu->widen(N, y, x);
    gpu->read(N, x, got);
    assert_true(fabs(got[0] - 1) <= 0);
    assert_true(fabs(got[2] - 3.015625) <= 0);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(got[i] - values[i]) <= values[i] / 256);
    gpu->release(bytes);
    gpu->release(x);
    gpu->release(y);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    exact = kith_backend_find("naive64");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_mix_bf16),
        cmocka_unit_test(test_pair_is_exact),
        cmocka_unit_test(test_deltas_are_the_cpus),
        cmocka_unit_test(test_finite),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
