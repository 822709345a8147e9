/* Goal: methods that coincide by their mathematics coincide here (T13), means
 * are kept by all that average with W (T8.3 of the taxonomy).
 * Method: pairs of runs in the simulator, float64 to 1e-12 and float32 to 1e-5,
 * one of them the degenerate case of the other. Every line prints what is
 * expected and measured. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "tests/support/probe.h"

enum { DIM = 8 };

static void run(struct probe *probe, const char *model, const char *backend,
                unsigned peers, unsigned steps, const char *gossip)
{
    probe_must(probe,
               "name: t13\nseed: 4\npeers: %u\nstop: {steps: %u}\n"
               "model: {kind: %s, dim: %d}\n"
               "train: {backend: %s, learning_rate: 0.05, momentum: 0.5}\n"
               "gossip: {%s}\n"
               "network: {latency: 1us}\ncompute: {step: 1ms}\n",
               peers, steps, model, DIM, backend, gossip);
}

/* To `tolerance` in float64, to 1e-5 in float32; 0: bit for bit in both. */
static void same(const char *what, unsigned peers, const char *one,
                 const char *other, double tolerance)
{
    static const char *const backends[] = {"naive64", "naive32"};
    double apart[2];
    for (unsigned i = 0; i < 2; i++) {
        struct probe a = {.period = 0}, b = {.period = 0};
        run(&a, "quadratic", backends[i], peers, 100, one);
        run(&b, "quadratic", backends[i], peers, 100, other);
        apart[i] = probe_distance(a.z, b.z, (size_t)peers * DIM);
        probe_close(&a);
        probe_close(&b);
    }
    printf("  T13 %-52s expected 0, measured %.1e, in float32 %.1e\n", what,
           apart[0], apart[1]);
    assert_true(apart[0] <= tolerance);
    assert_true(apart[1] <= (tolerance > 0 ? 1e-5 : 0));
}

/* x <- x - eta m, m <- beta m + mean of all gradients, on one model. */
static void test_t13_synchronous_sgd(void **state)
{
    (void)state;
    struct probe targets = {.period = 0}, all = {.period = 0};
    double x[DIM] = {0}, m[DIM] = {0}, b[DIM], expected[6 * DIM];
    probe_must(&targets,
               "name: t13\nseed: 4\npeers: 6\nstop: {steps: 1}\n"
               "model: {kind: quadratic, dim: %d}\n"
               "train: {backend: naive64, learning_rate: 1}\n"
               "gossip: {algorithm: local}\ncompute: {step: 1ms}\n",
               DIM);
    probe_mean(targets.z, 6, DIM, b);
    for (unsigned t = 0; t < 100; t++)
        for (unsigned k = 0; k < DIM; k++) {
            m[k] = 0.5 * m[k] + (x[k] - b[k]);
            x[k] -= 0.05 * m[k];
        }
    for (unsigned i = 0; i < 6; i++)
        memcpy(expected + i * DIM, x, sizeof x);
    run(&all, "quadratic", "naive64", 6, 100,
        "algorithm: dpsgd-atc, topology: complete");
    const double apart = probe_distance(all.z, expected, 6 * DIM);
    printf("  T13 %-52s expected 0, measured %.1e\n",
           "dpsgd-atc on a complete graph, synchronous SGD", apart);
    assert_true(apart < 1e-12);
    probe_close(&targets);
    probe_close(&all);
}

static void test_t13_equalities(void **state)
{
    (void)state;
    same("local-sgd H = 1, dpsgd-atc, complete", 6,
         "algorithm: local-sgd, topology: complete",
         "algorithm: dpsgd-atc, topology: complete", 0);
    same("allreduce-ring, dpsgd-atc on a complete graph", 6,
         "algorithm: allreduce-ring",
         "algorithm: dpsgd-atc, topology: complete", 1e-12);
    same("choco with the identity and gamma = 1, dpsgd-atc", 7,
         "algorithm: choco, topology: ring, consensus: 1",
         "algorithm: dpsgd-atc, topology: ring", 1e-12);
    same("clipped with an endless radius, dpsgd-atc", 7,
         "algorithm: clipped, topology: ring, radius: 1e30",
         "algorithm: dpsgd-atc, topology: ring", 1e-12);
    /* Heavy-ball DiLoCo: d = -alpha v. */
    same("noloco of all, heavy-ball DiLoCo, n = 6", 6,
         "algorithm: noloco, topology: complete, every: 5",
         "algorithm: slowmo, topology: complete, every: 5, momentum: 0.5, "
         "rate: 0.7",
         1e-12);
    same("noloco of a pair, heavy-ball DiLoCo, n = 2", 2,
         "algorithm: noloco, topology: random-matching, every: 5",
         "algorithm: slowmo, topology: complete, every: 5, momentum: 0.5, "
         "rate: 0.7",
         1e-12);
    same("slowmo without momentum, local SGD", 6,
         "algorithm: slowmo, topology: ring, every: 5, momentum: 0, rate: 1",
         "algorithm: local-sgd, topology: ring, every: 5", 1e-12);
    same("qg-dsgdm without momentum, dpsgd-atc", 6,
         "algorithm: qg-dsgdm, topology: ring, momentum: 0",
         "algorithm: dpsgd-atc, topology: ring", 1e-12);
    /* n = 2: the tree has one edge, what is heard is this round's. */
    same("relaysgd of two, all-reduce", 2,
         "algorithm: relaysgd, topology: path",
         "algorithm: dpsgd-atc, topology: complete", 1e-12);
    same("sgp-sync on a doubly stochastic graph, dpsgd-atc", 7,
         "algorithm: sgp-sync, topology: ring",
         "algorithm: dpsgd-atc, topology: ring", 1e-12);
    /* p so small that nobody ever pushes: bit for bit. */
    same("gosgd that never pushes, independent SGD", 6,
         "algorithm: gosgd, chance: 1e-12", "algorithm: local", 0);
    same("elastic with force 1/2, adpsgd", 6,
         "algorithm: elastic, elasticity: 0.5, topology: random",
         "algorithm: adpsgd, topology: random", 0);
}

