/* Goal: a gradient that is sent in buckets, while the rest of it is computed,
 * gives the x of one that is sent whole, to the bit, and so that of one process
 * with n times the batch (T5.2), whatever the optimiser; it takes less time;
 * where a peer dies the others finish with books that balance; a file that asks
 * for it where it cannot be is refused by name.
 * Method: runs of 2 to 8 peers beside each other, in simulated time. Prints
 * expected and measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/experiment.h"
#include "tests/support/probe.h"

#define STEPS 200u

static const char *const optimisers[] = {
    "learning_rate: 0.05, momentum: 0.9, weight_decay: 1e-3",
    "optimiser: adamw, learning_rate: 0.003, weight_decay: 0.01",
    "learning_rate: 0.05, momentum: 0.9, clip: 0.5",
    "optimiser: adamw, learning_rate: 0.003, clip: 0.1",
    /* Which adds in another order than one process does. */
    "learning_rate: 0.05, momentum: 0.9, accumulate: 2"};
#define OPTIMISERS (sizeof optimisers / sizeof *optimisers)

/* `peers` share 64 rows, and a batch is all that a peer has of them. */
static void run_model(struct probe *probe, const char *layers, unsigned peers,
                      const char *optimiser, const char *gossip,
                      const char *stop, const char *more)
{
    const struct sim_options *const options = probe->options;
    memset(probe, 0, sizeof *probe);
    probe->options = options;
    probe_must(probe,
               "name: sync\nseed: 7\npeers: %u\nstop: {%s}\n"
               "model: {kind: mlp, layers: [20, %s, 10]}\n"
               "data: {kind: gaussian, rows: 64, spread: 0.5, split: iid}\n"
               "train: {backend: cpu, batch: %u, %s}\n"
               "gossip: {%s}\ncompute: {step: 1ms}\n%s",
               peers, stop, layers, 64 / peers, optimiser, gossip, more);
}

static void run(struct probe *probe, unsigned peers, const char *optimiser,
                const char *gossip, const char *stop, const char *more)
{
    run_model(probe, "32, 32", peers, optimiser, gossip, stop, more);
}

static size_t other_bits(const struct probe *a, const struct probe *b)
{
    const size_t n = a->peers * a->dim;
    size_t differ = 0;
    assert_int_equal(n, b->peers * b->dim);
    for (size_t i = 0; i < n; i++)
        differ += memcmp(&a->z[i], &b->z[i], sizeof(double)) != 0;
    return differ;
}

static void are_the_whole_to_the_bit(void **state)
{
    static const unsigned peers[] = {2, 5, 8}, buckets[] = {2, 7, 64},
                          urgent[] = {1, 5, 64};
    static const char stop[] = "steps: 200";
    (void)state;
    for (size_t p = 0; p < 3; p++)
        for (size_t i = 0; i < OPTIMISERS; i++) {
            struct probe whole = {0}, some = {0}, again = {0};
            char gossip[64];
            (void)snprintf(gossip, sizeof gossip,
                           "algorithm: sync-sgd, buckets: %u, urgent: %u",
                           buckets[(p + i) % 3], urgent[(p + i / 2) % 3]);
            run(&whole, peers[p], optimisers[i], "algorithm: sync-sgd", stop,
                "");
            run(&some, peers[p], optimisers[i], gossip, stop, "");
            run(&again, peers[p], optimisers[i], gossip, stop, "");
            printf("T5.2 %u peers, %s, %u buckets, %u urgent, values other "
                   "than of whole gradients and than again: expected 0 and 0, "
                   "measured %zu and %zu\n",
                   peers[p], optimisers[i], buckets[(p + i) % 3],
                   urgent[(p + i / 2) % 3], other_bits(&some, &whole),
                   other_bits(&some, &again));
            assert_int_equal(other_bits(&some, &whole), 0);
            assert_int_equal(other_bits(&some, &again), 0);
            assert_true(some.summary.trace_hash == again.summary.trace_hash);
            assert_int_equal(some.summary.steps, STEPS * peers[p]);
            probe_close(&whole);
            probe_close(&some);
            probe_close(&again);
        }
}

static void are_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < OPTIMISERS; i++) {
        struct probe one = {0}, all = {0};
        double apart = 0;
        run_model(&one, "32", 1, optimisers[i], "algorithm: local",
                  "steps: 200", "");
        run_model(&all, "32", 8, optimisers[i],
                  "algorithm: sync-sgd, buckets: 6, urgent: 4", "steps: 200",
                  "");
        for (uint32_t k = 0; k < all.peers; k++)
            apart = fmax(apart,
                         probe_distance(all.z + k * all.dim, one.z, all.dim));
        printf("T5.2 8 peers in 6 buckets, 4 urgent, and one process, %s: "
               "expected <= "
               "1e-05, measured %.2e\n",
               optimisers[i], apart);
        assert_true(apart <= 1e-5);
        probe_close(&one);
        probe_close(&all);
    }
}

