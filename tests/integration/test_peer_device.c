/* Goal: a peer whose vectors lie on a device exchanges like any other while its
 * snapshots come late, and where the device fails it says so, closes its
 * sessions in order, keeps its last save, and goes on from it when it is
 * started again. Method: two forked peers over loopback, rank 0 on the CUDA
 * module's emulation, which can be told to copy late and to break. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "kith/evaluation.h"
#include "kith/worker.h"
#include "tests/support/peers.h"
#include "tests/unit/cuda_cases.h"

static const char yaml[] =
    "name: device\nseed: 3\npeers: 2\nstop: {steps: 400}\n"
    "model: {kind: consensus, dim: 300}\n"
    "gossip: {algorithm: adpsgd, every: 1, topology: random}\n"
    "compute: {step: 4ms}\nsave: 100ms\n";

struct plan {
    long late, launches; /* < 0: never fails */
};

/* In the child: rank 0 computes on the device. */
static void change(struct kith_peer_options *options, void *arg)
{
    static struct kith_experiment experiment;
    const struct kith_backend *single, *half;
    const struct plan *plan = arg;
    void (*late)(long queries), (*fail_after)(long launches, int code);
    if (options->self != 0)
        return;
    if (!cuda_module_found(&single, &half))
        abort();
    void *symbol = cuda_emulation("kith_emulate_late");
    memcpy(&late, &symbol, sizeof late);
    symbol = cuda_emulation("kith_emulate_fail");
    memcpy(&fail_after, &symbol, sizeof fail_after);
    late(plan->late);
    fail_after(plan->launches, 214);
    experiment = *options->experiment;
    experiment.backend = single;
    options->experiment = &experiment;
}

static double mean(const struct peers *peers, kith_id rank)
{
    char path[96], error[KITH_DATA_ERROR_BYTES];
    double *z, sum = 0;
    size_t dim;
    uint64_t step;
    peers_save_path(peers, rank, path);
    const struct kith_task task =
        kith_experiment_task(&peers->experiment, NULL);
    assert_int_equal(kith_save_parameters(&task, peers->experiment.backend,
                                          path, &z, &dim, &step, error),
                     KITH_OK);
    for (size_t i = 0; i < dim; i++)
        sum += z[i] / (double)dim;
    free(z);
    assert_true(isfinite(sum));
    return sum;
}

static double mean_at_start(const struct peers *peers, kith_id rank)
{
    const struct kith_experiment *e = &peers->experiment;
    const uint32_t dim = e->model_config.dim;
    double *x = calloc(dim, sizeof *x), sum = 0;
    e->model->start(&e->model_config, e->seed, rank, x);
    for (uint32_t i = 0; i < dim; i++)
        sum += x[i] / dim;
    free(x);
    return sum;
}

static void print(struct peers *peers)
{
    for (kith_id i = 0; i < 2; i++)
        peers_print(peers, i);
}

static void wait_ended(struct peers *peers, kith_id rank, double seconds)
{
    for (unsigned i = 0; i < seconds * 100 && !peers->shared[rank].ended; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (!peers->shared[rank].ended)
        print(peers);
    assert_true(peers->shared[rank].ended);
}

/* Every snapshot is asked for several times before it may leave: the sum over
 * both models is kept all the same, and both end in the middle. */
static void late_snapshots(void **state)
{
    (void)state;
    struct plan plan = {.late = 3, .launches = -1};
    struct peers peers;
    peers_open(&peers, yaml);
    peers.change = change;
    peers.arg = &plan;
    const double before = mean_at_start(&peers, 0) + mean_at_start(&peers, 1);

    peers_start_all(&peers);
    const bool finished = peers_wait_finished(&peers, 0, 30) &&
                          peers_wait_finished(&peers, 1, 30);
    const bool stopped = peers_stop(&peers, 10);
    if (!finished || !stopped)
        print(&peers);

    assert_true(finished && stopped);
    const double a = mean(&peers, 0), b = mean(&peers, 1);
    assert_true(fabs(a + b - before) < 1e-5);
    assert_true(fabs(a - b) < 1e-2);
    for (kith_id i = 0; i < 2; i++) {
        const struct kith_node_counters *counters =
            &peers.shared[i].report.counters;
        assert_true(counters->done > 20);
        assert_int_equal(counters->torn + counters->gated + counters->bad, 0);
    }
    peers_close(&peers);
}

static void device_lost(void **state)
{
    (void)state;
    struct plan plan = {.late = 1, .launches = 300};
    struct peers peers;
    peers_open(&peers, yaml);
    peers.change = change;
    peers.arg = &plan;

    peers_start_all(&peers);
    wait_ended(&peers, 0, 30);
    const struct peers_shared *shared = &peers.shared[0];
    if (shared->err != KITH_EDEVICE)
        print(&peers);
    assert_int_equal(shared->err, KITH_EDEVICE);
    assert_non_null(strstr(shared->error, "GPU 0 (emulated)"));
    assert_non_null(strstr(shared->error, "ECC"));
    assert_non_null(strstr(shared->error, "go on from there"));
    assert_true(peers_said(&peers, 0, "device-failed"));
    assert_false(shared->report.finished);
    assert_true(isfinite(mean(&peers, 0)));
    const uint64_t lost_at = shared->report.counters.steps;
    assert_true(lost_at > 0 && lost_at < 400);

    /* The other one was told in order and was sent nothing that is no model. */
    for (unsigned i = 0; i < 200 && !peers_said(&peers, 1, "closed"); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(peers_said(&peers, 1, "closed in order"));

    plan.launches = -1;
    peers_start(&peers, 0, 1, true);
    const bool finished = peers_wait_finished(&peers, 0, 30) &&
                          peers_wait_finished(&peers, 1, 30);
    const bool stopped = peers_stop(&peers, 10);
    if (!finished || !stopped)
        print(&peers);
    assert_true(finished && stopped);
    assert_int_equal(shared->err, KITH_OK);
    assert_true(shared->marks[KITH_MARK_ADOPTED] > 0);
    assert_int_equal(peers.shared[1].report.counters.gated, 0);
    assert_int_equal(peers.shared[1].report.counters.bad, 0);
    assert_true(fabs(mean(&peers, 0) - mean(&peers, 1)) < 1e-2);
    peers_close(&peers);
}

int main(void)
{
    const struct kith_backend *single, *half;
    if (!cuda_module_found(&single, &half))
        return 77;
    if (cuda_emulation("kith_emulate_late") == NULL) {
        print_message("skipped: a device cannot be told to fail\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_snapshots),
        cmocka_unit_test(device_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
