/* Goal: what a hostile member sends is its kind's formula, to the last bit, and
 * what it merges against is its own model.
 * Method: one worker of 37 values in float64, fed by hand; the formulas again
 * here. Then the digits in the simulator, two of ten hostile, a run of each
 * kind, whose books say which. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "experiment_base.h"
#include "tests/support/probe.h"
#include "worker_run.h"

enum { DIM = 37, SENT = KITH_SLOT_ROUND_SENT };

static struct kith_worker *open_member(const char *algorithm,
                                       enum kith_lie_kind kind, double by)
{
    const struct kith_experiment experiment =
        fixture_experiment("consensus", algorithm, 3);
    const struct kith_lie lie = {kind, by, 0};
    struct kith_worker *worker = open_worker(&experiment, NULL, 0, 10);
    assert_int_equal(kith_worker_dim(worker), DIM);
    kith_worker_lie(worker, &lie);
    return worker;
}

static struct kith_worker *open_liar(enum kith_lie_kind kind, double by)
{
    return open_member("dpsgd", kind, by);
}

static void read_slot(struct kith_worker *worker, uint32_t slot, double *out)
{
    memcpy(out, kith_worker_slot(worker, slot), DIM * sizeof *out);
}

static void snapshot(struct kith_worker *worker, double *sent)
{
    struct kith_work_edge edge = {.peer = 1, .sent = SENT};
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_SNAPSHOT,
                                         .pattern = KITH_PATTERN_ROUND,
                                         .edges = &edge,
                                         .edge_count = 1});
    read_slot(worker, SENT, sent);
}

/* A model of `value` comes, with that weight. */
static void merge(struct kith_worker *worker, double value, double weight)
{
    const uint32_t inbox = kith_slot_inbox(0, 0);
    double *received = kith_worker_slot(worker, inbox);
    struct kith_work_edge edge = {
        .peer = 1, .weight = weight, .sent = SENT, .inbox = inbox};
    for (unsigned i = 0; i < DIM; i++)
        received[i] = value;
    (void)run(worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                         .pattern = KITH_PATTERN_ROUND,
                                         .edges = &edge,
                                         .edge_count = 1});
}

/* How far it goes of the way from the others' middle to its aim, x. */
static double reach(const double *x, double by, double mean, double variance)
{
    double spread = 0, squared = 0;
    for (unsigned i = 0; i < DIM; i++) {
        squared += (x[i] - mean) * (x[i] - mean);
        spread += variance;
    }
    return by * sqrt(spread / squared);
}

/* Of model[i] when the lie began, after 1 and 2 have come. */
static double expected(enum kith_lie_kind kind, double by, const double *model,
                       unsigned i)
{
    const double x = model[i];
    const double mean = 1 + 0.2 * (2 - 1);
    const double variance = (1 - 0.2) * (0 + 0.2 * 1 * 1);
    return kind == KITH_LIE_FLIP        ? -x
           : kind == KITH_LIE_SCALE     ? by * x
           : kind == KITH_LIE_ALIE      ? mean - by * sqrt(variance)
           : kind == KITH_LIE_IPM       ? -by * mean
           : kind == KITH_LIE_DISSENSUS ? 2 + by * (2 - mean)
           : kind == KITH_LIE_STALE     ? 1
           : kind == KITH_LIE_RIDE || kind == KITH_LIE_ASCENT
               ? mean + reach(model, by, mean, variance) * (x - mean)
               : x;
}

static void test_values(void **state)
{
    (void)state;
    for (unsigned k = KITH_LIE_FLIP; k < KITH_LIE_COUNT; k++) {
        const enum kith_lie_kind kind = (enum kith_lie_kind)k;
        const double by = kith_lie_kinds[k].by;
        double x[DIM], sent[DIM], after[DIM];
        if (kind == KITH_LIE_GAUSS || kind == KITH_LIE_NAN)
            continue;
        struct kith_worker *worker = open_liar(kind, by);
        kith_worker_read(worker, x);
        snapshot(worker, sent);
        merge(worker, 1, 0);
        snapshot(worker, sent);
        merge(worker, 2, 0);
        snapshot(worker, sent);
        for (unsigned i = 0; i < DIM; i++)
            if (!(sent[i] == expected(kind, by, x, i)))
                fail_msg("%s: sent %.17g", kith_lie_kinds[k].name, sent[i]);
        /* It moves to what comes from where it was, not from the lie. */
        merge(worker, 3, 0.25);
        kith_worker_read(worker, after);
        for (unsigned i = 0; i < DIM; i++)
            assert_true(after[i] == x[i] + 0.25 * (3 - x[i]));
        snapshot(worker, sent);
        for (unsigned i = 0; i < DIM && kind == KITH_LIE_FREE_RIDE; i++)
            assert_true(sent[i] == x[i]);
        kith_worker_close(worker);
    }
}

