/* The training thread: runs the worker's items one after another; or a caller's
 * own thread does (kith/caller.h), whose loop is TRAIN.
 *
 * One item at a time goes in, its result comes back through uv_async. A TRAIN
 * item lasts at least `step_ns` and is stretched by the slow factor, so that
 * `compute.step` and the fault `slow` mean what they mean in the simulator:
 *
 *   period = max(time of the step, step_ns) * factor */
#ifndef KITH_PEER_TRAINING_THREAD_H
#define KITH_PEER_TRAINING_THREAD_H

#include <stdbool.h>
#include <uv.h>

#include "kith/err.h"
#include "kith/saver.h"
#include "kith/types.h"
#include "kith/work.h"
#include "kith/worker.h"
#include "own_curve.h"

struct kith_thread_options {
    struct kith_worker *worker;
    struct kith_caller *caller; /* NULL: a thread is started here */
    const char *save;           /* path of SAVE items; NULL: they do nothing */
    struct kith_own_curve *curve; /* NULL: none */
    kith_ns step_ns;
    uint64_t steps;  /* own share, as the node's */
    bool is_resumed; /* the worker's x is a save's, or the one before it's */
    uint64_t step;   /* that save's; 0: none */
    double peak;     /* FLOP/s, for checkpoints; 0: not measured */
    /* On the loop thread. */
    void *arg;
    void (*done)(void *arg, const struct kith_work_result *result);
    /* A SAVE is done when the state is copied; this is when it is a file, or
     * why it is none. */
    void (*saved)(void *arg, const struct kith_saved *saved);
    /* After it, where the step has become a point of the curve. */
    void (*scored)(void *arg, const struct kith_score *score);
    /* A caller leaves: end the run. */
    void (*leave)(void *arg);
    /* A caller pauses, or goes on. */
    void (*pause)(void *arg, bool pauses);
    /* In the place of both: the backend has failed for good, and what the item
     * did counts for nothing. The last call. */
    void (*failed)(void *arg, const char *why);
};

/* A caller's pause: asked for, told to the node, with nothing open any more;
 * its end, asked for. */
enum kith_pausing {
    KITH_PAUSING_NO,
    KITH_PAUSING_ASKED,
    KITH_PAUSING_TOLD,
    KITH_PAUSING_QUIET,
    KITH_PAUSING_ENDS,
};

struct kith_thread_spent {
    kith_ns train_cpu_ns, merge_cpu_ns; /* CPU on TRAIN items, on others */
    uint64_t data_wait_ns;              /* steps waited for their batch */
};

/* Of the one item that may be out. */
enum kith_item_state {
    KITH_ITEM_NONE,
    KITH_ITEM_SUBMITTED, /* waiting, or running */
    KITH_ITEM_DONE,      /* its result is to be delivered */
};

/* The own share is done: others are still answered; and nobody any more. */
enum kith_thread_stage {
    KITH_THREAD_TRAINING,
    KITH_THREAD_FINISHED,
    KITH_THREAD_STOPPING,
};

struct kith_thread {
    struct kith_thread_options options;
    uv_thread_t thread;
    uv_async_t async;
    bool started;
    bool busy;       /* loop thread's view: an item is out */
    bool lie_is_new; /* the worker does not know yet; the loop thread's, too */
    struct kith_lie lie;
    struct kith_saver *saver; /* NULL: nothing is saved */

    uv_mutex_t mutex; /* guards the rest */
    uv_cond_t changed;
    enum kith_item_state item;
    enum kith_thread_stage stage;
    const char *failed; /* the backend's word; NULL: it is well */
    struct kith_work work;
    struct kith_work_result result;
    struct kith_own_score score;
    bool leaves;               /* the caller, which leave() is not told yet */
    enum kith_pausing pausing; /* the caller */
    double factor;
    struct kith_thread_spent spent;
    enum kith_err save_err;
    char save_error[KITH_DATA_ERROR_BYTES];
};

KITH_MUST_CHECK enum kith_err
kith_thread_start(struct kith_thread *thread, uv_loop_t *loop,
                  const struct kith_thread_options *options);
void kith_thread_submit(struct kith_thread *thread,
                        const struct kith_work *work);
/* The own share is done: no TRAIN will follow. */
void kith_thread_finished(struct kith_thread *thread);
void kith_thread_slow(struct kith_thread *thread, double factor);
void kith_thread_lie(struct kith_thread *thread, const struct kith_lie *lie);
/* Sums over the items so far. */
struct kith_thread_spent kith_thread_spent(struct kith_thread *thread);
/* Waits for the item that is running (not for its padding) and for a save under
 * way, whose end is told, and ends. The loop must still run once for the
 * handle; no item's result is delivered any more. */
void kith_thread_stop(struct kith_thread *thread);

/* For who runs the items. An item that is SUBMITTED, without the lock; then,
 * with the lock, which is given back for a moment, hand its result on. */
void kith_thread_run_item(struct kith_thread *thread);
void kith_thread_item_done(struct kith_thread *thread);
/* With the lock, too: waits out the period of a step that began at `began_ns`,
 * of which an evaluation is no part, but may fill the rest. */
void kith_thread_pad_step(struct kith_thread *thread, kith_ns began_ns,
                          kith_ns evaluated_ns, kith_ns least);
/* A score of the caller's model, for the next row; and: the run shall end. */
void kith_thread_score(struct kith_thread *thread,
                       const struct kith_score *score);
void kith_thread_leave(struct kith_thread *thread);
/* With the lock: the caller pauses, or goes on. */
bool kith_thread_pauses(const struct kith_thread *thread);
void kith_thread_pause(struct kith_thread *thread, bool pauses);
/* On the loop thread: of one that pauses everything has ended. */
void kith_thread_quiet(struct kith_thread *thread);

#endif
