/* The training thread.
 *
 *   loop thread   submit -> SUBMITTED            deliver: DONE -> NONE
 *   this thread             SUBMITTED -> DONE -> async
 *
 * The mutex guards the item's state and the sums; the item itself belongs to
 * whoever the state names, so that it runs without the lock. */
#include "training_thread.h"

#include <math.h>
#include <string.h>

#include "account.h"
#include "caller_seat.h"
#include "kith/assert.h"

/* Without the mutex: the loop thread reads nothing that an item writes until
 * it is done. A save is the driver's item, since the worker knows no path. */
void kith_thread_run_item(struct kith_thread *thread)
{
    const struct kith_thread_options *options = &thread->options;
    struct kith_work *work = &thread->work;
    memset(&thread->result, 0, sizeof thread->result);
    if (work->kind != KITH_WORK_SAVE) {
        kith_worker_run(options->worker, work, &thread->result);
        if (work->kind == KITH_WORK_TRAIN && options->save != NULL) {
            if (thread->saver != NULL && !thread->result.finite)
                kith_saver_wait(thread->saver); /* its file may be read now */
            kith_worker_go_back(options->worker, options->save,
                                &thread->result);
        }
        return;
    }
    thread->result.kind = KITH_WORK_SAVE;
    thread->result.finite = true;
    const struct kith_standing standing = {
        .step = work->step, .best = NAN, .peak = options->peak};
    if (options->save != NULL)
        thread->save_err =
            kith_saver_begin(thread->saver, options->worker, options->save,
                             &standing, true, thread->save_error);
}

/* Holds the mutex. An evaluation is no part of a step, but may fill the rest
 * of its period. */
void kith_thread_pad_step(struct kith_thread *thread, kith_ns began_ns,
                          kith_ns evaluated_ns, kith_ns least)
{
    const kith_ns took = (kith_ns)uv_hrtime() - began_ns - evaluated_ns;
    const kith_ns base = took > least ? took : least;
    while (thread->stage != KITH_THREAD_STOPPING) {
        const kith_ns period = (kith_ns)((double)base * thread->factor);
        const kith_ns left = began_ns + period - (kith_ns)uv_hrtime();
        if (left <= 0)
            return;
        (void)uv_cond_timedwait(&thread->changed, &thread->mutex,
                                (uint64_t)left);
    }
}

/* Of the TRAIN that is out. */
static kith_ns least_time(const struct kith_thread *thread)
{
    const struct kith_thread_options *options = &thread->options;
    return options->worker != NULL
               ? kith_worker_item_time(options->worker, &thread->work,
                                       options->step_ns)
               : options->step_ns;
}

/* A step that counts is `step` + 1 of them. */
static kith_ns evaluate(struct kith_thread *thread,
                        struct kith_own_score *score)
{
    struct kith_own_curve *curve = thread->options.curve;
    return curve != NULL && thread->work.kind == KITH_WORK_TRAIN &&
                   thread->result.finite && !thread->result.is_part
               ? kith_own_curve_step(curve, thread->work.step + 1, score)
               : 0;
}

void kith_thread_item_done(struct kith_thread *thread)
{
    KITH_ASSERT(thread->item == KITH_ITEM_SUBMITTED);
    thread->item = KITH_ITEM_DONE;
    uv_mutex_unlock(&thread->mutex);
    /* Behind the lock, or the loop would wake up to wait for it. */
    uv_async_send(&thread->async);
    uv_mutex_lock(&thread->mutex);
}

/* One item at a time, so the worker needs no lock (ARCHITECTURE.md,
 * ownership). */
static void thread_main(void *arg)
{
    struct kith_thread *thread = arg;
    uv_mutex_lock(&thread->mutex);
    for (;;) {
        while (thread->item != KITH_ITEM_SUBMITTED &&
               thread->stage != KITH_THREAD_STOPPING)
            uv_cond_wait(&thread->changed, &thread->mutex);
        if (thread->stage == KITH_THREAD_STOPPING)
            break;
        uv_mutex_unlock(&thread->mutex);

        const kith_ns began_ns = (kith_ns)uv_hrtime();
        const kith_ns cpu_ns = kith_thread_cpu();
        kith_thread_run_item(thread);
        const char *failed = kith_worker_failed(thread->options.worker);
        const kith_ns spent_ns = kith_thread_cpu() - cpu_ns;
        struct kith_data_counts counts = {.origin = 0};
        uint64_t data_wait_ns;
        kith_worker_data(thread->options.worker, &counts, &data_wait_ns);
        struct kith_own_score score = {.is_new = false};
        const kith_ns evaluated_ns =
            failed == NULL ? evaluate(thread, &score) : 0;

        uv_mutex_lock(&thread->mutex);
        thread->score = score;
        thread->spent.data_wait_ns = data_wait_ns;
        thread->failed = failed;
        if (thread->work.kind == KITH_WORK_TRAIN) {
            thread->spent.train_cpu_ns += spent_ns;
            if (failed == NULL)
                kith_thread_pad_step(thread, began_ns, evaluated_ns,
                                     least_time(thread));
        } else {
            thread->spent.merge_cpu_ns += spent_ns;
        }
        kith_thread_item_done(thread);
    }
    uv_mutex_unlock(&thread->mutex);
}

