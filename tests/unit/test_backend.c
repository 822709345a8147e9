/* Goal: every backend does what backend.h says. Method: each operation of each
 * backend, and each instruction-set variant of `cpu`, beside naive64 on the
 * same random input, at sizes around the vector widths; the tolerance is the
 * rounding of the element type times the operations that feed one result. */
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
#include "kith/exp_log.h"

#define N_MAX 1100
static const size_t sizes[] = {0, 1, 7, 15, 16, 17, 31, 33, 100, 1024, 1100};
#define SIZES (sizeof sizes / sizeof sizes[0])

static double unit_of(const struct kith_backend *backend)
{
    return backend->element_bytes == 4 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* Values in [-2, 2) that float32 holds exactly, so that both start equal. */
static void fill(double *values, size_t n, uint64_t seed)
{
    struct kith_rng rng;
    kith_rng_init(&rng, seed, KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)(float)(4 * kith_rng_double(&rng) - 2);
}

struct vector {
    double exact[N_MAX];  /* on naive64 */
    double memory[N_MAX]; /* on the backend under test */
};

static void set(struct vector *vector, const struct kith_backend *backend,
                size_t n, uint64_t seed)
{
    fill(vector->exact, n, seed);
    backend->write(n, vector->exact, vector->memory);
}

static void assert_near(const struct vector *vector,
                        const struct kith_backend *backend, size_t n,
                        double tolerance)
{
    double got[N_MAX];
    backend->read(n, vector->memory, got);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - vector->exact[i]) <= tolerance))
            fail_msg("%s: element %zu of %zu is %.17g, not %.17g",
                     backend->name, i, n, got[i], vector->exact[i]);
    }
}

/* Vectors of this test lie in the host's memory, which a GPU does not reach;
 * test_cuda_ops.c looks after those. */
static bool works_here(const struct kith_backend *backend)
{
    return backend->missing() == NULL && backend->host == backend;
}

static const struct kith_backend *reference(void)
{
    return kith_backend_find("naive64");
}

static void test_registry(void **state)
{
    (void)state;
    assert_non_null(kith_backend_find("naive32"));
    assert_non_null(kith_backend_find("naive64"));
    assert_non_null(kith_backend_find("cpu"));
    assert_null(kith_backend_find("gpu9000"));
}

static void test_vector_operations(void **state)
{
    (void)state;
    const struct kith_backend *exact = reference();
    static struct vector x, y, z;
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        const double unit = unit_of(backend);
        for (size_t s = 0; s < SIZES; s++) {
            const size_t n = sizes[s];
            set(&x, backend, n, 1);
            set(&y, backend, n, 2);
            set(&z, backend, n, 3);

            backend->scale(n, 0.3, x.memory);
            exact->scale(n, 0.3, x.exact);
            /* |x| < 2: half a unit each for the factor and the product. */
            assert_near(&x, backend, n, 2 * unit);

            backend->add(n, -0.7, y.memory, x.memory);
            exact->add(n, -0.7, y.exact, x.exact);
            assert_near(&x, backend, n, 6 * unit);

            backend->copy(n, z.memory, x.memory);
            exact->copy(n, z.exact, x.exact);
            assert_near(&z, backend, n, 6 * unit);

            /* All of it and nothing beyond, whatever stands there. */
            const size_t most = n > 0 ? n - 1 : 0;
            z.exact[most] = (double)NAN;
            backend->write(n, z.exact, z.memory);
            backend->clear(most, z.memory);
            assert_true(backend->finite(most, z.memory));
            assert_true(backend->finite(n, z.memory) == (n == 0));
            backend->clear(n, z.memory);
            exact->clear(n, z.exact);
            assert_near(&z, backend, n, 0);

            /* Sums of n values below 2, each rounded as above. */
            const double slack = (double)(n + 1) * 16 * unit;
            assert_true(fabs(backend->sum(n, x.memory) -
                             exact->sum(n, x.exact)) <= slack);
            assert_true(fabs(backend->distance_squared(n, x.memory, y.memory) -
                             exact->distance_squared(n, x.exact, y.exact)) <=
                        8 * slack);
            assert_true(fabs(backend->distance_squared(n, x.memory, NULL) -
                             exact->distance_squared(n, x.exact, NULL)) <=
                        8 * slack);
        }
    }
}