/* Push-sum: of what a share comes to, whatever its weight; where it never
 * arrives, what comes home is no lie. */
static void test_shares(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        const enum kith_lie_kind kind = k == 0 ? KITH_LIE_FLIP : KITH_LIE_STALE;
        struct kith_worker *worker = open_member("sgp", kind, 0);
        const uint32_t inbox = KITH_SLOT_ANSWERED_INBOX;
        double *received = kith_worker_slot(worker, inbox);
        double z[DIM], sent[DIM], home[DIM];
        struct kith_work_edge taken = {
            .scalars_received = {0.5}, .sent = KITH_SLOT_NONE, .inbox = inbox};
        for (unsigned i = 0; i < DIM; i++)
            received[i] = 0.5 * 7;
        (void)run(worker, (struct kith_work){.kind = KITH_WORK_MERGE,
                                             .pattern = KITH_PATTERN_PUSH,
                                             .edges = &taken,
                                             .edge_count = 1});
        kith_worker_read(worker, z);
        struct kith_work_edge given = {.weight = 0.25,
                                       .sent = KITH_SLOT_INITIATED_SENT,
                                       .inbox = KITH_SLOT_NONE};
        struct kith_work work = {.kind = KITH_WORK_SNAPSHOT,
                                 .pattern = KITH_PATTERN_PUSH,
                                 .edges = &given,
                                 .edge_count = 1};
        (void)run(worker, work);
        read_slot(worker, KITH_SLOT_INITIATED_SENT, sent);
        assert_true(given.scalars_sent[0] == 0.25 * 1.5);
        for (unsigned i = 0; i < DIM; i++)
            assert_true(fabs(sent[i] / given.scalars_sent[0] -
                             (kind == KITH_LIE_FLIP ? -z[i] : 7)) < 1e-12);
        work.kind = KITH_WORK_UNDO;
        (void)run(worker, work);
        assert_true(*kith_worker_scalars(worker) == 1.5);
        kith_worker_read(worker, home);
        for (unsigned i = 0; i < DIM; i++)
            assert_true(fabs(home[i] - z[i]) < 1e-12);
        kith_worker_close(worker);
    }
}

/* Before anything has come the others' models are its own. */
static void test_nothing_heard(void **state)
{
    (void)state;
    static const struct {
        enum kith_lie_kind kind;
        double by, factor;
    } cases[] = {{KITH_LIE_ALIE, 5, 1},        {KITH_LIE_IPM, 0.5, -0.5},
                 {KITH_LIE_DISSENSUS, 1.5, 1}, {KITH_LIE_STALE, 0, 1},
                 {KITH_LIE_RIDE, 2.5, 1},      {KITH_LIE_ASCENT, 2.5, 1}};
    for (unsigned k = 0; k < 6; k++) {
        double x[DIM], sent[DIM];
        struct kith_worker *worker = open_liar(cases[k].kind, cases[k].by);
        kith_worker_read(worker, x);
        snapshot(worker, sent);
        for (unsigned i = 0; i < DIM; i++)
            assert_true(sent[i] == cases[k].factor * x[i]);
        kith_worker_close(worker);
    }
}

/* The same noise for the same seed, of the deviation asked for; nothing but NaN
 * where that is the kind, and the truth once it is over. */
