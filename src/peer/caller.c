/* See kith/caller.h.
 *
 * Two locks. The seat's is held for a whole call of the caller's and by the
 * loop while a thread is seated or leaves: who stops the thread waits for the
 * item under way. The thread's own guards the item's state, as ever. */
#include "caller_seat.h"

#include <math.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/text.h"

/* Steps that the caller may be ahead of the loop. */
#define KITH_CALLER_AHEAD 64u
#define HAND_IN_NS KITH_S /* for them, before a run ends */
#define NO_STEP UINT64_MAX

struct kith_caller {
    uv_mutex_t seat;
    struct kith_thread *thread; /* NULL: not yet, or no more */
    const struct kith_outside *vectors;
    const struct kith_outside *sources; /* of x: the vectors, or what the caller
                                         * has in place of them */
    uint32_t count;
    void *stream;     /* that the vectors are computed on */
    bool is_over;     /* a thread has been here and left */
    bool is_taken;    /* x is what the vectors hold */
    bool is_changed;  /* x is not what the vectors hold: to be given out */
    bool is_begun;    /* the step that is out */
    kith_ns began_ns; /* the caller's own step: a call returned */
    uint64_t step;    /* the caller's next one, from 0; NO_STEP: it waits for it
                       */
    /* Guarded by the thread's lock: losses of steps that the caller has done
     * and the loop has not handed out yet, a ring. */
    struct {
        double loss;
        int64_t more;
    } ahead[KITH_CALLER_AHEAD];
    uint32_t ahead_first, ahead_count;
    int64_t more; /* examples of a step than the file says */
    struct kith_caller_counts counts; /* .steps: of all that were done */
};

enum kith_err kith_caller_open(const struct kith_outside *vectors,
                               uint32_t count, void *stream,
                               struct kith_caller **out)
{
    struct kith_caller *caller = calloc(1, sizeof *caller);
    if (caller == NULL)
        return KITH_ENOMEM;
    if (uv_mutex_init(&caller->seat) != 0) {
        free(caller);
        return KITH_ENOMEM;
    }
    caller->vectors = caller->sources = vectors;
    caller->count = count;
    caller->stream = stream;
    caller->step = NO_STEP;
    caller->counts.is_finite = true;
    *out = caller;
    return KITH_OK;
}

void kith_caller_close(struct kith_caller *caller)
{
    if (caller == NULL)
        return;
    KITH_ASSERT(caller->thread == NULL);
    uv_mutex_destroy(&caller->seat);
    free(caller);
}

/* By the loop, as it opens, and as it has told the thread to stop: from then on
 * no item is handed to the caller any more. */
void kith_caller_seat(struct kith_caller *caller, struct kith_thread *thread)
{
    uv_mutex_lock(&caller->seat);
    KITH_ASSERT(caller->thread == NULL && !caller->is_over);
    caller->thread = thread;
    uv_mutex_unlock(&caller->seat);
}

void kith_caller_unseat(struct kith_caller *caller)
{
    uv_mutex_lock(&caller->seat);
    caller->thread = NULL;
    caller->is_over = true;
    uv_mutex_unlock(&caller->seat);
}

/* The vectors are the caller's again when a call returns: each time that items
 * are carried out they come in first. */
static bool take_in(struct kith_caller *caller)
{
    struct kith_worker *worker = caller->thread->options.worker;
    caller->is_taken = true;
    return caller->counts.is_finite =
               kith_worker_take_in(worker, caller->sources, caller->count);
}

/* Nothing where no item has changed x. */
static void give_out(struct kith_caller *caller)
{
    if (!caller->is_changed)
        return;
    kith_worker_give_out(caller->thread->options.worker, caller->vectors,
                         caller->count);
    caller->sources = caller->vectors;
    caller->is_changed = false;
    caller->counts.writes++;
    const struct kith_rounded rounded =
        kith_worker_rounded(caller->thread->options.worker);
    caller->counts.rounded = rounded.sum;
    caller->counts.rounded_squares = rounded.squares;
}