static double combine_one(const struct kith_backend *backend, size_t n,
                          double own, void *y, unsigned count,
                          const struct kith_term *terms)
{
    double change;
    backend->combine(n, 1,
                     &(struct kith_update){.y = y,
                                           .own = own,
                                           .count = count,
                                           .terms = terms,
                                           .change = &change});
    return change;
}

/* y <- own y + a (p - q) + b p, with as many of the terms as `count`. */
static void check_combine(const struct kith_backend *backend, size_t n,
                          double own, unsigned count)
{
    const struct kith_backend *exact = reference();
    static struct vector y, p, q;
    set(&y, backend, n, 4);
    set(&p, backend, n, 5);
    set(&q, backend, n, 6);
    const struct kith_term terms[] = {{0.7, p.memory, q.memory},
                                      {-0.3, p.memory, NULL},
                                      {1, q.memory, NULL},
                                      {-1, q.memory, p.memory}};
    const struct kith_term exacts[] = {{0.7, p.exact, q.exact},
                                       {-0.3, p.exact, NULL},
                                       {1, q.exact, NULL},
                                       {-1, q.exact, p.exact}};
    const double got = combine_one(backend, n, own, y.memory, count, terms);
    const double want = combine_one(exact, n, own, y.exact, count, exacts);
    /* Below 2 + 3 + 1 + 2 + 4, each rounded three times. */
    assert_near(&y, backend, n, 36 * unit_of(backend));
    assert_true(fabs(got - want) <= (double)(n + 1) * 64 * unit_of(backend));
}

/* combine beside naive64; its bits are those of scale, add and mix. */
static void test_combine(void **state)
{
    (void)state;
    static struct vector y, z, p, q;
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        for (size_t s = 0; s < SIZES; s++) {
            const size_t n = sizes[s];
            for (unsigned count = 0; count <= 4; count++) {
                check_combine(backend, n, 0.6, count);
                check_combine(backend, n, 1, count);
                if (count > 0)
                    check_combine(backend, n, 0, count);
            }
            set(&y, backend, n, 7);
            set(&z, backend, n, 7);
            set(&p, backend, n, 8);
            set(&q, backend, n, 9);
            const struct kith_term terms[] = {{0.4, p.memory, NULL},
                                              {0.2, p.memory, q.memory}};
            const double before = backend->sum(n, y.memory);
            backend->scale(n, 0.9, y.memory);
            backend->add(n, 0.4, p.memory, y.memory);
            (void)backend->mix(n, 0.2, p.memory, q.memory, y.memory);
            const double added = backend->sum(n, y.memory) - before;
            const double change =
                combine_one(backend, n, 0.9, z.memory, 2, terms);
            /* Here the sum of differences, there a difference of sums. */
            assert_true(fabs(change - added) <=
                        (double)(n + 1) * 16 * unit_of(backend));
            assert_memory_equal(y.memory, z.memory, n * backend->element_bytes);
        }
    }
}

/* Updates of which each sees what the one before wrote, one of them squared. */
static void run_updates(const struct kith_backend *backend, size_t n, void *y,
                        void *z, const void *p, bool together)
{
    const struct kith_term gap = {0.5, p, y}, next = {0.3, y, NULL};
    const struct kith_term back = {-0.2, z, p};
    double change;
    const struct kith_update updates[] = {
        {.y = y, .own = 0.9, .count = 1, .terms = &gap},
        {.y = z, .count = 1, .terms = &next, .squared = true},
        {.y = y, .own = 1, .count = 1, .terms = &back, .change = &change}};
    if (together)
        backend->combine(n, 3, updates);
    for (unsigned u = 0; !together && u < 3; u++)
        backend->combine(n, 1, &updates[u]);
}

static void test_updates(void **state)
{
    (void)state;
    const struct kith_backend *exact = reference();
    static struct vector y, z, p, u, v;
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        for (size_t s = 0; s < SIZES; s++) {
            const size_t n = sizes[s], bytes = n * backend->element_bytes;
            set(&y, backend, n, 4);
            set(&z, backend, n, 5);
            set(&p, backend, n, 6);
            set(&u, backend, n, 4);
            set(&v, backend, n, 5);
            run_updates(backend, n, y.memory, z.memory, p.memory, true);
            run_updates(backend, n, u.memory, v.memory, p.memory, false);
            assert_memory_equal(y.memory, u.memory, bytes);
            assert_memory_equal(z.memory, v.memory, bytes);
            run_updates(exact, n, y.exact, z.exact, p.exact, true);
            assert_near(&y, backend, n, 36 * unit_of(backend));
            assert_near(&z, backend, n, 36 * unit_of(backend));
        }
    }
}

