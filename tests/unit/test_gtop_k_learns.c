/* Goal: gtop-k learns what a dense mean does, and a file that gives it what it
 * does not take is refused by name.
 * Method: the bundled digits beside allreduce-tree; experiments that are wrong
 * in one place each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/experiment.h"
#include "tests/support/probe.h"

static void test_rules(void **state)
{
    static const struct {
        const char *train, *gossip, *model, *says;
    } cases[] = {
        {"cpu", "compressor: top-k", "mlp", "sends the largest values already"},
        {"cpu", "wire: bfloat16", "mlp", "lists of values and of where they"},
        {"cpu", "wire: moniqua8", "mlp", "lists of values and of where they"},
        {"cpu", "guard: clip", "mlp", "none: what it receives is not a model"},
        {"cpu", "topology: ring", "mlp", "the rounds that are its own"},
        {"cpu", "elasticity: 0.1", "mlp", "algorithm gtop-k does not read"},
        {"cpu", "share: 0", "mlp", "share"},
        {"cuda", "every: 1", "mlp", "a backend of the host"},
        {"cpu", "every: 1", "mlp", NULL},
        {"naive32", "share: 0.5, rate: 0.7", "mlp", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 3\nstop: {steps: 9}\n"
                       "model: {kind: %s, layers: [64, 8, 10]}\n"
                       "data: {path: /data}\ntrain: {backend: %s}\n"
                       "gossip: {algorithm: gtop-k, %s}\n",
                       cases[n].model, cases[n].train, cases[n].gossip);
        const bool loads =
            kith_experiment_parse("e", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        printf("  %s, %s: %s\n", cases[n].train, cases[n].gossip, error);
        assert_true(loads == (cases[n].says == NULL));
        assert_true(loads || strstr(error, cases[n].says) != NULL);
        if (loads)
            kith_experiment_close(&experiment);
    }
}

static double digits_loss(const char *gossip, double *accuracy)
{
    struct probe probe = {.period = 0};
    const char *const source = getenv("srcdir");
    char *const path = realpath(source != NULL ? source : ".", NULL);
    assert_non_null(path);
    probe_must(&probe,
               "name: digits\nseed: 7\npeers: 5\nstop: {epochs: 20}\n"
               "model: {kind: mlp, layers: [64, 32, 10]}\n"
               "data: {kind: idx, path: %s/examples/data/digits, split: iid}\n"
               "train: {backend: naive32, learning_rate: 0.05, momentum: 0.9, "
               "schedule: linear, batch: 16}\n"
               "gossip: {every: 1, %s}\ncompute: {step: 1ms}\n",
               path, gossip);
    const double loss = probe.summary.loss.mean;
    *accuracy = probe.summary.accuracy.mean;
    probe_close(&probe);
    free(path);
    return loss;
}

static void test_learns(void **state)
{
    static const struct {
        const char *gossip;
        double most; /* loss over that of the dense mean */
    } cases[] = {{"algorithm: gtop-k, share: 0.05", 1.1},
                 {"algorithm: gtop-k, share: 0.02", 1.1},
                 {"algorithm: gtop-k, share: 0.01", 1.15},
                 {"algorithm: gtop-k, share: 1", 1.01}};
    double accuracy;
    (void)state;
    const double dense = digits_loss("algorithm: allreduce-tree", &accuracy);
    printf("  allreduce-tree: loss %.4f, accuracy %.4f\n", dense, accuracy);
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        const double loss = digits_loss(cases[n].gossip, &accuracy);
        printf("  %s: loss %.4f, %.3f times that, expected below %.2f; "
               "accuracy %.4f\n",
               cases[n].gossip, loss, loss / dense, cases[n].most, accuracy);
        assert_true(loss < cases[n].most * dense && accuracy > 0.9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
