/* Goal: real peers over real sockets average as the protocol says.
 * Method: forked peers whose models only ever change by averaging; after the
 * run the sum over peers of every coordinate is what it was at the start, the
 * spread is gone, and nothing was refused, torn or left behind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kith/evaluation.h"
#include "kith/worker.h"
#include "tests/support/peers.h"

#define DIM_MAX 700000

/* Sum over peers of every coordinate, and the largest distance of a peer's
 * model to the mean. */
static void sums(const struct peers *peers, double *sum, size_t *dim,
                 double *spread)
{
    const uint32_t count = peers->experiment.peers;
    double *models[PEERS_MAX];
    *spread = 0;
    for (kith_id i = 0; i < count; i++) {
        char path[96], error[KITH_DATA_ERROR_BYTES];
        uint64_t step;
        peers_save_path(peers, i, path);
        const struct kith_task task =
            kith_experiment_task(&peers->experiment, NULL);
        assert_int_equal(kith_save_parameters(&task, peers->experiment.backend,
                                              path, &models[i], dim, &step,
                                              error),
                         KITH_OK);
    }
    for (size_t k = 0; k < *dim; k++) {
        sum[k] = 0;
        for (kith_id i = 0; i < count; i++)
            sum[k] += models[i][k];
        for (kith_id i = 0; i < count; i++) {
            const double off = fabs(models[i][k] - sum[k] / count);
            *spread = off > *spread ? off : *spread;
        }
    }
    for (kith_id i = 0; i < count; i++)
        free(models[i]);
}

static void start_sums(const struct peers *peers, double *sum)
{
    const struct kith_experiment *e = &peers->experiment;
    double *x = calloc(e->model_config.dim, sizeof *x);
    for (size_t k = 0; k < e->model_config.dim; k++)
        sum[k] = 0;
    for (kith_id i = 0; i < e->peers; i++) {
        e->model->start(&e->model_config, e->seed, i, x);
        for (size_t k = 0; k < e->model_config.dim; k++)
            sum[k] += x[k];
    }
    free(x);
}

static void averages(const char *yaml, double seconds)
{
    static double before[DIM_MAX], after[DIM_MAX];
    struct peers peers;
    double spread;
    size_t dim;
    peers_open(&peers, yaml);
    start_sums(&peers, before);

    peers_start_all(&peers);
    bool finished = true;
    for (kith_id i = 0; i < peers.experiment.peers; i++)
        finished = peers_wait_finished(&peers, i, seconds) && finished;
    const bool stopped = peers_stop(&peers, 10);
    for (kith_id i = 0; i < peers.experiment.peers; i++)
        if (!finished || !stopped || getenv("PEERS_PRINT"))
            peers_print(&peers, i);

    assert_true(finished);
    assert_true(stopped);
    sums(&peers, after, &dim, &spread);
    for (size_t k = 0; k < dim; k++)
        assert_true(fabs(after[k] - before[k]) < 1e-5);
    assert_true(spread < 0.05);
    for (kith_id i = 0; i < peers.experiment.peers; i++) {
        const struct kith_peer_report *report = &peers.shared[i].report;
        assert_true(report->counters.done + report->counters.rounds > 0);
        assert_int_equal(report->counters.torn, 0);
        assert_int_equal(report->counters.bad, 0);
        assert_true(report->finished && !report->interrupted);
        assert_true(report->saved);
        for (int r = 0; r < KITH_REFUSAL_COUNT; r++)
            assert_int_equal(report->refusals[r], 0);
    }
    peers_close(&peers);
}

static void swap_of_two(void **state)
{
    (void)state;
    averages("name: pair\nseed: 3\npeers: 2\nstop: {steps: 60}\n"
             "model: {kind: consensus, dim: 200}\n"
             "gossip: {algorithm: adpsgd, every: 1, topology: random}\n"
             "compute: {step: 2ms}\n",
             20);
}

/* 2.8 MB: bursts of whole and of short records, on threads of their own. */
static void swap_on_three_cores(void **state)
{
    (void)state;
    averages("name: cores\nseed: 7\npeers: 2\nstop: {steps: 60}\n"
             "model: {kind: consensus, dim: 700000}\n"
             "gossip: {algorithm: adpsgd, every: 1, topology: random}\n"
             "network: {cores: 3}\n"
             "compute: {step: 10ms}\n",
             60);
}

static void swap_of_five(void **state)
{
    (void)state;
    averages("name: five\nseed: 4\npeers: 5\nstop: {steps: 100}\n"
             "model: {kind: consensus, dim: 100}\n"
             "gossip: {algorithm: adpsgd, every: 1, topology: random}\n"
             "compute: {step: 3ms}\n",
             20);
}

static void rounds_on_a_ring(void **state)
{
    (void)state;
    averages("name: ring\nseed: 5\npeers: 4\nstop: {steps: 60}\n"
             "model: {kind: consensus, dim: 64}\n"
             "gossip: {algorithm: dpsgd, every: 1, topology: ring}\n"
             "compute: {step: 2ms}\n",
             20);
}

static void swap_over_a_shaped_network(void **state)
{
    (void)state;
    averages("name: shaped\nseed: 6\npeers: 3\nstop: {steps: 200}\n"
             "model: {kind: consensus, dim: 200}\n"
             "gossip: {algorithm: adpsgd, every: 1, topology: random}\n"
             "network: {latency: 300us, jitter: 50us, rate: 100Mbit}\n"
             "compute: {step: 5ms}\n",
             20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swap_of_two),
        cmocka_unit_test(swap_on_three_cores),
        cmocka_unit_test(swap_of_five),
        cmocka_unit_test(rounds_on_a_ring),
        cmocka_unit_test(swap_over_a_shaped_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
