/* Goal: baselines that must be the same are the same (T1.3): SSP with s = 0 and
 * step eta / n is synchronous, SSP with s = infinity is asynchronous, SparkNet
 * with tau = 1 is synchronous SGD, EASGD without force is isolated workers; and
 * the rules of EASGD against a few lines of their own. Method: final parameters
 * of small runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/central_run.h"

#define SMALL                                                                  \
    "name: t\nseed: 5\npeers: %u\nstop: {steps: 40}\n"                         \
    "model: {kind: mlp, layers: [20, 16, 10]}\n"                               \
    "data: {kind: gaussian, rows: 800, spread: 0.5}\n"                         \
    "compute: {step: 1ms}\nnetwork: {latency: 100us, rate: 100Mbit}\n"
#define PEERS 8u

static struct centralised a, b;

static bool same(const char *what, size_t n, const double *x, const double *y,
                 double tolerance)
{
    const double apart = relative(n, x, y);
    printf("%-48s expected below %-8.0e measured %.1e\n", what, tolerance,
           apart);
    return apart <= tolerance;
}

static void centralise_small(struct centralised *run, const char *rate,
                             const char *central)
{
    centralise(run,
               SMALL "train: {learning_rate: %s, batch: 8}\n"
                     "central: {%s}\n",
               PEERS, rate, central);
}

static void test_ssp_without_slack_is_sync(void **state)
{
    (void)state;
    centralise_small(&a, "0.00625", "trigger: ssp, staleness: 0");
    centralise_small(&b, "0.05", "trigger: sync");
    assert_true(
        same("SSP s = 0, eta/n and sync PS", a.dim, a.shared, b.shared, 1e-6));
    centralise_small(&a, "0.00625", "trigger: essp, staleness: 0");
    assert_true(
        same("ESSP s = 0, eta/n and sync PS", a.dim, a.shared, b.shared, 1e-6));
}

static void test_ssp_without_bound_is_async(void **state)
{
    (void)state;
    centralise_small(&a, "0.00625", "trigger: ssp, staleness: 1000000000");
    centralise_small(&b, "0.00625", "trigger: async");
    assert_true(same("SSP s = inf and async", a.dim, a.shared, b.shared, 0));
    assert_true(
        agrees("virtual time", b.summary.virtual_s, a.summary.virtual_s, 0));
    centralise_small(&a, "0.00625", "trigger: value-bound, bound: 1e9");
    assert_true(
        same("value bound = inf and async", a.dim, a.shared, b.shared, 0));
    assert_true(b.summary.staleness.max >= PEERS - 1);
}

static void test_sparknet_is_sync(void **state)
{
    (void)state;
    centralise_small(&a, "0.05", "method: sparknet, every: 1");
    centralise_small(&b, "0.05", "trigger: sync");
    assert_true(
        same("SparkNet tau = 1 and sync SGD", a.dim, a.shared, b.shared, 1e-6));
}

/* Gossip that averages over everybody after each step, by several ways, is
 * synchronous SGD; D-PSGD's own order is not (T1.3). */
static void test_complete_gossip_is_sync(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "dpsgd-atc, topology: complete", "local-sgd, topology: complete",
        "allreduce-ring", "allreduce-doubling", "allreduce-tree"};
    centralise_small(&b, "0.05", "exchange: ring");
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        gossip_along(&a,
                     SMALL "train: {learning_rate: 0.05, batch: 8}\n"
                           "gossip: {algorithm: %s}\n",
                     PEERS, algorithms[i]);
        assert_true(same(algorithms[i], a.dim, a.workers, b.shared, 1e-6));
    }
}

/* Nothing but time and bytes depends on the pattern. */
static void test_patterns_agree(void **state)
{
    (void)state;
    static const char *const others[] = {
        "exchange: tree",     "exchange: scatter-reduce",
        "exchange: doubling", "exchange: ring",
        "servers: 4",         "servers: 8, placement: workers",
        "proxies: 3",         "exchange: tree, placement: workers",
    };
    centralise_small(&b, "0.05", "exchange: naive");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        centralise_small(&a, "0.05", others[i]);
        assert_true(same(others[i], a.dim, a.shared, b.shared, 0));
        for (unsigned w = 0; w < PEERS; w++)
            assert_memory_equal(a.workers + w * a.dim, b.shared,
                                a.dim * sizeof *b.shared);
    }
}

static void test_backup_needs_all_but_some(void **state)
{
    (void)state;
    centralise(&a,
               SMALL "train: {learning_rate: 0.05, batch: 8}\n"
                     "central: {trigger: backup, backup: 2}\n",
               PEERS);
    assert_true(agrees("updates x (n - b)", 40 * 6,
                       (double)a.summary.exchanges.done, 0));
    assert_true(agrees("staleness of what is used + 1", 1,
                       a.summary.staleness.max + 1, 0));
    centralise(&a,
               SMALL "train: {learning_rate: 0.05, batch: 8}\n"
                     "central: {trigger: quorum, backup: 2}\n",
               PEERS);
    assert_true(agrees("quorum: updates x (n - b)", 40 * 6,
                       (double)a.summary.exchanges.done, 0));
    assert_true(a.summary.staleness.max >= 1);
    assert_int_equal(a.summary.exchanges.refused, 0);
}

