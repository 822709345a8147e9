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
#include "kith/loader.h"
#include "kith/types.h"
#include "kith/work.h"

KITH_BEGIN_DECLS

struct kith_worker;

struct kith_worker_config {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    const struct kith_examples *train; /* NULL where the model needs no data */
    kith_id self;
    uint64_t steps;     /* own share, for the schedule */
    uint32_t edges_max; /* most neighbours of a `round`; 0 for others */
    uint32_t together;  /* workers like this that the process opens; 0: one */
    uint32_t peers;     /* for the split */
    bool ahead; /* a thread of its own prepares the next batch; same batches */
    /* Whose hash and text its checkpoints carry, where `experiment` is cut down
     * to one process (`kith train`); NULL: experiment, and it is a peer. */
    const struct kith_experiment *named;
};

/* All peers of a seed start from the same weights. Allocates everything it
 * will ever need. KITH_ENOMEM, or a data or shape error with text in `error`
 * (KITH_DATA_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_worker_open(const struct kith_worker_config *config,
                 struct kith_worker **worker, char *error);
void kith_worker_close(struct kith_worker *worker);
/* Weights to start from, of a safetensors file (kith_weights_read), before
 * anything has run. KITH_EMISMATCH: another model's; KITH_ENONFINITE; with a
 * line in `error` (KITH_DATA_ERROR_BYTES), and the worker as it was. */
KITH_MUST_CHECK enum kith_err kith_worker_init(struct kith_worker *worker,
                                               const char *path, char *error);

/* Runs one item to its end; writes edge outputs and the result. SNAPSHOT and
 * MERGE with snapshot_first call the algorithm's make (PULL: a plain copy);
 * UNDO gives x back within one unit in the last place of its larger values
 * (bit for bit where x + delta was exact). ADOPT takes the received z with
 * weight 1 and starting scalars, drops the optimiser's state, and books the
 * change in delta_sum. SAVE does nothing here: the driver, who knows the path,
 * calls kith_save_write. */
void kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                     struct kith_work_result *result);

/* The two halves of TRAIN, for a driver that moves gradients (sim/central/);
 * of algorithms whose z is x alone. gradient: of the next batch at the live
 * model, (trained) elements of the worker's own that stand until the next one;
 * its loss is in `result`. descend: one step of the optimiser along
 * `gradient`, anybody's, which may be overwritten; false: x is not finite.
 * Test: unit/test_central_identities.c. */
void *kith_worker_gradient(struct kith_worker *worker, uint64_t step,
                           struct kith_work_result *result);
bool kith_worker_descend(struct kith_worker *worker, uint64_t step,
                         void *gradient);

size_t kith_worker_dim(const struct kith_worker *worker);
/* Of what is gossiped, the first part of the model: a slot's vector. Slot 0,
 * the live model, holds all of it. */
size_t kith_worker_bytes(const struct kith_worker *worker);
/* Of an exchange's message: an algorithm may send more than x, or less. */
size_t kith_worker_payload(const struct kith_worker *worker);
/* The vector of a slot: to send from, to receive into. A snapshot may share its
 * vector with the live model until an item changes x, and each item may move
 * the live model to another vector: ask again after each. What a snapshot slot
 * holds stays until it is filled again. */
void *kith_worker_slot(struct kith_worker *worker, uint32_t slot);
/* Has the slot a vector? Those that the algorithm's pattern does not use have
 * none. Test: unit/test_worker_device.c, and every simulation: the calls around
 * this one assert it. */
bool kith_worker_uses(const struct kith_worker *worker, uint32_t slot);
/* May what a snapshot's slot holds leave, now that the item which filled it is
 * done? A backend with memory of its own copies it out while later items run.
 * What was taken of a model that a step had spoiled never leaves, and nothing
 * does once the device has failed. `wait`: come back when it is there. Any
 * thread; the slot must not be filled again meanwhile.
 * Test: unit/test_worker_device.c */
