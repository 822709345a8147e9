/* Goal: every instruction set that this CPU has gives the bits of the portable
 * loops, at the ends of vectors and past the caches. */
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

#define N_MAX 1100
static const size_t sizes[] = {0, 1, 7, 15, 16, 17, 31, 33, 100, 1024, 1100};
#define SIZES (sizeof sizes / sizeof sizes[0])

/* Every variant this CPU can run gives the bits of the portable one. */
static void test_variants_agree(void **state)
{
    (void)state;
    static float r[N_MAX], s[2][N_MAX], x[2][N_MAX], v[2][N_MAX];
    static double draws[N_MAX];
    struct kith_rng rng;
    kith_rng_init(&rng, 25, KITH_STREAM_TEST, N_MAX);
    for (size_t i = 0; i < N_MAX; i++)
        draws[i] = (double)(float)(4 * kith_rng_double(&rng) - 2);
    unsigned tested = 0;
    for (size_t k = 0; kith_cpu_loops[k] != NULL; k++) {
        const struct kith_cpu_loops *loops = kith_cpu_loops[k];
        const struct kith_cpu_loops *plain = &kith_cpu_portable;
        if (!loops->supported())
            continue;
        for (size_t i = 0; i < SIZES; i++) {
            const size_t n = sizes[i];
            for (size_t j = 0; j < n; j++) {
                r[j] = (float)draws[j];
                s[0][j] = s[1][j] = (float)(draws[n - 1 - j] / 3);
                x[0][j] = x[1][j] = v[0][j] = v[1][j] = (float)(j + 1) / 7;
            }
            assert_true(loops->mix(n, 0.3f, r, s[0], x[0]) ==
                        plain->mix(n, 0.3f, r, s[1], x[1]));
            assert_true(loops->swap_mix(n, 0.3f, r, s[0], s[0], x[0]) ==
                        plain->swap_mix(n, 0.3f, r, s[1], s[1], x[1]));
            assert_true(loops->distance_squared(n, r, x[0]) ==
                        plain->distance_squared(n, r, x[1]));
            assert_true(loops->sum(n, x[0]) == plain->sum(n, x[1]));
            assert_true(loops->sgd(&(struct kith_sgd){.n = n,
                                                      .rate = 0.1f,
                                                      .momentum = 0.9f,
                                                      .decay = 0.01f,
                                                      .nesterov = i % 2,
                                                      .gradient = r,
                                                      .velocity = v[0],
                                                      .x = x[0]}) ==
                        plain->sgd(&(struct kith_sgd){.n = n,
                                                      .rate = 0.1f,
                                                      .momentum = 0.9f,
                                                      .decay = 0.01f,
                                                      .nesterov = i % 2,
                                                      .gradient = r,
                                                      .velocity = v[1],
                                                      .x = x[1]}));
            assert_memory_equal(x[0], x[1], n * sizeof x[0][0]);
            assert_memory_equal(s[0], s[1], n * sizeof s[0][0]);
            assert_memory_equal(v[0], v[1], n * sizeof v[0][0]);
        }
        tested++;
    }
    assert_true(tested >= 1);
}

/* Passes over sizes: as naive32 has them. */
static void test_magnitudes(void **state)
{
    enum { LONG = 5000, ROOM = 300 };
    static float v[LONG], kept[2][ROOM];
    static uint32_t places[2][LONG];
    const struct kith_magnitudes *const plain =
        kith_backend_find("naive32")->magnitudes();
    struct kith_rng rng;
    double bounds[KITH_MAGNITUDE_BOUNDS];
    (void)state;
    kith_rng_init(&rng, 26, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < LONG; i++)
        v[i] = (float)((int)kith_rng_below(&rng, 41) - 20) / 8;
    for (unsigned j = 0; j < KITH_MAGNITUDE_BOUNDS; j++)
        bounds[j] = (15 - j) / 4.0;
    for (size_t k = 0; kith_cpu_loops[k] != NULL; k++) {
        const struct kith_magnitudes *const own = kith_cpu_loops[k]->magnitudes;
        for (size_t n = 0; n <= LONG && kith_cpu_loops[k]->supported();
             n += n < 70 ? 1 : 493) {
            size_t counts[2][KITH_MAGNITUDE_BOUNDS];
            const struct kith_magnitude_survey a = own->survey(n, v);
            const struct kith_magnitude_survey b = plain->survey(n, v);
            assert_true(a.sum == b.sum && a.most == b.most);
            own->count(n, v, bounds, counts[0]);
            plain->count(n, v, bounds, counts[1]);
            assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
            const struct kith_magnitude_found c =
                own->keep(n, v, 0.5, 1.25, ROOM, kept[0]);
            const struct kith_magnitude_found d =
                plain->keep(n, v, 0.5, 1.25, ROOM, kept[1]);
            assert_true(c.within == d.within && c.beyond == d.beyond);
            assert_memory_equal(kept[0], kept[1], sizeof kept[0]);
            const size_t found = own->find(n, v, 2, places[0]);
            assert_int_equal(found, plain->find(n, v, 2, places[1]));
            assert_memory_equal(places[0], places[1],
                                found * sizeof places[0][0]);
            assert_int_equal(own->find(n, v, 0, places[0]), n);
        }
    }
}

