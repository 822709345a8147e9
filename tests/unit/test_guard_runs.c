/* Goal: with guard clip a liar costs what its silence would, and nothing where
 * there is none; what a guard decides is no decision of the protocol.
 * Method: ten peers learn the bundled digits in the simulator; two of them hold
 * others' models with the sign turned, ten times as large (by hand, after every
 * event), or send values of 2 (the fault `huge`). Without a guard that ruins
 * all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "experiment_base.h"
#include "src/training/worker/worker_state.h"
#include "tests/support/probe.h"
#include "worker_run.h"

static const char *const digits =
    "name: liars\nseed: 3\npeers: 10\nstop: {epochs: 5}\n"
    "model: {kind: mlp, layers: [64, 32, 10]}\n"
    "data: {kind: idx, path: %s/examples/data/digits, split: %s}\n"
    "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
    "gossip: {algorithm: %s, guard: %s}\n"
    "network: {latency: 200us, rate: 1Gbit}\ncompute: {step: 5ms}\n%s";

/* Peers 8 and 9: what 0 and 1 have learnt, against them. */
static void turn(const struct sim_world *world, kith_id peer, void *arg)
{
    (void)peer;
    (void)arg;
    for (kith_id liar = 8; liar < 10; liar++) {
        struct kith_worker *bad = sim_worker(world, liar);
        struct kith_worker *good = sim_worker(world, liar - 8);
        if (bad == NULL || good == NULL)
            continue;
        const size_t dim = kith_worker_dim(bad);
        float *x = kith_worker_slot(bad, KITH_SLOT_LIVE);
        const float *y = kith_worker_slot(good, KITH_SLOT_LIVE);
        for (size_t k = 0; k < dim; k++)
            x[k] = -10 * y[k];
    }
}

static const char *source(void)
{
    const char *const folder = getenv("srcdir");
    return folder != NULL ? folder : ".";
}

struct outcome {
    double worst; /* accuracy of honest peers */
    uint64_t hash, clipped, rejected;
};

static double worst_of(const char *yaml, const struct probe *probe)
{
    char words[KITH_EXPERIMENT_ERROR_BYTES];
    struct kith_experiment experiment;
    struct kith_dataset set;
    double worst = 1;
    assert_int_equal(parse(yaml, NULL, &experiment, words), KITH_OK);
    assert_int_equal(fixture_digits(&set, words), KITH_OK);
    for (uint32_t peer = 0; peer < 8; peer++) {
        struct kith_score score;
        assert_int_equal(kith_evaluate(&experiment, experiment.backend,
                                       &set.test, probe->z + peer * probe->dim,
                                       &score),
                         KITH_OK);
        worst = fmin(worst, score.accuracy);
    }
    kith_dataset_close(&set);
    kith_experiment_close(&experiment);
    return worst;
}

/* `lies`: "flip", or faults. */
static struct outcome learn(const char *algorithm, const char *split,
                            const char *guard, const char *lies)
{
    char yaml[1024];
    const bool flips = strcmp(lies, "flip") == 0;
    const struct sim_options options = {.watch = true};
    struct probe probe = {.options = &options, .meddle = flips ? turn : NULL};
    snprintf(yaml, sizeof yaml, digits, source(), split, algorithm, guard,
             flips ? "" : lies);
    probe_must(&probe, "%s", yaml);
    const struct outcome found = {worst_of(yaml, &probe),
                                  probe.summary.trace_hash,
                                  probe.report.marks[KITH_MARK_CLIPPED],
                                  probe.report.marks[KITH_MARK_REJECTED]};
    printf("  %-24s %-14s %-4s %s: worst %.3f, %llu clipped, %llu rejected\n",
           algorithm, split, guard,
           *lies == '\0' ? "-"
           : flips       ? lies
                         : "huge",
           found.worst, (unsigned long long)found.clipped,
           (unsigned long long)found.rejected);
    probe_close(&probe);
    return found;
}

#define HUGE "faults: [{at: 20ms, huge: \"peer(8..9)\", by: 2}]\n"

static void test_liars(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "adpsgd, every: 2", "dpsgd, topology: torus",
        "noloco, topology: complete, every: 4", "gosgd",
        "sgp-sync, topology: torus"};
    static const char *const lies[] = {"flip", HUGE};
    for (unsigned i = 0; i < 10; i++) {
        const char *const algorithm = algorithms[i / 2], *lie = lies[i % 2];
        const struct outcome open = learn(algorithm, "iid", "none", lie);
        const struct outcome held = learn(algorithm, "iid", "clip", lie);
        assert_true(open.worst < 0.5);
        /* Pairs of gosgd meet at 64 steps out of 320: the worst of eight has
         * .78 on the average of 20 seeds. */
        const bool is_rare = i / 2 == 3;
        assert_true(held.worst > (is_rare ? 0.75 : 0.82));
        assert_int_equal(open.rejected + open.clipped, 0);
        assert_true(held.rejected > (is_rare ? 25 : 50));
    }
}

