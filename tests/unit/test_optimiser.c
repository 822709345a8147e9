/* Goal: optimisers and schedules follow their formulas, pull only at what
 * decays, and leave buffers and frozen views alone. Method: three steps beside
 * the same arithmetic written out, in float64, over a layout with a view of
 * each class. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kith/optimiser.h"

/* A matrix (3, 2), a table (2, 2), a bias (2), a running mean (1), frozen (1).
 */
enum { ROWS = 3, COLUMNS = 2, MATRIX = 6, DECAYED = 10, TRAINED = 12, N = 14 };

static const struct kith_model_view views[] = {
    {"w", KITH_VIEW_WEIGHT, false, 0, 6, {ROWS, COLUMNS}, 2},
    {"e", KITH_VIEW_TABLE, false, 6, 4, {2, 2}, 2},
    {"b", KITH_VIEW_VECTOR, false, 10, 2, {2}, 1},
    {"m", KITH_VIEW_MEAN, false, 12, 1, {1}, 1},
    {"f", KITH_VIEW_WEIGHT, true, 13, 1, {1}, 1},
};
static const struct kith_layout layout = {N, DECAYED, TRAINED, 13, views, 5};

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-13))
        fail_msg("%.17g, not %.17g", got, want);
}

/* One optimiser under test, and the same vectors by hand. */
struct pair {
    const struct kith_optimiser_config *config;
    double x[N], m[TRAINED], v[TRAINED]; /* the optimiser's */
    double y[N], a[TRAINED], b[TRAINED]; /* by hand */
    double g[TRAINED];
    double scratch[64];
};

static void begin(struct pair *pair, const struct kith_optimiser_config *config)
{
    *pair = (struct pair){.config = config};
    for (int i = 0; i < N; i++)
        pair->x[i] = pair->y[i] = 0.3 * i - 1.7;
}

static void gradient(struct pair *pair, int step)
{
    double norm = 0;
    for (int i = 0; i < TRAINED; i++) {
        pair->g[i] = cos(1.0 + i * (step + 1.3));
        norm += pair->g[i] * pair->g[i];
    }
    norm = sqrt(norm);
    double given[TRAINED];
    memcpy(given, pair->g, sizeof given);
    if (pair->config->clip > 0 && norm > pair->config->clip)
        for (int i = 0; i < TRAINED; i++)
            pair->g[i] = given[i] * (pair->config->clip / norm);
}

typedef void by_hand(struct pair *pair, int step);

static void against(const char *name,
                    const struct kith_optimiser_config *config, by_hand *hand)
{
    const struct kith_optimiser *optimiser = kith_optimiser_find(name);
    const struct kith_backend *backend = kith_backend_find("naive64");
    struct pair pair;
    assert_non_null(optimiser);
    begin(&pair, config);
    void *const state[] = {pair.m, pair.v};
    if (optimiser->scratch != NULL)
        assert_true(optimiser->scratch(&layout, backend) <=
                    sizeof pair.scratch);
    for (int step = 0; step < 3; step++) {
        double raw[TRAINED];
        for (int i = 0; i < TRAINED; i++)
            raw[i] = cos(1.0 + i * (step + 1.3));
        gradient(&pair, step);
        hand(&pair, step);
        const struct kith_optimiser_step call = {.config = config,
                                                 .backend = backend,
                                                 .layout = &layout,
                                                 .rate = 0.1,
                                                 .step = (uint64_t)step,
                                                 .gradient = raw,
                                                 .state = state,
                                                 .x = pair.x,
                                                 .scratch = pair.scratch};
        assert_true(optimiser->step(&call));
        for (int i = 0; i < N; i++)
            near(pair.x[i], pair.y[i]);
    }
    for (int i = TRAINED; i < N; i++)
        near(pair.x[i], 0.3 * i - 1.7);
}

static void move(struct pair *pair, int i, double direction)
{
    const struct kith_optimiser_config *config = pair->config;
    pair->a[i] = config->momentum * pair->a[i] + direction;
    pair->y[i] -=
        0.1 * (config->nesterov ? direction + config->momentum * pair->a[i]
                                : pair->a[i]);
}

