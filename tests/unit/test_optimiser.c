/* Goal: SGD and the schedules follow their formulas. Method: two or three steps
 * beside the same arithmetic written out, in float64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kith/optimiser.h"

enum { N = 3 };

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-14))
        fail_msg("%.17g, not %.17g", got, want);
}

static void run_against(const struct kith_optimiser_config *config)
{
    const struct kith_backend *backend = kith_backend_find("naive64");
    const struct kith_optimiser *sgd = kith_optimiser_find("sgd");
    double x[N] = {1, -2, 0.5}, v[N] = {0}, y[N] = {1, -2, 0.5}, u[N] = {0};
    void *const vectors[] = {v};
    for (int step = 0; step < 3; step++) {
        double g[N] = {3.0 + step, 0.25, -4};
        const double norm = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
        const double shrink =
            config->clip > 0 && norm > config->clip ? config->clip / norm : 1;
        for (int i = 0; i < N; i++) {
            u[i] = config->momentum * u[i] + g[i] * shrink +
                   config->weight_decay * y[i];
            y[i] -= 0.1 * u[i];
        }
        assert_true(sgd->step(config, backend, N, 0.1, g, vectors, x));
        for (int i = 0; i < N; i++)
            near(x[i], y[i]);
    }
}

static void test_sgd(void **state)
{
    (void)state;
    assert_int_equal(kith_optimiser_find("sgd")->state_vectors, 1);
    assert_null(kith_optimiser_find("sgd "));
    const struct kith_optimiser_config configs[] = {
        {.momentum = 0},
        {.momentum = 0.9},
        {.momentum = 0.9, .weight_decay = 0.01},
        {.momentum = 0.5, .weight_decay = 0.1, .clip = 1},
        {.momentum = 0, .clip = 1000},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        run_against(&configs[i]);
}

static void test_sgd_reports_overflow(void **state)
{
    (void)state;
    const struct kith_backend *backend = kith_backend_find("naive64");
    const struct kith_optimiser_config config = {.momentum = 0.9};
    double x[1] = {1}, v[1] = {0}, g[1] = {INFINITY};
    void *const vectors[] = {v};
    assert_false(kith_optimiser_find("sgd")->step(&config, backend, 1, 0.1, g,
                                                  vectors, x));
}

static void test_schedules(void **state)
{
    (void)state;
    for (uint64_t step = 0; step < 100; step++)
        near(kith_schedule_factor(KITH_SCHEDULE_CONSTANT, step, 100, 0), 1);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 0, 100, 0), 1);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 25, 100, 0), 0.75);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 99, 100, 0), 0.01);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 100, 100, 0), 0);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 500, 100, 0), 0);
    near(kith_schedule_factor(KITH_SCHEDULE_COSINE, 0, 100, 0), 1);
    near(kith_schedule_factor(KITH_SCHEDULE_COSINE, 50, 100, 0), 0.5);
    near(kith_schedule_factor(KITH_SCHEDULE_COSINE, 100, 100, 0), 0);

    /* Warm-up climbs to 1 over its steps, times the schedule. */
    near(kith_schedule_factor(KITH_SCHEDULE_CONSTANT, 0, 100, 10), 0.1);
    near(kith_schedule_factor(KITH_SCHEDULE_CONSTANT, 8, 100, 10), 0.9);
    near(kith_schedule_factor(KITH_SCHEDULE_CONSTANT, 9, 100, 10), 1);
    near(kith_schedule_factor(KITH_SCHEDULE_LINEAR, 4, 100, 10), 0.5 * 0.96);

    /* A share without end stays at the start of its schedule. */
    near(kith_schedule_factor(KITH_SCHEDULE_COSINE, 1000, UINT64_MAX, 0), 1);

    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_CONSTANT), "constant");
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_LINEAR), "linear");
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_COSINE), "cosine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_sgd_reports_overflow),
        cmocka_unit_test(test_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
