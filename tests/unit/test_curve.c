/* Goal: a run has 20 points by default, those on the way within 3 % of it by
 * count and by time, on a part of the test set that is always the same one.
 * Method: plans of experiments whose costs are worked out again here; a clock
 * that is counted; scores on parts of random images. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kith/curve.h"
#include "kith/rng.h"
#include "worker_fixture.h"

enum { ROWS = 3000, FEATURES = 64 };

static uint8_t images[ROWS * FEATURES];
static int32_t labels[ROWS];

static struct kith_examples random_images(void)
{
    struct kith_rng rng;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)kith_rng_below(&rng, 10);
    kith_rng_fill(&rng, images, sizeof images);
    return fixture_examples(images, labels, ROWS, FEATURES, 10);
}

/* What the header states, at 16 FLOP for an element that is walked over. */
static double cost_of(const struct kith_curve_run *run,
                      const struct kith_curve_plan *plan)
{
    const struct kith_model_size size = kith_model_size_of(
        run->experiment->model, &run->experiment->model_config);
    const double models = plan->peers + 1.0;
    const double read =
        16 * (double)size.dim * (fmax(run->averaged, 1) + plan->peers);
    return plan->points * (read + models * plan->rows * size.flops);
}

static double budget_of(const struct kith_curve_run *run)
{
    const struct kith_experiment *experiment = run->experiment;
    const struct kith_model_size size =
        kith_model_size_of(experiment->model, &experiment->model_config);
    const double step =
        experiment->train.batch * size.training_flops + 32 * (double)size.dim;
    const double share = run->measured ? 0.015 : 0.03;
    return fmax(share * run->steps * step, 5e8);
}

static void test_plans(void **state)
{
    (void)state;
    const struct kith_examples test = random_images();
    static const struct {
        const char *what;
        uint32_t peers; /* of the average; 0: one model */
        double steps;
        uint32_t batch;
        unsigned points_least, points_most;
    } cases[] = {
        {"one process, long", 0, 20000, 16, 19, 19},
        {"one process, short", 0, 20, 16, 19, 19},
        {"8 peers", 8, 8 * 450, 16, 19, 19},
        {"8 peers, one step", 8, 8, 16, 19, 19},
        {"2,000 peers, a long run", 2000, 2000 * 2000, 16, 19, 19},
        {"2,000 peers, a short run", 2000, 2000 * 100, 1, 1, 18},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kith_experiment experiment = fixture_learner("adpsgd", 4);
        experiment.train.batch = cases[i].batch;
        const struct kith_curve_run run = {.experiment = &experiment,
                                           .test = &test,
                                           .steps = cases[i].steps,
                                           .averaged = cases[i].peers,
                                           .measured = cases[i].peers == 0};
        const struct kith_curve_plan plan = kith_curve_plan(&run);
        const double cost = cost_of(&run, &plan), budget = budget_of(&run);
        print_message("%-26s %2u points, %4u rows, %2u peers: %.3g of %.3g "
                      "GFLOP\n",
                      cases[i].what, plan.points, plan.rows, plan.peers,
                      1e-9 * cost, 1e-9 * budget);
        assert_in_range(plan.points, cases[i].points_least,
                        cases[i].points_most);
        assert_true(cost <= budget * 1.0001);
        assert_in_range(plan.rows, 50, 1000);
        assert_true(plan.bounded);
        assert_true(plan.peers <= 16 && plan.peers <= cases[i].peers);
    }
}

/* A real run of a wide model: 10 points in place of 20, of twice the rows,
 * where these are few; what a step takes at least is counted as work. */
static void test_larger_part(void **state)
{
    (void)state;
    static const uint32_t layers[] = {64, 4096, 10};
    const struct kith_examples test = random_images();
    struct kith_experiment experiment = fixture_learner("adpsgd", 4);
    fixture_layers(&experiment, layers, 3);
    experiment.train.batch = 16;
    struct kith_curve_run run = {
        .experiment = &experiment, .test = &test, .steps = 2000};
    run.measured = true;
    const struct kith_curve_plan few = kith_curve_plan(&run);
    run.step_ns = 100 * KITH_MS;
    const struct kith_curve_plan more = kith_curve_plan(&run);
    print_message("2,000 steps: %u points of %u rows; of 100 ms each: %u of "
                  "%u\n",
                  few.points, few.rows, more.points, more.rows);
    assert_int_equal(few.points, 9);
    assert_true(few.rows > 50 && few.rows < 1000);
    assert_true(cost_of(&run, &few) <=
                0.015 * 2000 * 16 * 3.1 * 2 * 64 * 4096 * 2);
    assert_int_equal(more.points, 19);
    assert_int_equal(more.rows, 1000);
    /* 5 FLOP a nanosecond. */
    assert_true(cost_of(&run, &more) <= 0.015 * 2000 * 5e8);
}

/* 38 million parameters and 20 steps of 4 windows: what a point costs there is
 * no share of the run, and nothing is evaluated on the way. */
