/* Goal: sketches of what is truncated learn what the dense mean does, and more
 * than gTop-k at the same k; without truncation they do not (T3.5). A file that
 * gives gs-sgd what it does not take is refused by name.
 * Method: Gaussian classes, eight peers, one step a cycle; "dense" is
 * allreduce-tree, which after plain steps from one start is the mean of
 * gradients. Losses are of the averaged model, over all training rows.
 *
 *   test_gs_sgd_learns         a model of 7,114 parameters, three seeds
 *   test_gs_sgd_learns --all   W2, 105,226, five seeds: some minutes */
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

#include "kith/evaluation.h"
#include "kith/experiment.h"
#include "tests/support/probe.h"

enum { STEPS = 600 };

static bool everything;

static void test_rules(void **state)
{
    static const struct {
        const char *train, *gossip, *says;
    } cases[] = {
        {"cpu", "compressor: top-k", "sends the largest values already"},
        {"cpu", "wire: bfloat16", "lists of values and of where they"},
        {"cpu", "wire: moniqua8", "lists of values and of where they"},
        {"cpu", "guard: clip", "none: what it receives is not a model"},
        {"cpu", "topology: ring", "the rounds that are its own"},
        {"cpu", "topology: collective-tree", "the rounds that are its own"},
        {"cpu", "elasticity: 0.1", "algorithm gs-sgd does not read"},
        {"cpu", "share: 0", "share"},
        {"cpu", "rows: 4", "an odd number"},
        {"cpu", "rows: 2.5", "an odd number"},
        {"cpu", "rows: 17", "rows"},
        {"cpu", "columns: 0", "columns"},
        {"cpu", "truncate: -1", "truncate"},
        {"cuda", "every: 1", "a backend of the host"},
        {"cpu", "every: 1", NULL},
        {"cpu", "candidates: 0, truncate: 0", NULL},
        {"naive32", "share: 0.5, rate: 0.7, rows: 7, momentum: 0.9", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 3\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [64, 8, 10]}\n"
                       "data: {path: /data}\ntrain: {backend: %s}\n"
                       "gossip: {algorithm: gs-sgd, %s}\n",
                       cases[n].train, cases[n].gossip);
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

/* gtop-k reads no such keys, nor allreduce-tree those. */
static void test_not_read(void **state)
{
    static const char *const gossip[] = {"algorithm: gtop-k, rows: 5",
                                         "algorithm: gtop-k, truncate: 1",
                                         "algorithm: allreduce-tree, columns: "
                                         "4",
                                         "algorithm: sparta, candidates: 4"};
    (void)state;
    for (unsigned n = 0; n < sizeof gossip / sizeof *gossip; n++) {
        char text[256], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 3\nstop: {steps: 9}\n"
                       "model: {kind: consensus, dim: 9}\ngossip: {%s}\n",
                       gossip[n]);
        assert_true(kith_experiment_parse("e", text, strlen(text), NULL, 0,
                                          &experiment, error) != KITH_OK);
        printf("  %s: %s\n", gossip[n], error);
        assert_non_null(strstr(error, "does not read"));
    }
}

/* ---- T3.5 */

struct workload {
    const char *name;
    unsigned inputs, hidden, rows;
    double spread; /* of the classes' means */
    unsigned seeds;
};
static const struct workload w2 = {"T3.5 W2,", 400, 256, 4000, 0.14, 5},
                             small = {"small,", 100, 64, 2000, 0.28, 3};

struct outcome {
    double loss, accuracy; /* training rows, test rows */
    double step_bytes;     /* in all, for each step of all */
};

static struct outcome learn(const struct workload *work, unsigned seed,
                            const char *gossip)
{
    char text[1024], words[KITH_EXPERIMENT_ERROR_BYTES];
    struct probe probe = {.period = 0};
    struct kith_experiment experiment;
    struct kith_dataset set;
    struct kith_score train, test;
    (void)snprintf(text, sizeof text,
                   "name: learns\nseed: %u\npeers: 8\nstop: {steps: %d}\n"
                   "model: {kind: mlp, layers: [%u, %u, 10]}\n"
                   "data: {kind: gaussian, rows: %u, spread: %g}\n"
                   "train: {learning_rate: 0.05, batch: 16, schedule: step, "
                   "milestones: [0.6667], decay: 0.2}\n"
                   "gossip: {%s}\ncompute: {step: 5ms}\n"
                   "network: {latency: 100us, rate: 1Gbit}\n",
                   seed, STEPS, work->inputs, work->hidden, work->rows,
                   work->spread, gossip);
    probe_must(&probe, "%s", text);
    assert_int_equal(kith_experiment_parse("w2", text, strlen(text), NULL, 0,
                                           &experiment, words),
                     KITH_OK);
    assert_int_equal(kith_dataset_open(&experiment.data.config, &set, words),
                     KITH_OK);
    double *const mean = malloc(probe.dim * sizeof *mean);
    assert_non_null(mean);
    probe_mean(probe.z, probe.peers, probe.dim, mean);
    assert_int_equal(kith_evaluate(&experiment, experiment.backend, &set.train,
                                   mean, &train),
                     KITH_OK);
    assert_int_equal(
        kith_evaluate(&experiment, experiment.backend, &set.test, mean, &test),
        KITH_OK);
    const struct outcome found = {train.loss, test.accuracy,
                                  (double)probe.report.bulk_bytes / STEPS};
    free(mean);
    kith_dataset_close(&set);
    kith_experiment_close(&experiment);
    probe_close(&probe);
    return found;
}