void kith_caller_read_from(struct kith_caller *caller,
                           const struct kith_outside *sources)
{
    uv_mutex_lock(&caller->seat);
    caller->sources = sources == NULL ? caller->vectors : sources;
    uv_mutex_unlock(&caller->seat);
}

/* Nobody else is here: the loop has not begun, and the caller waits for it in
 * kith_peer_run()'s other thread. */
bool kith_caller_ready(struct kith_caller *caller)
{
    bool finite = true;
    uv_mutex_lock(&caller->seat);
    KITH_ASSERT(caller->thread != NULL);
    caller->counts.step = caller->thread->options.step;
    kith_worker_set_stream(caller->thread->options.worker, caller->stream);
    if (caller->thread->options.is_resumed) {
        caller->is_changed = caller->is_taken = true;
        give_out(caller);
    } else {
        finite = take_in(caller);
        kith_worker_begin_outside(caller->thread->options.worker);
    }
    uv_mutex_unlock(&caller->seat);
    return finite;
}

/* Holds the thread's lock, whose item is TRAIN: that step, which the caller's
 * loop has carried out. A loss that is not known says nothing of the model. */
static void train_done(struct kith_caller *caller, double loss, int64_t more)
{
    struct kith_thread *thread = caller->thread;
    kith_worker_end_step(thread->options.worker, thread->work.step);
    thread->result = (struct kith_work_result){.kind = KITH_WORK_TRAIN,
                                               .loss = loss,
                                               .more = more,
                                               .finite = !isinf(loss)};
    caller->is_begun = false;
    kith_thread_item_done(thread);
}

/* The same for a step that the caller will not do: it has not been one. */
static void train_abandoned(struct kith_caller *caller)
{
    caller->thread->result = (struct kith_work_result){
        .kind = KITH_WORK_TRAIN, .loss = NAN, .finite = true, .is_part = true};
    caller->is_begun = false;
    kith_thread_item_done(caller->thread);
}

/* By the loop, which holds the thread's lock and has handed out an item: a
 * TRAIN that the caller has done ahead is done. */
void kith_caller_submitted(struct kith_caller *caller)
{
    if (caller->ahead_count == 0 ||
        caller->thread->work.kind != KITH_WORK_TRAIN)
        return;
    const double loss = caller->ahead[caller->ahead_first].loss;
    const int64_t more = caller->ahead[caller->ahead_first].more;
    if (!caller->is_begun)
        kith_worker_begin_step(caller->thread->options.worker,
                               caller->thread->work.step);
    caller->ahead_first = (caller->ahead_first + 1) % KITH_CALLER_AHEAD;
    caller->ahead_count--;
    train_done(caller, loss, more);
}

/* Holds the thread's lock, and gives it back meanwhile. */
static void carry_out(struct kith_caller *caller)
{
    struct kith_thread *thread = caller->thread;
    const enum kith_work_kind kind = thread->work.kind;
    uv_mutex_unlock(&thread->mutex);
    const kith_ns began_ns = (kith_ns)uv_hrtime();
    if (!caller->is_taken)
        (void)take_in(caller);
    kith_thread_run_item(thread);
    if (kind == KITH_WORK_MERGE || kind == KITH_WORK_UNDO ||
        kind == KITH_WORK_ADOPT || kind == KITH_WORK_SNAPSHOT)
        caller->is_changed = true; /* a push splits in SNAPSHOT */
    caller->counts.items++;
    caller->counts.worked_ns += (kith_ns)uv_hrtime() - began_ns;
    uv_mutex_lock(&thread->mutex);
    kith_thread_item_done(thread);
}

/* Holds the thread's lock. What an algorithm does as a step begins: x is what
 * the caller begins it with. */
static void begin_step(struct kith_caller *caller)
{
    struct kith_thread *thread = caller->thread;
    if (caller->is_begun)
        return;
    caller->is_begun = true;
    if (kith_worker_step_begins(thread->options.worker, thread->work.step) &&
        !caller->is_taken)
        (void)take_in(caller);
    kith_worker_begin_step(thread->options.worker, thread->work.step);
}

/* Holds the thread's lock: until TRAIN is out, or, of one that pauses, until
 * all that is open has ended; then a TRAIN that is out has not been a step.
 * Whose share is done still serves the others. */
