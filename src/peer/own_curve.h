/* The curve of a peer's own model: the training thread evaluates it now and
 * then, between a step and its news, within the share of kith/curve.h by
 * measured time. The padding of a short step (compute.step) takes it in.
 *
 * Opened and closed by the loop thread; used by the training thread alone while
 * that runs. Test: integration/test_curves.sh. */
#ifndef KITH_PEER_OWN_CURVE_H
#define KITH_PEER_OWN_CURVE_H

#include <stdbool.h>

#include "kith/curve.h"
#include "kith/evaluation.h"
#include "kith/worker.h"

struct kith_own_curve {
    struct kith_worker *worker;
    struct kith_evaluator *evaluator; /* NULL: nothing is evaluated */
    double *z;                        /* (dim) */
    struct kith_curve curve;
    struct kith_progress run; /* totals, and where it stands */
    kith_ns period_ns;        /* `evaluate` is a time: the next at due_ns */
    kith_ns due_ns;
    kith_ns start_ns; /* of the run; set before the first step */
};

/* A point, for the loop thread. */
struct kith_own_score {
    bool is_new;
    struct kith_score score;
};

/* test NULL: the model has no data. KITH_ENOMEM and what kith_evaluator_open
 * says, with a line in `error` (KITH_DATA_ERROR_BYTES): nothing is open then,
 * and a peer does without. */
KITH_MUST_CHECK enum kith_err
kith_own_curve_open(struct kith_own_curve *own,
                    const struct kith_experiment *experiment,
                    const struct kith_examples *test,
                    struct kith_worker *worker, uint64_t steps, char *error);
/* Where a peer that goes on stands. */
void kith_own_curve_pass(struct kith_own_curve *own, uint64_t step);
/* After a step that went well: takes the point that is due, and is affordable.
 * Nanoseconds that it took; 0: none. */
kith_ns kith_own_curve_step(struct kith_own_curve *own, uint64_t step,
                            struct kith_own_score *score);
void kith_own_curve_close(struct kith_own_curve *own);

#endif
