/* Goal: the parts of a running peer that stand alone: listening with one clear
 * line per failure, the nanosecond alarm, the training thread's period.
 * Method: real sockets and a real loop; times are lower bounds, since a busy
 * machine may always be late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/peer.h"
#include "src/peer/timer.h"
#include "src/peer/training_thread.h"

static void listening(void **state)
{
    char error[KITH_PEER_ERROR_BYTES], bound[KITH_ADDRESS_BYTES];
    int fd, second;
    (void)state;
    assert_int_equal(kith_peer_listen("127.0.0.1:0", &fd, bound, error),
                     KITH_OK);
    assert_memory_equal(bound, "127.0.0.1:", 10);
    assert_int_equal(kith_peer_listen(bound, &second, NULL, error),
                     KITH_EADDRINUSE);
    assert_non_null(strstr(error, "another program has this port"));
    close(fd);
    assert_int_equal(kith_peer_listen(bound, &fd, NULL, error), KITH_OK);
    close(fd);

    assert_int_equal(kith_peer_listen("nonsense", &fd, NULL, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "is not HOST:PORT"));
    assert_int_equal(
        kith_peer_listen("no.such.name.invalid:1", &fd, NULL, error),
        KITH_EINVAL);
    assert_int_equal(kith_peer_listen("192.0.2.1:1", &fd, NULL, error),
                     KITH_EINVAL);
    assert_non_null(strstr(error, "this machine has no such address"));
}

static void suites(void **state)
{
    struct kith_experiment experiment;
    const struct kith_trust trust = {.suite = KITH_SUITE_ANY};
    const struct kith_trust policy = {.suite = KITH_SUITE_CHACHAPOLY};
    enum kith_suite suite;
    char error[KITH_PEER_ERROR_BYTES];
    (void)state;
    memset(&experiment, 0, sizeof experiment);
    strcpy(experiment.network.suite, "ChaChaPoly");
    assert_int_equal(kith_peer_suite(&experiment, &trust, &suite, error),
                     KITH_OK);
    assert_int_equal(suite, KITH_SUITE_CHACHAPOLY);
    strcpy(experiment.network.suite, "auto");
    assert_int_equal(kith_peer_suite(&experiment, &trust, &suite, error),
                     KITH_OK);
    assert_int_equal(suite, kith_aead_best(KITH_SUITE_AESGCM)
                                ? KITH_SUITE_AESGCM
                                : KITH_SUITE_CHACHAPOLY);
    assert_int_equal(kith_peer_suite(&experiment, &policy, &suite, error),
                     KITH_OK);
    assert_int_equal(suite, KITH_SUITE_CHACHAPOLY);
    strcpy(experiment.network.suite, "AESGCM");
    assert_int_equal(kith_peer_suite(&experiment, &policy, &suite, error),
                     KITH_EMISMATCH);
}

static void defaults(void **state)
{
    struct kith_peer_options options;
    (void)state;
    kith_peer_options_default(&options);
    assert_int_equal(options.listen_fd, -1);
    assert_int_equal(options.control_fd, -1);
    assert_int_equal(options.limits.half_open_max, 256);
    assert_int_equal(options.limits.message_ns, 2 * KITH_S);
    assert_int_equal(options.limits.handshake_ns, 5 * KITH_S);
    assert_int_equal(options.limits.revoked_ns, 10 * KITH_S);
}

static void rang(void *arg)
{
    int *count = arg;
    ++*count;
}

static void alarms(void **state)
{
    uv_loop_t loop;
    struct kith_timer alarm;
    int count = 0;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(kith_timer_init(&alarm, &loop, rang, &count), KITH_OK);
    const kith_ns due = (kith_ns)uv_hrtime() + 300 * KITH_US;
    kith_timer_set(&alarm, due + KITH_S);
    kith_timer_set(&alarm, due); /* replaces */
    while (count == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true((kith_ns)uv_hrtime() >= due);
    kith_timer_set(&alarm, 0); /* long past: at once */
    while (count == 1)
        uv_run(&loop, UV_RUN_ONCE);
    kith_timer_set(&alarm, (kith_ns)uv_hrtime() + 2 * KITH_MS);
    kith_timer_set(&alarm, KITH_NEVER);
    usleep(4000);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(count, 2);
    kith_timer_close(&alarm);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- the training thread, with a worker that has nothing to learn */

static const char yaml[] = "name: thread\npeers: 1\nstop: {steps: 10}\n"
                           "model: {kind: consensus, dim: 4}\n"
                           "gossip: {algorithm: local}\n";

struct bench {
    struct kith_experiment experiment;
    struct kith_worker *worker;
    struct kith_thread thread;
    uv_loop_t loop;
    int results, failures;
};

static void done(void *arg, const struct kith_work_result *result)
{
    struct bench *bench = arg;
    (void)result;
    bench->results++;
}

static void saved(void *arg, const struct kith_saved *saved)
{
    struct bench *bench = arg;
    assert_int_not_equal(saved->err, KITH_OK);
    assert_true(strlen(saved->error) > 0);
    bench->failures++;
}

static void setup(struct bench *bench, kith_ns step_ns, const char *save)
{
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    memset(bench, 0, sizeof *bench);
    assert_int_equal(kith_experiment_parse("test", yaml, sizeof yaml - 1, NULL,
                                           0, &bench->experiment, error),
                     KITH_OK);
    const struct kith_worker_config config = {
        .task = kith_experiment_task(&bench->experiment, NULL),
        .backend = bench->experiment.backend,
        .steps = 10,
        .peers = 1};
    assert_int_equal(kith_worker_open(&config, &bench->worker, error), KITH_OK);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    const struct kith_thread_options options = {.worker = bench->worker,
                                                .save = save,
                                                .step_ns = step_ns,
                                                .arg = bench,
                                                .done = done,
                                                .saved = saved};
    assert_int_equal(kith_thread_start(&bench->thread, &bench->loop, &options),
                     KITH_OK);
}

static void teardown(struct bench *bench)
{
    kith_thread_stop(&bench->thread);
    kith_thread_stop(&bench->thread); /* harmless twice */
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    kith_worker_close(bench->worker);
    kith_experiment_close(&bench->experiment);
}

static kith_ns time_of(struct bench *bench, enum kith_work_kind kind)
{
    const struct kith_work work = {.kind = kind};
    const int before = bench->results;
    const kith_ns began = (kith_ns)uv_hrtime();
    kith_thread_submit(&bench->thread, &work);
    while (bench->results == before)
        uv_run(&bench->loop, UV_RUN_ONCE);
    return (kith_ns)uv_hrtime() - began;
}

/* Longer than any test may take: what waits for it never ends. */
#define HOUR (3600 * KITH_S)

static void steps_have_a_least_period(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, 5 * KITH_MS, NULL);
    assert_true(time_of(&bench, KITH_WORK_TRAIN) >= 5 * KITH_MS);
    kith_thread_slow(&bench.thread, 4);
    assert_true(time_of(&bench, KITH_WORK_TRAIN) >= 20 * KITH_MS);
    teardown(&bench);
}