/* Float64 whatever an element is: bit for bit where it starts from the same. */
static void test_adam_direction(void **state)
{
    (void)state;
    static struct vector g, m, v;
    static double want[N_MAX], got[N_MAX];
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        for (size_t s = 0; s < SIZES; s++) {
            const size_t n = sizes[s];
            set(&g, backend, n, 12);
            set(&m, backend, n, 13);
            set(&v, backend, n, 14);
            for (size_t i = 0; i < n; i++)
                v.exact[i] = fabs(v.exact[i]) * (i % 3 == 0 ? 0 : 1e-3);
            backend->write(n, v.exact, v.memory);
            backend->read(n, v.memory, v.exact);
            for (size_t i = 0; i < n; i++)
                want[i] = (0.9 * m.exact[i] + g.exact[i]) /
                          (sqrt(0.99 * v.exact[i] +
                                (1 - 0.99) * g.exact[i] * g.exact[i]) +
                           1e-8);
            backend->adam_direction(&(struct kith_adam){.n = n,
                                                        .beta1 = 0.9,
                                                        .beta2 = 0.99,
                                                        .epsilon = 1e-8,
                                                        .first = m.memory,
                                                        .second = v.memory,
                                                        .gradient = g.memory});
            backend->read(n, g.memory, got);
            for (size_t i = 0; i < n; i++)
                assert_true(got[i] == (backend->element_bytes == 4
                                           ? (double)(float)want[i]
                                           : want[i]));
        }
    }
}

static void test_mixing(void **state)
{
    (void)state;
    const struct kith_backend *exact = reference();
    static struct vector x, r, s;
    static uint16_t half[N_MAX];
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        const double unit = unit_of(backend);
        for (size_t i = 0; i < SIZES; i++) {
            const size_t n = sizes[i];
            const double slack = (double)(n + 1) * 8 * unit;
            set(&x, backend, n, 4);
            set(&r, backend, n, 5);
            set(&s, backend, n, 6);
            double got = backend->mix(n, 0.5, r.memory, s.memory, x.memory);
            double want = exact->mix(n, 0.5, r.exact, s.exact, x.exact);
            assert_near(&x, backend, n, 6 * unit);
            assert_true(fabs(got - want) <= slack);

            got = backend->swap_mix(n, 0.25, r.memory, s.memory, s.memory,
                                    x.memory);
            want = exact->swap_mix(n, 0.25, r.exact, s.exact, s.exact, x.exact);
            assert_near(&x, backend, n, 12 * unit);
            assert_true(fabs(got - want) <= 2 * slack);

            for (size_t k = 0; k < n; k++)
                half[k] = (uint16_t)(0x3f80 + k); /* 1, 1.0078, ... */
            const uint16_t *const sent = half + n / 2;
            const size_t both = n - n / 2;
            got = backend->mix_bf16(both, 0.5, half, sent, x.memory);
            want = exact->mix_bf16(both, 0.5, half, sent, x.exact);
            /* 0x3f80 + 1100 is about 500. */
            assert_near(&x, backend, n, 1000 * unit);
            assert_true(fabs(got - want) <= 1000 * slack);
        }
    }
}

/* The promise conservation stands on: whatever the two sides did since their
 * snapshots, their deltas and the sums of them are exact negatives. */