enum kith_outgoing {
    KITH_OUTGOING_WAITS, /* still on its way: ask again */
    KITH_OUTGOING_READY, /* the host may read it */
    KITH_OUTGOING_NEVER,
};
enum kith_outgoing kith_worker_outgoing(const struct kith_worker *worker,
                                        uint32_t slot, bool wait);
/* An inbox has been received whole: the backend may fetch it while other items
 * run. Any thread. */
void kith_worker_arrived(const struct kith_worker *worker, uint32_t slot);
/* NULL: the backend is well, and so are the data. Else what failed and what to
 * do about it, in a line, and for good: nothing that an item has done since the
 * last one that ended well may be kept or sent. Ask after each item. Any
 * thread. */
const char *kith_worker_failed(const struct kith_worker *worker);
/* The backend's next notice (kith/backend.h), or NULL. Ask after each item.
 * Any thread. */
const char *kith_worker_notice(const struct kith_worker *worker);
/* Put `memory` (64-aligned, as long as the slot's) in the place of an inbox's
 * vector and give the old one back: a receive without a copy. Both stay whose
 * they were: the caller frees what it allocated, after the worker is closed. */
void *kith_worker_swap(struct kith_worker *worker, uint32_t slot, void *memory);
/* Own scalars of the algorithm (push-sum weight), (scalar_count). */
double *kith_worker_scalars(struct kith_worker *worker);
/* Adds the examples it has trained on to `counts`, by where they came from;
 * *waited_ns: how long steps have waited for the thread that prepares batches.
 */
void kith_worker_data(const struct kith_worker *worker,
                      struct kith_data_counts *counts, uint64_t *waited_ns);
/* z = factor * x in float64, (dim): what is evaluated and averaged. */
void kith_worker_read(struct kith_worker *worker, double *z);

/* KITH_EINVAL: the examples do not fit the model. KITH_EDEVICE: the backend has
 * failed; its word says how. Models without data: the mean
 * loss over the peers' targets, accuracy NaN; without a loss: both NaN.
 * Loss and accuracy of parameters z (dim, float64) over examples, in batches
 * of 256, on the worker's backend with scratch of its own. */
struct kith_score {
    double loss, accuracy;
};
/* The same in three parts, for who evaluates often: opening takes all memory,
 * so that what does not fit is known before a run begins. `error`
 * (KITH_DATA_ERROR_BYTES) is a line. Everything is lent until the close. */
struct kith_evaluator;
KITH_MUST_CHECK enum kith_err
kith_evaluator_open(const struct kith_experiment *experiment,
                    const struct kith_backend *backend,
                    const struct kith_examples *examples,
                    struct kith_evaluator **evaluator, char *error);
/* KITH_EDEVICE; KITH_EPARSE: kith_loader_failed of the test set. */
KITH_MUST_CHECK enum kith_err
kith_evaluator_score(struct kith_evaluator *evaluator, const double *z,
                     struct kith_score *score, char *error);
void kith_evaluator_close(struct kith_evaluator *evaluator);
/* How alike the models of n peers are: the correlation of two of them, pooled
 * over all pairs,
 *   (v - D^2 / (n - 1)) / (v + D^2),   v = |mean - its own average|^2,
 * of their mean (dim) and consensus distance D. 1: all are one; 0: strangers;
 * NaN for fewer than two. Test: unit/test_estimate.c. */
double kith_correlation(const double *mean, size_t dim,
                        double consensus_distance, uint32_t peers);
KITH_MUST_CHECK enum kith_err
kith_evaluate(const struct kith_experiment *experiment,
              const struct kith_backend *backend,
              const struct kith_examples *examples, const double *z,
              struct kith_score *score);

/* Running statistics of z (dim), in place: their means over `batches` batches
 * of the training set, each with weight 1 / batches. What an average of models
 * needs before it is evaluated, for it has activations that none of them had.
 * Nothing changes where the model has none. Batches are those of nobody's
 * stream, with `train.augment`: the same at every call.
 * Test: unit/test_estimate.c */
