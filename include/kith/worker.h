/* What runs work items: owns a peer's vectors, and does to them what the core
 * asks for.
 *
 * A driver (src/peer/, src/lab/, sim/) sees a runner through this header alone:
 *
 *   open, close      from a kith_task, which is all it knows of an experiment
 *   measure          what it would take for exchanges
 *   run              one item of work.h to its end: TRAIN, SNAPSHOT, MERGE, ...
 *   slot, swap       where messages are sent from and received into
 *   outgoing, arrived, failed    for memory that is not the host's
 *   scalars, read, data          what is reported and evaluated
 *   save, resume     its checkpoint, with what the driver keeps beside it
 *
 * src/training/ is one runner; another training loop is a second one if it has
 * these entries and keeps their promises. One runner per peer, driven by one
 * thread at a time: the daemon's training thread, or the simulator's pool. */
#ifndef KITH_WORKER_H
#define KITH_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/algorithm.h"
#include "kith/compressor.h"
#include "kith/data.h"
#include "kith/err.h"
#include "kith/format.h"
#include "kith/guard.h"
#include "kith/lie.h"
#include "kith/loader.h"
#include "kith/model.h"
#include "kith/node.h"
#include "kith/optimiser.h"
#include "kith/outside.h"
#include "kith/topology.h"
#include "kith/types.h"
#include "kith/work.h"

struct kith_worker;

/* Whose a checkpoint is. `experiment` is handed to both functions. */
#define KITH_OWNER_HASH_BYTES 32
struct kith_owner {
    const char *role;   /* "peer" or "train": batches mean something else */
    const char *source; /* the experiment's text */
    const void *experiment;
    void (*hash)(const void *experiment, char text[KITH_OWNER_HASH_BYTES]);
    /* Is a file with this hash and text of the same experiment? Both may be
     * NULL. false: `what` says what differs. */
    bool (*is)(const void *experiment, const char *hash, const char *source,
               char *what, size_t size);
};

/* A peer's own steps: `train:` of an experiment. */
struct kith_training {
    const struct kith_optimiser *optimiser;
    struct kith_optimiser_config config;
    struct kith_schedule_config schedule;
    uint32_t batch;         /* rows of a step */
    uint32_t accumulate;    /* micro-batches of a step; 0: 1 */
    double smoothing;       /* of labels */
    bool recompute;         /* keep activations between blocks alone */
    bool recover_from_save; /* keep no vector of the last good model */
    struct kith_augment augment;
};

/* What a peer trains and exchanges: kith_experiment_task(). What it points to
 * outlives the runner. */
struct kith_task {
    uint64_t seed;
    uint32_t peers;
    const struct kith_model *model;
    const struct kith_model_config *model_config;
    const struct kith_training *training;
    const struct kith_split *split; /* of the training set */
    const struct kith_algorithm *algorithm;
    const double *coefficients; /* (KITH_GOSSIP_KEY_COUNT) */
    const struct kith_topology *graph;
    uint32_t every;                   /* own steps between two exchanges */
    uint32_t exchanges;               /* swaps at a time a side; 0: 1 */
    const struct kith_format *format; /* of messages; NULL: float32 */
    double wire_share; /* of the blocks of a modular one; 0: all */
    struct kith_compression compression; /* its `dim` is the runner's */
    const struct kith_guard *guard;      /* NULL: none */
    struct kith_guard_config guard_config;
    struct kith_owner owner;
};

/* What runs TRAIN where the engine does not: a loop of the caller's own, of
 * model `program` and a float32 backend of the host. Called with `arg` on the
 * thread that opens, runs and closes the worker.
 * Test: unit/test_simulate.c */
struct kith_trainer {
    /* The peer begins: x, (dim), 64-aligned, at its first values. It is the
     * caller's, and lies there until end(); NULL: there is none. */
    float *(*begin)(void *arg, kith_id self);
    /* One step, in place. *loss: the mean of its batch, NaN if not known.
     * false: it failed; nothing is asked for any more. */
    bool (*step)(void *arg, kith_id self, uint64_t step, double *loss);
    void (*end)(void *arg, kith_id self);
    void *arg;
};