static void test_nobody_lies(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "adpsgd, every: 2", "dpsgd, topology: torus",
        "diloco, topology: complete, every: 4", "sgp",
        "overlap-sgp, topology: complete"};
    for (unsigned i = 0; i < 5; i++) {
        const struct outcome open = learn(algorithms[i], "iid", "none", "");
        const struct outcome held = learn(algorithms[i], "iid", "clip", "");
        assert_true(held.worst >= open.worst - 0.02);
        assert_true(held.hash == open.hash);
    }
}

/* What an int8 wire rounds is half of what is left between models that agree:
 * an honest peer with data of its own stood out, and 5,462 of 19,152 models
 * were rejected, of this seed; its class was forgotten, .89 for .96. */
static void test_wire_rounds(void **state)
{
    (void)state;
    static const char *const wires[] = {"bfloat16", "int8"};
    for (unsigned i = 0; i < 2; i++) {
        double means[2];
        uint64_t rejected = 0;
        for (unsigned guarded = 0; guarded < 2; guarded++) {
            const struct sim_options options = {.watch = true};
            struct probe probe = {.options = &options};
            probe_must(
                &probe,
                "name: rounds\nseed: 11\npeers: 10\nstop: {epochs: 60}\n"
                "model: {kind: mlp, layers: [64, 32, 10]}\n"
                "data: {kind: idx, path: %s/examples/data/digits, "
                "split: dirichlet(0.1)}\n"
                "train: {learning_rate: 0.05, momentum: 0.9, batch: 16, "
                "schedule: linear}\n"
                "gossip: {algorithm: dpsgd-atc, topology: complete, wire: %s, "
                "guard: %s}\n"
                "network: {latency: 200us}\ncompute: {step: 5ms}\n",
                source(), wires[i], guarded ? "clip" : "none");
            means[guarded] = probe.summary.accuracy.mean;
            rejected = probe.report.marks[KITH_MARK_REJECTED];
            probe_close(&probe);
        }
        printf("  %s: %.3f, with clip %.3f, %llu rejected\n", wires[i],
               means[0], means[1], (unsigned long long)rejected);
        assert_true(means[1] > means[0] - 0.02);
        assert_true(rejected < 2500);
    }
}

/* Two halves of sixteen come together again, though most neighbours of each
 * peer were on its own side: less guard none, their mean accuracy. */
static double parted(const char *gossip)
{
    double means[2];
    uint64_t clipped = 0;
    for (unsigned guarded = 0; guarded < 2; guarded++) {
        const struct sim_options options = {.watch = true};
        struct probe probe = {.options = &options};
        char yaml[1024];
        snprintf(
            yaml, sizeof yaml,
            "name: parted\nseed: 3\npeers: 16\nstop: {epochs: 60}\n"
            "model: {kind: mlp, layers: [64, 32, 10]}\n"
            "data: {kind: idx, path: %s/examples/data/digits, "
            "split: dirichlet(0.1)}\n"
            "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n"
            "gossip: {algorithm: %s, guard: %s}\n"
            "network: {latency: 200us, rate: 1Gbit}\ncompute: {step: 5ms}\n"
            "faults: [{at: 450ms, for: 900ms, "
            "partition: \"peer(0..7) <-> peer(8..15)\"}]\n",
            source(), gossip, guarded ? "clip" : "none");
        probe_must(&probe, "%s", yaml);
        means[guarded] = probe.summary.accuracy.mean;
        clipped = probe.report.marks[KITH_MARK_CLIPPED];
        printf("  %s, %s: %.4f, %llu rejected\n", gossip,
               guarded ? "clip" : "none", means[guarded],
               (unsigned long long)probe.report.marks[KITH_MARK_REJECTED]);
        probe_close(&probe);
    }
    assert_true(clipped > 0);
    return means[1] - means[0];
}

static void test_parted(void **state)
{
    (void)state;
    assert_true(parted("dpsgd, topology: torus") >= -0.01);
    /* -.025 while who came nearer was spared for no longer. */
    assert_true(parted("diloco, topology: hypercube, every: 4") >= -0.01);
}