#define KITH_ESTIMATE_BATCHES 20u
KITH_MUST_CHECK enum kith_err
kith_estimate(const struct kith_experiment *experiment,
              const struct kith_backend *backend,
              const struct kith_examples *train, uint32_t batches, double *z);

/* What a checkpoint holds of a worker, and what it is held against: borrowed,
 * until the next item runs. Vectors lie on `backend`. */
#define KITH_STATES_MAX 2u /* optimiser state vectors: Adam needs two */
struct kith_worker_content {
    const struct kith_experiment *experiment;
    const struct kith_experiment *named; /* whose checkpoint it is */
    const struct kith_backend *backend;
    const struct kith_layout *layout;
    const struct kith_examples *train; /* NULL without data */
    kith_id self;
    double *scalars;     /* (scalar_count) the algorithm's */
    void *model;         /* (layout->dim) */
    void *const *states; /* (KITH_STATES_MAX) (trained); NULL: unused */
    void *const *own;    /* (vectors) (gossiped), the algorithm's */
};
struct kith_worker_content kith_worker_content(struct kith_worker *worker);
/* Where the next batch begins, and to go on from there: KITH_EINVAL, no such
 * place. Without data it is (0, 0). */
struct kith_place kith_worker_place(const struct kith_worker *worker);
KITH_MUST_CHECK enum kith_err kith_worker_go_to(struct kith_worker *worker,
                                                struct kith_place place);
/* What decides the last bits of a result: build, backend, products, threads,
 * CPU. */
void kith_machine_describe(const struct kith_backend *backend, char *text,
                           size_t size);

/* Where a run stands beside its worker: what a driver needs to go on from a
 * checkpoint, and nothing that the worker knows itself. */
struct kith_standing {
    uint64_t step;
    kith_ns elapsed_ns; /* of the run */
    double loss_sum;    /* of the batches since the last evaluation */
    uint64_t loss_count;
    double best; /* what the best evaluation measured; NaN: none yet */
    uint64_t best_step;
    uint32_t stale; /* evaluations since then */
    double peak;    /* FLOP/s, measured when the run began; 0: not */
};

/* Checkpoints (checkpoint.h): PATH is replaced whole or not at all, and stays
 * as PATH.previous where asked. KITH_ENOSPC, KITH_EPERM, KITH_ENOENT, KITH_EIO,
 * KITH_ENONFINITE (the model), KITH_EDEVICE (where it lies has failed) with a
 * line in `error` (KITH_DATA_ERROR_BYTES), as everywhere below. */
KITH_MUST_CHECK enum kith_err
kith_save_write(struct kith_worker *worker, const char *path,
                const struct kith_standing *standing, bool keep_previous,
                char *error);
/* The worker and the standing as they were, bit for bit; both untouched on an
 * error. KITH_OK: `error` is "", or a note that another machine or build wrote
 * it. KITH_EPARSE: damaged. KITH_EVERSION: not ours. KITH_EMISMATCH: of another
 * experiment, model, optimiser, backend or peer. */
KITH_MUST_CHECK enum kith_err kith_save_read(struct kith_worker *worker,
                                             const char *path,
                                             struct kith_standing *standing,
                                             char *error);
/* The same, and where PATH is refused, PATH.previous; PATH is renamed to
 * PATH.refused then, so that the next save loses nothing. `error` (here of
 * KITH_RESUME_ERROR_BYTES) says all of that, on KITH_OK, too. KITH_ENOENT:
 * there is neither. */
#define KITH_RESUME_ERROR_BYTES (3 * KITH_DATA_ERROR_BYTES)
KITH_MUST_CHECK enum kith_err kith_save_resume(struct kith_worker *worker,
                                               const char *path,
                                               struct kith_standing *standing,
                                               char *error);
/* z alone, of a peer or of `kith train`: (dim) float64, malloc'd. */
KITH_MUST_CHECK enum kith_err
kith_save_parameters(const struct kith_experiment *experiment, const char *path,
                     double **z, size_t *dim, uint64_t *step, char *error);

KITH_END_DECLS

#endif