/* Other items have no period, and the end of a fault ends the step at hand. */
static void periods_end_with_the_fault(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, HOUR, NULL);
    (void)time_of(&bench, KITH_WORK_SAVE);
    teardown(&bench);
    setup(&bench, KITH_MS, NULL);
    kith_thread_slow(&bench.thread, 3.6e6);
    const struct kith_work work = {.kind = KITH_WORK_TRAIN};
    kith_thread_submit(&bench.thread, &work);
    kith_thread_slow(&bench.thread, 1);
    while (bench.results == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    teardown(&bench);
}

static void stopping_does_not_wait_for_the_period(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, HOUR, NULL);
    const struct kith_work work = {.kind = KITH_WORK_TRAIN};
    kith_thread_submit(&bench.thread, &work);
    teardown(&bench);
}

/* Later than the item's end, or at the thread's. */
static void a_failed_save_is_told(void **state)
{
    struct bench bench;
    (void)state;
    setup(&bench, 0, "/nonexistent/folder/0.save");
    (void)time_of(&bench, KITH_WORK_SAVE);
    while (bench.failures == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    (void)time_of(&bench, KITH_WORK_SAVE);
    teardown(&bench);
    assert_int_equal(bench.failures, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listening),
        cmocka_unit_test(suites),
        cmocka_unit_test(defaults),
        cmocka_unit_test(alarms),
        cmocka_unit_test(steps_have_a_least_period),
        cmocka_unit_test(periods_end_with_the_fault),
        cmocka_unit_test(stopping_does_not_wait_for_the_period),
        cmocka_unit_test(a_failed_save_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