/* On the saver's thread. */
static void save_written(void *arg)
{
    struct kith_thread *thread = arg;
    uv_async_send(&thread->async);
}

/* On the loop thread: how saves ended. */
static void tell_saved(struct kith_thread *thread)
{
    struct kith_saved saved;
    while (thread->saver != NULL && kith_saver_take(thread->saver, &saved))
        thread->options.saved(thread->options.arg, &saved);
}

/* On the loop thread. libuv may join several wake-ups into one, or deliver one
 * late: the item's state decides, not the call. */
static void thread_result(uv_async_t *async)
{
    struct kith_thread *thread = async->data;
    const struct kith_thread_options *options = &thread->options;
    tell_saved(thread);
    uv_mutex_lock(&thread->mutex);
    const bool has_result =
        thread->item == KITH_ITEM_DONE && thread->stage != KITH_THREAD_STOPPING;
    if (thread->item == KITH_ITEM_DONE)
        thread->item = KITH_ITEM_NONE;
    /* Of an item that is still out both are its runner's. */
    struct kith_work_result result = {.finite = true};
    enum kith_err save_err = KITH_OK;
    if (has_result) {
        result = thread->result;
        save_err = thread->save_err;
        thread->save_err = KITH_OK;
    }
    struct kith_own_score score = thread->score;
    score.is_new = score.is_new && (has_result || options->caller != NULL);
    const char *failed = thread->failed;
    const bool leaves = thread->leaves;
    const enum kith_pausing pausing = thread->pausing;
    thread->score.is_new = thread->score.is_new && !score.is_new;
    thread->leaves = false;
    if (pausing == KITH_PAUSING_ASKED)
        thread->pausing = KITH_PAUSING_TOLD;
    if (pausing == KITH_PAUSING_ENDS)
        thread->pausing = KITH_PAUSING_NO;
    uv_mutex_unlock(&thread->mutex);
    if (leaves)
        options->leave(options->arg);
    if (pausing == KITH_PAUSING_ASKED || pausing == KITH_PAUSING_ENDS)
        options->pause(options->arg, pausing == KITH_PAUSING_ASKED);
    if (!has_result && score.is_new)
        options->scored(options->arg, &score.score);
    if (!has_result)
        return;
    KITH_ASSERT(thread->busy);
    thread->busy = false;
    if (failed != NULL) {
        options->failed(options->arg, failed);
        return;
    }
    if (save_err != KITH_OK) {
        struct kith_saved saved = {.err = save_err, .path = options->save};
        memcpy(saved.error, thread->save_error, sizeof saved.error);
        options->saved(options->arg, &saved);
    }
    options->done(options->arg, &result);
    if (score.is_new)
        options->scored(options->arg, &score.score);
}

/* Nothing is left behind on an error but a handle that the loop closes. */
enum kith_err kith_thread_start(struct kith_thread *thread, uv_loop_t *loop,
                                const struct kith_thread_options *options)
{
    memset(thread, 0, sizeof *thread);
    thread->options = *options;
    thread->factor = 1;
    if (uv_async_init(loop, &thread->async, thread_result) != 0)
        return KITH_ENOMEM;
    thread->async.data = thread;
    if (uv_mutex_init(&thread->mutex) != 0)
        goto no_mutex;
    if (uv_cond_init(&thread->changed) != 0)
        goto no_cond;
    if (options->save != NULL &&
        kith_saver_open(save_written, thread, &thread->saver) != KITH_OK)
        goto no_saver;
    if (options->caller != NULL)
        kith_caller_seat(options->caller, thread);
    else if (uv_thread_create(&thread->thread, thread_main, thread) != 0)
        goto no_thread;
    thread->started = true;
    return KITH_OK;

no_thread:
    kith_saver_close(thread->saver);
no_saver:
    uv_cond_destroy(&thread->changed);
no_cond:
    uv_mutex_destroy(&thread->mutex);
no_mutex:
    uv_close((uv_handle_t *)&thread->async, NULL);
    return KITH_ENOMEM;
}