struct kith_worker_config {
    struct kith_task task;
    const struct kith_backend *backend;
    const struct kith_examples *train; /* NULL where the model needs no data */
    kith_id self;
    uint64_t steps;     /* own share, for the schedule */
    uint32_t edges_max; /* most neighbours of a `round`; 0 for others */
    uint32_t together;  /* workers like this that the process opens; 0: one */
    uint32_t peers;     /* for the split */
    const struct kith_shares *shares; /* of it; NULL: found for this one */
    /* One of the same task and peers that runs no item itself:
     * kith_worker_borrow of it from the start. NULL: nothing is borrowed. */
    struct kith_worker *lender;
    /* x stands in it, kith_worker_vector_bytes(lender), 64-aligned, and
     * snapshots in others like it: lent, see below. NULL: in the worker's
     * own. Not without a lender. */
    void *x;
    bool x_is_first; /* it holds kith_worker_first(lender): others begin with
                        it, too, and nobody writes there */
    /* What its guard keeps stands there: kith_worker_known_bytes(lender) of
     * zeros that outlive the worker, from a page's beginning on. NULL: in pages
     * of its own. */
    void *known;
    bool keeps; /* a vector of the last good model whatever training says: there
                   is no save to go back to */
    bool ahead; /* a thread of its own prepares the next batch; same batches */
    const struct kith_trainer *trainer; /* NULL: the engine */
    /* Where x and the slots lie, of a backend whose memory is the host's:
     * `bytes` of zeros, 64-aligned, that outlive the worker. NULL, or NULL from
     * it: the worker's own. */
    struct kith_vector_memory {
        void *(*take)(void *arg, size_t bytes);
        void *arg;
    } vectors;
};

/* All peers of a seed start from the same weights. Allocates everything it
 * will ever need. KITH_ENOMEM, or a data or shape error with text in `error`
 * (KITH_DATA_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_worker_open(const struct kith_worker_config *config,
                 struct kith_worker **worker, char *error);
void kith_worker_close(struct kith_worker *worker);
/* Workers that run one at a time may share what a TRAIN needs and no later item
 * looks for: the network with a batch's activations, the batch, the gradient,
 * z, the optimiser's scratch. Each thread has a lender; a worker that was
 * opened with one borrows anew before an item, from that of the thread which
 * runs it. The lender is closed last.
 * May a task's workers? Not where later items look for it (gradients that are
 * shared, a guard that asks about the last batch), where training is another's,
 * nor on a device, whose work goes on when an item has run.
 * Test: unit/test_borrowing.c */
bool kith_worker_may_borrow(const struct kith_worker_config *config);
void kith_worker_borrow(struct kith_worker *worker,
                        const struct kith_worker *lender);
/* ---- Lent vectors: as few as there are values to keep. A driver that opens
 * thousands of workers holds their x, snapshots and last good models in vectors
 * of a pool, which may be under way meanwhile: a snapshot's is written once, by
 * the item that fills it, and x's by nobody while it is a snapshot's or the
 * last good model, too. For swaps, and for rounds that send x to all. Inboxes
 * have none until kith_worker_swap() brings one. Test: unit/test_sim_memory.c
 */
bool kith_worker_may_be_lent(const struct kith_worker_config *config);
size_t kith_worker_vector_bytes(const struct kith_worker *worker);
/* 0: it has no guard. */
size_t kith_worker_known_bytes(const struct kith_worker *worker);
/* The starting values, (dim), of a lender; NULL: each peer has others. */
const void *kith_worker_first(const struct kith_worker *lender);
/* How many vectors this item may need, at most KITH_LENT_MAX, and one of them:
 * before kith_worker_prepare(), and again before kith_worker_run(), which may
 * be much later (`prepared`): what has left by then needs no second vector.
 * `held`: the vector that x stands in is still under way, though no snapshot
 * may stand in it any more. */
#define KITH_LENT_MAX 3u
unsigned kith_worker_wants(struct kith_worker *worker,
                           const struct kith_work *work, bool prepared,
                           bool held);
void kith_worker_lend(struct kith_worker *worker, void *vector);
/* Which one x stands in: to be told apart, not to be written. */
void *kith_worker_lent_x(const struct kith_worker *worker);
/* No item is out, and nothing asks for this snapshot any more: it leaves, but
 * where it is x. KITH_SLOT_LIVE: x leaves, the worker is about to be closed. */
void kith_worker_end_slot(struct kith_worker *worker, uint32_t slot);
/* A vector that the worker has left or not needed: the driver's again. NULL:
 * there is none. After an item and after kith_worker_end_slot(). */
void *kith_worker_left(struct kith_worker *worker);