static enum kith_turn carry_out_until(struct kith_caller *caller, bool quiet,
                                      kith_ns patience_ns)
{
    struct kith_thread *thread = caller->thread;
    const kith_ns began_ns = (kith_ns)uv_hrtime();
    caller->step = NO_STEP;
    while (thread->stage != KITH_THREAD_STOPPING) {
        if (quiet && thread->pausing == KITH_PAUSING_QUIET)
            return KITH_TURN_TRAIN;
        if (thread->item == KITH_ITEM_SUBMITTED) {
            if (thread->work.kind == KITH_WORK_TRAIN && quiet) {
                train_abandoned(caller);
                continue;
            }
            if (thread->work.kind == KITH_WORK_TRAIN) {
                begin_step(caller);
                caller->counts.step = caller->step = thread->work.step;
                return KITH_TURN_TRAIN;
            }
            carry_out(caller);
            continue;
        }
        const kith_ns now_ns = (kith_ns)uv_hrtime();
        const kith_ns left_ns = began_ns + patience_ns - now_ns;
        if (left_ns <= 0)
            return !quiet && thread->stage == KITH_THREAD_FINISHED
                       ? KITH_TURN_OVER
                       : KITH_TURN_LATE;
        (void)uv_cond_timedwait(&thread->changed, &thread->mutex,
                                (uint64_t)left_ns);
        caller->counts.waited_ns += (kith_ns)uv_hrtime() - now_ns;
    }
    return KITH_TURN_OVER;
}

static enum kith_turn until_train(struct kith_caller *caller,
                                  kith_ns patience_ns)
{
    return carry_out_until(caller, false, patience_ns);
}

/* Holds the thread's lock. Steps that are ahead are handed in first: the TRAIN
 * behind them is out. Whose share is done has none. */
static enum kith_turn until_quiet(struct kith_caller *caller,
                                  kith_ns patience_ns)
{
    struct kith_thread *thread = caller->thread;
    const bool is_done = thread->stage == KITH_THREAD_FINISHED;
    if (!kith_thread_pauses(thread)) {
        const enum kith_turn turn =
            is_done ? KITH_TURN_TRAIN : until_train(caller, patience_ns);
        if (turn != KITH_TURN_TRAIN)
            return turn;
        kith_thread_pause(thread, true);
    }
    const enum kith_turn turn = carry_out_until(caller, true, patience_ns);
    return is_done && turn == KITH_TURN_TRAIN ? KITH_TURN_OVER : turn;
}

/* May the loop answer this step, from 0, with anything but the next one?
 * Exchanges that exclude each other are drawn at every step, and where the step
 * behind a round's is taken meanwhile the one behind that waits. */
static bool is_due(const struct kith_thread *thread, uint64_t step)
{
    const struct kith_task *task =
        kith_worker_content(thread->options.worker).task;
    return task->algorithm->wait == KITH_WAIT_ROUND ||
           (task->algorithm->flags & KITH_NEEDS_EXCLUSIVE_EXCHANGE) != 0 ||
           task->every <= 1 || (step + 1) % task->every == 0 ||
           step + 1 >= thread->options.steps;
}

/* A step that has not been handed out yet. */
static void note(struct kith_caller *caller, double loss)
{
    const uint32_t at = caller->ahead_first + caller->ahead_count;
    if (caller->ahead_count == KITH_CALLER_AHEAD)
        return; /* as many came too late, one after another */
    caller->ahead[at % KITH_CALLER_AHEAD].loss = loss;
    caller->ahead[at % KITH_CALLER_AHEAD].more = caller->more;
    caller->ahead_count++;
    caller->counts.steps++;
    caller->counts.step++;
}

/* Holds the thread's lock. Steps of one's own follow one another faster than a
 * loop that is asleep hands them out: one that nothing can be due after is
 * noted, and done when its turn comes. false: it has to be handed out first. */