static void test_too_large(void **state)
{
    (void)state;
    struct kith_experiment experiment = fixture_experiment("gpt", "local", 1);
    experiment.train.batch = 4;
    experiment.model_config = (struct kith_model_config){.depth = 12,
                                                         .heads = 8,
                                                         .width = 512,
                                                         .context = 128,
                                                         .vocabulary = 27};
    const struct kith_examples test = {.input = KITH_INPUT_TOKENS,
                                       .count = 900,
                                       .features = 128,
                                       .classes = 27};
    struct kith_curve_run run = {.experiment = &experiment,
                                 .test = &test,
                                 .steps = 20,
                                 .measured = true};
    struct kith_curve_plan plan = kith_curve_plan(&run);
    print_message("20 steps: %u points, 2,000 steps: ", plan.points);
    assert_true(plan.points <= 1);
    assert_int_equal(kith_curve_start(&plan).left_out, 19 - plan.points);
    run.steps = 2000;
    plan = kith_curve_plan(&run);
    print_message("%u points of %u windows\n", plan.points, plan.rows);
    assert_int_equal(plan.points, 19);
    assert_in_range(plan.rows, 4, 64);
}

static void test_what_the_file_says(void **state)
{
    (void)state;
    const struct kith_examples test = random_images();
    struct kith_experiment experiment = fixture_learner("adpsgd", 4);
    const struct kith_curve_run run = {
        .experiment = &experiment, .test = &test, .steps = 1, .averaged = 4};
    experiment.evaluations = KITH_EVALUATE_END;
    assert_int_equal(kith_curve_plan(&run).points, 0);
    experiment.evaluations = KITH_EVALUATE_EVERY;
    assert_int_equal(kith_curve_plan(&run).points, 0);
    experiment.evaluations = KITH_EVALUATE_FULL;
    struct kith_curve_plan plan = kith_curve_plan(&run);
    assert_int_equal(plan.points, 19);
    assert_int_equal(plan.rows, 0);
    assert_false(plan.bounded);
    /* An early stop does not hang on what is affordable. */
    experiment.evaluations = KITH_EVALUATE_CURVE;
    experiment.stop.patience = 3;
    plan = kith_curve_plan(&run);
    assert_true(plan.points == 19 && plan.rows == 0 && !plan.bounded);
    /* Nothing is learnt: nothing is evaluated. */
    experiment.model = kith_model_find("none");
    assert_int_equal(kith_curve_plan(&run).points, 0);
}

/* All 19 points, each once, at the first step that is there. */
static void test_due(void **state)
{
    (void)state;
    static const uint64_t totals[] = {1, 5, 19, 20, 21, 100, 1800, 99991};
    const struct kith_curve_plan plan = {.points = 19, .bounded = true};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        struct kith_curve curve = kith_curve_start(&plan);
        struct kith_progress at = {.steps_total = (double)totals[i]};
        unsigned points = 0;
        for (uint64_t step = 1; step < totals[i]; step++) {
            at.steps = (double)step;
            const bool asked =
                at.steps >= floor(at.steps_total * kith_curve_next(&curve));
            const bool due =
                kith_curve_look(&curve, &at, 0) == KITH_CURVE_POINT;
            assert_true(asked || !due);
            if (!due)
                continue;
            points++;
            kith_curve_took(&curve, 0);
            /* As many as lie behind us, but those that share a step. */
            if (totals[i] % 20 == 0)
                assert_int_equal(step * 20, points * totals[i]);
        }
        print_message("%" PRIu64 " steps: %u points\n", totals[i], points);
        assert_int_equal(points, totals[i] < 20 ? totals[i] - 1 : 19);
        assert_int_equal(curve.left_out, 0);
        assert_true(totals[i] < 20 || kith_curve_next(&curve) >= 1);
    }
}

/* By time, by whichever is ahead, and on from where a run was interrupted. */
static void test_due_by_time(void **state)
{
    (void)state;
    const struct kith_curve_plan plan = {.points = 19, .bounded = true};
    struct kith_curve curve = kith_curve_start(&plan);
    struct kith_progress at = {.steps_total = 1000, .time_total_ns = KITH_S};
    at.time_ns = KITH_S / 20 - 1;
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_NOTHING);
    at.time_ns = KITH_S / 20;
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_POINT);
    at.steps = 99;
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_NOTHING);
    at.steps = 500; /* the second to the tenth, passed at once */
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_POINT);
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_NOTHING);
    assert_int_equal(curve.left_out, 0);

    curve = kith_curve_start(&plan);
    kith_curve_pass(&curve, &at);
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_NOTHING);
    at.steps = 550;
    assert_int_equal(kith_curve_look(&curve, &at, 0), KITH_CURVE_POINT);
}

