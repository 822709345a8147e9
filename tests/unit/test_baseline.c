/* Goal: the baseline trains as many samples as all peers together would, says
 * where it stands, stops when told. Method: an mlp on the bundled digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/baseline.h"
#include "worker_fixture.h"

static char error[KITH_RESUME_ERROR_BYTES];
static struct kith_dataset set;

static struct kith_experiment digits_experiment(void)
{
    struct kith_experiment experiment = fixture_learner("adpsgd", 4);
    experiment.stop.epochs = 20;
    return experiment;
}

struct log {
    unsigned rows, calls;
    uint64_t stop_at;
    volatile sig_atomic_t stop;
};

static void note_row(void *arg, const struct kith_baseline_row *row)
{
    struct log *log = arg;
    log->rows++;
    assert_true(row->speed.measured && row->speed.memory_bytes > 0);
    assert_true(row->speed.samples_per_s > 0 && row->speed.flop_per_s > 0);
    assert_true(row->speed.data_wait_s >= 0);
    assert_true(isnan(row->speed.exchange_overlap));
    assert_int_equal(row->samples, row->step * 16);
    assert_true(isfinite(row->score.loss) && isfinite(row->train_loss));
}

static void note_step(void *arg, uint64_t step, uint64_t steps, double loss,
                      const struct kith_speed *speed)
{
    (void)speed;
    struct log *log = arg;
    log->calls++;
    assert_int_equal(step, log->calls);
    assert_true(step <= steps && isfinite(loss));
    if (step == log->stop_at)
        log->stop = 1;
}

static void test_steps(void **state)
{
    (void)state;
    struct kith_experiment experiment = digits_experiment();
    assert_int_equal(kith_baseline_steps(&experiment, 1440, 0), 1800);
    assert_int_equal(kith_baseline_steps(&experiment, 1440, 64), 450);
    experiment.stop.epochs = 0;
    experiment.stop.steps = 100; /* of each of 4 peers */
    assert_int_equal(kith_baseline_steps(&experiment, 1440, 0), 400);
    assert_int_equal(kith_baseline_steps(&experiment, 1440, 64), 100);
    experiment.stop.steps = 0;
    experiment.stop.time_ns = KITH_S;
    assert_int_equal(kith_baseline_steps(&experiment, 1440, 0), UINT64_MAX);
}

static void test_digits(void **state)
{
    (void)state;
    const struct kith_experiment experiment = digits_experiment();
    struct log log = {0};
    const struct kith_baseline_config config = {.experiment = &experiment,
                                                .dataset = &set,
                                                .evaluate_steps = 500,
                                                .stop = &log.stop,
                                                .arg = &log,
                                                .progress = note_step,
                                                .row = note_row};
    struct kith_baseline_result result;
    if (kith_baseline_run(&config, &result, error) != KITH_OK)
        fail_msg("%s", error);
    assert_true(result.completed && result.finite);
    assert_int_equal(log.calls, 1800);
    assert_int_equal(log.rows, 4); /* 500, 1000, 1500 and the end */
    assert_int_equal(result.last.step, 1800);
    assert_true(result.last.score.accuracy >= 0.9);
    assert_true(result.train_s > 0 && result.train_s <= result.wall_s);
}

static void test_stop_and_divergence(void **state)
{
    (void)state;
    struct kith_experiment experiment = digits_experiment();
    struct log log = {.stop_at = 7};
    struct kith_baseline_config config = {.experiment = &experiment,
                                          .dataset = &set,
                                          .stop = &log.stop,
                                          .arg = &log,
                                          .progress = note_step};
    struct kith_baseline_result result;
    assert_int_equal(kith_baseline_run(&config, &result, error), KITH_OK);
    assert_false(result.completed);
    assert_true(result.finite);
    assert_int_equal(result.last.step, 7);

    experiment.train.config.learning_rate = 1e30;
    config.progress = NULL;
    config.stop = NULL;
    assert_int_equal(kith_baseline_run(&config, &result, error), KITH_OK);
    assert_false(result.completed || result.finite);
    assert_true(result.last.step < 10);
}

/* Told to stop at the very step of a row, it puts no second one. */
static void test_stop_at_a_row(void **state)
{
    (void)state;
    struct kith_experiment experiment = digits_experiment();
    struct log log = {.stop_at = 14};
    const struct kith_baseline_config config = {.experiment = &experiment,
                                                .dataset = &set,
                                                .evaluate_steps = 7,
                                                .stop = &log.stop,
                                                .arg = &log,
                                                .row = note_row,
                                                .progress = note_step};
    struct kith_baseline_result result;
    assert_int_equal(kith_baseline_run(&config, &result, error), KITH_OK);
    printf("expected: 2 rows at step 14; measured: %u at %llu\n", log.rows,
           (unsigned long long)result.last.step);
    assert_int_equal(log.rows, 2);
    assert_int_equal(result.last.step, 14);
    assert_true(isfinite(result.last.score.loss));
}

static void test_time_limit_and_no_data(void **state)
{
    (void)state;
    struct kith_experiment experiment =
        fixture_experiment("quadratic", "adpsgd", 4);
    experiment.stop.time_ns = 20 * KITH_MS;
    const struct kith_baseline_config config = {.experiment = &experiment};
    struct kith_baseline_result result;
    assert_int_equal(kith_baseline_run(&config, &result, error), KITH_OK);
    assert_true(result.completed);
    assert_true(result.wall_s >= 0.02);
    assert_true(isnan(result.last.score.accuracy));
    /* Its own target is reached: gradient descent on |x - b|^2 / 2. */
    assert_true(result.last.score.loss < 1e-9);
    assert_true(result.last.step > 100);
}

static int open_digits(void **state)
{
    (void)state;
    return fixture_digits(&set, error) == KITH_OK ? 0 : 1;
}

static int close_digits(void **state)
{
    (void)state;
    kith_dataset_close(&set);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_stop_and_divergence),
        cmocka_unit_test(test_stop_at_a_row),
        cmocka_unit_test(test_time_limit_and_no_data),
    };
    kith_backend_threads(1);
    return cmocka_run_group_tests(tests, open_digits, close_digits);
}
