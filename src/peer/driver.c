/* Effects into actions, and what happened into events.
 *
 * The node is stepped from loop callbacks only and never from within a step:
 * what a send sets off (a dial that fails, a link that breaks) is told at the
 * next turn of the loop. Before START the transport proves connections and
 * holds back what they say. */
#include "driver.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/text.h"

/* The run's clock starts at START; until then it stands at zero. */
kith_ns kith_driver_now(const struct kith_driver *driver)
{
    const kith_ns now = (kith_ns)uv_hrtime() - driver->start_ns;
    return now > 0 ? now : 0;
}

/* Marks go to the database, and some mean something here: a protocol breach
 * costs its author tokens, others are worth a line. */
static void apply_mark(struct kith_driver *driver, kith_ns now_ns,
                       const struct kith_mark *mark)
{
    const struct kith_peer_options *options = driver->options;
    if (options->on_mark != NULL)
        options->on_mark(options->user, now_ns, mark);
    if (mark->kind == KITH_MARK_BAD)
        kith_transport_charge(&driver->transport, mark->peer);
    kith_senders_mark(driver, mark);
    if (mark->kind != KITH_MARK_FINISHED)
        return;
    driver->report->finished = true;
    kith_thread_finished(&driver->thread);
    kith_transport_log(&driver->transport, "finished step=%llu time_ms=%lld",
                       (unsigned long long)mark->value,
                       (long long)(now_ns / KITH_MS));
}

/* Readers of what its snapshots hold are told first that it does not stand. */
static void submit(struct kith_driver *driver, const struct kith_work *work)
{
    const bool fills = work->kind == KITH_WORK_TRAIN ||
                       work->kind == KITH_WORK_SNAPSHOT ||
                       (work->kind == KITH_WORK_MERGE && work->snapshot_first);
    for (uint32_t i = 0; fills && i < work->edge_count; i++)
        kith_shared_refill(&driver->shared, work->edges[i].sent);
    kith_thread_submit(&driver->thread, work);
}

/* In the order that the contract of node.h names: cancelled slots first, for a
 * send may fill one of them again. */
static void apply_effects(struct kith_driver *driver, kith_ns now_ns)
{
    const struct kith_effects *effects = &driver->effects;
    if (effects->cancel != 0)
        kith_transport_cancel(&driver->transport, effects->cancel);
    for (uint32_t i = 0; i < effects->send_count; i++)
        kith_transport_send(&driver->transport, effects->sends[i].to,
                            &effects->sends[i].message);
    for (uint32_t i = 0; i < effects->dial_count; i++)
        kith_transport_dial(&driver->transport, effects->dials[i]);
    KITH_ASSERT(effects->deadline_ns == KITH_NEVER ||
                effects->deadline_ns >= 0);
    if (effects->has_work)
        submit(driver, &effects->work);
    kith_timer_set(&driver->deadline,
                   effects->deadline_ns == KITH_NEVER
                       ? KITH_NEVER
                       : driver->start_ns + effects->deadline_ns);
    for (uint32_t i = 0; i < effects->mark_count; i++)
        apply_mark(driver, now_ns, &effects->marks[i]);
}

/* Not re-entrant: what happens during a step is kept for the next turn of the
 * loop. The wall clock is for certificates alone; the node decides by now_ns.
 */
static void step(struct kith_driver *driver, struct kith_event *event)
{
    KITH_ASSERT(!driver->stepping);
    if (driver->phase > KITH_DRIVER_QUIETING)
        return;
    KITH_ASSERT((event->kind == KITH_EVENT_MESSAGE) ==
                (event->message != NULL));
    KITH_ASSERT((event->kind == KITH_EVENT_WORK_DONE) ==
                (event->result != NULL));
    driver->stepping = true;
    event->now_ns = kith_driver_now(driver);
    event->utc_s = (int64_t)time(NULL);
    kith_node_step(driver->node, event, &driver->effects);
    kith_journal_stepped(driver, event);
    apply_effects(driver, event->now_ns);
    kith_rows_overlap(driver, event->now_ns);
    driver->stepping = false;
    kith_driver_check_end(driver);
}

void kith_driver_tell(struct kith_driver *driver, enum kith_event_kind kind,
                      kith_id peer)
{
    struct kith_event event = {.kind = kind, .from = peer};
    step(driver, &event);
}

/* START comes before any message, so the transport holds those back until now.
 */
void kith_driver_begin(struct kith_driver *driver)
{
    KITH_ASSERT(driver->phase == KITH_DRIVER_WAITING);
    driver->phase = KITH_DRIVER_RUNNING;
    kith_driver_limit(driver);
    kith_rows_start(driver);
    kith_journal_starts(driver);
    kith_driver_tell(driver, KITH_EVENT_START, KITH_NOBODY);
    kith_transport_unhold(&driver->transport);
}

