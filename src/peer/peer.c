/* Setting a peer up and running it.
 *
 *   WAITING -> RUNNING -> its end, ending.c */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"
#include "fork_loop.h"
#include "kith/assert.h"
#include "kith/text.h"

/* For faults of the system, where the error's own text says enough. */
static enum kith_err fail(struct kith_driver *driver, enum kith_err err,
                          const char *what)
{
    return kith_text_fail(driver->error, KITH_PEER_ERROR_BYTES, err, "%s: %s",
                          what, kith_err_text(err));
}

/* As the launcher's `stop`, from a program that leaves before its share, or
 * behind it. */
static void caller_leaves(void *arg)
{
    struct kith_driver *driver = arg;
    KITH_NET_SCOPE(&driver->transport.net);
    kith_transport_log(&driver->transport, "caller leaves");
    kith_driver_stop(driver);
}

static void caller_pauses(void *arg, bool pauses)
{
    struct kith_driver *driver = arg;
    KITH_NET_SCOPE(&driver->transport.net);
    driver->pauses = pauses;
    kith_transport_log(&driver->transport, pauses ? "pauses" : "goes-on");
    kith_driver_tell(driver, pauses ? KITH_EVENT_PAUSE : KITH_EVENT_GO_ON,
                     KITH_NOBODY);
}

/* ---- timers
 *
 * libuv's own, in milliseconds, where a millisecond is enough; the node's
 * deadline is a kith_timer, since it may be tens of microseconds away. */

/* All peers of a lab start at one instant of the monotonic clock. */
static void start_due(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    KITH_NET_SCOPE(&driver->transport.net);
    if (driver->phase == KITH_DRIVER_WAITING)
        kith_driver_begin(driver);
}

/* Rows stop with the share, not with the process: what follows is answered for
 * others. */
static void rows_due(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    KITH_NET_SCOPE(&driver->transport.net);
    if (driver->phase == KITH_DRIVER_RUNNING)
        kith_rows_send(driver);
}

/* stop.time: the share is then as long as the time was. */
static void limit_reached(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    KITH_NET_SCOPE(&driver->transport.net);
    driver->report->finished = true;
    kith_transport_log(&driver->transport, "finished reason=\"stop.time\"");
    kith_driver_stop(driver);
}

/* The node asked to be woken: it reads the time from the event. */
static void deadline_passed(void *arg)
{
    struct kith_driver *driver = arg;
    KITH_NET_SCOPE(&driver->transport.net);
    kith_driver_tell(driver, KITH_EVENT_WAKE, KITH_NOBODY);
}

/* Rounded up: a timer that fires early would fire again at once. */
static uint64_t ms_until(kith_ns at_ns)
{
    const kith_ns left = at_ns - (kith_ns)uv_hrtime();
    return left > 0 ? (uint64_t)((left + KITH_MS - 1) / KITH_MS) : 0;
}

/* on_ready may block (the lab's barrier), so the loop's idea of now is renewed
 * after it. */
static void start_timers(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    if (options->fork_gate != NULL)
        kith_fork_gate_rest(options->fork_gate);
    driver->start_ns = options->on_ready != NULL
                           ? options->on_ready(options->user)
                           : (kith_ns)uv_hrtime();
    if (options->fork_gate != NULL)
        kith_fork_gate_resume(options->fork_gate);
    driver->curve.start_ns = driver->start_ns;
    const uint64_t row_ms = (uint64_t)(options->row_ns / KITH_MS) + 1;
    uv_update_time(&driver->loop);
    uv_timer_start(&driver->rows, rows_due, row_ms, row_ms);
    if (options->wait_members > 1)
        kith_gathering_start(driver);
    else
        uv_timer_start(&driver->start, start_due, ms_until(driver->start_ns),
                       0);
}

void kith_driver_limit(struct kith_driver *driver)
{
    const kith_ns time_ns = driver->options->experiment->stop.time_ns;
    if (time_ns > 0)
        uv_timer_start(&driver->limit, limit_reached,
                       ms_until(driver->start_ns + time_ns), 0);
}

/* ---- setting up
 *
 * Whatever can fail for a reason of the user's (port, save, suite) fails before
 * a neighbour hears of this peer. */

/* From the save, where it is wanted and there, or from the one to load; what
 * there is to say about it is logged. */
static enum kith_err resume(struct kith_driver *driver,
                            struct kith_standing *standing)
{
    const struct kith_peer_options *options = driver->options;
    char words[KITH_RESUME_ERROR_BYTES], line[KITH_RESUME_ERROR_BYTES + 32];
    if (options->load == NULL && (!options->resume || options->save == NULL))
        return KITH_OK;
    const enum kith_err err =
        options->load != NULL
            ? kith_save_read(driver->worker, options->load, standing, words)
            : kith_save_resume(driver->worker, options->save, standing, words);
    if (err == KITH_ENOENT && options->load == NULL)
        return KITH_OK;
    driver->has_save = err == KITH_OK;
    if (err != KITH_OK)
        kith_text_copy(driver->error, KITH_PEER_ERROR_BYTES, words);
    if (err != KITH_OK || options->on_log == NULL)
        return err;
    if (words[0] != '\0') {
        snprintf(line, sizeof line, "resumed note=\"%s\"", words);
        options->on_log(options->user, line);
    }
    snprintf(line, sizeof line, "loaded path=%s step=%llu",
             options->load != NULL ? options->load : options->save,
             (unsigned long long)standing->step);
    options->on_log(options->user, line);
    return KITH_OK;
}

