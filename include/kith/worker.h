/* The worker: owns a peer's vectors and runs its work items.
 *
 * One worker per peer, driven by one thread at a time: the daemon's training
 * thread, or the simulator's pool. All vectors live in one block. */
#ifndef KITH_WORKER_H
#define KITH_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/work.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_worker;

struct kith_worker_config {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    const struct kith_examples *train; /* NULL where the model needs no data */
    kith_id self;
    uint64_t steps;     /* own share, for the schedule */
    uint32_t edges_max; /* largest degree for `round` (2 inboxes per edge);
                           0 for others */
    uint32_t peers;     /* for the split */
};

/* All peers of a seed start from the same weights. Allocates everything it
 * will ever need. KITH_ENOMEM, or a data or shape error with text in `error`
 * (KITH_DATA_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_worker_open(const struct kith_worker_config *config,
                 struct kith_worker **worker, char *error);
void kith_worker_close(struct kith_worker *worker);

/* Runs one item to its end; writes edge outputs and the result. SNAPSHOT and
 * MERGE with snapshot_first call the algorithm's make (PULL: a plain copy);
 * UNDO gives x back within one unit in the last place of its larger values
 * (bit for bit where x + delta was exact). ADOPT takes the received z with
 * weight 1 and starting scalars, drops the optimiser's state, and books the
 * change in delta_sum. SAVE does nothing here: the driver, who knows the path,
 * calls kith_save_write. */
void kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                     struct kith_work_result *result);

size_t kith_worker_dim(const struct kith_worker *worker);
size_t kith_worker_bytes(const struct kith_worker *worker); /* dim * element */
/* The vector of a slot: to send from, to receive into. A snapshot may share its
 * vector with the live model until an item changes x, and each item may move
 * the live model to another vector: ask again after each. What a snapshot slot
 * holds stays until it is filled again. */
void *kith_worker_slot(struct kith_worker *worker, uint32_t slot);
/* Put `memory` (kith_worker_bytes, 64-aligned) in the place of an inbox's
 * vector and give the old one back: a receive without a copy. Both stay whose
 * they were: the caller frees what it allocated, after the worker is closed. */
void *kith_worker_swap(struct kith_worker *worker, uint32_t slot, void *memory);
/* Own scalars of the algorithm (push-sum weight), (scalar_count). */
double *kith_worker_scalars(struct kith_worker *worker);
/* z = factor * x in float64, (dim): what is evaluated and averaged. */
void kith_worker_read(struct kith_worker *worker, double *z);

/* KITH_EINVAL: the examples do not fit the model. Models without data: the mean
 * loss over the peers' targets, accuracy NaN; without a loss: both NaN.
 * Loss and accuracy of parameters z (dim, float64) over examples, in batches
 * of 256, on the worker's backend with scratch of its own. */
struct kith_score {
    double loss, accuracy;
};
KITH_MUST_CHECK enum kith_err
kith_evaluate(const struct kith_experiment *experiment,
              const struct kith_backend *backend,
              const struct kith_examples *examples, const double *z,
              struct kith_score *score);

/* Saves: "kith-save-v1", model and configuration hash, step, scalars, x,
 * optimiser state, batch cursor, BLAKE2b-256 of it all. Written to a temporary
 * file, fsync, rename; the previous one is kept as PATH.previous. */
KITH_MUST_CHECK enum kith_err kith_save_write(struct kith_worker *worker,
                                              const char *path, uint64_t step,
                                              char *error);
KITH_MUST_CHECK enum kith_err kith_save_read(struct kith_worker *worker,
                                             const char *path, uint64_t *step,
                                             char *error);
/* z alone, for the launcher: (dim) float64, malloc'd. */
KITH_MUST_CHECK enum kith_err
kith_save_parameters(const struct kith_experiment *experiment, const char *path,
                     double **z, size_t *dim, uint64_t *step, char *error);

#ifdef __cplusplus
}
#endif
#endif
