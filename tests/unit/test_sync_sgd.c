/* Goal: sync-sgd is one process with n times the batch (T5.2), whatever the
 * optimiser; a run that is repeated is equal to the bit; where a peer dies the
 * others go on in one state, and one that comes back gets there, too; a file
 * that asks for what it cannot be is refused by name.
 * Method: a set of examples of which each of eight peers has one batch, so that
 * a single process with all of it as its batch sees the same ones; runs with a
 * crash; experiments that are wrong in one place each. Prints expected and
 * measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/algorithm.h"
#include "kith/experiment.h"
#include "tests/support/probe.h"

#define PEERS 8u
#define STEPS 200u

static const char *const optimisers[] = {
    "learning_rate: 0.05, momentum: 0.9, weight_decay: 1e-3",
    "optimiser: adamw, learning_rate: 0.003, weight_decay: 0.01",
    "learning_rate: 0.05, momentum: 0.9, clip: 0.5",
    "optimiser: adamw, learning_rate: 0.003, clip: 0.1"};
#define OPTIMISERS (sizeof optimisers / sizeof *optimisers)

/* `peers` share 64 rows, and a batch is all that a peer has of them. */
static void run_to(struct probe *probe, const char *stop, unsigned peers,
                   const char *optimiser, const char *gossip, const char *more)
{
    memset(probe, 0, sizeof *probe);
    probe_must(probe,
               "name: sync\nseed: 7\npeers: %u\nstop: {%s}\n"
               "model: {kind: mlp, layers: [20, 32, 10]}\n"
               "data: {kind: gaussian, rows: 64, spread: 0.5, split: iid}\n"
               "train: {backend: cpu, batch: %u, %s}\n"
               "gossip: {%s}\ncompute: {step: 1ms}\n%s",
               peers, stop, 64 / peers, optimiser, gossip, more);
}

static void run(struct probe *probe, unsigned peers, const char *optimiser,
                const char *gossip, const char *more)
{
    char stop[32];
    (void)snprintf(stop, sizeof stop, "steps: %u", STEPS);
    run_to(probe, stop, peers, optimiser, gossip, more);
}

/* The largest coordinate's difference, of the largest coordinate: any peer's
 * from any reference's. */
static double furthest(const struct probe *probe, const double *x)
{
    double most = 0;
    for (uint32_t i = 0; i < probe->peers; i++)
        most = fmax(most,
                    probe_distance(probe->z + i * probe->dim, x, probe->dim));
    return most;
}

static void is_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < OPTIMISERS; i++) {
        struct probe one, all, mean;
        run(&one, 1, optimisers[i], "algorithm: local", "");
        run(&all, PEERS, optimisers[i], "algorithm: sync-sgd", "");
        run(&mean, PEERS, optimisers[i], "algorithm: allreduce-tree", "");
        const double apart = furthest(&all, one.z);
        printf("T5.2 %u peers and one process, %s: expected <= 1e-05, measured "
               "%.2e\n",
               PEERS, optimisers[i], apart);
        printf("# allreduce-tree, which averages models: %.2e\n",
               furthest(&mean, one.z));
        assert_true(apart <= 1e-5);
        assert_true(one.summary.steps == STEPS);
        probe_close(&one);
        probe_close(&all);
        probe_close(&mean);
    }
}

static void repeats_to_the_bit(void **state)
{
    (void)state;
    for (unsigned peers = 2; peers <= PEERS; peers += 3) {
        struct probe first, second;
        run(&first, peers, optimisers[1], "algorithm: sync-sgd", "");
        run(&second, peers, optimisers[1], "algorithm: sync-sgd", "");
        const size_t n = first.peers * first.dim;
        unsigned other = 0;
        for (size_t i = 0; i < n; i++)
            other += memcmp(&first.z[i], &second.z[i], sizeof(double)) != 0;
        double apart = furthest(&first, first.z);
        printf("T5.2 %u peers again, values that differ: expected 0, measured "
               "%u\n",
               peers, other);
        printf("T5.2 %u peers, the furthest from the first: expected 0, "
               "measured %.3g\n",
               peers, apart);
        assert_int_equal(other, 0);
        assert_true(apart == 0);
        probe_close(&first);
        probe_close(&second);
    }
}