/* A step of 1 ms has 0.66 ms of the way back, and a bucket of four takes 0.23
 * ms up this link, and as long down. */
static void hide_behind_computing(void **state)
{
    static const char link[] = "network: {latency: 1us, rate: 500Mbit}\n";
    static const char *const ways[] = {
        "algorithm: sync-sgd", "algorithm: sync-sgd, buckets: 4",
        "algorithm: sync-sgd, buckets: 4, urgent: 3"};
    double seconds[3];
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        struct probe probe = {0};
        run_model(&probe, "64, 64, 64, 64", 2, "learning_rate: 0.05", ways[k],
                  "steps: 200", link);
        seconds[k] = probe.summary.virtual_s;
        probe_close(&probe);
    }
    printf("# 200 steps of 1 ms: %.4f s with whole gradients, %.4f s in 4 "
           "buckets, %.4f s with those of the first layers first\n",
           seconds[0], seconds[1], seconds[2]);
    assert_true(seconds[0] > 0.2 + 200 * 1.85e-3);
    assert_true(seconds[1] < seconds[0] - 200 * 0.4e-3);
    assert_true(seconds[2] < seconds[1] - 200 * 0.1e-3);
    /* Alone the items of a step take what it takes. */
    struct probe alone = {0};
    run_model(&alone, "64, 64, 64, 64", 1, "learning_rate: 0.05",
              "algorithm: sync-sgd, buckets: 8, urgent: 6", "steps: 200", "");
    assert_true(fabs(alone.summary.virtual_s - 0.2) < 1e-12);
    probe_close(&alone);
}

/* Root, inner place and leaf, in the middle of a step. */
static void survivors_finish(void **state)
{
    static const unsigned dead[] = {0, 2, 4, 7};
    static const struct sim_options books = {.ledger = SIM_LEDGER_PAIRS};
    (void)state;
    for (size_t k = 0; k < sizeof dead / sizeof *dead; k++) {
        struct probe gone = {.options = &books}, back = {0};
        char fault[200];
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50.3ms, crash: \"peer(%u)\"}]\n",
                       dead[k]);
        run(&gone, 8, optimisers[0],
            "algorithm: sync-sgd, buckets: 5, urgent: 4", "time: 500ms", fault);
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50.3ms, crash: \"peer(%u)\", restart: "
                       "20ms}]\n",
                       dead[k]);
        run(&back, 8, optimisers[0],
            "algorithm: sync-sgd, buckets: 5, urgent: 4", "time: 500ms", fault);
        double apart = 0;
        for (uint32_t i = 0; i < 8; i++)
            apart =
                fmax(apart, probe_distance(back.z + i * back.dim,
                                           back.z + (dead[k] == 0) * back.dim,
                                           back.dim));
        printf("# peer %u dies: loss %.4f, %llu steps; comes back: %.4f, all "
               "within %.2e\n",
               dead[k], gone.summary.loss.mean,
               (unsigned long long)gone.summary.steps, back.summary.loss.mean,
               apart);
        assert_true(gone.summary.steps > 7 * STEPS);
        assert_true(apart <= 1e-6);
        probe_close(&gone);
        probe_close(&back);
    }
}

static void wrong_files_are_refused(void **state)
{
    static const struct {
        const char *gossip, *says;
    } cases[] = {{"algorithm: dpsgd, buckets: 4", "buckets"},
                 {"algorithm: allreduce-tree, buckets: 4", "buckets"},
                 {"algorithm: sync-sgd, buckets: 0", "buckets"},
                 {"algorithm: sync-sgd, buckets: 65", "buckets"},
                 {"algorithm: two-level, urgent: 4", "urgent"},
                 {"algorithm: sync-sgd, buckets: 64", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 3\nstop: {steps: 9}\n"
                       "model: {kind: mlp, layers: [64, 8, 10]}\n"
                       "data: {path: /data}\ngossip: {%s}\n",
                       cases[n].gossip);
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
        cmocka_unit_test(are_the_whole_to_the_bit),
        cmocka_unit_test(are_one_process),
        cmocka_unit_test(hide_behind_computing),
        cmocka_unit_test(survivors_finish),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
