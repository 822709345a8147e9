/* How a run ends.
 *
 *   RUNNING -> QUIETING -> LEAVING -> ENDED
 *
 * There are two graces: exchanges under way may finish (the node's time to
 * leave and KITH_QUIET_NS), then every session gets its FIN
 * (KITH_CLOSE_GRACE_NS). Between the two the training thread stops and the
 * final save is written. A backend that fails skips the first grace and the
 * save: nothing that it holds may be kept or sent.
 *
 * Each step is a timer's callback, never a call from within an event: whoever
 * finds out that the run is over may hold a link or be in a step of the node.
 */
#include <math.h>
#include <stdio.h>

#include "driver.h"
#include "fork_loop.h"
#include "kith/assert.h"
#include "kith/text.h"

/* Not every run has every handle: the driver's memory begins as zeros, and one
 * that was never initialised must not be closed. */
static bool is_open(const void *handle)
{
    return uv_handle_get_type(handle) != UV_UNKNOWN_HANDLE &&
           !uv_is_closing(handle);
}

/* Every handle, since uv_run() returns only when none is left. The report
 * comes first: it reads what is closed below. */
void kith_driver_close_all(struct kith_driver *driver)
{
    KITH_ASSERT(driver->phase != KITH_DRIVER_ENDED);
    driver->phase = KITH_DRIVER_ENDED;
    kith_rows_report(driver);
    kith_thread_stop(&driver->thread);
    if (is_open(&driver->deadline.poll))
        kith_timer_close(&driver->deadline);
    void *handles[] = {&driver->start, &driver->rows, &driver->limit,
                       &driver->grace, &driver->control};
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        if (is_open(handles[i]))
            uv_close(handles[i], NULL);
    kith_fork_loop_end(driver->options->fork_gate);
    kith_transport_stop(&driver->transport);
}

/* Polls every 2 ms, for sessions end by many paths and none of them should
 * have to know about the end of the run. */
static void close_grace_over(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    const kith_ns now = (kith_ns)uv_hrtime();
    if (!kith_transport_is_empty(&driver->transport) &&
        now < driver->close_until_ns) {
        uv_timer_start(timer, close_grace_over, 2, 0);
        return;
    }
    kith_driver_close_all(driver);
}

/* On the loop thread: the training thread has stopped, so the vectors are
 * ours. */
static void final_save(struct kith_driver *driver)
{
    char error[KITH_DATA_ERROR_BYTES];
    struct kith_node_counters counters;
    if (driver->options->save == NULL)
        return;
    kith_node_counters(driver->node, &counters);
    /* Members never came: what an earlier run has saved, or nothing, is worth
     * more than first values, from which the next start would go on. */
    if (driver->failed == KITH_EALONE && counters.steps == 0 &&
        !driver->has_save)
        return;
    const struct kith_standing standing = {
        .step = counters.steps, .best = NAN, .peak = driver->peak};
    const enum kith_err err = kith_save_write(
        driver->worker, driver->options->save, &standing, true, error);
    driver->report->saved = err == KITH_OK;
    if (err == KITH_OK) {
        kith_transport_log(&driver->transport, "saved path=%s step=%llu",
                           driver->options->save,
                           (unsigned long long)counters.steps);
        return;
    }
    if (err == KITH_ENONFINITE) { /* The save before it is worth more. */
        driver->report->diverged = true;
        struct kith_saved none = {.err = err};
        kith_text_copy(none.error, sizeof none.error, error);
        kith_driver_saved(driver, &none);
        return;
    }
    driver->failed = kith_text_fail(driver->error, KITH_PEER_ERROR_BYTES, err,
                                    "writing the final save: %s", error);
}

/* Exchanges are over, or have had their time. */
static void leave(struct kith_driver *driver)
{
    KITH_ASSERT(driver->phase < KITH_DRIVER_LEAVING);
    driver->phase = KITH_DRIVER_LEAVING;
    kith_timer_set(&driver->deadline, KITH_NEVER);
    uv_timer_stop(&driver->rows);
    kith_rows_send(driver);
    kith_thread_stop(&driver->thread);
    if (driver->failed == KITH_OK || driver->failed == KITH_EAUTH ||
        driver->failed == KITH_EALONE) {
        kith_journal_ends(driver);
        final_save(driver);
    }
    if (driver->failed == KITH_EDEVICE)
        kith_transport_cancel(&driver->transport, UINT32_MAX);
    kith_transport_leave(&driver->transport);
    driver->close_until_ns = (kith_ns)uv_hrtime() + KITH_CLOSE_GRACE_NS;
    uv_timer_start(&driver->grace, close_grace_over, 0, 0);
}

/* Nothing that the backend computed may leave or be kept; the save on disk is
 * from before the failure. Data that cannot be read any more end a run in the
 * same way. */
