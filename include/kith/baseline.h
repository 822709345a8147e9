/* The baseline: the experiment's model and data on one process, without
 * neighbours. What `kith train` runs and what gossip is compared with. */
#ifndef KITH_BASELINE_H
#define KITH_BASELINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/curve.h"
#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/speed.h"
#include "kith/types.h"
#include "kith/evaluation.h"
#include "kith/worker.h"

/* One evaluation on the test set. */
struct kith_baseline_row {
    kith_ns time_ns; /* since the start of training, evaluations included */
    uint64_t step, samples;
    double train_loss; /* mean over the batches since the last row */
    struct kith_score score;
    /* Of a part of the test set, or not measured at all: both NaN. The last row
     * is of all of it. */
    bool part;
    struct kith_speed speed; /* since the row before; evaluations left out */
};

struct kith_baseline_config {
    const struct kith_experiment *experiment;
    const struct kith_dataset *dataset; /* NULL where the model needs none */
    uint32_t batch;                     /* 0: the experiment's */
    uint64_t evaluate_steps; /* a row every so many steps; 0: by time */
    kith_ns evaluate_ns;     /* a row every so often; 0: as the curve says */
    /* Rows on the way, on a part of the test set, which then decides what is
     * best. Zeros: at the end only. */
    struct kith_curve_plan curve;
    /* PATH of the checkpoint, written before the first step, every save period
     * and at the end; PATH.best is the one with the best evaluation. A save
     * takes at most a tenth of the time: after a slow one the next waits. A
     * failed one is told and tried again; the first and the last must succeed.
     * NULL: none. */
    const char *save;
    const char *init; /* weights to start from, unless it resumes; or NULL */
    const struct kith_names *names; /* of init; or NULL: ours */
    bool resume; /* go on from it; KITH_ENOENT where there is none */
    /* Set from a signal handler: training ends after the current step, with a
     * last row. May be NULL. */
    const volatile sig_atomic_t *stop;
    void *arg;
    /* Once, where the run goes on from; may be NULL. */
    void (*resumed)(void *arg, const struct kith_standing *standing);
    /* Before every checkpoint: rows given so far belong to it; may be NULL. */
    void (*saving)(void *arg);
    /* A line for people; may be NULL. */
    void (*line)(void *arg, const char *line);
    /* After every step; may be NULL. speed: of the last half second. */
    void (*progress)(void *arg, uint64_t step, uint64_t steps, double loss,
                     const struct kith_speed *speed);
    /* At every point of the curve, the last one included; may be NULL. */
    void (*row)(void *arg, const struct kith_baseline_row *row);
};

struct kith_baseline_result {
    struct kith_baseline_row last;
    double wall_s;           /* training and evaluating, before a resume, too */
    double train_s;          /* training alone, since the start or resume */
    struct kith_speed speed; /* over train_s */
    bool completed;          /* not stopped, and finite to the end */
    bool finite;
    bool early; /* ended by stop.patience */
    bool
        data_lost; /* KITH_EPARSE: of a file of the data set, as `error` says */
    struct kith_standing standing;
    struct kith_curve curve; /* as it ended */
};

/* Steps of the baseline: as many samples as all peers of the experiment see
 * together, floor(epochs * rows / batch) or steps * peers * batch of a peer /
 * batch; UINT64_MAX where stop is a time alone. batch 0: the experiment's. */
uint64_t kith_baseline_steps(const struct kith_experiment *experiment,
                             size_t train_rows, uint32_t batch);

/* Trains to the end: of its steps, of stop.time, or stop.patience evaluations
 * without a better one. KITH_EINVAL, KITH_EMISMATCH, KITH_ENOMEM, or what
 * kith_save_write and kith_save_resume say, with a line in `error`
 * (KITH_RESUME_ERROR_BYTES). Losing finiteness is a result, no error; such a
 * model is not saved. KITH_EDEVICE: the backend failed for good; `error` says
 * what, what to do and which step the checkpoint is of, which stays as it was.
 * Test: unit/test_baseline.c, integration/test_resume.sh. */
KITH_MUST_CHECK enum kith_err
kith_baseline_run(const struct kith_baseline_config *config,
                  struct kith_baseline_result *result, char *error);

#endif
