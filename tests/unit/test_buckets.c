/* Goal: buckets hold each value of a model once, those of the last layers
 * first; a pass in portions is the whole pass to the bit, and nothing of a
 * bucket changes after its portion; portions of the time add up to the step's.
 * Method: all sizes up to a few dozen; small models of every kind of layer,
 * with tied weights, running means and recomputation, beside one whole pass
 * each. Prints expected and measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/bucket.h"
#include "kith/model.h"
#include "kith/rng.h"

#define ROWS 4u

static void hold_each_value_once(void **state)
{
    (void)state;
    for (size_t dim = 1; dim < 40; dim++)
        for (size_t weights = 0; weights <= dim; weights++)
            for (unsigned asked = 1; asked <= KITH_BUCKETS_MAX; asked += 3) {
                const uint32_t count = kith_bucket_count(dim, asked);
                unsigned seen[40] = {0};
                assert_in_range(count, 1, asked);
                for (uint32_t i = 0; i < count; i++) {
                    const struct kith_bucket bucket =
                        kith_bucket_of(dim, weights, count, i, 0, dim);
                    const struct kith_range *const ranges = bucket.ranges;
                    const size_t n = ranges[0].count + ranges[1].count;
                    assert_in_range(n, 1, kith_bucket_size(dim, count));
                    for (unsigned k = 0; k < 2; k++)
                        for (size_t j = 0; j < ranges[k].count; j++)
                            seen[ranges[k].at + j]++;
                    if (i == 0 && n <= weights && weights > 0)
                        assert_int_equal(ranges[0].at + ranges[0].count,
                                         weights);
                    /* By value, in the same order. */
                    const struct kith_bucket last =
                        kith_bucket_of(dim, weights, count, i, n - 1, 9);
                    assert_int_equal(last.ranges[0].count, 1);
                    assert_int_equal(last.ranges[0].at,
                                     ranges[1].count > 0
                                         ? ranges[1].count - 1
                                         : ranges[0].at + n - 1);
                }
                for (size_t j = 0; j < dim; j++)
                    assert_int_equal(seen[j], 1);
            }
    assert_int_equal(kith_bucket_count(1000, 8), 8);
    assert_int_equal(kith_bucket_count(10, 8), 5); /* of two each */
    assert_int_equal(kith_bucket_count(0, 8), 1);
}

static const struct {
    const char *model;
    struct kith_model_config config;
    bool recompute;
} models[] = {
    {"mlp", {.layers = {20, 32, 16, 10}, .layer_count = 4}, false},
    {"cnn",
     {.image = {8, 8, 3}, .channels = {4, 8}, .channel_count = 2, .classes = 5},
     false},
    {"resnet", {.image = {8, 8, 3}, .depth = 20, .classes = 5}, false},
    {"resnet", {.image = {8, 8, 3}, .depth = 20, .classes = 5}, true},
    {"gpt",
     {.depth = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 30},
     false},
    {"gpt",
     {.depth = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 30},
     true},
    {"quadratic", {.dim = 12, .spread = 1}, false},
};

struct bench {
    const struct kith_backend *backend;
    struct kith_graph *net;
    float *x, *gradient;
    struct kith_batch batch;
};