/* A peer that has no memory to evaluate trains all the same, and says so. */
static void open_curve(struct kith_driver *driver, uint64_t steps,
                       uint64_t step)
{
    const struct kith_peer_options *options = driver->options;
    char why[KITH_DATA_ERROR_BYTES], line[KITH_DATA_ERROR_BYTES + 64];
    driver->score = (struct kith_score){NAN, NAN};
    if (!options->evaluates)
        return;
    const enum kith_err err =
        kith_own_curve_open(&driver->curve, options->experiment, options->test,
                            driver->worker, steps, why);
    kith_own_curve_pass(&driver->curve, step);
    if (err == KITH_OK || options->on_log == NULL)
        return;
    snprintf(line, sizeof line, "no-curve reason=\"%s\"", why);
    options->on_log(options->user, line);
}

/* Topology, worker, save, node, in this order: each needs the one before, and
 * all memory of the run is taken here. */
static enum kith_err open_node(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    const struct kith_experiment *experiment = options->experiment;
    const bool shares = experiment->network.same_host == KITH_SAME_HOST_MEMORY;
    const size_t rows = options->train ? options->train->count : 0;
    const uint64_t steps = options->share > 0
                               ? options->share
                               : kith_experiment_steps(experiment, rows);
    enum kith_err err = kith_experiment_node_config(
        experiment, steps, &driver->topology, &driver->config);
    if (err != KITH_OK)
        return fail(driver, err, "opening the topology");
    if (options->caller != NULL) /* x is older than a step of the caller's */
        driver->config.prepares = false;
    const struct kith_worker_config config = {
        .task = kith_experiment_task(experiment, NULL),
        .backend = experiment->backend,
        .train = options->train,
        .self = options->self,
        .steps = steps,
        .edges_max = kith_node_edges(&driver->config, driver->options->self),
        .peers = experiment->peers,
        .ahead = true,
        .vectors = {shares ? kith_shared_take : NULL, &driver->shared},
    };
    err = kith_worker_open(&config, &driver->worker, driver->error);
    if (err != KITH_OK)
        return err;
    struct kith_standing standing = {.step = 0};
    err = resume(driver, &standing);
    if (err == KITH_OK)
        err = kith_journal_restored(driver, standing.step);
    if (err != KITH_OK)
        goto no_node;
    driver->save_step = standing.step;
    driver->peak = standing.peak > 0 ? standing.peak : experiment->compute.peak;
    driver->node_memory = malloc(kith_node_size(&driver->config));
    if (driver->node_memory == NULL) {
        err = fail(driver, KITH_ENOMEM, "making the node");
        goto no_node;
    }
    driver->node =
        kith_node_init(driver->node_memory, &driver->config, options->self,
                       options->incarnation, standing.step, options->adopt);
    open_curve(driver, steps, standing.step);
    return KITH_OK;

no_node:
    kith_worker_close(driver->worker);
    return err;
}

/* The hello is what both ends compare: experiment, size and name of the model.
 */
static enum kith_err open_transport(struct kith_driver *driver, int fd)
{
    const struct kith_peer_options *options = driver->options;
    const struct kith_experiment *experiment = options->experiment;
    struct kith_transport_options transport = {
        .members = options->members,
        .peers = experiment->peers,
        .self = options->self,
        .seed = experiment->seed,
        .identity = options->identity,
        .trust = options->trust,
        .keys_folder = options->keys_folder,
        .aead = options->aead,
        .hello = {.experiment_hash = kith_experiment_hash(experiment),
                  .dim = kith_worker_dim(driver->worker),
                  .incarnation = options->incarnation,
                  .rank = options->self},
        .limits = options->limits,
        .usual = experiment->network.link,
        .experiment = experiment,
        .backend = experiment->backend,
        .payload_bytes = kith_worker_payload(driver->worker),
        .model_bytes = kith_worker_bytes(driver->worker),
        .slice_bytes = driver->config.slice_bytes,
        .opaque = kith_experiment_opaque(experiment),
        .format = experiment->gossip.format,
        .congestion = options->congestion,
        .cores = experiment->network.cores,
        .shared = experiment->network.same_host == KITH_SAME_HOST_MEMORY
                      ? &driver->shared
                      : NULL,
        .store = options->store,
        .log_user = options->user,
        .on_log = options->on_log,
        .user = kith_driver_user(driver),
    };
    snprintf(transport.hello.model, sizeof transport.hello.model, "%s",
             experiment->model->name);
    if (options->base != 0)
        snprintf(transport.hello.model, sizeof transport.hello.model,
                 "%.16s.base-%016" PRIx64, experiment->model->name,
                 options->base);
    enum kith_err err = kith_peer_suite(experiment, options->trust,
                                        &transport.suite, driver->error);
    if (err != KITH_OK)
        return err;
    err =
        kith_transport_init(&driver->transport, &driver->loop, &transport, fd);
    driver->transport.pieces.complete = options->store != NULL;
    return err == KITH_OK ? err : fail(driver, err, "opening the transport");
}