/* One worker is five times slower; a clock may not lead it by more than s. */
static void test_ssp_holds_its_bound(void **state)
{
    (void)state;
    static const unsigned bounds[] = {0, 1, 3, 1000};
    double loose = 0;
    for (size_t i = 0; i < 4; i++) {
        centralise(&a,
                   "name: t\nseed: 5\npeers: 8\nstop: {steps: 40}\n"
                   "model: {kind: quadratic, dim: 8}\n"
                   "train: {learning_rate: 0.01}\n"
                   "compute: {step: 1ms, slow: [{peers: \"n(1)\", by: 5}]}\n"
                   "central: {trigger: ssp, staleness: %u}\n",
                   bounds[i]);
        /* While one step lasts each of the others makes 2 s + 1 at most. */
        const double most = (PEERS - 1) * (2.0 * bounds[i] + 1);
        printf("ssp s = %u: staleness at most %.0f, measured %.0f; %.4f s\n",
               bounds[i], most, a.summary.staleness.max, a.summary.virtual_s);
        assert_true(a.summary.staleness.max <= most);
        loose = a.summary.staleness.max;
    }
    assert_true(loose > 3 * (PEERS - 1));
}

static void test_easgd_without_force_is_isolated(void **state)
{
    (void)state;
    centralise_small(&a, "0.05", "method: easgd, alpha: 0, every: 2");
    gossip_along(&b,
                 SMALL "train: {learning_rate: 0.05, batch: 8}\n"
                       "gossip: {algorithm: local}\n",
                 PEERS);
    assert_true(same("EASGD a = 0 and isolated workers", PEERS * a.dim,
                     a.workers, b.workers, 0));
}

/* EASGD on f_i = |x - b_i|^2 / 2. All workers end their steps at once: the
 * master takes worker 0's force and answers it, then worker 1's, and so on. */
static void test_easgd_rule(void **state)
{
    (void)state;
    const unsigned steps = 100;
    centralise(&a,
               "name: t\nseed: 5\npeers: 4\nstop: {steps: %u}\n"
               "model: {kind: quadratic, dim: 3}\n"
               "train: {learning_rate: 0.1, backend: naive64}\n"
               "compute: {step: 1s}\nnetwork: {latency: 1ms}\n"
               "central: {method: easgd, alpha: 0.2}\n",
               steps);
    centralise(&b, "name: t\nseed: 5\npeers: 4\nstop: {steps: 2000}\n"
                   "model: {kind: quadratic, dim: 3}\n"
                   "train: {learning_rate: 0.5, backend: naive64}\n"
                   "compute: {step: 1s}\ncentral: {method: easgd, alpha: 0}\n");
    /* Isolated workers end at their own targets. */
    double x[4][3] = {{0}}, master[3] = {0}, force[4][3] = {{0}};
    for (unsigned t = 0; t < steps; t++)
        for (unsigned i = 0; i < 4; i++)
            for (unsigned k = 0; k < 3; k++) {
                const double target = b.workers[i * 3 + k];
                const double gradient = x[i][k] - target;
                master[k] += force[i][k];
                force[i][k] = 0.2 * (x[i][k] - master[k]);
                x[i][k] -= force[i][k] + 0.1 * gradient;
            }
    assert_true(
        same("EASGD and its rule, workers", 12, a.workers, &x[0][0], 1e-6));
    assert_true(same("EASGD and its rule, master", 3, a.shared, master, 1e-6));
}

/* Every method ends, learns nothing non-finite, and repeats itself. */
static void test_methods_repeat(void **state)
{
    (void)state;
    static const char *const all[] = {
        "method: treeeasgd, degree: 3, up: 2, down: 2",
        "method: mpca-sgd, exchange: tree, every: 2",
        "method: sparknet, every: 10, exchange: ring",
        "method: easgd, every: 4",
        "trigger: essp, staleness: 2",
        "trigger: value-bound, bound: 0.02",
        "trigger: async, servers: 3, replicas: 3",
        "trigger: ssp, staleness: 1, proxies: 3",
        "trigger: async, servers: 8, placement: workers",
        "trigger: quorum, backup: 5",
    };
    centralise_small(&a, "0", "trigger: sync");
    const double start = a.summary.loss.mean;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        centralise_small(&a, "0.02", all[i]);
        centralise_small(&b, "0.02", all[i]);
        printf("%-48s loss %.4f %.4f, staleness %.2f up to %.0f, utilisation "
               "%.3f\n",
               all[i], a.summary.loss.averaged, a.summary.loss.mean,
               a.summary.staleness.mean, a.summary.staleness.max,
               a.summary.utilisation);
        assert_int_equal(a.summary.trace_hash, b.summary.trace_hash);
        assert_memory_equal(a.shared, b.shared, a.dim * sizeof a.shared[0]);
        assert_true(isfinite(a.summary.loss.averaged));
        assert_true(a.summary.loss.mean < start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ssp_without_slack_is_sync),
        cmocka_unit_test(test_ssp_without_bound_is_async),
        cmocka_unit_test(test_sparknet_is_sync),
        cmocka_unit_test(test_complete_gossip_is_sync),
        cmocka_unit_test(test_patterns_agree),
        cmocka_unit_test(test_backup_needs_all_but_some),
        cmocka_unit_test(test_ssp_holds_its_bound),
        cmocka_unit_test(test_easgd_without_force_is_isolated),
        cmocka_unit_test(test_easgd_rule),
        cmocka_unit_test(test_methods_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
