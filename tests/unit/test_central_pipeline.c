/* Goal: a model cut over two peers, with and without micro-batches, ends with
 * the bits of a single one (T1.6), although no stage knows the other's
 * parameters; several batches in flight report a staleness of stages - 1.
 * Method: parts of a network side by side with the whole; then whole runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kith/rng.h"
#include "tests/support/central_run.h"

#define W1                                                                     \
    "name: w1\nseed: 1\nstop: {steps: 60}\n"                                   \
    "model: {kind: mlp, layers: [100, 64, 10]}\n"                              \
    "data: {kind: gaussian, rows: 8000, spread: 0.28}\n"                       \
    "compute: {step: 6ms}\nnetwork: {latency: 100us, rate: 1Gbit}\n"
#define ROWS 16u

static struct centralised a, b;

/* Two parts on two networks, each with NaN where the other's parameters are,
 * joined by one tensor forward and one back, against the whole. */
static void test_parts_make_the_whole(void **state)
{
    (void)state;
    const struct kith_model *model = kith_model_find("mlp");
    const struct kith_model_config config = {.layers = {100, 64, 10},
                                             .layer_count = 3};
    const struct kith_backend *backend = kith_backend_find("cpu");
    const struct kith_graph_options options = {
        .backend = backend, .rows = ROWS, .training = true};
    struct kith_graph *net[3];
    char words[KITH_MODEL_ERROR_BYTES];
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(
            kith_graph_open(model, &config, &options, &net[i], words), KITH_OK);
    const size_t dim = kith_graph_layout(net[0])->dim;
    static float inputs[ROWS * 100];
    int32_t labels[ROWS];
    struct kith_rng rng;
    kith_rng_init(&rng, 3, KITH_STREAM_TEST, 0);
    for (size_t i = 0; i < ROWS * 100; i++)
        inputs[i] = (float)kith_rng_double(&rng) - 0.5F;
    for (size_t i = 0; i < ROWS; i++)
        labels[i] = (int32_t)kith_rng_below(&rng, 10);
    const struct kith_batch batch = {
        .inputs = inputs, .labels = labels, .rows = ROWS};
    double *start = malloc(dim * sizeof *start);
    float *x[3], *g[3];
    kith_graph_start(net[0], 1, 0, start);
    const struct kith_part parts[2] = {{0, 1, false}, {1, 2, false}};
    for (unsigned i = 0; i < 3; i++) {
        x[i] = backend->alloc(dim * sizeof(float), false);
        g[i] = backend->alloc(dim * sizeof(float), false);
        backend->write(dim, start, x[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        for (size_t k = 0; k < dim; k++)
            x[i][k] = NAN;
        kith_graph_copy(net[i], &parts[i], x[2], x[i]);
    }
    struct kith_pass pass[3];
    for (unsigned i = 0; i < 3; i++)
        pass[i] = (struct kith_pass){
            .x = x[i], .gradient = g[i], .batch = &batch, .scale = 1};
    const double whole = kith_graph_loss(net[2], &pass[2], NULL);

    size_t bytes;
    (void)kith_graph_part(net[0], &pass[0], &parts[0], NULL);
    void *from = kith_graph_edge(net[0], 1, false, ROWS, &bytes);
    void *to = kith_graph_edge(net[1], 1, false, ROWS, &bytes);
    assert_int_equal(bytes, ROWS * 64 * sizeof(float));
    memcpy(to, from, bytes);
    const double loss = kith_graph_part(net[1], &pass[1], &parts[1], NULL);
    struct kith_part back[2] = {{0, 1, true}, {1, 2, true}};
    (void)kith_graph_part(net[1], &pass[1], &back[1], NULL);
    memcpy(kith_graph_edge(net[0], 1, true, ROWS, &bytes),
           kith_graph_edge(net[1], 1, true, ROWS, &bytes), bytes);
    (void)kith_graph_part(net[0], &pass[0], &back[0], NULL);

    kith_graph_copy(net[1], &parts[1], g[1], g[0]);
    size_t differ = 0;
    for (size_t k = 0; k < dim; k++)
        differ += memcmp(&g[0][k], &g[2][k], sizeof(float)) != 0;
    printf("loss expected %.9g measured %.9g; gradients that differ, expected "
           "0 of %zu, measured %zu\n",
           whole, loss, dim, differ);
    assert_true(loss == whole);
    assert_int_equal(differ, 0);
    for (unsigned i = 0; i < 3; i++) {
        kith_graph_close(net[i]);
        backend->release(x[i]);
        backend->release(g[i]);
    }
    free(start);
}

static void assert_same_bits(const char *what)
{
    size_t differ = 0;
    assert_int_equal(a.dim, b.dim);
    for (size_t k = 0; k < a.dim; k++)
        differ += memcmp(&a.shared[k], &b.workers[k], sizeof(double)) != 0;
    printf("%-40s parameters that differ: expected 0 of %zu, measured %zu\n",
           what, a.dim, differ);
    assert_int_equal(differ, 0);
}

static void test_runs_are_those_of_one(void **state)
{
    (void)state;
    static const unsigned parts[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        char what[64];
        (void)snprintf(what, sizeof what, "vertical, %u micro-batches",
                       parts[i]);
        centralise(&a,
                   W1 "peers: 2\ntrain: {momentum: 0.9, batch: 16}\n"
                      "central: {method: vertical, micro_batches: %u}\n",
                   parts[i]);
        gossip_along(&b,
                     W1 "peers: 1\ngossip: {algorithm: local}\n"
                        "train: {momentum: 0.9, batch: 16, accumulate: %u}\n",
                     parts[i]);
        assert_same_bits(what);
        printf("  staleness expected 0 measured %g, utilisation %.3f\n",
               a.summary.staleness.max, a.summary.utilisation);
        assert_true(a.summary.staleness.max == 0);
    }
}

/* Without neighbours' micro-batches one of two stages works at a time. */
static void test_stale_pipeline(void **state)
{
    (void)state;
    centralise(&a, W1 "peers: 2\ntrain: {batch: 16}\n"
                      "central: {method: vertical, in_flight: 2}\n");
    const double apart = fabs(a.summary.staleness.max - 1);
    printf("2 stages: staleness expected 1 measured %g; utilisation %.3f\n",
           a.summary.staleness.max, a.summary.utilisation);
    assert_true(apart == 0);
    const double pipelined = a.summary.virtual_s;
    centralise(&b, W1 "peers: 2\ntrain: {batch: 16}\n"
                      "central: {method: vertical}\n");
    printf("time of 60 batches, one in flight %.4f s, two %.4f s\n",
           b.summary.virtual_s, pipelined);
    assert_true(pipelined < 0.65 * b.summary.virtual_s);
    assert_true(fabs(b.summary.utilisation - 0.5) < 0.05);

    centralise(&a, "name: t\nseed: 1\npeers: 4\nstop: {steps: 60}\n"
                   "model: {kind: mlp, layers: [100, 64, 32, 16, 10]}\n"
                   "data: {kind: gaussian, rows: 800}\n"
                   "train: {batch: 16}\ncompute: {step: 6ms}\n"
                   "central: {method: vertical, in_flight: 4}\n");
    printf("4 stages: staleness expected 3 measured %g\n",
           a.summary.staleness.max);
    assert_true(a.summary.staleness.max == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_make_the_whole),
        cmocka_unit_test(test_runs_are_those_of_one),
        cmocka_unit_test(test_stale_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