/* All four, so that kith_driver_close_all() may close all four. */
static void init_timers(struct kith_driver *driver)
{
    uv_timer_t *timers[] = {&driver->start, &driver->rows, &driver->limit,
                            &driver->grace};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&driver->loop, timers[i]);
        timers[i]->data = driver;
    }
}

/* Everything that watches the loop. What is opened is closed by
 * kith_driver_close_all(). */
static enum kith_err open_handles(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    const struct kith_thread_options thread = {
        .worker = driver->worker,
        .caller = options->caller,
        .save = options->save,
        .curve = &driver->curve,
        .step_ns = kith_experiment_step_ns(options->experiment, options->self),
        .steps = driver->config.steps,
        .is_resumed = driver->has_save,
        .step = driver->save_step,
        .peak = driver->peak,
        .arg = driver,
        .done = kith_driver_worked,
        .saved = kith_driver_saved,
        .scored = kith_rows_scored,
        .leave = caller_leaves,
        .pause = caller_pauses,
        .failed = kith_driver_backend_failed,
    };
    init_timers(driver);
    enum kith_err err = kith_timer_init(&driver->deadline, &driver->loop,
                                        deadline_passed, driver);
    if (err != KITH_OK)
        return fail(driver, err, "making a timer");
    err = kith_fork_loop_begin(options->fork_gate, driver);
    if (err == KITH_OK)
        err = kith_thread_start(&driver->thread, &driver->loop, &thread);
    if (err == KITH_OK)
        err = kith_control_open(driver);
    return err == KITH_OK ? err : fail(driver, err, "starting the threads");
}

/* The transport owns the listening socket from its init on, also where that
 * fails. */
static enum kith_err run_loop(struct kith_driver *driver, int fd)
{
    enum kith_err err = open_transport(driver, fd);
    if (err != KITH_OK)
        return err;
    err = open_handles(driver);
    if (err == KITH_OK) {
        start_timers(driver);
        kith_transport_log(&driver->transport, "listening rank=%u peers=%u",
                           driver->options->self,
                           driver->options->experiment->peers);
        kith_account_switch(&driver->transport.net.account,
                            KITH_ACCOUNT_SOCKET);
    } else {
        kith_driver_close_all(driver);
    }
    uv_run(&driver->loop, UV_RUN_DEFAULT);
    kith_transport_free(&driver->transport);
    return err == KITH_OK ? driver->failed : err;
}

bool kith_peer_was_alone(const struct kith_peer_report *report)
{
    return report->counters.attempts > 0 && report->counters.done == 0 &&
           report->row.received == 0;
}

/* A peer is a function call: no global state but SIGPIPE's disposition, so
 * tests run many in one process. */
enum kith_err kith_peer_run(const struct kith_peer_options *options,
                            struct kith_peer_report *report, char *error)
{
    KITH_ASSERT(options->self < options->experiment->peers);
    memset(report, 0, sizeof *report);
    error[0] = '\0';
    /* A neighbour that dies while we write must not end this process: libuv
     * writes without MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);
    int fd = options->listen_fd;
    struct kith_driver *driver = calloc(1, sizeof *driver);
    if (driver == NULL)
        return KITH_ENOMEM;
    driver->options = options;
    driver->report = report;
    driver->error = error;
    driver->last_loss = NAN;
    driver->cpu_zero_s = kith_process_cpu();
    enum kith_err err = KITH_OK;
    if (fd < 0)
        err = kith_peer_listen(options->listen, &fd, NULL, error);
    if (err == KITH_OK)
        err = open_node(driver);
    if (err != KITH_OK)
        goto no_node;
    if (uv_loop_init(&driver->loop) != 0) {
        err = fail(driver, KITH_ENOMEM, "making the event loop");
        goto no_loop;
    }
    err = run_loop(driver, fd);
    fd = -1; /* The transport took it. */
    const int left = uv_loop_close(&driver->loop);
    KITH_ASSERT(left == 0);

no_loop:
    report->curve = driver->curve.curve;
    kith_own_curve_close(&driver->curve);
    free(driver->node_memory);
    kith_worker_close(driver->worker);
no_node:
    kith_shared_free(&driver->shared);
    if (fd >= 0)
        close(fd);
    free(driver);
    return err;
}