/* k = d / 200 for all; the table is 5 rows of c columns. */
enum method {
    DENSE,
    GTOP_K,
    SKETCHED,
    NARROW,
    UNTRUNCATED,
    ESTIMATED,
    METHODS
};
static const struct {
    const char *what, *gossip;
    bool in_short;
} methods[METHODS] = {
    [DENSE] = {"dense (allreduce-tree)", "algorithm: allreduce-tree", true},
    [GTOP_K] = {"gTop-k", "algorithm: gtop-k, share: 0.005", true},
    [SKETCHED] = {"gs-sgd, p1 = 1, c = 4k, p2 = 4",
                  "algorithm: gs-sgd, share: 0.005", true},
    [NARROW] = {"gs-sgd, p1 = 1, c = k, p2 = 4",
                "algorithm: gs-sgd, share: 0.005, columns: 1", false},
    [UNTRUNCATED] = {"gs-sgd, all of v, c = 4k, p2 = 4",
                     "algorithm: gs-sgd, share: 0.005, truncate: 0", true},
    [ESTIMATED] = {"gs-sgd, all of v, no exact round",
                   "algorithm: gs-sgd, share: 0.005, truncate: 0, "
                   "candidates: 0",
                   false}};

/* Means over seeds; what is expected of them is of each seed. */
static void compare(const struct workload *work)
{
    const char *const label = work->name;
    const unsigned seeds = work->seeds;
    struct outcome sum[METHODS] = {{0}};
    double most_dense = 0, most_gtop = 0, least_full = INFINITY;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        double loss[METHODS] = {0};
        for (unsigned m = 0; m < METHODS; m++) {
            if (!everything && !methods[m].in_short)
                continue;
            const struct outcome found = learn(work, seed, methods[m].gossip);
            loss[m] = found.loss;
            sum[m].loss += found.loss / seeds;
            sum[m].accuracy += found.accuracy / seeds;
            sum[m].step_bytes += found.step_bytes / seeds;
            printf("  seed %u, %s: loss %.4f, accuracy %.1f %%\n", seed,
                   methods[m].what, found.loss, 100 * found.accuracy);
        }
        most_dense = fmax(most_dense, loss[SKETCHED] / loss[DENSE]);
        most_gtop = fmax(most_gtop, loss[SKETCHED] / loss[GTOP_K]);
        least_full = fmin(least_full, loss[UNTRUNCATED] / loss[SKETCHED]);
    }
    for (unsigned m = 0; m < METHODS; m++)
        if (everything || methods[m].in_short)
            printf("  %s %s: loss, test accuracy, bytes a step: expected a "
                   "figure, measured %.3f, %.1f %%, %.0f\n",
                   label, methods[m].what, sum[m].loss, 100 * sum[m].accuracy,
                   sum[m].step_bytes);
    printf("  %s loss over that of dense, most of %u: expected <= 1.05, "
           "measured %.3f\n",
           label, seeds, most_dense);
    printf("  %s loss over that of gTop-k, most of %u: expected < 1, measured "
           "%.3f\n",
           label, seeds, most_gtop);
    printf("  %s untruncated over truncated, least of %u: expected > 1.5, "
           "measured %.3f\n",
           label, seeds, least_full);
    assert_true(most_dense <= 1.05);
    assert_true(most_gtop < 1);
    assert_true(least_full > 1.5);
}

static void test_learns(void **state)
{
    (void)state;
    compare(everything ? &w2 : &small);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_not_read),
        cmocka_unit_test(test_learns),
    };
    everything = argc > 1 && strcmp(argv[1], "--all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