static void test_noise_and_nan(void **state)
{
    (void)state;
    double x[DIM], first[DIM], again[DIM], squared = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        struct kith_worker *worker = open_liar(KITH_LIE_GAUSS, 0.5);
        kith_worker_read(worker, x);
        snapshot(worker, pass == 0 ? first : again);
        kith_worker_close(worker);
    }
    assert_memory_equal(first, again, sizeof first);
    for (unsigned i = 0; i < DIM; i++)
        squared += (first[i] - x[i]) * (first[i] - x[i]) / DIM;
    assert_true(sqrt(squared) > 0.3 && sqrt(squared) < 0.7);

    const struct kith_lie none = {.kind = KITH_LIE_NONE};
    struct kith_worker *worker = open_liar(KITH_LIE_NAN, 0);
    snapshot(worker, first);
    for (unsigned i = 0; i < DIM; i++)
        assert_true(isnan(first[i]));
    kith_worker_lie(worker, &none);
    snapshot(worker, first);
    assert_memory_equal(first, x, sizeof x);
    kith_worker_close(worker);
}

/* ---- in the simulator */

static double learn(const char *kind, const char *guard)
{
    char yaml[1024];
    const char *const folder = getenv("srcdir");
    const struct sim_options options = {.watch = true};
    struct probe probe = {.options = &options};
    snprintf(yaml, sizeof yaml,
             "name: lies\nseed: 3\npeers: 10\nstop: {epochs: 5}\n"
             "model: {kind: mlp, layers: [64, 32, 10]}\n"
             "data: {kind: idx, path: %s/examples/data/digits}\n"
             "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
             "gossip: {algorithm: dpsgd, topology: torus, guard: %s}\n"
             "network: {latency: 200us, rate: 1Gbit}\ncompute: {step: 5ms}\n"
             "faults: [{at: 20ms, hostile: \"peer(8..9)\", kind: %s}]\n",
             folder != NULL ? folder : ".", guard, kind);
    probe_must(&probe, "%s", yaml);
    const double mean = probe.summary.accuracy.mean;
    printf("  %-10s %-4s %.3f\n", kind, guard, mean);
    assert_int_equal(probe.summary.faults, 2);
    probe_close(&probe);
    return mean;
}

/* What the two cost, of all ten: without a guard much, but for what the gate
 * refuses, for little noise and for labels; with one nothing. Two kinds learn
 * worse themselves. */
static void test_runs(void **state)
{
    (void)state;
    for (unsigned k = KITH_LIE_FLIP; k < KITH_LIE_COUNT; k++) {
        const char *const kind = kith_lie_kinds[k].name;
        const double open = learn(kind, "none"), held = learn(kind, "clip");
        const bool little = k == KITH_LIE_GAUSS || k == KITH_LIE_NAN ||
                            k == KITH_LIE_LABEL_FLIP;
        assert_true(little ? open > 0.83 : open < 0.75);
        assert_true(held > (k == KITH_LIE_ASCENT       ? 0.69
                            : k == KITH_LIE_LABEL_FLIP ? 0.83
                                                       : 0.86));
    }
}

static void test_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{kind: quadratic, dim: 8}", "gossip-push",
         "algorithm gossip-push needs another"},
        {"{kind: none}", "adpsgd", "model none has no values"},
        {"{kind: quadratic, dim: 8}",
         "adpsgd}\nassert: [\"finally conserved\"]\n"
         "network: {latency: 1ms",
         "no sum is kept"}};
    for (unsigned i = 0; i < 3; i++) {
        char yaml[512], words[KITH_EXPERIMENT_ERROR_BYTES] = "";
        struct kith_experiment experiment;
        snprintf(yaml, sizeof yaml,
                 "name: no\nseed: 1\npeers: 8\nstop: {time: 9s}\nmodel: %s\n"
                 "gossip: {algorithm: %s}\ncompute: {step: 5ms}\n"
                 "faults: [{at: 1s, hostile: all, kind: flip}]\n",
                 cases[i][0], cases[i][1]);
        assert_int_equal(parse(yaml, NULL, &experiment, words), KITH_EINVAL);
        if (strstr(words, cases[i][2]) == NULL)
            fail_msg("%s: %s", cases[i][1], words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_nothing_heard),
        cmocka_unit_test(test_noise_and_nan),
        cmocka_unit_test(test_refused_by_name),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
