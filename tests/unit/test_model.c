/* Goal: every model's gradient is that of its loss, recomputed or not, in parts
 * or whole, and an evaluation leaves everything as it was.
 * Method: central finite differences on naive64. With step h the error is
 * O(h^2) + rounding / h; at h = 1e-5 and losses near 1 both stay below 1e-9, so
 * 1e-7 is ample. A step that crosses a kink (ReLU, max-pool) is asked again
 * with one much smaller, which the kink's neighbourhood no longer holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "model_cases.h"

/* The training loss and, in gradient (trained), its gradient; NULL: the loss
 * alone, which has no dropout. The buffers of x are put back, so that one point
 * gives one loss. */
static double train(struct bench *bench, double *gradient)
{
    const size_t from = bench->layout->trained;
    const size_t count = bench->layout->gossiped - from;
    double *kept = malloc((count + 1) * sizeof *kept);
    assert_non_null(kept);
    memcpy(kept, bench->x + from, count * sizeof *kept);
    const struct kith_pass pass = {.x = bench->x,
                                   .gradient = gradient,
                                   .batch = &bench->batch,
                                   .scale = 1,
                                   .estimate = gradient == NULL};
    const double loss = kith_graph_loss(bench->network, &pass, NULL);
    memcpy(bench->x + from, kept, count * sizeof *kept);
    free(kept);
    return loss;
}

static double evaluate(struct bench *bench, uint32_t *correct)
{
    const struct kith_pass pass = {
        .x = bench->x, .batch = &bench->batch, .scale = 1};
    return kith_graph_loss(bench->network, &pass, correct);
}

static double difference(struct bench *bench, size_t i, double h,
                         double *unused)
{
    const double kept = bench->x[i];
    bench->x[i] = kept + h;
    const double above = train(bench, unused);
    bench->x[i] = kept - h;
    const double below = train(bench, unused);
    bench->x[i] = kept;
    return (above - below) / (2 * h);
}

static void check_one(struct bench *bench, const struct model_case *one,
                      const struct kith_model_view *view, size_t k,
                      const double *gradient, double *unused)
{
    const size_t i = view->offset + k;
    double slope = 0;
    for (double h = 1e-5; h > 1e-8; h /= 20) {
        slope = difference(bench, i, h, unused);
        if (fabs(slope - gradient[i]) <= 1e-7 + 1e-14 / h)
            return;
    }
    fail_msg("%s: gradient %zu of %s is %.12g, differences give %.12g",
             one->label, k, view->name, gradient[i], slope);
}

/* Some coordinates of each view that trains, or of some of these views. */
static void check_gradient(struct bench *bench, const struct model_case *one,
                           const double *gradient, double *unused)
{
    const struct kith_layout *layout = bench->layout;
    const size_t budget =
        layout->trained > 100000 ? CHECKED_LARGE : CHECKED_SMALL;
    size_t views = 0;
    while (views < layout->view_count &&
           layout->views[views].offset < layout->trained)
        views++;
    const size_t visited = views < budget ? views : budget;
    for (size_t n = 0; n < visited; n++) {
        const struct kith_model_view *view =
            &layout->views[n * views / visited];
        const size_t most = budget / visited;
        const size_t count = view->elements < most ? view->elements : most;
        for (size_t k = 0; k < count; k++)
            check_one(bench, one, view,
                      (2 * k + 1) * view->elements / (2 * count), gradient,
                      unused);
    }
}

static void test_gradients(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench bench;
        bench_open(&bench, &cases[c], true, cases[c].recompute);
        const size_t trained = bench.layout->trained;
        double *gradient = malloc(trained * sizeof *gradient);
        double *unused = malloc(trained * sizeof *unused);
        assert_true(gradient != NULL && unused != NULL);
        memset(gradient, 0xff, trained * sizeof *gradient);

        const double loss = train(&bench, gradient);

        assert_true(isfinite(loss));
        assert_true(train(&bench, unused) == loss); /* asked twice */
        assert_memory_equal(gradient, unused, trained * sizeof *gradient);
        /* Where nothing is dropped the forward pass alone will do. */
        if (cases[c].config.dropout > 0 ||
            kith_model_find(cases[c].name)->build == NULL) {
            check_gradient(&bench, &cases[c], gradient, unused);
        } else {
            assert_true(train(&bench, NULL) == loss);
            check_gradient(&bench, &cases[c], gradient, NULL);
        }
        free(gradient);
        free(unused);
        bench_close(&bench);
    }
}

/* Running blocks forward once more changes no bit, of gradient or buffers. */
static void test_recompute(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench benches[2];
        double *gradients[2], loss[2];
        for (int i = 0; i < 2; i++) {
            bench_open(&benches[i], &cases[c], true, i == 1);
            gradients[i] =
                malloc(benches[i].layout->trained * sizeof *gradients[i]);
            assert_non_null(gradients[i]);
            const struct kith_pass pass = {.x = benches[i].x,
                                           .gradient = gradients[i],
                                           .batch = &benches[i].batch,
                                           .scale = 1};
            loss[i] = kith_graph_loss(benches[i].network, &pass, NULL);
        }
        assert_true(loss[0] == loss[1]);
        assert_memory_equal(gradients[0], gradients[1],
                            benches[0].layout->trained * sizeof(double));
        assert_memory_equal(benches[0].x, benches[1].x,
                            benches[0].layout->dim * sizeof(double));
        for (int i = 0; i < 2; i++) {
            free(gradients[i]);
            bench_close(&benches[i]);
        }
    }
}