/* Root, inner place and leaf. */
static void survivors_finish(void **state)
{
    static const unsigned dead[] = {0, 2, 4, 7};
    (void)state;
    for (size_t k = 0; k < sizeof dead / sizeof *dead; k++) {
        struct probe gone, back;
        char fault[200];
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50ms, crash: \"peer(%u)\"}]\n", dead[k]);
        run_to(&gone, "time: 500ms", PEERS, optimisers[0],
               "algorithm: sync-sgd", fault);
        (void)snprintf(fault, sizeof fault,
                       "faults: [{at: 50ms, crash: \"peer(%u)\", restart: "
                       "20ms}]\n",
                       dead[k]);
        run_to(&back, "time: 500ms", PEERS, optimisers[0],
               "algorithm: sync-sgd", fault);
        double apart = 0;
        for (uint32_t i = 0; i < PEERS; i++)
            apart =
                fmax(apart, probe_distance(back.z + i * back.dim,
                                           back.z + (dead[k] == 0) * back.dim,
                                           back.dim));
        printf("# peer %u dies: loss %.4f; comes back: %.4f, all within %.2e\n",
               dead[k], gone.summary.loss.mean, back.summary.loss.mean, apart);
        assert_true(gone.summary.steps > (PEERS - 1) * STEPS);
        assert_true(apart <= 1e-6);
        probe_close(&gone);
        probe_close(&back);
    }
}

/* A child speaks for itself and those below it: five peers, round by round of
 * the way up to the root. What says more is not added, nor blamed on the root.
 */
static void counts_are_held_to_the_tree(void **state)
{
    static const struct {
        kith_id child;
        uint64_t round;
        double count;
        bool refused;
    } cases[] = {{1, 0, 1, false},      {1, 0, 2, true},  {2, 1, 2, false},
                 {2, 1, 3, true},       {4, 2, 1, false}, {4, 2, 4, true},
                 {4, 2, 1048576, true}, {4, 2, 0, false}};
    const struct kith_algorithm *algorithm = kith_algorithm_find("sync-sgd");
    struct kith_topology graph;
    (void)state;
    assert_int_equal(
        kith_topology_open(kith_topology_find("collective-tree"), 5, &graph),
        KITH_OK);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        static const double whole[KITH_GOSSIP_KEY_COUNT];
        double x[4] = {0}, sum[4] = {0}, gradient[4] = {0}, count = 1;
        const double received[5] = {1, 1, 1, 1, 1};
        void *vectors[] = {sum};
        struct kith_algebra algebra = {.backend = kith_backend_find("naive64"),
                                       .dim = 4,
                                       .decayed = 4,
                                       .trained = 4,
                                       .coefficients = whole,
                                       .peers = 5,
                                       .graph = &graph,
                                       .live = x,
                                       .scalars = &count,
                                       .vectors = vectors,
                                       .gradient = gradient,
                                       .round = cases[n].round,
                                       .received = received};
        struct kith_work_edge edge = {.peer = cases[n].child};
        edge.scalars_received[0] = cases[n].count;
        algorithm->merge(&algebra, &edge);
        assert_true(edge.refused == cases[n].refused);
        assert_true(count == (cases[n].refused ? 1 : 1 + cases[n].count));
        assert_true(sum[0] == (cases[n].refused ? 0 : 1));
    }
}

static void wrong_files_are_refused(void **state)
{
    static const struct {
        const char *gossip, *model, *says;
    } cases[] = {
        {"every: 2", "kind: mlp, layers: [64, 8, 10]", "each gradient"},
        {"every: 1", "kind: consensus, dim: 9", "a model that learns"},
        {"wire: bfloat16", "kind: mlp, layers: [64, 8, 10]", "float32"},
        {"guard: clip", "kind: mlp, layers: [64, 8, 10]", "none: what it"},
        {"compressor: top-k", "kind: mlp, layers: [64, 8, 10]", "none: what"},
        {"topology: ring", "kind: mlp, layers: [64, 8, 10]", "its own"},
        {"every: 1", "kind: mlp, layers: [64, 8, 10]", NULL}};
    (void)state;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char text[512], error[KITH_EXPERIMENT_ERROR_BYTES] = "accepted";
        struct kith_experiment experiment;
        (void)snprintf(text, sizeof text,
                       "name: e\npeers: 3\nstop: {steps: 9}\nmodel: {%s}\n%s"
                       "gossip: {algorithm: sync-sgd, %s}\n",
                       cases[n].model,
                       strstr(cases[n].model, "mlp") ? "data: {path: /data}\n"
                                                     : "",
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
        cmocka_unit_test(is_one_process),
        cmocka_unit_test(repeats_to_the_bit),
        cmocka_unit_test(survivors_finish),
        cmocka_unit_test(counts_are_held_to_the_tree),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