/* A large target that is only written goes past the caches: the same bits. */
static void test_large_swap(void **state)
{
    (void)state;
    const size_t n = ((size_t)8 << 20) / sizeof(float) + 19;
    float *memory = aligned_alloc(64, (4 * n * sizeof *memory + 63) / 64 * 64);
    assert_non_null(memory);
    float *const r = memory, *const s = r + n, *const want = s + n;
    /* The fourth starts on a cache line. */
    float *const got = want + n - (uintptr_t)(want + n) % 64 / sizeof *want;
    for (size_t i = 0; i < n; i++) {
        r[i] = (float)(i % 97) / 7;
        s[i] = (float)(i % 89) / 3;
    }
    const size_t fits = n - 16;
    for (size_t k = 0; kith_cpu_loops[k] != NULL; k++) {
        const struct kith_cpu_loops *loops = kith_cpu_loops[k];
        if (!loops->supported())
            continue;
        for (size_t own = 0; own < 2; own++) { /* base: s, or another */
            const float *const base = own > 0 ? r : s;
            memcpy(want, base, fits * sizeof *want);
            const double sum = loops->mix(fits, 0.3f, r, s, want);
            assert_true(loops->swap_mix(fits, 0.3f, r, s, base, got) == sum);
            assert_memory_equal(got, want, fits * sizeof *got);
        }
    }
    free(memory);
}

/* x <- 0.9 x + (r - s) / 2 and what changed it, a <- x, b <- x - r on elements
 * [i, i + n) of vectors that stand `stride` apart. */
static void combine_three(const struct kith_cpu_loops *loops, size_t n,
                          size_t stride, float *r, double *change)
{
    float *const s = r + stride, *const x = s + stride;
    float *const a = x + stride, *const b = a + stride;
    const struct kith_term half = {0.5, r, s}, same = {1, x, NULL};
    const struct kith_term apart = {1, x, r};
    loops->combine(
        n, 3,
        (struct kith_update[]){
            {.y = x, .own = 0.9, .count = 1, .terms = &half, .change = change},
            {.y = a, .count = 1, .terms = &same},
            {.y = b, .count = 1, .terms = &apart}});
}

/* One target that is kept and two that go past the caches, beside the portable
 * loops on pieces that a cache holds. */
static void test_large_combine(void **state)
{
    (void)state;
    enum { VECTORS = 5, PIECE = 1000 };
    /* Whole cache lines, so that every vector starts on one; the last piece of
     * each is shorter than a tile. */
    const size_t n = ((size_t)8 << 20) / sizeof(float) + 176, fits = n - 13;
    const size_t bytes = VECTORS * n * sizeof(float);
    float *const got = aligned_alloc(64, bytes), *const want = malloc(bytes);
    assert_non_null(got);
    assert_non_null(want);
    for (size_t k = 0; kith_cpu_loops[k] != NULL; k++) {
        const struct kith_cpu_loops *loops = kith_cpu_loops[k];
        if (!loops->supported())
            continue;
        for (size_t i = 0; i < VECTORS * n; i++)
            got[i] = want[i] = (float)(i % 97) / 7 - (float)(i % 89) / 3;
        double change = 0, changes = 0;
        combine_three(loops, fits, n, got, &change);
        for (size_t i = 0; i < fits; i += PIECE) {
            const size_t left = fits - i < PIECE ? fits - i : PIECE;
            double part = 0;
            combine_three(&kith_cpu_portable, left, n, want + i, &part);
            changes += part;
        }
        assert_memory_equal(got, want, bytes);
        assert_true(fabs(change - changes) <= 1e-9 * (double)n);
    }
    free(got);
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_agree),
        cmocka_unit_test(test_magnitudes),
        cmocka_unit_test(test_large_swap),
        cmocka_unit_test(test_large_combine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