static void test_pair_is_exact(void **state)
{
    (void)state;
    static struct vector a, b, sent_a, sent_b, before;
    const double weights[] = {0.5, 1.0 / 3, 0.1};
    for (size_t k = 0; kith_backends[k] != NULL; k++) {
        const struct kith_backend *backend = kith_backends[k];
        if (!works_here(backend))
            continue;
        for (size_t i = 0; i < SIZES; i++) {
            const size_t n = sizes[i];
            for (size_t w = 0; w < 3; w++) {
                set(&sent_a, backend, n, 7);
                set(&sent_b, backend, n, 8);
                set(&a, backend, n, 9);
                set(&b, backend, n, 10);
                memset(before.memory, 0, sizeof before.memory);
                const double sum_a = backend->mix(n, weights[w], sent_b.memory,
                                                  sent_a.memory, a.memory);
                const double sum_b = backend->mix(n, weights[w], sent_a.memory,
                                                  sent_b.memory, b.memory);
                assert_true(sum_a == -sum_b);

                /* On x = 0 the result is the delta itself. */
                memset(a.memory, 0, sizeof a.memory);
                memset(b.memory, 0, sizeof b.memory);
                (void)backend->mix(n, weights[w], sent_b.memory, sent_a.memory,
                                   a.memory);
                (void)backend->mix(n, weights[w], sent_a.memory, sent_b.memory,
                                   b.memory);
                backend->add(n, 1, b.memory, a.memory);
                double left[N_MAX];
                backend->read(n, a.memory, left);
                for (size_t j = 0; j < n; j++)
                    assert_true(left[j] == 0);

                /* swap_mix is mix out of place, whether the old x is the
                 * snapshot or has moved on since: bit for bit. */
                set(&b, backend, n, 11);
                backend->copy(n, before.memory, b.memory);
                const void *const sents[] = {before.memory, sent_a.memory};
                for (size_t e = 0; e < 2; e++) {
                    backend->copy(n, b.memory, before.memory);
                    const double one =
                        backend->swap_mix(n, weights[w], sent_b.memory,
                                          sents[e], before.memory, a.memory);
                    const double two = backend->mix(
                        n, weights[w], sent_b.memory, sents[e], b.memory);
                    assert_true(one == two);
                    assert_memory_equal(a.memory, b.memory,
                                        n * backend->element_bytes);
                }
            }
        }
    }
}

static void test_finite(void **state)
{
    (void)state;
    static struct vector x;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        for (size_t i = 1; i < SIZES; i++) {
            const size_t n = sizes[i];
            set(&x, backend, n, 12);
            assert_true(backend->finite(n, x.memory));
            for (size_t k = 0; k < 3; k++) {
                const size_t places[] = {0, n / 2, n - 1};
                for (size_t p = 0; p < 3; p++) {
                    double spoilt[N_MAX];
                    memcpy(spoilt, x.exact, n * sizeof spoilt[0]);
                    spoilt[places[p]] = bad[k];
                    backend->write(n, spoilt, x.memory);
                    assert_false(backend->finite(n, x.memory));
                }
            }
        }
    }
}

static void test_gemm(void **state)
{
    (void)state;
    const struct kith_backend *exact = reference();
    static struct vector a, b, c;
    const size_t shapes[][3] = {
        {1, 1, 1}, {3, 5, 7}, {17, 10, 33}, {20, 30, 9}};
    for (size_t k = 0; kith_backends[k] != NULL; k++) {
        const struct kith_backend *backend = kith_backends[k];
        if (!works_here(backend))
            continue;
        for (size_t i = 0; i < 4; i++) {
            for (unsigned flags = 0; flags < 8; flags++) {
                const size_t m = shapes[i][0], n = shapes[i][1],
                             depth = shapes[i][2];
                const bool ta = flags & 1, tb = flags & 2;
                const double beta = flags & 4 ? 0.5 : 0;
                set(&a, backend, m * depth, 13);
                set(&b, backend, depth * n, 14);
                set(&c, backend, m * n, 15);
                backend->gemm(&(struct kith_gemm){.transpose_a = ta,
                                                  .transpose_b = tb,
                                                  .m = m,
                                                  .n = n,
                                                  .k = depth,
                                                  .alpha = 0.5,
                                                  .a = a.memory,
                                                  .b = b.memory,
                                                  .beta = beta,
                                                  .c = c.memory});
                exact->gemm(&(struct kith_gemm){.transpose_a = ta,
                                                .transpose_b = tb,
                                                .m = m,
                                                .n = n,
                                                .k = depth,
                                                .alpha = 0.5,
                                                .a = a.exact,
                                                .b = b.exact,
                                                .beta = beta,
                                                .c = c.exact});
                /* depth products below 4, added in any order. */
                assert_near(&c, backend, m * n,
                            4 * (double)(depth + 2) * unit_of(backend) *
                                sqrt((double)depth));
            }
        }
    }
}

