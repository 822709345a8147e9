/* Goal: rates are what was trained between two looks over the time between
 * them, FLOP are three forward passes, MFU is a share of the given peak.
 * Method: a model whose FLOP can be counted by hand; spans that are given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kith/experiment.h"
#include "kith/speed.h"

static bool near(double x, double wanted)
{
    return fabs(x - wanted) <= 1e-9 * fabs(wanted);
}

static void load(const char *model, struct kith_experiment *experiment)
{
    static const char head[] = "name: speed\nseed: 1\npeers: 2\n"
                               "stop: {steps: 10}\n";
    char text[512], error[KITH_EXPERIMENT_ERROR_BYTES];
    const int size = snprintf(text, sizeof text, "%s%s", head, model);
    const enum kith_err err = kith_experiment_parse("speed", text, (size_t)size,
                                                    NULL, 0, experiment, error);
    if (err != KITH_OK)
        fail_msg("%s", error);
}

/* 64 x 10 products and sums: 1,280 FLOP forward; the rest is small change. */
static void test_rates(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("model: {kind: logistic, layers: [64, 10]}\n"
         "data: {kind: idx, path: .}\n",
         &experiment);
    struct kith_meter meter;
    struct kith_speed speed;

    kith_meter_start(&meter, experiment.model, &experiment.model_config, 1e9,
                     1000, 2);
    assert_true(meter.flop >= 3 * 1280 && meter.flop < 3 * 1600);
    kith_meter_look(&meter, 1600, 2.5, &speed);

    assert_true(speed.measured);
    assert_true(near(speed.samples_per_s, 1200));
    assert_true(near(speed.flop_per_s, 1200 * meter.flop));
    assert_true(near(speed.mfu, speed.flop_per_s / 1e9));
    assert_true(isnan(speed.tokens_per_s));
    assert_true(isnan(speed.data_wait_s) && isnan(speed.exchange_overlap));
    assert_true(speed.memory_bytes > 1 << 20);

    /* The next look begins where this one ended. */
    kith_meter_look(&meter, 1700, 3.5, &speed);
    assert_true(near(speed.samples_per_s, 100));
    kith_meter_look(&meter, 1700, 3.5, &speed);
    assert_true(isnan(speed.samples_per_s) && isnan(speed.mfu));
    kith_meter_look(&meter, 1700, 4.5, &speed);
    assert_true(speed.samples_per_s <= 0);
    kith_experiment_close(&experiment);
}

static void test_tokens(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("model: {kind: gpt, depth: 1, heads: 2, width: 8, context: 32, "
         "vocabulary: 50}\ndata: {kind: text, path: .}\n",
         &experiment);
    struct kith_meter meter;
    struct kith_speed speed;

    kith_meter_start(&meter, experiment.model, &experiment.model_config, 0, 0,
                     0);
    kith_meter_look(&meter, 10, 2, &speed);

    assert_true(near(speed.samples_per_s, 5));
    assert_true(near(speed.tokens_per_s, 5 * 32));
    assert_true(speed.flop_per_s > 0);
    assert_true(isnan(speed.mfu));
    kith_experiment_close(&experiment);
}

/* A model without operations has no FLOP, and says so. */
static void test_nothing(void **state)
{
    (void)state;
    struct kith_experiment experiment;
    load("model: {kind: quadratic, dim: 10}\n", &experiment);
    struct kith_meter meter;
    struct kith_speed speed;

    kith_meter_start(&meter, experiment.model, &experiment.model_config, 1e9, 0,
                     0);
    kith_meter_look(&meter, 10, 2, &speed);

    assert_true(near(speed.samples_per_s, 5));
    assert_true(isnan(speed.flop_per_s) && isnan(speed.mfu));
    kith_experiment_close(&experiment);
}

static void test_text(void **state)
{
    (void)state;
    char text[KITH_SPEED_TEXT_BYTES];
    struct kith_speed speed = {.measured = true,
                               .samples_per_s = 5120,
                               .tokens_per_s = NAN,
                               .flop_per_s = 12.3e9,
                               .mfu = 0.41};

    kith_speed_text(&speed, text);
    assert_string_equal(text, "5120 samples/s, 12.3 GFLOP/s (41 % of peak)");
    speed.tokens_per_s = 1e6;
    speed.mfu = NAN;
    kith_speed_text(&speed, text);
    assert_string_equal(text, "1000000 tokens/s, 12.3 GFLOP/s");
    speed.measured = false;
    kith_speed_text(&speed, text);
    assert_string_equal(text, "");
    /* As long as numbers get. */
    speed = (struct kith_speed){.measured = true,
                                .samples_per_s = 1e300,
                                .tokens_per_s = 1e300,
                                .flop_per_s = 1e300,
                                .mfu = 1e300};
    kith_speed_text(&speed, text);
    assert_true(strlen(text) < KITH_SPEED_TEXT_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