static void open_bench(struct bench *bench, size_t m, bool weights_first)
{
    static float images[ROWS * 192];
    static int32_t tokens[ROWS * 8], labels[ROWS * 8];
    const struct kith_model *model = kith_model_find(models[m].model);
    struct kith_rng rng;
    char words[KITH_MODEL_ERROR_BYTES];
    bench->backend = kith_backend_find("cpu");
    const struct kith_graph_options options = {.backend = bench->backend,
                                               .rows = ROWS,
                                               .training = true,
                                               .recompute = models[m].recompute,
                                               .weights_first = weights_first};
    if (kith_graph_open(model, &models[m].config, &options, &bench->net,
                        words) != KITH_OK)
        fail_msg("%s: %s", models[m].model, words);
    const size_t dim = kith_graph_layout(bench->net)->dim;
    double *start = calloc(dim, sizeof *start);
    bench->x = bench->backend->alloc(dim * sizeof(float), false);
    bench->gradient = bench->backend->alloc(dim * sizeof(float), false);
    kith_graph_start(bench->net, 1, 0, start);
    bench->backend->write(dim, start, bench->x);
    free(start);
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < ROWS * 192; i++)
        images[i] = (float)kith_rng_double(&rng) - 0.5F;
    for (size_t i = 0; i < ROWS * 8; i++) {
        tokens[i] = (int32_t)kith_rng_below(&rng, 30);
        labels[i] = (int32_t)kith_rng_below(&rng, 5);
    }
    bench->batch = (struct kith_batch){
        .inputs =
            model->input == KITH_INPUT_TOKENS ? (const void *)tokens : images,
        .labels = labels,
        .rows = ROWS,
        .step = 1};
    for (size_t k = 0; k < dim; k++)
        bench->gradient[k] = NAN;
}

static void close_bench(struct bench *bench)
{
    kith_graph_close(bench->net);
    bench->backend->release(bench->x);
    bench->backend->release(bench->gradient);
}

static struct kith_pass pass_of(const struct bench *bench)
{
    return (struct kith_pass){.x = bench->x,
                              .gradient = bench->gradient,
                              .batch = &bench->batch,
                              .scale = 1};
}

/* Values of the range that train and are not those of `whole`. */
static size_t other(const struct bench *part, const struct bench *whole,
                    const struct kith_range *range)
{
    const size_t trained = kith_graph_layout(part->net)->trained;
    size_t differ = 0;
    for (size_t k = range->at; k < range->at + range->count; k++)
        differ += k < trained && memcmp(&part->gradient[k], &whole->gradient[k],
                                        sizeof(float)) != 0;
    return differ;
}

static void portions_make_the_whole(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct bench part, whole;
        open_bench(&part, m, true);
        open_bench(&whole, m, false);
        const struct kith_pass one = pass_of(&whole), some = pass_of(&part);
        const double expected = kith_graph_loss(whole.net, &one, NULL);
        const struct kith_layout *layout = kith_graph_layout(part.net);
        const uint32_t count = kith_bucket_count(layout->gossiped, 5);
        uint32_t at = 0, early = 0;
        size_t differ = 0;
        double loss = 0;
        for (uint32_t i = 0; i < count; i++) {
            const struct kith_bucket bucket =
                kith_bucket_of(layout->gossiped, layout->decayed, count, i, 0,
                               layout->gossiped);
            uint32_t to = at;
            for (unsigned k = 0; k < 2; k++) {
                const struct kith_range *range = &bucket.ranges[k];
                const uint32_t complete =
                    kith_graph_complete(part.net, range->at, range->count);
                to = range->count > 0 && complete > to ? complete : to;
            }
            loss += kith_graph_portion(part.net, &some, at, to);
            for (unsigned k = 0; k < 2; k++)
                differ += other(&part, &whole, &bucket.ranges[k]);
            early += to < kith_graph_steps(part.net);
            at = to;
        }
        const double share = kith_graph_share(part.net, at);
        loss +=
            kith_graph_portion(part.net, &some, at, kith_graph_steps(part.net));
        const struct kith_range all = {0, layout->trained};
        printf("%s%s: %u of %u buckets before the step's end, loss expected "
               "%.9g measured %.9g; values that changed after their bucket "
               "was complete, expected 0 measured %zu\n",
               models[m].model, models[m].recompute ? ", recomputed" : "",
               early, count, expected, loss, differ);
        assert_true(loss == expected);
        assert_int_equal(differ + other(&part, &whole, &all), 0);
        assert_int_equal(memcmp(part.x, whole.x, layout->dim * sizeof(float)),
                         0);
        assert_true(fabs(share - 1) < 1e-12);
        assert_true(kith_graph_share(part.net, 0) == 0);
        assert_true(early > 0 || strcmp(models[m].model, "quadratic") == 0);
        close_bench(&part);
        close_bench(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hold_each_value_once),
        cmocka_unit_test(portions_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