/* Fewer points than 19: rows at all parts in the same way. */
static void test_rows(void **state)
{
    (void)state;
    const struct kith_curve_plan plan = {.points = 3, .bounded = true};
    struct kith_curve curve = kith_curve_start(&plan);
    unsigned rows = 0, points = 0;
    for (unsigned step = 1; step < 1000; step++) {
        const struct kith_progress at = {.steps = step, .steps_total = 1000};
        const enum kith_curve_due due = kith_curve_look(&curve, &at, 0);
        rows += due != KITH_CURVE_NOTHING;
        points += due == KITH_CURVE_POINT;
    }
    assert_int_equal(points, 3);
    assert_int_equal(rows, 19); /* 250, 500 and 750 are twentieths */
    assert_int_equal(curve.left_out, 16);
}

/* A clock that counts: steps of 10 ms, evaluations of `cost`. */
static void test_time(void **state)
{
    (void)state;
    static const struct {
        kith_ns cost;
        unsigned steps, least, most;
    } cases[] = {
        {5 * KITH_MS, 100, 19, 19},     /* of 1 s: 0.2 s are free */
        {150 * KITH_MS, 100, 1, 1},     /* a second one would be 0.3 s */
        {290 * KITH_MS, 20000, 18, 19}, /* 200 s: 2.75 %; late at first */
        {2 * KITH_S, 20000, 2, 3},      /* 20 %: three are 3 % */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kith_curve_plan plan = {.points = 19, .bounded = true};
        struct kith_curve curve = kith_curve_start(&plan);
        kith_ns now = 0;
        double worst = 0;
        for (unsigned step = 1; step < cases[i].steps; step++) {
            now += 10 * KITH_MS;
            const struct kith_progress at = {
                .steps = step, .steps_total = cases[i].steps, .time_ns = now};
            if (kith_curve_look(&curve, &at, now) != KITH_CURVE_POINT)
                continue;
            now += cases[i].cost;
            kith_curve_took(&curve, cases[i].cost);
            if (curve.done > 1)
                worst =
                    fmax(worst, (double)curve.spent_ns /
                                    fmax(0.03 * (double)now, 200.0 * KITH_MS));
        }
        print_message(
            "%4.0f ms each in %4.0f s: %2u points, %2u left out, %.2f "
            "%% of the time, at most %.2f of what was allowed\n",
            1e-6 * (double)cases[i].cost, 1e-9 * (double)now, curve.done,
            curve.left_out, 100 * (double)curve.spent_ns / (double)now, worst);
        assert_in_range(curve.done, cases[i].least, cases[i].most);
        assert_int_equal(curve.done + curve.left_out, 19);
        assert_true(worst <= 1);
    }
}

static struct kith_score score_part(uint64_t seed, size_t rows, bool whole)
{
    const struct kith_examples test = random_images();
    struct kith_experiment experiment = fixture_learner("adpsgd", 4);
    struct kith_evaluator *evaluator = NULL;
    struct kith_score score;
    char error[KITH_DATA_ERROR_BYTES];
    static double z[64 * 32 + 32 + 32 * 10 + 10];
    for (size_t k = 0; k < sizeof z / sizeof *z; k++)
        z[k] = sin((double)k);
    experiment.seed = seed;
    assert_int_equal(kith_evaluator_open(&experiment, experiment.backend, &test,
                                         &evaluator, error),
                     KITH_OK);
    assert_int_equal(kith_evaluator_part(evaluator, rows, error), KITH_OK);
    struct kith_score first;
    assert_int_equal(kith_evaluator_score_part(evaluator, z, &first, error),
                     KITH_OK);
    assert_int_equal(kith_evaluator_score(evaluator, z, &score, error),
                     KITH_OK);
    if (!whole) /* again, after the whole set */
        assert_int_equal(kith_evaluator_score_part(evaluator, z, &score, error),
                         KITH_OK);
    if (!whole)
        assert_true(score.loss == first.loss);
    kith_evaluator_close(evaluator);
    return score;
}

/* The same rows for every seed and at every call; another number, other rows.
 */
static void test_part(void **state)
{
    (void)state;
    const struct kith_score all = score_part(7, 100, true);
    const struct kith_score part = score_part(7, 100, false);
    const struct kith_score seed = score_part(8, 100, false);
    const struct kith_score other = score_part(7, 101, false);
    print_message("all %.6f, 100 rows %.6f, %.6f with another seed, 101 rows "
                  "%.6f\n",
                  all.loss, part.loss, seed.loss, other.loss);
    assert_true(part.loss == seed.loss && part.accuracy == seed.accuracy);
    assert_true(part.loss != all.loss && part.loss != other.loss);
    assert_true(fabs(part.loss - all.loss) < 0.2 * all.loss);
    /* Hundredths: of one hundred rows. */
    assert_true(part.accuracy * 100 == rint(part.accuracy * 100));
    assert_true(score_part(7, ROWS, false).loss == all.loss);
    assert_true(score_part(7, 0, false).loss == all.loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_larger_part),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_what_the_file_says),
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_due_by_time),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