/* Layers whose norms were found here, of LARS in parts; 0 where there are none.
 */
uint64_t kith_worker_norms_found(const struct kith_worker *worker);
/* Bytes that kith_worker_open takes, but for the list of its examples. On the
 * host pages that no exchange touches are address space alone. */
struct kith_worker_memory {
    size_t slots;     /* snapshots and inboxes */
    size_t wire;      /* of a format that packs: values while an item runs; of a
                         modular one rounded snapshots and grids, too */
    size_t algorithm; /* its own vectors, those for neighbours, scratch */
    size_t training;  /* x, the gradient, z, the optimiser's, the last good
                         model; what the guard knows, or where that is more the
                         starting values, in float64 while it opens */
    size_t batch;     /* activations and examples of training->batch; examples
                         alone where the backend is not here */
};
/* Asks the functions that open does, and takes none of it; config->train is not
 * looked at. KITH_ENOMEM.
 * Test: unit/test_worker.c, unit/test_plan_memory.c */
KITH_MUST_CHECK enum kith_err
kith_worker_measure(const struct kith_worker_config *config,
                    struct kith_worker_memory *memory);
/* Weights to start from, of a safetensors file (kith_weights_read), before
 * anything has run. KITH_EMISMATCH: another model's; KITH_ENONFINITE; with a
 * line in `error` (KITH_WEIGHTS_ERROR_BYTES), and the worker as it was. */
struct kith_names;
KITH_MUST_CHECK enum kith_err kith_worker_init(struct kith_worker *worker,
                                               const char *path,
                                               const struct kith_names *names,
                                               char *error);

/* On the driver's own thread, before the item starts: a TRAIN leaves x as it is
 * now in the snapshots of its edges, which may be sent while it runs. Where
 * there are some the step begins with one copy of x. */
void kith_worker_prepare(struct kith_worker *worker, struct kith_work *work);
/* Runs one item to its end; writes edge outputs and the result. SNAPSHOT and
 * MERGE with snapshot_first call the algorithm's make (PULL: a plain copy);
 * UNDO gives x back within one unit in the last place of its larger values
 * (bit for bit where x + delta was exact). ADOPT takes the received z with
 * weight 1 and starting scalars, drops the optimiser's state, and books the
 * change in delta_sum. SAVE does nothing here: the driver, who knows the path,
 * calls kith_save_write. */
void kith_worker_run(struct kith_worker *worker, struct kith_work *work,
                     struct kith_work_result *result);

/* What this TRAIN takes of a step of step_ns: all of it, or where the gradient
 * goes out in buckets the share of its products that are the item's; those of a
 * step add up. Test: unit/test_sync_sgd_buckets.c. */
kith_ns kith_worker_item_time(const struct kith_worker *worker,
                              const struct kith_work *work, kith_ns step_ns);

/* Trains a worker of its own, whose model is worth nothing then, up to so many
 * steps, or two seconds: the median of a step on the wall's clock. */
#define KITH_MEASURED_STEPS 2000u
kith_ns kith_worker_median_step(struct kith_worker *worker);

/* After a TRAIN that left a spoilt x and found no earlier one: the save's takes
 * its place, and the result says `recovered`; where that does not last, that of
 * the save before it; nothing where neither helps or can be read. Test:
 * unit/test_save.c. */
void kith_worker_go_back(struct kith_worker *worker, const char *path,
                         struct kith_work_result *result);

/* ---- Vectors of a caller whose own loop trains (outside.c). They have the
 * worker's parameters in order, lie where its backend computes, and belong to
 * whoever calls while the call lasts. float32 backends; model `program`, whose
 * TRAIN does nothing. */
struct kith_outside {
    void *data;
    size_t count; /* values */
    enum kith_outside_dtype dtype;
};
size_t kith_outside_bytes(enum kith_outside_dtype dtype); /* of a value */
size_t kith_outside_count(const struct kith_outside *vectors, uint32_t count);
/* They become x, or hold it already, rounded as they are. float32 backends of
 * the host. */
void kith_outside_fill(const struct kith_backend *backend, const float *x,
                       const struct kith_outside *vectors, uint32_t count);
bool kith_outside_holds(const struct kith_backend *backend, const float *x,
                        const struct kith_outside *vectors, uint32_t count);
/* NULL: the algorithm works with a model that a caller's loop trains; else why
 * not, in words. */