void kith_driver_backend_failed(void *arg, const char *why)
{
    struct kith_driver *driver = arg;
    struct kith_node_counters counters;
    char kept[96] = "nothing was saved before";
    if (driver->phase >= KITH_DRIVER_LEAVING)
        return;
    kith_node_counters(driver->node, &counters);
    if (driver->has_save)
        snprintf(kept, sizeof kept,
                 "its save of step %llu is untouched: start it again to go on "
                 "from there",
                 (unsigned long long)driver->save_step);
    snprintf(driver->error, KITH_PEER_ERROR_BYTES,
             "training on %s, step %llu: %s; %s",
             driver->options->experiment->backend->name,
             (unsigned long long)counters.steps, why, kept);
    const struct kith_backend *backend = driver->options->experiment->backend;
    const bool device = backend->failed != NULL && backend->failed() != NULL;
    kith_transport_log(&driver->transport, "%s-failed reason=\"%s\"",
                       device ? "device" : "data", why);
    driver->failed = device ? KITH_EDEVICE : KITH_EPARSE;
    KITH_NET_SCOPE(&driver->transport.net);
    leave(driver);
}

/* The timer's callback holds no link, so the transport may be closed. */
static void backend_failed_due(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    kith_driver_backend_failed(driver, kith_worker_failed(driver->worker));
}

/* From within a send: closing the link under its caller would free what it
 * still uses. */
void kith_driver_backend_failed_later(struct kith_driver *driver)
{
    if (driver->phase < KITH_DRIVER_LEAVING)
        uv_timer_start(&driver->grace, backend_failed_due, 0, 0);
}

/* The first grace is over, by time or because everything is quiet. */
static void quiet_over(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    KITH_NET_SCOPE(&driver->transport.net);
    if (driver->phase == KITH_DRIVER_QUIETING)
        leave(driver);
}

/* Whoever started this peer may wait with `stop` until nothing is under way. */
static void tell_quiet(struct kith_driver *driver)
{
    const struct kith_peer_options *options = driver->options;
    const enum kith_driver_told now =
        kith_node_quiet(driver->node) ? KITH_TOLD_QUIET : KITH_TOLD_RESTLESS;
    if (options->on_quiet == NULL || !driver->report->finished ||
        driver->told == now)
        return;
    driver->told = now;
    options->on_quiet(options->user, kith_driver_now(driver),
                      now == KITH_TOLD_QUIET);
}

/* After each event, because what ends an exchange is an event. */
void kith_driver_check_end(struct kith_driver *driver)
{
    tell_quiet(driver);
    /* Not from here: the caller may hold a link that leaving would close. */
    if (driver->phase == KITH_DRIVER_QUIETING && !driver->thread.busy &&
        kith_node_quiet(driver->node))
        uv_timer_start(&driver->grace, quiet_over, 0, 0);
    if (driver->pauses && !driver->thread.busy && kith_node_quiet(driver->node))
        kith_thread_quiet(&driver->thread);
}

/* The node gets LEAVE: it answers those who ask, says BYE and begins nothing
 * new. */
void kith_driver_stop(struct kith_driver *driver)
{
    if (driver->phase >= KITH_DRIVER_QUIETING)
        return;
    const bool began = driver->phase == KITH_DRIVER_RUNNING;
    const kith_ns quiet_ns =
        began ? kith_node_leave_time(driver->node) + KITH_QUIET_NS : 0;
    driver->report->interrupted = !driver->report->finished;
    kith_transport_log(&driver->transport, "stopping");
    driver->phase = KITH_DRIVER_QUIETING;
    uv_timer_start(&driver->grace, quiet_over, (uint64_t)(quiet_ns / KITH_MS),
                   0);
    if (began)
        kith_driver_tell(driver, KITH_EVENT_LEAVE, KITH_NOBODY);
}

static void hopeless_due(uv_timer_t *timer)
{
    struct kith_driver *driver = timer->data;
    KITH_NET_SCOPE(&driver->transport.net);
    kith_driver_stop(driver);
}

/* `advice` of what to do about it. */
static void end_later(struct kith_driver *driver, enum kith_err err,
                      const char *what, const char *why, const char *advice)
{
    if (driver->phase >= KITH_DRIVER_QUIETING || driver->failed != KITH_OK)
        return;
    driver->failed = kith_text_fail(driver->error, KITH_PEER_ERROR_BYTES, err,
                                    "rank %u %s: %s; %s", driver->options->self,
                                    what, why, advice);
    kith_transport_log(&driver->transport, "hopeless reason=\"%s\"", why);
    uv_timer_start(&driver->grace, hopeless_due, 0, 0);
}

void kith_driver_hopeless_later(struct kith_driver *driver, const char *why)
{
    end_later(driver, KITH_EAUTH, "is not wanted", why,
              "compare this peer's file and `kith keys show node.crt` with the "
              "authority's `ranks` and `crl`, and certify it again if it "
              "should be a member");
}

void kith_driver_alone_later(struct kith_driver *driver, const char *why)
{
    end_later(driver, KITH_EALONE, "has nobody to exchange with", why,
              "`kith doctor` with this peer's file says of each member which "
              "layer fails");
}