/* Two halves added up with scale 1/2 are the mean of their gradients. */
static void test_micro_batches(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench bench;
        bench_open(&bench, &cases[c], true, false);
        const size_t trained = bench.layout->trained;
        double *gradients[3];
        for (int i = 0; i < 3; i++) {
            gradients[i] = malloc(trained * sizeof *gradients[i]);
            assert_non_null(gradients[i]);
        }
        for (uint64_t step = 0; step < 2; step++) {
            bench.batch.step = step;
            (void)train(&bench, gradients[step]);
            const struct kith_pass pass = {.x = bench.x,
                                           .gradient = gradients[2],
                                           .batch = &bench.batch,
                                           .scale = 0.5,
                                           .add = step > 0};
            double *kept = malloc(bench.layout->dim * sizeof *kept);
            assert_non_null(kept);
            memcpy(kept, bench.x, bench.layout->dim * sizeof *kept);
            (void)kith_graph_loss(bench.network, &pass, NULL);
            memcpy(bench.x, kept, bench.layout->dim * sizeof *kept);
            free(kept);
        }
        for (size_t i = 0; i < trained; i++) {
            const double mean = (gradients[0][i] + gradients[1][i]) / 2;
            assert_true(fabs(mean - gradients[2][i]) <=
                        1e-12 * (1 + fabs(mean)));
        }
        for (int i = 0; i < 3; i++)
            free(gradients[i]);
        bench_close(&bench);
    }
}

/* Evaluation is the same on a network for training and on one for nothing
 * else, leaves x alone, and agrees with the scores. */
static void test_evaluation(void **state)
{
    (void)state;
    for (size_t c = 0; c < CASES; c++) {
        struct bench benches[2];
        double loss[2];
        uint32_t correct[2];
        for (int i = 0; i < 2; i++)
            bench_open(&benches[i], &cases[c], i == 1, false);
        double *gradient =
            malloc(benches[1].layout->trained * sizeof *gradient);
        assert_non_null(gradient);
        (void)train(&benches[1], gradient); /* leaves its marks in the arena */
        for (int i = 0; i < 2; i++)
            loss[i] = evaluate(&benches[i], &correct[i]);
        assert_true(loss[0] == loss[1]);
        assert_int_equal(correct[0], correct[1]);
        assert_memory_equal(benches[0].x, benches[1].x,
                            benches[0].layout->dim * sizeof(double));
        assert_true(kith_graph_bytes(benches[0].network) <=
                    kith_graph_bytes(benches[1].network));

        const struct kith_model *model = kith_model_find(cases[c].name);
        if (model->build != NULL) {
            const struct kith_model_size size =
                kith_model_size_of(model, &cases[c].config);
            const size_t rows =
                model->input == KITH_INPUT_TOKENS ? ROWS * size.features : ROWS;
            const double *scores = kith_graph_scores(
                benches[1].network, benches[1].x, &benches[1].batch);
            uint32_t best_right = 0;
            for (size_t r = 0; r < rows; r++) {
                size_t best = 0;
                for (size_t k = 0; k < size.classes; k++)
                    if (scores[r * size.classes + k] >
                        scores[r * size.classes + best])
                        best = k;
                best_right += (int32_t)best == benches[1].labels[r];
            }
            assert_int_equal(best_right, correct[1]);
        }
        free(gradient);
        for (int i = 0; i < 2; i++)
            bench_close(&benches[i]);
    }
}

/* `estimate` moves buffers as a training pass does, and nothing else. */
static void test_estimate(void **state)
{
    (void)state;
    const struct model_case one = {
        "resnet",
        "estimate",
        {.image = {6, 6, 2}, .classes = 4, .depth = 20},
        0,
        false};
    struct bench trained, estimated;
    bench_open(&trained, &one, true, false);
    bench_open(&estimated, &one, false, false);
    const struct kith_layout *layout = trained.layout;
    double *gradient = malloc(layout->trained * sizeof *gradient);
    assert_non_null(gradient);
    const struct kith_pass pass = {.x = trained.x,
                                   .gradient = gradient,
                                   .batch = &trained.batch,
                                   .scale = 1};
    const double before = trained.x[layout->trained];
    (void)kith_graph_loss(trained.network, &pass, NULL);
    const struct kith_pass again = {.x = estimated.x,
                                    .batch = &estimated.batch,
                                    .scale = 1,
                                    .estimate = true};
    (void)kith_graph_loss(estimated.network, &again, NULL);
    assert_true(trained.x[layout->trained] != before);
    assert_memory_equal(trained.x, estimated.x, layout->dim * sizeof(double));
    free(gradient);
    bench_close(&trained);
    bench_close(&estimated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),     cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_micro_batches), cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
