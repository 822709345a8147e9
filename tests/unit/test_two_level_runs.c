/* Goal: runs of two-level: where a peer dies the others finish, and one that
 * comes back is in the others' state again; with one site it is sync-sgd, and
 * where one of it dies the others stay in one state; a file that asks for what
 * it cannot be is refused by name. Method: the simulator with crashes;
 * experiments that are wrong in one place each. Prints expected and measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/experiment.h"
#include "tests/support/probe.h"

enum { PEERS = 16 };

static void run_sim(struct probe *probe, const char *stop, unsigned features,
                    const char *gossip, const char *more)
{
    *probe = (struct probe){.period = 0};
    probe_must(probe,
               "name: two-level\nseed: 7\npeers: 16\nstop: {%s}\n"
               "model: {kind: mlp, layers: [%u, 10]}\n"
               "data: {kind: gaussian, rows: 64, spread: 0.5, split: iid}\n"
               "train: {backend: cpu, batch: 4, learning_rate: 0.05, momentum: "
               "0.9}\ngossip: {%s}\ncompute: {step: 1ms}\n%s",
               stop, features, gossip, more);
}

static double apart_from(const struct probe *probe, const double *x,
                         kith_id but)
{
    double most = 0;
    for (kith_id p = 0; p < probe->peers; p++)
        if (p != but)
            most = fmax(
                most, probe_distance(probe->z + p * probe->dim, x, probe->dim));
    return most;
}

/* The first of a site, and one in its middle. */
static void test_survivors_finish(void **state)
{
    static const unsigned dead[] = {0, 6};
    static const char gossip[] = "algorithm: two-level, regions: 4, share: "
                                 "0.05, deadline: 20ms";
    (void)state;
    for (size_t k = 0; k < sizeof dead / sizeof *dead; k++) {
        struct probe gone, back;
        char fault[120];
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50ms, crash: \"peer(%u)\"}]\n", dead[k]);
        run_sim(&gone, "steps: 300", 30, gossip, fault);
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50ms, crash: \"peer(%u)\", restart: "
                       "20ms}]\n",
                       dead[k]);
        run_sim(&back, "time: 3s", 30, gossip, fault);
        const double apart =
            apart_from(&back, back.z + (dead[k] == 0) * back.dim, PEERS);
        printf("  peer %u dies: steps %llu, loss %.4f; comes back: %.4f, all "
               "within %.2e, expected 0\n",
               dead[k], (unsigned long long)gone.summary.steps,
               gone.summary.loss.mean, back.summary.loss.mean, apart);
        assert_true(gone.summary.steps >= 300 * (PEERS - 1));
        assert_true(apart == 0);
        probe_close(&gone);
        probe_close(&back);
    }
}

/* One site is a dense mean, sync-sgd's, added in another order. */
static void test_one_site(void **state)
{
    struct probe one, dense;
    (void)state;
    run_sim(&one, "steps: 100", 30, "algorithm: two-level, regions: 1", "");
    run_sim(&dense, "steps: 100", 30, "algorithm: sync-sgd", "");
    const double apart = apart_from(&one, dense.z, PEERS);
    printf("  one site of 16 and sync-sgd: %.2e apart, expected <= 1e-05\n",
           apart);
    assert_true(apart <= 1e-5);
    probe_close(&one);
    probe_close(&dense);
}

/* Shards go round among its members: where one is gone each shard misses a step
 * in sixteen, and nobody drifts. */
static void test_one_site_without_a_member(void **state)
{
    static const char fault[] = "faults: [{at: 5ms, crash: \"peer(7)\"}]\n";
    struct probe one, dense;
    (void)state;
    run_sim(&one, "steps: 300", 30,
            "algorithm: two-level, regions: 1, deadline: 20ms", fault);
    run_sim(&dense, "steps: 300", 30, "algorithm: sync-sgd, deadline: 20ms",
            fault);
    const double apart = apart_from(&one, one.z, 7);
    printf("  one site, peer 7 dies: all within %.2e, expected 0; loss %.4f, "
           "expected within 1/16 of sync-sgd's, %.4f\n",
           apart, one.summary.loss.mean, dense.summary.loss.mean);
    assert_true(apart == 0);
    assert_true(fabs(one.summary.loss.mean / dense.summary.loss.mean - 1) <
                1.0 / PEERS);
    probe_close(&one);
    probe_close(&dense);
}

/* ---- refusals */

static void test_rules(void **state)
{
    static const struct {
        const char *gossip, *train, *says;
    } cases[] = {
        {"regions: 3", "backend: cpu", "a divisor of 8"},
        {"regions: 9", "backend: cpu", "a divisor of 8"},
        {"regions: 4, share: 0.3", "backend: cpu", "up to 1 / 4"},
        {"every: 2", "backend: cpu", "each gradient"},
        {"compressor: top-k", "backend: cpu", "the largest values already"},
        {"wire: bfloat16", "backend: cpu", "lists of values"},
        {"guard: clip", "backend: cpu", "none: what it receives"},
        {"topology: ring", "backend: cpu", "its own"},
        {"rate: 1", "backend: cpu", "does not read"},
        {"regions: 4", "backend: cuda", "a backend of the host"},
        {"regions: 4, share: 0.25", "backend: cpu", NULL},
        {"regions: 1, share: 1", "backend: cpu", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 8\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [64, 8, 10]}\n"
                       "data: {path: /data}\ntrain: {%s}\n"
                       "gossip: {algorithm: two-level, %s}\n",
                       cases[n].train, cases[n].gossip);
        const bool loads =
            kith_experiment_parse("e", text, strlen(text), NULL, 0, &experiment,
                                  error) == KITH_OK;
        printf("  %s: %s\n", cases[n].gossip, error);
        assert_true(loads == (cases[n].says == NULL));
        assert_true(loads || strstr(error, cases[n].says) != NULL);
        if (loads)
            kith_experiment_close(&experiment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivors_finish),
        cmocka_unit_test(test_one_site),
        cmocka_unit_test(test_one_site_without_a_member),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