/* A link of the same member may go down and up within a turn: both are told,
 * in order. */
static void driver_up(void *arg, kith_id peer)
{
    kith_driver_tell(arg, KITH_EVENT_LINK_UP, peer);
}

static void driver_down(void *arg, kith_id peer)
{
    kith_driver_tell(arg, KITH_EVENT_LINK_DOWN, peer);
}

/* The age of a model is booked before the step, which may consume it. */
static void driver_message(void *arg, kith_id from,
                           const struct kith_message *message)
{
    struct kith_driver *driver = arg;
    struct kith_event event = {
        .kind = KITH_EVENT_MESSAGE, .from = from, .message = message};
    driver->messages++;
    kith_rows_model(driver, message);
    step(driver, &event);
}

/* Asked before the bytes are received, so that they go to their final place. */
static uint32_t driver_inbox(void *arg, kith_id from,
                             const struct kith_message *message)
{
    const struct kith_driver *driver = arg;
    return kith_node_inbox(driver->node, from, message);
}

/* Asked again for each burst: a snapshot may share its vector with the live
 * model and move with it (worker.h). */
static void *driver_slot(void *arg, uint32_t slot)
{
    const struct kith_driver *driver = arg;
    return kith_worker_slot(driver->worker, slot);
}

/* A device may fail while a snapshot leaves it and nothing else runs. */
static enum kith_outgoing driver_outgoing(void *arg, uint32_t slot)
{
    struct kith_driver *driver = arg;
    const enum kith_outgoing outgoing =
        kith_worker_outgoing(driver->worker, slot, false);
    if (kith_worker_failed(driver->worker) != NULL)
        kith_driver_backend_failed_later(driver);
    return outgoing;
}

/* A backend with memory of its own starts copying now, while training goes on.
 */
static void driver_arrived(void *arg, uint32_t slot)
{
    const struct kith_driver *driver = arg;
    kith_worker_arrived(driver->worker, slot);
}

/* The transport knows no node: these functions are all that it calls. */
/* From within a link's callback: ended by a timer. */
static void driver_hopeless(void *arg, const char *why)
{
    kith_driver_hopeless_later(arg, why);
}

/* One that waits for members is patient: theirs may be started again. */
static void driver_differs(void *arg, const char *why)
{
    struct kith_driver *driver = arg;
    if (driver->options->wait_members <= 1 ||
        driver->phase == KITH_DRIVER_RUNNING)
        kith_driver_alone_later(driver, why);
    else
        kith_text_copy(driver->difference, sizeof driver->difference, why);
}

struct kith_transport_user kith_driver_user(struct kith_driver *driver)
{
    return (struct kith_transport_user){.arg = driver,
                                        .up = driver_up,
                                        .down = driver_down,
                                        .message = driver_message,
                                        .inbox = driver_inbox,
                                        .slot = driver_slot,
                                        .outgoing = driver_outgoing,
                                        .arrived = driver_arrived,
                                        .hopeless = driver_hopeless,
                                        .differs = driver_differs};
}

/* A save that fails ends nothing: the one before it is whole, and the disk may
 * have room next time. The step is that of its work item: training went on. */
void kith_driver_saved(void *arg, const struct kith_saved *saved)
{
    struct kith_driver *driver = arg;
    driver->report->saved = saved->err == KITH_OK;
    if (saved->err == KITH_OK) {
        driver->has_save = true;
        driver->save_step = saved->step;
        return;
    }
    kith_transport_log(&driver->transport,
                       "save-failed error=\"%s\" "
                       "reason=\"%s\"",
                       kith_err_text(saved->err), saved->error);
}

/* Runs on the loop thread, by the async handle. A loss that is not finite is
 * kept out of the mean; the node deals with the model. */
void kith_driver_worked(void *arg, const struct kith_work_result *result)
{
    struct kith_driver *driver = arg;
    struct kith_event event = {
        .kind = KITH_EVENT_WORK_DONE, .from = KITH_NOBODY, .result = result};
    KITH_NET_SCOPE(&driver->transport.net);
    if (result->kind == KITH_WORK_TRAIN) {
        driver->trained_ns = kith_driver_now(driver);
        driver->more_samples += result->more; /* as the node counts it */
    }
    if (result->kind == KITH_WORK_TRAIN && isfinite(result->loss) &&
        result->finite && !result->is_part) {
        driver->loss_sum += result->loss;
        driver->loss_count++;
    }
    driver->transport.use.passes += result->passes;
    kith_senders_worked(driver, result);
    const char *notice = kith_worker_notice(driver->worker);
    if (notice != NULL)
        kith_transport_log(&driver->transport, "slow-way reason=\"%s\"",
                           notice);
    step(driver, &event);
}