static bool step_ahead(struct kith_caller *caller, double loss)
{
    struct kith_thread *thread = caller->thread;
    const uint64_t step = caller->step;
    if (step == NO_STEP || thread->item == KITH_ITEM_SUBMITTED ||
        thread->stage != KITH_THREAD_TRAINING || isinf(loss) ||
        caller->ahead_count == KITH_CALLER_AHEAD || is_due(thread, step) ||
        kith_worker_step_begins(thread->options.worker, step))
        return false;
    note(caller, loss);
    caller->step++;
    return true;
}

/* Holds the thread's lock. From the return of the call before: all of it is the
 * caller's step. */
static void pad_step(struct kith_caller *caller)
{
    struct kith_thread *thread = caller->thread;
    kith_thread_pad_step(thread, caller->began_ns, 0, thread->options.step_ns);
}

/* Holds the thread's lock. The caller has come with a step of its own. */
static enum kith_turn step_done(struct kith_caller *caller, double loss,
                                kith_ns patience_ns)
{
    struct kith_thread *thread = caller->thread;
    pad_step(caller);
    if (step_ahead(caller, loss))
        return KITH_TURN_TRAIN;
    if (thread->item != KITH_ITEM_SUBMITTED ||
        thread->work.kind != KITH_WORK_TRAIN) {
        const enum kith_turn turn = until_train(caller, patience_ns);
        if (turn == KITH_TURN_LATE)
            note(caller, loss);
        if (turn != KITH_TURN_TRAIN)
            return turn;
    }
    if (!caller->is_begun) /* it did not wait: x is what it began with */
        kith_worker_begin_step(thread->options.worker, thread->work.step);
    const bool due = is_due(thread, thread->work.step);
    caller->counts.step = caller->step = thread->work.step + 1;
    caller->counts.steps++;
    train_done(caller, loss, caller->more);
    return due ? until_train(caller, patience_ns) : KITH_TURN_TRAIN;
}

enum call { WAIT, STEP, PAUSE };

/* A run that has not begun is waited for, one that is over is not. */
static enum kith_turn call(struct kith_caller *caller, enum call what,
                           double loss, kith_ns patience_ns)
{
    enum kith_turn result = KITH_TURN_OVER;
    uv_mutex_lock(&caller->seat);
    if (caller->thread != NULL) {
        caller->is_taken = false; /* they were the caller's since */
        uv_mutex_lock(&caller->thread->mutex);
        if (what != PAUSE)
            kith_thread_pause(caller->thread, false);
        result = what == STEP    ? step_done(caller, loss, patience_ns)
                 : what == PAUSE ? until_quiet(caller, patience_ns)
                                 : until_train(caller, patience_ns);
        caller->counts.late += result == KITH_TURN_LATE;
        uv_mutex_unlock(&caller->thread->mutex);
        give_out(caller);
        caller->began_ns = (kith_ns)uv_hrtime();
    } else if (!caller->is_over) {
        result = KITH_TURN_LATE;
    }
    uv_mutex_unlock(&caller->seat);
    return result;
}

enum kith_turn kith_caller_wait(struct kith_caller *caller, kith_ns patience_ns)
{
    return call(caller, WAIT, 0, patience_ns);
}

enum kith_turn kith_caller_step(struct kith_caller *caller, double loss,
                                kith_ns patience_ns)
{
    return call(caller, STEP, loss, patience_ns);
}

enum kith_turn kith_caller_pause(struct kith_caller *caller,
                                 kith_ns patience_ns)
{
    return call(caller, PAUSE, 0, patience_ns);
}

/* Steps that are ahead are handed in first; then exchanges under way end, for
 * the neighbours have merged their side. What the caller has done since its
 * last step() is in the save that the loop writes once it has stopped, and what
 * came after that is in its vectors. */
void kith_caller_leave(struct kith_caller *caller)
{
    uv_mutex_lock(&caller->seat);
    struct kith_thread *thread = caller->thread;
    if (thread != NULL) {
        (void)take_in(caller);
        uv_mutex_lock(&thread->mutex);
        if (caller->ahead_count > 0 && caller->step != NO_STEP)
            (void)until_train(caller, HAND_IN_NS);
        uv_mutex_unlock(&thread->mutex);
        kith_thread_leave(thread);
        uv_mutex_lock(&thread->mutex);
        while (thread->stage != KITH_THREAD_STOPPING)
            if (thread->item != KITH_ITEM_SUBMITTED)
                uv_cond_wait(&thread->changed, &thread->mutex);
            else if (thread->work.kind == KITH_WORK_TRAIN)
                train_abandoned(caller);
            else
                carry_out(caller);
        uv_mutex_unlock(&thread->mutex);
        give_out(caller);
    }
    uv_mutex_unlock(&caller->seat);
}