static void sgd_by_hand(struct pair *pair, int step)
{
    (void)step;
    for (int i = 0; i < TRAINED; i++)
        move(pair, i,
             pair->g[i] +
                 (i < DECAYED ? pair->config->weight_decay * pair->y[i] : 0));
}

static void test_sgd(void **state)
{
    (void)state;
    assert_null(kith_optimiser_find("sgd "));
    const struct kith_optimiser_config configs[] = {
        {.momentum = 0},
        {.momentum = 0.9},
        {.momentum = 0.9, .nesterov = true},
        {.momentum = 0.9, .weight_decay = 0.01},
        {.momentum = 0.5, .weight_decay = 0.1, .clip = 1},
        {.momentum = 0, .clip = 1000},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        against("sgd", &configs[i], sgd_by_hand);
}

static void adamw_one(struct pair *pair, int i, int step, double decay)
{
    const struct kith_optimiser_config *config = pair->config;
    const double b1 = config->beta1, b2 = config->beta2, g = pair->g[i];
    pair->a[i] = b1 * pair->a[i] + (1 - b1) * g;
    pair->b[i] = b2 * pair->b[i] + (1 - b2) * g * g;
    const double m = pair->a[i] / (1 - pow(b1, step + 1));
    const double v = pair->b[i] / (1 - pow(b2, step + 1));
    pair->y[i] -= 0.1 * (m / (sqrt(v) + config->epsilon) + decay * pair->y[i]);
}

static void adamw_by_hand(struct pair *pair, int step)
{
    for (int i = 0; i < TRAINED; i++)
        adamw_one(pair, i, step, i < DECAYED ? pair->config->weight_decay : 0);
}

static void test_adamw(void **state)
{
    (void)state;
    const struct kith_optimiser_config configs[] = {
        {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1},
        {.beta1 = 0, .beta2 = 0.5, .epsilon = 1e-3, .clip = 0.5},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        against("adamw", &configs[i], adamw_by_hand);
}

static void lars_view(struct pair *pair, int from, int to)
{
    const struct kith_optimiser_config *config = pair->config;
    double w = 0, g = 0;
    for (int i = from; i < to; i++) {
        w += pair->y[i] * pair->y[i];
        g += pair->g[i] * pair->g[i];
    }
    const double lambda =
        config->trust * sqrt(w) / (sqrt(g) + config->weight_decay * sqrt(w));
    for (int i = from; i < to; i++)
        move(pair, i,
             lambda * (pair->g[i] + config->weight_decay * pair->y[i]));
}

static void lars_by_hand(struct pair *pair, int step)
{
    (void)step;
    lars_view(pair, 0, MATRIX);
    lars_view(pair, MATRIX, DECAYED);
    for (int i = DECAYED; i < TRAINED; i++)
        move(pair, i, pair->g[i]);
}

static void test_lars(void **state)
{
    (void)state;
    const struct kith_optimiser_config configs[] = {
        {.momentum = 0.9, .trust = 0.001, .weight_decay = 1e-4},
        {.momentum = 0.9, .trust = 0.02, .nesterov = true},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        against("lars", &configs[i], lars_by_hand);
}

/* X <- a X + X (b A + c A^2), A = X^T X (2, 2), written out. */
static void polish(double x[ROWS][COLUMNS])
{
    double square[2][2] = {{0}}, curve[2][2], next[ROWS][COLUMNS];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int r = 0; r < ROWS; r++)
                square[i][j] += x[r][i] * x[r][j];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            curve[i][j] =
                -4.7750 * square[i][j] + 2.0315 * (square[i][0] * square[0][j] +
                                                   square[i][1] * square[1][j]);
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < 2; j++)
            next[r][j] = 3.4445 * x[r][j] + x[r][0] * curve[0][j] +
                         x[r][1] * curve[1][j];
    memcpy(x, next, sizeof next);
}

static void muon_by_hand(struct pair *pair, int step)
{
    const struct kith_optimiser_config *config = pair->config;
    double x[ROWS][COLUMNS], *flat = &x[0][0], norm = 0;
    for (int i = 0; i < MATRIX; i++) {
        pair->a[i] = config->momentum * pair->a[i] + pair->g[i];
        flat[i] = config->nesterov ? pair->g[i] + config->momentum * pair->a[i]
                                   : pair->a[i];
        norm += flat[i] * flat[i];
    }
    for (int i = 0; i < MATRIX; i++)
        flat[i] /= sqrt(norm) + 1e-7;
    for (int i = 0; i < 5; i++)
        polish(x);
    for (int i = 0; i < MATRIX; i++)
        pair->y[i] -= 0.1 * (0.2 * sqrt(3.0) * flat[i] +
                             config->weight_decay * pair->y[i]);
    for (int i = MATRIX; i < TRAINED; i++)
        adamw_one(pair, i, step, i < DECAYED ? config->weight_decay : 0);
}

static void test_muon(void **state)
{
    (void)state;
    const struct kith_optimiser_config configs[] = {
        {.momentum = 0.95,
         .nesterov = true,
         .beta1 = 0.9,
         .beta2 = 0.95,
         .epsilon = 1e-8},
        {.momentum = 0.9,
         .beta1 = 0.9,
         .beta2 = 0.95,
         .epsilon = 1e-8,
         .weight_decay = 0.1,
         .clip = 1},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        against("muon", &configs[i], muon_by_hand);
}

static void test_overflow_is_reported(void **state)
{
    (void)state;
    const struct kith_optimiser_config config = {.momentum = 0.9,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.9,
                                                 .epsilon = 1e-8,
                                                 .trust = 1};
    for (size_t i = 0; kith_optimisers[i] != NULL; i++) {
        for (int at = 0; at < TRAINED; at += TRAINED - 1) {
            struct pair pair;
            begin(&pair, &config);
            gradient(&pair, 0);
            pair.g[at] = NAN;
            void *const vectors[] = {pair.m, pair.v};
            const struct kith_optimiser_step call = {
                .config = &config,
                .backend = kith_backend_find("naive64"),
                .layout = &layout,
                .rate = 0.1,
                .gradient = pair.g,
                .state = vectors,
                .x = pair.x,
                .scratch = pair.scratch};
            if (kith_optimisers[i]->step(&call))
                fail_msg("%s let a NaN at %d pass", kith_optimisers[i]->name,
                         at);
        }
    }
}

static double factor(struct kith_schedule_config config, uint64_t step)
{
    return kith_schedule_factor(&config, step, 100);
}

static void test_schedules(void **state)
{
    (void)state;
    const struct kith_schedule_config constant = {.kind =
                                                      KITH_SCHEDULE_CONSTANT};
    const struct kith_schedule_config linear = {.kind = KITH_SCHEDULE_LINEAR};
    const struct kith_schedule_config cosine = {.kind = KITH_SCHEDULE_COSINE};
    for (uint64_t step = 0; step < 100; step++)
        near(factor(constant, step), 1);
    near(factor(linear, 0), 1);
    near(factor(linear, 25), 0.75);
    near(factor(linear, 99), 0.01);
    near(factor(linear, 100), 0);
    near(factor(linear, 500), 0);
    near(factor(cosine, 0), 1);
    near(factor(cosine, 50), 0.5);
    near(factor(cosine, 100), 0);
    /* A share without end stays at the start of its schedule. */
    near(kith_schedule_factor(&cosine, 1000, UINT64_MAX), 1);
}

static void test_schedule_shapes(void **state)
{
    (void)state;
    /* The warm-up climbs to 1, then the schedule takes all that is left. */
    struct kith_schedule_config config = {.kind = KITH_SCHEDULE_LINEAR,
                                          .warmup = 10};
    near(factor(config, 0), 0.1);
    near(factor(config, 8), 0.9);
    near(factor(config, 9), 1);
    near(factor(config, 10), 1);
    near(factor(config, 55), 0.5);
    config.floor = 0.2;
    near(factor(config, 55), 0.6);
    near(factor(config, 100), 0.2);
    config.kind = KITH_SCHEDULE_COSINE;
    near(factor(config, 55), 0.6);
    near(factor(config, 100), 0.2);
    /* Nothing but warm-up. */
    config.warmup = 200;
    near(factor(config, 99), 0.5);
    config = (struct kith_schedule_config){.kind = KITH_SCHEDULE_STEP,
                                           .decay = 0.1,
                                           .milestones = {0.5, 0.75},
                                           .milestone_count = 2};
    near(factor(config, 49), 1);
    near(factor(config, 50), 0.1);
    near(factor(config, 75), 0.01);
    near(factor(config, 100), 0.01);
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_CONSTANT), "constant");
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_LINEAR), "linear");
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_COSINE), "cosine");
    assert_string_equal(kith_schedule_name(KITH_SCHEDULE_STEP), "step");
}

