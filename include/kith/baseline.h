/* The baseline: the experiment's model and data on one process, without
 * neighbours. What `kith train` runs and what gossip is compared with. */
#ifndef KITH_BASELINE_H
#define KITH_BASELINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/types.h"
#include "kith/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One evaluation on the test set. */
struct kith_baseline_row {
    kith_ns time_ns; /* since the start of training, evaluations included */
    uint64_t step, samples;
    double train_loss; /* mean over the batches since the last row */
    struct kith_score score;
};

struct kith_baseline_config {
    const struct kith_experiment *experiment;
    const struct kith_dataset *dataset; /* NULL where the model needs none */
    uint32_t batch;                     /* 0: the experiment's */
    uint64_t evaluate_steps; /* a row every so many steps; 0: at the end only */
    /* Set from a signal handler: training ends after the current step, with a
     * last row. May be NULL. */
    const volatile sig_atomic_t *stop;
    void *arg;
    /* After every step; may be NULL. */
    void (*progress)(void *arg, uint64_t step, uint64_t steps, double loss);
    /* After every evaluation, the last one included; may be NULL. */
    void (*row)(void *arg, const struct kith_baseline_row *row);
};

struct kith_baseline_result {
    struct kith_baseline_row last;
    double wall_s;  /* training and evaluating */
    double train_s; /* training alone */
    bool completed; /* not stopped, and finite to the end */
    bool finite;
};

/* Steps of the baseline: as many samples as all peers of the experiment see
 * together, floor(epochs * rows / batch) or steps * peers * batch of a peer /
 * batch; UINT64_MAX where stop is a time alone. batch 0: the experiment's. */
uint64_t kith_baseline_steps(const struct kith_experiment *experiment,
                             size_t train_rows, uint32_t batch);

/* Trains to the end. KITH_EINVAL, KITH_EMISMATCH or KITH_ENOMEM with a line in
 * `error` (KITH_DATA_ERROR_BYTES). Losing finiteness is a result, no error. */
KITH_MUST_CHECK enum kith_err
kith_baseline_run(const struct kith_baseline_config *config,
                  struct kith_baseline_result *result, char *error);

#ifdef __cplusplus
}
#endif
#endif
