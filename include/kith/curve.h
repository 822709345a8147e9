/* The curve of a run: the points at which it is evaluated on its way, on how
 * much of the test set, and what that may cost.
 *
 *   KITH_CURVE_POINTS points at equal parts of the run, the last one its end.
 *   Those before it may cost KITH_CURVE_SHARE of the run, or a little floor,
 *   whichever is more. Two books are kept:
 *
 *   work   counted before the run begins, in FLOP, the same at every repeat:
 *          how many rows of the test set, whose models, how many points
 *   time   measured in a real run: a point that would pass the share is left
 *          out; one point is the most by which it can be passed
 *
 * A simulation has the first alone, so its rows depend on nothing but the
 * experiment.
 * Test: unit/test_curve.c. */
#ifndef KITH_CURVE_H
#define KITH_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/experiment.h"
#include "kith/types.h"

#define KITH_CURVE_POINTS 20u
#define KITH_CURVE_SHARE 0.03
/* Runs are allowed so much in any case: FLOP that a core does in a tenth of a
 * second, and that time with as much again for a busy machine. */
#define KITH_CURVE_FLOOR_FLOP 5e8
#define KITH_CURVE_FLOOR_NS (200 * KITH_MS)

struct kith_curve_plan {
    uint32_t points; /* on the way: KITH_CURVE_POINTS - 1 at most */
    uint32_t rows;   /* of the test set, chosen once; 0: all */
    uint32_t peers;  /* whose own models are evaluated beside the average */
    bool bounded;    /* by the share; false: by nothing */
};
struct kith_curve_run {
    const struct kith_experiment *experiment;
    const struct kith_examples *test; /* NULL where the model needs no data */
    double steps;      /* of all that train together; 0: not known */
    uint32_t averaged; /* models of an average, 0: one model, the own */
    bool measured;     /* time is measured, too: half of the share is planned */
    kith_ns step_ns;   /* a step takes no less than this; 0: as it comes */
};
/* What the experiment's `evaluate` says: points 0 for `end` and for a time. An
 * early stop decides by evaluations: with `stop.patience` they are as with
 * `evaluate: full`.
 *
 *   work of a point   a passes over averaged models of d elements, then for the
 *                     average and each of the peers rows * F FLOP forward
 *   work of the run   steps * (batch * 3 F + passes over d), or what a core
 *                     does in the time that a step takes at least, if more
 *
 * As many peers as leave a wanted number of rows, then as many rows as fit, up
 * to 1,000 examples or 64 windows of tokens; fewer points where not even the
 * least do. Where time is measured, half of the points are given for twice the
 * rows while these are fewer than 500 examples or 16 windows: the curve of a
 * small part ends beside the last point, which is of all. */
struct kith_curve_plan kith_curve_plan(const struct kith_curve_run *run);

/* Where a run stands. Totals 0: it does not end by that. */
struct kith_progress {
    double steps, steps_total;
    kith_ns time_ns, time_total_ns;
};
struct kith_curve {
    struct kith_curve_plan plan;
    uint32_t next, next_row; /* point, row; from 1 on */
    uint32_t done;           /* points taken on the way */
    uint32_t left_out; /* for the share's sake, those never planned included */
    kith_ns spent_ns, last_ns;
};
struct kith_curve kith_curve_start(const struct kith_curve_plan *plan);
/* What is due here, once for each, or for several passed at once. A run whose
 * points had to become fewer has rows at all KITH_CURVE_POINTS parts all the
 * same: what was counted, and the loss of training. `run_ns`: how long the run
 * has taken; a point that would pass the share of it becomes a row. */
enum kith_curve_due { KITH_CURVE_NOTHING, KITH_CURVE_ROW, KITH_CURVE_POINT };
enum kith_curve_due kith_curve_look(struct kith_curve *curve,
                                    const struct kith_progress *progress,
                                    kith_ns run_ns);
/* Where the next of either lies, as a part of the run; 1: none comes before its
 * end. */
double kith_curve_next(const struct kith_curve *curve);
/* A run that goes on: what lies up to here was taken before. */
void kith_curve_pass(struct kith_curve *curve,
                     const struct kith_progress *progress);
/* A point was taken, in that time; 0: nobody measures it. */
void kith_curve_took(struct kith_curve *curve, kith_ns spent_ns);

#endif
