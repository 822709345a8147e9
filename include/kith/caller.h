/* A caller's own thread runs a peer's work items: its training loop is TRAIN.
 *
 * kith_peer_run() with options.caller starts no training thread. The loop
 * thread hands each item to the caller, which carries it out within step() and
 * wait(), the only calls that touch its vectors:
 *
 *   caller: ... a step of its own ... step() ............. its next step ...
 *             item TRAIN is out        TRAIN is done
 *                                      other items: take in, run, give out
 *                                      until TRAIN is out again
 *
 * Where no exchange may be due step() does not wait for the next item, and
 * where the loop has not handed that out yet it is noted and done when it is:
 * up to 64 steps ahead. What a neighbour asked for meanwhile is carried out by
 * the next step(), a step late or as many as were ahead. Then it costs a lock
 * and at most a wake-up of the loop, whatever the model's size.
 * A method whose steps wait for their exchanges (kith_wait) is waited for, up
 * to the caller's deadline. A step lasts `compute.step` at least, and is
 * stretched by the fault `slow`, within step().
 *
 * Threads: kith_peer_run() on one, every function here on another, one at a
 * time. Test: integration/test_peer_caller.c */
#ifndef KITH_CALLER_H
#define KITH_CALLER_H

#include <stdint.h>

#include "kith/evaluation.h"
#include "kith/err.h"
#include "kith/types.h"
#include "kith/worker.h"

struct kith_caller;

enum kith_turn {
    KITH_TURN_TRAIN, /* the next step is the caller's */
    KITH_TURN_LATE,  /* something is still waited for: go on with wait() */
    KITH_TURN_OVER,  /* the share of steps is done, or the run has ended */
};

/* `vectors` (kept; what they point to, too) stand for the model; `stream`: see
 * kith_worker_set_stream(), NULL for those of the host. KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err
kith_caller_open(const struct kith_outside *vectors, uint32_t count,
                 void *stream, struct kith_caller **caller);
/* After kith_peer_run() has returned. NULL is none. */
void kith_caller_close(struct kith_caller *caller);

/* On the thread of kith_peer_run(), within on_ready, while the caller waits for
 * it elsewhere: the model is the vectors', or where the peer went on from a
 * save they are its. false: a value is not finite. */
bool kith_caller_ready(struct kith_caller *caller);

/* The values are those of `sources` (kept, with what they point to) until the
 * vectors are written next; NULL: the vectors'. As many, each of its count. */
void kith_caller_read_from(struct kith_caller *caller,
                           const struct kith_outside *sources);
/* Until TRAIN is out, up to `patience_ns`: carries out what else is. */
enum kith_turn kith_caller_wait(struct kith_caller *caller,
                                kith_ns patience_ns);
/* A step of the caller's own is done, with this mean loss of its batch (NaN:
 * not known). Then as kith_caller_wait(), where something may be due. */
enum kith_turn kith_caller_step(struct kith_caller *caller, double loss,
                                kith_ns patience_ns);
/* Steps that come are of `more` examples more than the experiment's
 * train.batch, until the next such call. */
void kith_caller_samples(struct kith_caller *caller, int64_t more);
/* The caller will not come for a while: ends what is under way, up to
 * `patience_ns`, then KITH_TURN_TRAIN, or OVER where its share is done. From
 * then on the node answers who asks
 * with BUSY and asks nobody, until the next step() or wait(). LATE: again. */
enum kith_turn kith_caller_pause(struct kith_caller *caller,
                                 kith_ns patience_ns);
/* Between two steps: the vectors, the count of steps and the method's state
 * become the file `path`, as kith_save_write() does it, within this call. LATE:
 * a step that was late still is after `patience_ns`, and nothing is written.
 * KITH_ECLOSED: the run has ended. On an error, with a line in `error`
 * (KITH_DATA_ERROR_BYTES), the file before stays. */
KITH_MUST_CHECK enum kith_err
kith_caller_save(struct kith_caller *caller, const char *path,
                 kith_ns patience_ns, enum kith_turn *turn, char *error);
/* The run shall end: exchanges under way do, and the vectors, which may have
 * changed since the last step(), are what its last save is of. */
void kith_caller_leave(struct kith_caller *caller);
/* The run has ended, or is about to and asks nothing more of the caller; not:
 * its share is done, and neighbours are still answered. */
bool kith_caller_has_ended(struct kith_caller *caller);
/* How good the caller's model is, by the caller: for the next row. false: there
 * is no next row, the run has ended. */
bool kith_caller_report(struct kith_caller *caller,
                        const struct kith_score *score);

struct kith_caller_counts {
    uint64_t steps;  /* own ones that counted */
    uint64_t step;   /* the next one, from 0: a save's count too */
    uint64_t late;   /* calls that gave up waiting */
    uint64_t items;  /* carried out, beside TRAIN */
    uint64_t writes; /* of the vectors, each in whole */
    double rounded;  /* halves given out, less what they stand for: the sum, */
    double rounded_squares; /* and that of squares */
    kith_ns waited_ns;      /* for the loop, in step() and wait() */
    kith_ns worked_ns;      /* taking in, carrying out, giving out */
    bool is_finite;         /* the vectors, as they were taken in last */
};
struct kith_caller_counts kith_caller_counts(const struct kith_caller *caller);

#endif