/* Push-sum weights on a doubly stochastic graph. */
static void note(const struct sim_world *world, kith_id peer, void *arg)
{
    double *worst = arg;
    struct kith_worker *worker =
        peer == KITH_NOBODY ? NULL : sim_worker(world, peer);
    struct kith_node_counters counters;
    if (worker == NULL || !kith_node_finished(sim_node(world, peer)))
        return;
    kith_node_counters(sim_node(world, peer), &counters);
    worst[peer] = fabs(kith_worker_scalars(worker)[0] - 1);
}

static void test_t13_weights(void **state)
{
    (void)state;
    static const char *const graphs[] = {"ring", "one-peer-exponential",
                                         "exponential"};
    for (unsigned g = 0; g < 3; g++) {
        double worst[7] = {1, 1, 1, 1, 1, 1, 1}, most = 0;
        char gossip[128];
        struct probe probe = {.meddle = note, .arg = worst};
        (void)snprintf(gossip, sizeof gossip,
                       "algorithm: sgp-sync, topology: %s", graphs[g]);
        run(&probe, "quadratic", "naive64", 7, 100, gossip);
        for (unsigned i = 0; i < 7; i++)
            most = fmax(most, worst[i]);
        printf("  T13 weight - 1, sgp-sync, %-31s expected 0, measured %.1e\n",
               graphs[g], most);
        assert_true(most < 1e-12);
        probe_close(&probe);
    }
}

/* Does it average with a W that keeps the mean? */
static bool keeps_mean(const struct kith_algorithm *algorithm)
{
    static const char *const others[] = {"d2",     "extra",  "beer",  "diloco",
                                         "noloco", "gasloc", "slowmo"};
    if (algorithm->pattern != KITH_PATTERN_ROUND)
        return false;
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(algorithm->name, others[i]) == 0)
            return true;
    return algorithm->flags & KITH_CONSERVES_SUM;
}

static void test_t8_3_means(void **state)
{
    (void)state;
    static const char *const backends[] = {"naive64", "naive32"};
    unsigned count = 0;
    for (unsigned a = 0; kith_algorithms[a] != NULL; a++) {
        double drift[2];
        /* Its mean goes on as it went: roundings of t rounds add up to t^2 / 2
         * of them, until gradients hold it. */
        const bool adds_up = strcmp(kith_algorithms[a]->name, "d2") == 0 ||
                             strcmp(kith_algorithms[a]->name, "extra") == 0;
        const double most = adds_up ? 3e-4 : 1e-6;
        if (!keeps_mean(kith_algorithms[a]))
            continue;
        for (unsigned b = 0; b < 2; b++) {
            struct probe probe = {.period = 100};
            char gossip[128];
            double before[DIM], after[DIM];
            (void)snprintf(
                gossip, sizeof gossip, "algorithm: %s%s",
                kith_algorithms[a]->name,
                kith_algorithms[a]->schedule == NULL ? ", topology: ring" : "");
            run(&probe, "consensus", backends[b], 8, 100, gossip);
            probe_mean(probe.history, 8, DIM, before);
            probe_mean(probe.z, 8, DIM, after);
            drift[b] = probe_distance(after, before, DIM);
            probe_close(&probe);
        }
        printf("  T8.3 %-20s mean moved by %.1e in float64, %.1e in float32, "
               "expected below %g\n",
               kith_algorithms[a]->name, drift[0], drift[1], most);
        assert_true(drift[0] < 1e-12);
        assert_true(drift[1] < most);
        count++;
    }
    assert_true(count > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t13_synchronous_sgd),
        cmocka_unit_test(test_t13_equalities),
        cmocka_unit_test(test_t13_weights),
        cmocka_unit_test(test_t8_3_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