/* A layer whose gradients have stopped: float32 velocities fade to where one
 * over their norm is infinite, and the weights must not notice. */
static void test_fading(void **state)
{
    (void)state;
    static const char *const names[] = {"muon", "lars"};
    const struct kith_backend *backend = kith_backend_find("cpu");
    const struct kith_optimiser_config config = {.momentum = 0.8,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.95,
                                                 .epsilon = 1e-8,
                                                 .trust = 0.001};
    for (size_t k = 0; k < 2; k++) {
        float x[N], m[TRAINED] = {0}, v[TRAINED] = {0}, g[TRAINED];
        float scratch[256];
        void *const states[] = {m, v};
        for (int i = 0; i < N; i++)
            x[i] = 0.3F * (float)i - 1.7F;
        for (uint64_t step = 0; step < 600; step++) {
            for (int i = 0; i < TRAINED; i++)
                g[i] = powf(0.8F, (float)step);
            const struct kith_optimiser_step call = {.config = &config,
                                                     .backend = backend,
                                                     .layout = &layout,
                                                     .rate = 0.01,
                                                     .step = step,
                                                     .gradient = g,
                                                     .state = states,
                                                     .x = x,
                                                     .scratch = scratch};
            assert_true(kith_optimiser_find(names[k])->step(&call));
        }
    }
}