/* Holds the thread's lock. Items wait: what merges change would not be what the
 * caller has. Steps that are ahead wait, too: nothing begins with one, or is
 * due after it. A late one alone is waited for, its round being half done. */
static enum kith_turn until_still(struct kith_caller *caller,
                                  kith_ns patience_ns)
{
    const struct kith_thread *thread = caller->thread;
    if (caller->step != NO_STEP || thread->pausing == KITH_PAUSING_QUIET ||
        thread->stage == KITH_THREAD_FINISHED)
        return KITH_TURN_TRAIN;
    return until_train(caller, patience_ns);
}

static enum kith_err save(struct kith_caller *caller, const char *path,
                          kith_ns patience_ns, enum kith_turn *turn,
                          char *error)
{
    struct kith_thread *thread = caller->thread;
    caller->is_taken = false;
    uv_mutex_lock(&thread->mutex);
    *turn = until_still(caller, patience_ns);
    uv_mutex_unlock(&thread->mutex);
    if (*turn == KITH_TURN_TRAIN && !caller->is_taken)
        (void)take_in(caller);
    give_out(caller);
    caller->is_taken = false;
    if (*turn == KITH_TURN_OVER)
        return KITH_ECLOSED;
    const struct kith_standing standing = {
        .step = caller->counts.step, .best = NAN, .peak = thread->options.peak};
    /* Items are carried out in calls alone, so the worker stays as it is, and
     * the loop goes on. */
    return *turn == KITH_TURN_LATE
               ? KITH_OK
               : kith_save_write(thread->options.worker, path, &standing, false,
                                 error);
}

enum kith_err kith_caller_save(struct kith_caller *caller, const char *path,
                               kith_ns patience_ns, enum kith_turn *turn,
                               char *error)
{
    const kith_ns called_ns = (kith_ns)uv_hrtime();
    *turn = KITH_TURN_OVER;
    uv_mutex_lock(&caller->seat);
    const enum kith_err err =
        caller->thread == NULL ? KITH_ECLOSED
                               : save(caller, path, patience_ns, turn, error);
    /* The disk's time is none of the caller's step. */
    caller->began_ns += (kith_ns)uv_hrtime() - called_ns;
    uv_mutex_unlock(&caller->seat);
    return err == KITH_ECLOSED
               ? kith_text_fail(error, KITH_DATA_ERROR_BYTES, err,
                                "writing %.200s: the run has ended", path)
               : err;
}

bool kith_caller_has_ended(struct kith_caller *caller)
{
    uv_mutex_lock(&caller->seat);
    bool ended = caller->is_over;
    if (caller->thread != NULL) {
        uv_mutex_lock(&caller->thread->mutex);
        ended = caller->thread->stage == KITH_THREAD_STOPPING;
        uv_mutex_unlock(&caller->thread->mutex);
    }
    uv_mutex_unlock(&caller->seat);
    return ended;
}

/* Not by an item: a peer whose share is done may have none any more, and is
 * evaluated then of all times. */
bool kith_caller_report(struct kith_caller *caller,
                        const struct kith_score *score)
{
    uv_mutex_lock(&caller->seat);
    const bool is_here = caller->thread != NULL;
    if (is_here)
        kith_thread_score(caller->thread, score);
    uv_mutex_unlock(&caller->seat);
    return is_here;
}

void kith_caller_samples(struct kith_caller *caller, int64_t more)
{
    uv_mutex_lock(&caller->seat);
    caller->more = more;
    uv_mutex_unlock(&caller->seat);
}

struct kith_caller_counts kith_caller_counts(const struct kith_caller *caller)
{
    return caller->counts;
}