static void test_memory(void **state)
{
    (void)state;
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (backend->missing() != NULL)
            continue;
        for (int shared = 0; shared < 2; shared++) {
            double values[100];
            void *memory = backend->alloc(100 * sizeof(double), shared);
            assert_non_null(memory);
            assert_true((uintptr_t)memory % 64 == 0);
            backend->read(100, memory, values);
            for (size_t i = 0; i < 100; i++)
                assert_true(fabs(values[i]) <= 0);
            backend->release(memory);
        }
        assert_null(backend->alloc(SIZE_MAX - 10, false));
        backend->release(NULL);
        assert_ptr_equal(backend->host->host, backend->host);
    }
}

static void test_sgd(void **state)
{
    (void)state;
    const struct kith_backend *exact = reference();
    static struct vector g, v, x;
    const struct {
        double momentum;
        bool nesterov;
    } kinds[] = {{0, false}, {0.9, false}, {0.9, true}};
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        for (size_t i = 0; i < SIZES; i++) {
            const size_t n = sizes[i];
            for (size_t k = 0; k < 3; k++) {
                set(&g, backend, n, 22);
                set(&v, backend, n, 23);
                set(&x, backend, n, 24);
                assert_true(backend->sgd(
                    &(struct kith_sgd){.n = n,
                                       .rate = 0.1,
                                       .momentum = kinds[k].momentum,
                                       .decay = 0.01,
                                       .nesterov = kinds[k].nesterov,
                                       .gradient = g.memory,
                                       .velocity = v.memory,
                                       .x = x.memory}));
                assert_true(
                    exact->sgd(&(struct kith_sgd){.n = n,
                                                  .rate = 0.1,
                                                  .momentum = kinds[k].momentum,
                                                  .decay = 0.01,
                                                  .nesterov = kinds[k].nesterov,
                                                  .gradient = g.exact,
                                                  .velocity = v.exact,
                                                  .x = x.exact}));
                assert_near(&v, backend, n, 8 * unit_of(backend));
                assert_near(&x, backend, n, 8 * unit_of(backend));
            }
            if (n > 0) {
                g.exact[n - 1] = INFINITY;
                backend->write(n, g.exact, g.memory);
                assert_false(
                    backend->sgd(&(struct kith_sgd){.n = n,
                                                    .rate = 0.1,
                                                    .momentum = 0.9,
                                                    .nesterov = i % 2,
                                                    .gradient = g.memory,
                                                    .velocity = v.memory,
                                                    .x = x.memory}));
            }
        }
    }
}

static void test_from_bytes(void **state)
{
    (void)state;
    uint8_t bytes[256];
    double y[256], got[256];
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    for (size_t b = 0; kith_backends[b] != NULL; b++) {
        const struct kith_backend *backend = kith_backends[b];
        if (!works_here(backend))
            continue;
        backend->from_bytes(255, bytes + 1, y);
        backend->read(255, y, got);
        for (size_t i = 0; i < 255; i++) {
            const double want = (double)(i + 1) / 255;
            assert_true(fabs(got[i] - want) <= unit_of(backend));
        }
    }
}

/* Our exp and log beside libm's, within 4 units in the last place. */
static void test_series(void **state)
{
    (void)state;
    for (int i = -7000; i <= 7000; i++) {
        const double x = (double)i / 10 + 1.0 / 3;
        assert_true(fabs(kith_exp(x) / exp(x) - 1) <= 4 * DBL_EPSILON);
        const double y = exp(x / 2);
        assert_true(fabs(kith_log(y) - log(y)) <=
                    4 * DBL_EPSILON * fmax(fabs(log(y)), 1e-3));
    }
    assert_true(kith_exp(0) == 1);
    assert_true(kith_log(1) == 0);
    assert_true(kith_exp(-INFINITY) == 0);
    assert_true(isinf(kith_exp(1000)) && isinf(kith_log(0)));
    assert_true(isnan(kith_exp(NAN)) && isnan(kith_log(NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_vector_operations),
        cmocka_unit_test(test_combine),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_adam_direction),
        cmocka_unit_test(test_mixing),
        cmocka_unit_test(test_pair_is_exact),
        cmocka_unit_test(test_finite),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_from_bytes),
        cmocka_unit_test(test_series),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