/* Without a gradient, as behind a unit that is always 0: no moment is left that
 * processors are slow with, and none that is larger is touched. */
static void test_moments_end(void **state)
{
    (void)state;
    static const char *const names[] = {"naive32", "cpu"};
    for (unsigned b = 0; b < 2; b++) {
        const struct kith_backend *backend = kith_backend_find(names[b]);
        float zero[40] = {0}, v[40], m[40], second[40] = {0}, x[40] = {0};
        for (int i = 0; i < 40; i++)
            v[i] = m[i] = i % 2 == 0 ? 1 : -1;
        for (uint64_t t = 1; t <= 800; t++) {
            assert_true(backend->sgd(&(struct kith_sgd){.n = 40,
                                                        .rate = 0.1,
                                                        .momentum = 0.9,
                                                        .gradient = zero,
                                                        .velocity = v,
                                                        .x = x}));
            assert_true(
                backend->ops->adamw(&(struct kith_adamw){.n = 40,
                                                         .rate = 0.1,
                                                         .beta1 = 0.9,
                                                         .beta2 = 0.99,
                                                         .epsilon = 1e-8,
                                                         .t = t,
                                                         .g = zero,
                                                         .m = m,
                                                         .v = second,
                                                         .x = x}));
            for (int i = 0; i < 40; i++)
                assert_true(t < 657 ? fabsf(v[i]) >= KITH_MOMENT_LEAST &&
                                          fabsf(m[i]) >= KITH_MOMENT_LEAST
                            : t > 659 ? !(fabsf(v[i]) > 0 || fabsf(m[i]) > 0)
                                      : true);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_lars),
        cmocka_unit_test(test_muon),
        cmocka_unit_test(test_moments_end),
        cmocka_unit_test(test_fading),
        cmocka_unit_test(test_overflow_is_reported),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_schedule_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