/* The node submits the next item only after the result of the last one. */
void kith_thread_submit(struct kith_thread *thread,
                        const struct kith_work *work)
{
    KITH_ASSERT(!thread->busy);
    thread->busy = true;
    KITH_ASSERT(thread->item == KITH_ITEM_NONE);
    thread->work = *work;
    if (thread->lie_is_new)
        kith_worker_lie(thread->options.worker, &thread->lie);
    thread->lie_is_new = false;
    if (thread->options.worker != NULL)
        kith_worker_prepare(thread->options.worker, &thread->work);
    uv_mutex_lock(&thread->mutex);
    thread->item = KITH_ITEM_SUBMITTED;
    if (thread->options.caller != NULL)
        kith_caller_submitted(thread->options.caller);
    uv_mutex_unlock(&thread->mutex);
    uv_cond_signal(&thread->changed);
}

void kith_thread_finished(struct kith_thread *thread)
{
    uv_mutex_lock(&thread->mutex);
    if (thread->stage == KITH_THREAD_TRAINING)
        thread->stage = KITH_THREAD_FINISHED;
    uv_cond_signal(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
}

/* Also wakes a step that is being padded, so that an end of the fault counts
 * at once. */
void kith_thread_slow(struct kith_thread *thread, double factor)
{
    KITH_ASSERT(factor >= 1);
    uv_mutex_lock(&thread->mutex);
    thread->factor = factor;
    uv_cond_signal(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
}

/* From the next item on, as in a replay. */
void kith_thread_lie(struct kith_thread *thread, const struct kith_lie *lie)
{
    KITH_ASSERT(lie->kind < KITH_LIE_COUNT);
    thread->lie = *lie;
    thread->lie_is_new = thread->options.worker != NULL;
}

/* By the caller's thread, between two steps: whatever item is out, and also
 * once none comes any more. */
void kith_thread_score(struct kith_thread *thread,
                       const struct kith_score *score)
{
    uv_mutex_lock(&thread->mutex);
    thread->score = (struct kith_own_score){.is_new = true, .score = *score};
    uv_mutex_unlock(&thread->mutex);
    uv_async_send(&thread->async);
}

/* The loop ends the run: whoever leaves has no business in its events. */
void kith_thread_leave(struct kith_thread *thread)
{
    uv_mutex_lock(&thread->mutex);
    thread->leaves = true;
    uv_mutex_unlock(&thread->mutex);
    uv_async_send(&thread->async);
}

bool kith_thread_pauses(const struct kith_thread *thread)
{
    return thread->pausing != KITH_PAUSING_NO &&
           thread->pausing != KITH_PAUSING_ENDS;
}

void kith_thread_pause(struct kith_thread *thread, bool pauses)
{
    if (kith_thread_pauses(thread) == pauses)
        return;
    thread->pausing = pauses ? KITH_PAUSING_ASKED : KITH_PAUSING_ENDS;
    uv_async_send(&thread->async);
}

void kith_thread_quiet(struct kith_thread *thread)
{
    uv_mutex_lock(&thread->mutex);
    if (thread->pausing == KITH_PAUSING_TOLD)
        thread->pausing = KITH_PAUSING_QUIET;
    uv_cond_broadcast(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
}

/* By the thread's CPU clock: padding and waiting cost nothing. Waits are copied
 * out of the worker after each item, because only the thread may ask it. */
struct kith_thread_spent kith_thread_spent(struct kith_thread *thread)
{
    uv_mutex_lock(&thread->mutex);
    const struct kith_thread_spent spent = thread->spent;
    uv_mutex_unlock(&thread->mutex);
    return spent;
}

/* Idempotent. An item that runs is waited for: half a step must not be saved;
 * and so is a save under way. */
void kith_thread_stop(struct kith_thread *thread)
{
    if (!thread->started)
        return;
    thread->started = false;
    uv_mutex_lock(&thread->mutex);
    thread->stage = KITH_THREAD_STOPPING;
    uv_cond_signal(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
    if (thread->options.caller != NULL)
        kith_caller_unseat(thread->options.caller);
    if (thread->options.caller != NULL && thread->score.is_new)
        thread->options.scored(thread->options.arg, &thread->score.score);
    if (thread->options.caller == NULL)
        uv_thread_join(&thread->thread);
    if (thread->saver != NULL)
        kith_saver_wait(thread->saver);
    tell_saved(thread);
    kith_saver_close(thread->saver);
    thread->saver = NULL;
    uv_close((uv_handle_t *)&thread->async, NULL);
    uv_cond_destroy(&thread->changed);
    uv_mutex_destroy(&thread->mutex);
}