const char *kith_outside_misses(const struct kith_algorithm *algorithm);
/* A device's: the stream that the caller computes on, a cudaStream_t; at first
 * the default one. What it was told before take_in is read, and it waits for
 * what give_out writes. Test: unit/test_outside_device.c */
void kith_worker_set_stream(struct kith_worker *worker, void *stream);
/* x is theirs; false: a value is not finite, and nothing of x leaves until one
 * is taken in, or adopted, that is. One pass. Test: unit/test_outside.c */
bool kith_worker_take_in(struct kith_worker *worker,
                         const struct kith_outside *vectors, uint32_t count);
/* They are z, what is evaluated. One pass, and one more over halves, for what
 * rounding them has made of x, which is what comes in next. */
void kith_worker_give_out(struct kith_worker *worker,
                          const struct kith_outside *vectors, uint32_t count);
/* All that give_out has lost so far, of the host's halves: the sum over their
 * values of what comes in less x, and of its squares. Values that are not
 * finite do not count. So the sum over all peers of x, where nothing but
 * exchanges changes it, is that at the start and this. Test:
 * unit/test_outside.c, integration/test_peer_caller.c */
struct kith_rounded {
    double sum, squares;
};
struct kith_rounded kith_worker_rounded(const struct kith_worker *worker);
/* What was taken in is where this peer begins: the algorithm's vectors start
 * from it. */
void kith_worker_begin_outside(struct kith_worker *worker);
/* A step of the caller's begins. Does the algorithm want to see the model then?
 * And so it does: x is what was taken in or given out last. */
bool kith_worker_step_begins(const struct kith_worker *worker, uint64_t step);
void kith_worker_begin_step(struct kith_worker *worker, uint64_t step);
/* It is done: what a guard asks of own steps. */
void kith_worker_end_step(struct kith_worker *worker, uint64_t step);

/* From now on what SNAPSHOT fills is that lie, but for a PULL's: an insider's
 * models. While no item is out; kinds beyond HUGE for vectors of the host. */
void kith_worker_lie(struct kith_worker *worker, const struct kith_lie *lie);

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

/* What a guard did with what a MERGE found in this edge's inbox, for log and
 * database: CLIPPED or REJECTED, `value` thousandths let in, `sum` its distance
 * from our snapshot. false: all of it was merged, or none is guarded. No trace
 * has these marks: they are made of model values.
 * Test: unit/test_guard_worker.c. */
bool kith_worker_guarded(const struct kith_worker *worker,
                         const struct kith_work_edge *edge,
                         struct kith_mark *mark);
/* Of this edge's delta_sum: what a guard withheld; after UNDO its negative. */
double kith_worker_withheld(const struct kith_worker *worker,
                            const struct kith_work_edge *edge);

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
/* Slots of exchanges in which a vector stands now, a bit each.
 * Test: unit/test_sim_memory.c */
uint32_t kith_worker_holds(const struct kith_worker *worker);
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
/* `count` of them from `first` on. Any number of threads. */
void kith_worker_read_part(const struct kith_worker *worker, size_t first,
                           size_t count, double *z);
/* The algorithm's own vector `index`, (gossiped), in float64. */
void kith_worker_read_own(const struct kith_worker *worker, unsigned index,
                          double *vector);

/* What a checkpoint holds of a worker, and what it is held against: borrowed,
 * until the next item runs. Vectors lie on `backend`. */
#define KITH_STATES_MAX 2u /* optimiser state vectors: Adam needs two */
struct kith_worker_content {
    const struct kith_task *task;
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

/* The whole worker, between two items, for a driver that goes on with it in
 * another process, to the bit; kith/archive.h, worker_archive.c. Read into one
 * that was opened with the same config: `failed` says what does not fit, and
 * the worker is worth nothing then. Inboxes, and all that was lent, are the
 * driver's: a lent vector that x and snapshots share is moved once.
 * May it leave? Not where a guard asks about the last batch, where a gradient
 * goes out in buckets, of another's training loop, nor on a device.
 * Test: unit/test_worker_archive.c, integration/test_sim_resume.sh */
struct kith_archive;
bool kith_worker_may_archive(const struct kith_worker_config *config);
void kith_worker_archive(struct kith_worker *worker,
                         struct kith_archive *archive);

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
kith_save_parameters(const struct kith_task *task,
                     const struct kith_backend *backend, const char *path,
                     double **z, size_t *dim, uint64_t *step, char *error);

#endif