/* Peers crash with shares of weight under way: what comes home is booked. */
static void test_conserved(void **state)
{
    (void)state;
    const struct sim_options options = {.watch = true};
    struct probe probe = {.options = &options};
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "name: home\nseed: 3\npeers: 8\nstop: {epochs: 60}\n"
             "model: {kind: mlp, layers: [64, 16, 10]}\n"
             "data: {kind: idx, path: %s/examples/data/digits}\n"
             "train: {learning_rate: 0.05, batch: 16, backend: naive64}\n"
             "gossip: {algorithm: sgp, guard: clip}\n"
             "network: {latency: 200us, rate: 10Mbit}\n"
             "compute: {step: 5ms}\nassert: [\"finally conserved\"]\n"
             "faults: [{at: 100ms, crash: \"peer(1)\", restart: 100ms}, "
             "{at: 500ms, crash: \"peer(2)\", restart: 100ms}, "
             "{at: 800ms, crash: \"peer(3)\", restart: 100ms}]\n",
             source());
    probe_must(&probe, "%s", yaml);
    assert_true(probe.report.marks[KITH_MARK_UNDONE] > 0);
    assert_int_equal(probe.summary.violations, 0);
    probe_close(&probe);
}

struct crashed {
    unsigned deaths, restarts; /* of peer 2, which knew four or more */
    bool knew, is_away;
};

/* What a guard keeps but for the place that it lends. */
static bool is_empty(const struct kith_guarding *guarding, const void *before,
                     size_t lent)
{
    const char *const bytes = guarding->state, *const hole = before;
    for (size_t i = 0; i < guarding->state_bytes; i++)
        if (bytes[i] != 0 && (bytes + i < hole || bytes + i >= hole + lent))
            return false;
    return true;
}

static void see_crash(const struct sim_world *world, kith_id peer, void *arg)
{
    struct crashed *crashed = arg;
    const struct kith_worker *worker = sim_worker(world, 2);
    (void)peer;
    if (worker == NULL) {
        crashed->deaths += !crashed->is_away && crashed->knew;
        crashed->is_away = true;
        return;
    }
    const struct kith_guarding *guarding = &worker->guarding;
    const void *const before =
        guarding->guard->before(guarding->state, guarding->coordinates);
    crashed->knew = before == NULL;
    if (!crashed->is_away)
        return;
    crashed->is_away = false;
    assert_non_null(before);
    assert_true(
        is_empty(guarding, before,
                 guarding->coordinates * worker->backend->element_bytes));
    crashed->restarts++;
}

/* Who starts over knows nobody, though its guard's memory is where it was. */
static void test_knows_nobody(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        const struct sim_options options = {.threads = threads};
        struct crashed crashed = {.deaths = 0};
        struct probe probe = {
            .options = &options, .meddle = see_crash, .arg = &crashed};
        static const char faults[] =
            "faults: [{at: 80ms, crash: \"peer(2)\", restart: 20ms}, "
            "{at: 200ms, crash: \"peer(2)\", restart: 20ms}]\n";
        probe_must(&probe, digits, source(), "iid", "adpsgd", "clip", faults);
        assert_int_equal(crashed.deaths, 2);
        assert_int_equal(crashed.restarts, 2);
        probe_close(&probe);
    }
}

static void test_refused_by_name(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{algorithm: gossip-push, guard: clip}",
         "algorithm gossip-push needs none"},
        {"{algorithm: sgp-sync, topology: ring, guard: median}",
         "one that sees a model at a time"},
        {"{algorithm: sgp, guard: ubar}", "a share of a model"},
        {"{algorithm: choco, topology: ring, guard: clip}",
         "algorithm choco needs none"},
        {"{algorithm: adpsgd, guard: clap}", "did you mean \"clip\"?"}};
    for (unsigned i = 0; i < 5; i++) {
        char yaml[512], words[KITH_EXPERIMENT_ERROR_BYTES] = "";
        struct kith_experiment experiment;
        snprintf(yaml, sizeof yaml,
                 "name: no\nseed: 1\npeers: 8\nstop: {steps: 9}\n"
                 "model: {kind: quadratic, dim: 8}\ngossip: %s\n"
                 "compute: {step: 5ms}\n",
                 cases[i][0]);
        assert_int_equal(parse(yaml, NULL, &experiment, words), KITH_EINVAL);
        if (strstr(words, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], words);
    }
    char words[KITH_EXPERIMENT_ERROR_BYTES] = "";
    struct kith_experiment experiment;
    assert_int_equal(parse("name: no\nseed: 1\npeers: 8\nstop: {steps: 9}\n"
                           "model: {kind: consensus, dim: 8}\n"
                           "gossip: {guard: clip}\ncompute: {step: 5ms}\n",
                           NULL, &experiment, words),
                     KITH_EINVAL);
    assert_non_null(strstr(words, "model consensus does not learn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_liars),
        cmocka_unit_test(test_nobody_lies),
        cmocka_unit_test(test_wire_rounds),
        cmocka_unit_test(test_parted),
        cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_knows_nobody),
        cmocka_unit_test(test_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
