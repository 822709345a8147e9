/* Goal: what a device combines has the CPU's bits, whatever the values are, and
 * so has the direction of Adam's moments; sums are a CPU's but for their order.
 * Method: the CUDA module's emulation beside backend cpu, vectors that are
 * aligned and that are not, every kind of update. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_cases.h"
#include "kith/rng.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
enum { MOST = 65471, VECTORS = 4 };
static const size_t sizes[] = {0,   1,   3,    31,   32,  255,
                               256, 257, 1030, 8193, MOST};

static const struct kith_backend *gpu, *half, *cpu;

/* The same on both backends, from element `skip` of their memory on. */
struct set {
    size_t n;
    void *memory[VECTORS];
    float *x[VECTORS];
};

/* Magnitudes from 2^-20 to 2^20, or wild ones of which some are no numbers. */
static void draw(float *values, size_t n, uint64_t which, bool wild)
{
    struct kith_rng rng;
    kith_rng_init(&rng, cuda_seed(which), KITH_STREAM_TEST, n);
    for (size_t i = 0; i < n; i++) {
        const int power = (int)kith_rng_below(&rng, wild ? 270 : 40);
        const double size =
            ldexp(kith_rng_double(&rng), power - (wild ? 142 : 20));
        values[i] = (float)(kith_rng_below(&rng, 2) == 0 ? size : -size);
        if (wild && kith_rng_below(&rng, 50) == 0)
            values[i] = i % 3 == 0   ? (float)NAN
                        : i % 3 == 1 ? (float)INFINITY
                                     : -(float)INFINITY;
    }
}

static void set_open(struct set *s, const struct kith_backend *on, size_t n,
                     size_t skip, bool wild)
{
    s->n = n;
    for (size_t i = 0; i < VECTORS; i++) {
        float *const from = on->alloc((n + 1) * sizeof *from, true);
        draw(from, n, i, wild);
        s->memory[i] = on->alloc((n + skip + 1) * sizeof *from, false);
        s->x[i] = (float *)s->memory[i] + skip;
        on->copy(n, s->x[i], from);
        on->release(from);
    }
}

static void set_close(struct set *s, const struct kith_backend *on)
{
    for (size_t i = 0; i < VECTORS; i++)
        on->release(s->memory[i]);
}

/* No number is no number, of whatever bits. */
static void same(const struct set *got, const struct set *want,
                 const char *what)
{
    const size_t n = got->n;
    float *const there = gpu->alloc((n + 1) * sizeof *there, true);
    for (size_t v = 0; v < VECTORS; v++) {
        gpu->copy(n, there, got->x[v]);
        assert_true(gpu->settled(there, true));
        for (size_t i = 0; i < n; i++)
            if (memcmp(there + i, want->x[v] + i, sizeof *there) != 0 &&
                !(isnan(there[i]) && isnan(want->x[v][i])))
                fail_msg("%s of %zu values: %zu of vector %zu is %g, not %g",
                         what, n, i, v, (double)there[i],
                         (double)want->x[v][i]);
    }
    gpu->release(there);
}

/* Of the number that is asked for of one. */
static void run_one(const struct kith_backend *on, const struct set *s,
                    double own, unsigned count, unsigned way, double *change)
{
    const struct kith_term terms[] = {{way & 1 ? 1 : 0.7, s->x[1], s->x[2]},
                                      {-0.3, s->x[2], NULL},
                                      {1.0 / 3, s->x[3], s->x[0]}};
    on->combine(s->n, 1,
                &(struct kith_update){.y = s->x[0],
                                      .own = own,
                                      .count = count,
                                      .terms = terms,
                                      .squared = (way & 2) != 0,
                                      .change = change});
}

static void test_updates(void **state)
{
    (void)state;
    static const double owns[] = {0, 1, 0.9, -0.5};
    for (size_t c = 0; c < COUNT(sizes) * COUNT(owns) * 32; c++) {
        const size_t n = sizes[c / 32 / COUNT(owns)];
        const double own = owns[c / 32 % COUNT(owns)];
        const unsigned way = c % 4, skip = c / 4 % 2, wild = c / 8 % 2;
        const bool asks = c / 16 % 2;
        for (unsigned count = 0; count <= 3; count++) {
            struct set got, want;
            double added = 0, expected = 0;
            if ((count == 0 && own == 0) || (n == MOST && way != 1))
                continue;
            set_open(&got, gpu, n, skip, wild);
            set_open(&want, cpu, n, skip, wild);
            run_one(gpu, &got, own, count, way, asks ? &added : NULL);
            run_one(cpu, &want, own, count, way, asks ? &expected : NULL);
            same(&got, &want, "combine");
            if (!wild)
                assert_true(fabs(added - expected) <=
                            1e-4 * (1 + fabs(expected)));
            else
                assert_true(isfinite(added) == isfinite(expected));
            set_close(&got, gpu);
            set_close(&want, cpu);
        }
    }
}

/* A later one sees what an earlier one wrote. */
static void run_chain(const struct kith_backend *on, const struct set *s,
                      double *change)
{
    const struct kith_term gap = {0.5, s->x[2], s->x[0]};
    const struct kith_term next = {0.3, s->x[0], NULL};
    const struct kith_term back = {-0.2, s->x[1], s->x[2]};
    const struct kith_update updates[] = {
        {.y = s->x[0], .own = 0.9, .count = 1, .terms = &gap},
        {.y = s->x[1], .count = 1, .terms = &next, .squared = true},
        {.y = s->x[3], .own = 1, .count = 1, .terms = &back, .change = change}};
    on->combine(s->n, COUNT(updates), updates);
}

static void run_direction(const struct kith_backend *on, const struct set *s)
{
    on->adam_direction(&(struct kith_adam){.n = s->n,
                                           .beta1 = 0.9,
                                           .beta2 = 0.99,
                                           .epsilon = 1e-8,
                                           .first = s->x[0],
                                           .second = s->x[1],
                                           .gradient = s->x[2]});
}

static void test_chains_and_directions(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT(sizes) * 4; c++) {
        struct set got, want;
        double added, expected;
        const size_t n = sizes[c / 4];
        const bool wild = c % 2;
        set_open(&got, gpu, n, c / 2 % 2, wild);
        set_open(&want, cpu, n, c / 2 % 2, wild);
        run_chain(gpu, &got, &added);
        run_chain(cpu, &want, &expected);
        same(&got, &want, "a chain");
        if (!wild)
            assert_true(fabs(added - expected) <= 1e-4 * (1 + fabs(expected)));
        run_direction(gpu, &got);
        run_direction(cpu, &want);
        same(&got, &want, "a direction");
        set_close(&got, gpu);
        set_close(&want, cpu);
    }
}

/* As many neighbours as there may be. */
static void test_most_terms(void **state)
{
    (void)state;
    struct kith_term terms[KITH_TERMS_MAX];
    struct set sets[2];
    const struct kith_backend *const on[] = {gpu, cpu};
    for (size_t k = 0; k < 2; k++) {
        set_open(&sets[k], on[k], 1030, 0, false);
        for (unsigned t = 0; t < KITH_TERMS_MAX; t++)
            terms[t] =
                (struct kith_term){0.01 * (t + 1), sets[k].x[t % VECTORS],
                                   sets[k].x[(t + 1) % VECTORS]};
        on[k]->combine(1030, 1,
                       &(struct kith_update){.y = sets[k].x[0],
                                             .own = 1,
                                             .count = KITH_TERMS_MAX,
                                             .terms = terms});
    }
    same(&sets[0], &sets[1], "a round");
    for (size_t k = 0; k < 2; k++)
        set_close(&sets[k], on[k]);
}

int main(void)
{
    if (!cuda_module_found(&gpu, &half))
        return 77;
    cpu = kith_backend_find("cpu");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_chains_and_directions),
        cmocka_unit_test(test_most_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
