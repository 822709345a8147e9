/* The worker's insides, shared by worker.c and work_items.c. */
#ifndef KITH_TRAINING_WORKER_WORKER_STATE_H
#define KITH_TRAINING_WORKER_WORKER_STATE_H

#include "kith/assert.h"
#include "kith/bucket.h"
#include "kith/lars_parts.h"
#include "kith/loader.h"
#include "kith/rng.h"
#include "kith/worker.h"

/* The live model and three kinds of snapshot. */
#define KITH_ROLES (2u + KITH_OVERLAP_MAX)

/* recovery.c */
struct kith_recovery {
    /* (dim) x as it was after a good step; NULL: none is kept, or of lent
     * vectors none yet */
    void *good;
    double factor, first_loss; /* of good; of the first good step */
    uint32_t age;              /* good steps since then */
    uint32_t wary; /* good steps until a save is good, too; more than
                     KITH_KEEP_STEPS: x is of the save before the last */
    bool is_on;    /* there are exchanges, and not in float64 */
    bool is_there; /* there has been a good step: good is filled */
    bool is_fresh; /* x is good: nothing merged, no step ended */
    bool stale[KITH_SLOT_ROUND_EDGES]; /* snapshots of a spoilt x */
};

/* lying.c */
struct kith_lying {
    struct kith_lie lie;
    const char *failed; /* NULL: it has what it needs */
    void *memory;       /* vectors of a message's length; NULL: never lied */
    int32_t *labels;    /* (rows, labels of each) turned; NULL: never */
    bool heard;         /* a model has come since the lie began */
    bool lies[KITH_SLOT_ROUND_EDGES]; /* a snapshot left as a lie */
    struct kith_rng rng;
};

/* guarding.c: what was answered about what an inbox holds. */
struct kith_guarded {
    double let_in, distance, withheld;
};

struct kith_guarded_round {
    struct kith_guard_round seen;
    uint32_t inboxes[KITH_DEGREE_MAX];
    void
        *received[KITH_DEGREE_MAX]; /* theirs; `merged` stands there, for now */
    void *merged;                   /* (gossiped) NULL: nothing is replaced */
};

struct kith_guarding {
    const struct kith_guard *guard; /* NULL: none, and so is the rest */
    struct kith_guarded *answers;   /* (slot_count) */
    void *state;                    /* the guard's */
    bool is_lent;                   /* and outlives the worker */
    size_t state_bytes;
    /* z / ours_unit as it was before this merge; NULL: x is looked at itself */
    void *ours;
    double ours_unit;
    size_t coordinates, run; /* looked at; of them in a row */
    uint32_t *starts;        /* (coordinates / run) of the runs, in runs */
    double *v, *sent;        /* (coordinates) received - sent; sent */
    double before_factor;    /* z = that times x, after the last merge */
    double movement;         /* moving average of |x - before|; 0: none yet */
    bool has_before;         /* where the guard has a place for it */
    bool has_trained;        /* since the last merge */
    uint64_t steps;          /* own ones that are done */
    void *whole; /* (dim) a model whose loss is asked for; NULL: none is */
    struct kith_batch batch; /* of the last step; lent; no rows: none yet */
    struct kith_guarded_round *round; /* NULL: one model at a time */
};

/* Where a run of coordinates begins. */
static inline size_t kith_guarding_start(const struct kith_guarding *guarding,
                                         size_t run)
{
    KITH_DEBUG_ASSERT(run < guarding->coordinates / guarding->run);
    return guarding->run * (size_t)guarding->starts[run];
}

/* packing_modular.c: of a modular format; NULL, all of it, in others. */
struct kith_reading {
    float *reach; /* (blocks) what grids are made for */
    float *apart; /* (edges, blocks) of an item: what its messages showed */
    struct kith_modular_seen *seen; /* (slot_count) in an inbox */
    void **kept;      /* (KITH_SLOT_ROUND_EDGES) Q of what a slot sends */
    size_t blocks;    /* of a message's vector */
    size_t carried;   /* of them that an exchange carries */
    uint32_t *chosen; /* (carried) those of the item; NULL: all are */
    bool started;     /* reach is known */
    float most;       /* the largest value that was packed last */
    void *origin;     /* x at first, until reach is known; NULL: not kept */
};

/* packing.c: what stands between slots and vectors where numbers are rounded.
 */
struct kith_packing {
    const struct kith_format *format; /* NULL: slots are vectors themselves */
    void **values;  /* (slot_count) a slot's numbers while an item needs them */
    void **vectors; /* made, received, sent; NULL: none is needed */
    void *memory;   /* of them */
    uint64_t spoilt; /* a bit an edge of the item: it does not unpack */
    size_t count;    /* values of the item's messages */
    bool streams;    /* slots stay packed: packed_merge.c reads them */
    void *of_live;   /* a snapshot's vector that holds x as it is, or NULL */
    struct kith_reading residues;
};

/* step_parts.c: items of a step whose gradient goes out in buckets. */
/* The share of a step's products that is one item without need: 1 in so many.
 */
#define KITH_STEP_PARTS 64u
#define KITH_STEP_PARTS_MAX (2 * KITH_BUCKETS_MAX + KITH_STEP_PARTS + 1)
struct kith_step_parts {
    uint32_t buckets, count;
    uint32_t of_loss; /* the part that ends the way forward */
    struct kith_step_part {
        uint32_t steps;    /* of the network's list, done after it */
        uint32_t complete; /* buckets of the gradient, after it */
        uint64_t needs;    /* of the last gradient, a bit a bucket, before it */
    } * each;              /* (count) a lender's where there is one */
    uint64_t stepped; /* of the gradient that waits: stepped along already */
    bool is_spoilt;   /* to where x is not finite */
    double loss;      /* of the step at hand */
};
_Static_assert(KITH_BUCKETS_MAX <= 64, "a bit for each");

/* norms.c: LARS' rates of the gradient that waits. */
struct kith_norms {
    float *rates;    /* (layers) NULL: not in parts */
    uint64_t have;   /* a bit for each member of the site; 0: not begun */
    uint64_t layers; /* whose norms were found here */
};

/* snapshot.c: vectors of a driver's. */
struct kith_lent {
    bool is_on;
    bool is_held;      /* x's, by a message under way */
    const void *first; /* of all: x, until an item changes it; or NULL */
    unsigned spare_count, left_count;
    void *spares[KITH_LENT_MAX];
    void *left[KITH_ROLES + 1 + KITH_LENT_MAX]; /* one is good */
};

/* What an item of a small model touches stands together at the end, in front of
 * the slots: a simulator of a million workers has none of it in the cache. */
struct kith_worker {
    struct kith_task task; /* its compression: of what is gossiped */
    const struct kith_trainer *trainer; /* NULL: the engine trains */
    bool trainer_failed;
    const struct kith_layout *layout;  /* the network's */
    const struct kith_examples *train; /* NULL without data */
    uint64_t steps;
    uint32_t peers;
    size_t message; /* bytes of an exchange's message, as vectors */
    uint64_t cycle; /* rounds of a step's all-reduces; 1: there are none */

    struct kith_vector_memory vectors_from; /* x, too, lies in `shared` then */
    struct kith_block {
        void *owner; /* NULL: nothing, or `vectors_from` gave it */
        size_t bytes;
    } memory,                     /* live and every vector below */
        shared;                   /* the other slots: sent from, received
                                     into, so the host reads and writes them */
    void *state[KITH_STATES_MAX]; /* (trained) each, the optimiser's */
    void *own[KITH_ALGORITHM_VECTORS_MAX]; /* (gossiped) the algorithm's */
    uint32_t *places;                      /* the algorithm's, for a device */
    void **edges; /* (edge_count, edge_vectors) (gossiped) for neighbours */
    double *edge_scalars;
    const void **inboxes; /* (edge_count) of a round, for `finish` */
    uint32_t edge_count;

    const uint32_t *rows; /* (row_count) own rows, ascending; lent where
                             found_rows is NULL */
    size_t row_count;
    uint32_t *found_rows; /* to be freed; NULL: rows are of shares */

    /* Where the host's memory is the backend's, a snapshot is x itself until x
     * is about to change: then x moves on to a vector that no snapshot stands
     * in. There are as many vectors as there are slots in these roles, so where
     * two share one, another is free. */
    void *vectors[KITH_ROLES];

    void *stream; /* of a caller whose vectors lie on a device */

    struct kith_rounded rounded; /* by give_out */

    bool keeps; /* recovery.good, where that is on */
    struct kith_guarding guarding;
    struct kith_lying lying;
    struct kith_norms norms;
    struct kith_packing packing;
    struct kith_step_parts parts;

    const struct kith_backend *backend;
    const struct kith_algorithm *algorithm;
    const struct kith_model *model;
    /* Whose network, batches, gradient, at, scratch these are; NULL: its own */
    const struct kith_worker *lender;
    struct kith_graph *network;
    struct kith_loader *loader; /* NULL without data */
    void *gradient;             /* (trained); NULL: nothing is learnt */
    uint64_t waiting;           /* 1 + the step whose gradient the optimiser
                                   has not had; 0: it has had all */
    void *at;                   /* (dim) z = factor x; NULL: in x's place */
    void *scratch;              /* the optimiser's */
    void *algorithm_scratch;
    size_t dim, bytes; /* of the model; bytes of what is gossiped of it */
    size_t payload;    /* of an exchange's message, as it travels */
    double scalars[KITH_SCALARS_MAX];
    kith_id self;
    uint32_t passes; /* since the last item: kith_work_result */
    /* Did the last step leave a value in x that is not finite? What was taken
     * of it then stays here, by slot: the loop's thread looks at one while an
     * item may fill another. */
    bool not_finite, not_finite_slots[KITH_SLOT_ROUND_EDGES];
    struct kith_recovery recovery;
    struct kith_lent lent; /* in place of vectors; is_on false: nothing is */

    uint32_t slot_count;
    uint32_t uses; /* bits of x and exchanges' slots: it may have a vector */
    void *slots[]; /* (slot_count) vectors by enum kith_slot; NULL: unused */
};

/* Micro-batches of a step, and the rows of one. */
uint32_t kith_worker_parts(const struct kith_worker *worker);
size_t kith_worker_rows(const struct kith_worker *worker);
/* The slot of a role, the live model first: snapshots have the odd slots. */
static inline uint32_t kith_worker_role(unsigned role)
{
    KITH_DEBUG_ASSERT(role < KITH_ROLES);
    return role == 0 ? (uint32_t)KITH_SLOT_LIVE : 2 * role - 1;
}
/* Whether a snapshot may be the live model's own vector. */
bool kith_worker_shares(const struct kith_worker *worker);
/* What the algorithm's hooks see outside an exchange. */
struct kith_algebra kith_worker_algebra(struct kith_worker *worker);
/* z = factor * x. */
double kith_worker_factor_of(const struct kith_worker *worker,
                             const double *scalars);
double kith_worker_factor(const struct kith_worker *worker);

/* The vector's element at `offset`. */
static inline void *kith_worker_element(const struct kith_worker *worker,
                                        void *vector, size_t offset)
{
    return (char *)vector + offset * worker->backend->element_bytes;
}

/* ---- vectors.c */

/* All that an opened worker needs, and gives it back; KITH_ENOMEM with a line
 * in `error`. `together`: workers like this of the process. */
KITH_MUST_CHECK enum kith_err
kith_worker_vectors_take(struct kith_worker *worker, uint32_t together,
                         char *error);
void kith_worker_vectors_give(struct kith_worker *worker);
/* Before anything is taken: the same sizes, of exchanges alone. */
void kith_worker_vectors_measure(struct kith_worker *worker,
                                 struct kith_worker_memory *memory);
size_t kith_worker_slot_bytes(const struct kith_worker *worker, uint32_t slot);
/* Where a block of the host's begins; NULL: there is none. */
void *kith_worker_block(const struct kith_block *block);
/* Zeroed pages, of which those that nobody touches cost nothing: calloc() may
 * take them from what was freed, and touch them all. NULL: there are none. */
void *kith_worker_pages(size_t bytes);
void kith_worker_pages_give(void *pages, size_t bytes);

/* ---- snapshot.c */

/* x, safe to be written: a snapshot that is x stays behind. `keep`: with its
 * values; what is frozen goes along in any case. */
void *kith_worker_own_live(struct kith_worker *worker, bool keep);
/* Stands a snapshot or x in a driver's vector? */
static inline bool kith_worker_is_lent(const struct kith_worker *worker,
                                       uint32_t slot)
{
    return worker->lent.is_on &&
           (slot < KITH_SLOT_ROUND_EDGES || kith_slot_is_inbox(slot));
}
/* Does another role stand in this slot's vector, or the last good model, or
 * does another peer begin with it? */
bool kith_worker_is_shared(const struct kith_worker *worker, uint32_t slot);
/* x is the last good model from now on, in a copy or where it stands. */
void kith_worker_stand_good(struct kith_worker *worker);
/* SNAPSHOT, and what TRAIN and MERGE begin with where they are told to. */
void kith_worker_snapshot(struct kith_worker *worker, struct kith_work *work);

/* ---- train_item.c */

void kith_worker_train(struct kith_worker *worker, const struct kith_work *work,
                       struct kith_work_result *result);
/* Of a step, by the schedule. */
double kith_worker_rate(const struct kith_worker *worker, uint64_t step);
/* A gradient that waited for its peers' is stepped along; false: x is not
 * finite. Nothing where none waits. */
bool kith_worker_descend_shared(struct kith_worker *worker);

/* ---- trainer.c */

/* x is the trainer's, where its step is; false: it has none. */
bool kith_worker_trainer_begin(struct kith_worker *worker);
void kith_worker_trainer_end(struct kith_worker *worker);
void kith_worker_trainer_step(struct kith_worker *worker, uint64_t step,
                              struct kith_work_result *result);

/* ---- work_items.c */

/* What hooks of an exchange see of this edge. */
struct kith_algebra kith_worker_edge_algebra(struct kith_worker *worker,
                                             const struct kith_work *work,
                                             const struct kith_work_edge *edge);

/* x is another one: momentum and the algorithm's vectors start over. */
void kith_worker_forget(struct kith_worker *worker);

/* ---- step_parts.c */

/* Is a step's gradient sent in several? */
bool kith_worker_in_buckets(const struct kith_worker *worker);
/* Of an opened network; false: no memory. */
KITH_MUST_CHECK bool kith_worker_parts_open(struct kith_worker *worker);
void kith_worker_parts_close(struct kith_worker *worker);
/* Steps of the network's list that are this part. */
struct kith_range kith_worker_part_steps(const struct kith_worker *worker,
                                         uint32_t part);
/* Buckets that are complete after so many parts, and their values. */
uint32_t kith_worker_complete(const struct kith_worker *worker, uint32_t parts);
struct kith_bucket kith_worker_bucket(const struct kith_worker *worker,
                                      uint32_t bucket);
/* Buckets of the last gradient that are stepped along before it: bits. */
uint64_t kith_worker_part_needs(const struct kith_worker *worker,
                                uint32_t part);
/* What the result says beside its loss. */
void kith_worker_part_ends(struct kith_worker *worker, uint32_t part,
                           struct kith_work_result *result);

/* ---- norms.c: nothing to do where LARS' norms are not found in parts */

KITH_MUST_CHECK bool kith_worker_norms_open(struct kith_worker *worker);
/* Behind the algorithm's make and merge of an edge: the own rates go out,
 * theirs are taken, or edge->refused. */
void kith_worker_norms_make(struct kith_worker *worker,
                            const struct kith_work *work,
                            struct kith_work_edge *edge);
void kith_worker_norms_take(struct kith_worker *worker,
                            const struct kith_work *work,
                            struct kith_work_edge *edge);
/* For the optimiser's step, with what has not come; NULL: it finds its own. */
const float *kith_worker_norms_end(struct kith_worker *worker);

/* ---- recovery.c */

void kith_worker_judge_step(struct kith_worker *worker,
                            struct kith_work_result *result);
void kith_worker_judge_merge(struct kith_worker *worker,
                             struct kith_work_result *result);
/* What this edge received is further from the good state than any honest model;
 * with a guard: from our snapshot, which was measured already. */
bool kith_worker_is_far(struct kith_worker *worker,
                        struct kith_work_edge *edge);
bool kith_worker_is_stale(const struct kith_worker *worker, uint32_t sent);
/* A donor's model is larger than any honest one, and x, of a save, is not. */
bool kith_worker_is_spoilt(struct kith_worker *worker, const void *received);

/* ---- lying.c */

void kith_worker_lie_close(struct kith_worker *worker);
/* It goes on, with the memory that it takes: `keeps`, also where the lie has
 * ended. false: there is none. Bytes of that memory. */
KITH_MUST_CHECK bool kith_worker_lie_again(struct kith_worker *worker,
                                           const struct kith_lie *lie,
                                           bool keeps);
size_t kith_worker_lie_bytes(const struct kith_worker *worker);
/* What a MERGE brings, before it. */
void kith_worker_hear(struct kith_worker *worker, const struct kith_work *work);
/* What it learns from, and what is complete of its gradient. */
void kith_worker_spoil_batch(struct kith_worker *worker,
                             struct kith_batch *batch);
void kith_worker_spoil_gradient(struct kith_worker *worker, uint32_t part);
/* The slot's vector, nobody else's, becomes what the lie says. */
void kith_worker_spoil_sent(struct kith_worker *worker, uint32_t slot,
                            const double *scalars);
/* The snapshot as it was taken: what is merged against. */
void *kith_worker_sent(const struct kith_worker *worker, uint32_t slot);

/* ---- packing.c */

/* What it takes from the start; and takes it. Who lies needs more: `lies`.
 * false: no memory. */
size_t kith_worker_packing_bytes(const struct kith_worker *worker);
KITH_MUST_CHECK bool kith_worker_packing_open(struct kith_worker *worker,
                                              bool lies);
void kith_worker_packing_close(struct kith_worker *worker);
/* Of the vectors that messages are unpacked into. */
size_t kith_worker_unpacked_bytes(const struct kith_worker *worker);
/* Are the slots of this item packed? */
bool kith_worker_packs(const struct kith_worker *worker,
                       const struct kith_work *work);
/* A slot's numbers: the slot itself, unless they are packed there. The place:
 * where another vector may stand for them while the item lasts. */
void *kith_worker_unpacked(const struct kith_worker *worker, uint32_t slot);
void **kith_worker_values_at(const struct kith_worker *worker, uint32_t slot);
/* A snapshot's numbers, until they are packed, stand in the vector that this
 * returns. */
void *kith_worker_pack_begin(struct kith_worker *worker, uint32_t slot);
/* What leaves: the slot, nobody else's, becomes pack(values), which are those
 * that were made or x, unless somebody lies (is_own). */
void kith_worker_pack(struct kith_worker *worker, const struct kith_work *work,
                      struct kith_work_edge *edge, const void *values,
                      bool is_own);
/* Before an item reads what was sent and received, and after it. */
void kith_worker_unpack(struct kith_worker *worker,
                        const struct kith_work *work);
void kith_worker_unpack_end(struct kith_worker *worker,
                            const struct kith_work *work);

/* ---- packing_modular.c: where the format is modular */

bool kith_worker_is_modular(const struct kith_worker *worker);
/* What it keeps of snapshots. */
size_t kith_worker_residues_bytes(const struct kith_worker *worker);
KITH_MUST_CHECK bool kith_worker_residues_open(struct kith_worker *worker);
void kith_worker_residues_close(struct kith_worker *worker);
/* x is where others begin, too. */
void kith_worker_residues_begin(struct kith_worker *worker);
void kith_worker_residues_pack(struct kith_worker *worker,
                               const struct kith_work *work, uint32_t slot,
                               const void *values);
/* What edge `index` of the item brought, beside what it sent, into a vector. */
void kith_worker_residues_unpack(struct kith_worker *worker,
                                 const struct kith_work *work, uint32_t index,
                                 void *out);
/* Could anything of it be read? true in other formats. */
bool kith_worker_is_read(const struct kith_worker *worker, uint32_t inbox);
/* |theirs - ours|^2 of what came, from that of what stands in the two vectors.
 */
double kith_worker_whole_distance(const struct kith_worker *worker,
                                  uint32_t inbox, double squared);
/* It was merged, or could not be read. */
void kith_worker_residues_follow(struct kith_worker *worker, uint32_t index);

/* ---- packed_merge.c: of an item whose slots stay packed (packing.streams) */

typedef void kith_mix_edge(struct kith_algebra *algebra,
                           struct kith_work_edge *edge);
double kith_worker_packed_sum(const struct kith_worker *worker, uint32_t slot);
/* |slot - other|^2, from the vector where `other` is KITH_SLOT_NONE, or from 0
 * where that is NULL, too. */
double kith_worker_packed_distance(const struct kith_worker *worker,
                                   uint32_t slot, uint32_t other,
                                   const void *vector);
/* Values [from, from + count) in float64. */
void kith_worker_packed_read(const struct kith_worker *worker, uint32_t slot,
                             size_t from, size_t count, double *out);
/* What `mix` does with all of this edge: value by value, edge->weight alone
 * decides; sets delta_sum. */
void kith_worker_packed_mix(struct kith_worker *worker, kith_mix_edge *mix,
                            const struct kith_algebra *algebra,
                            struct kith_work_edge *edge);

/* ---- comparing.c: for guards */

/* What is received, times `unit`, is a model, and so is `ours`; where messages
 * stay packed both are slots. */
struct kith_compared {
    const void *received, *ours;
    uint32_t inbox, sent;
    double unit;
};

/* Before a MERGE: edges of a round are held against x as it is then. */
void kith_worker_guard_keep_ours(struct kith_worker *worker);
struct kith_compared
kith_worker_guard_compare(struct kith_worker *worker,
                          const struct kith_work_edge *edge);
/* Of all that is received: a second vector of a message is let in by the same
 * measure. */
size_t kith_worker_guard_elements(const struct kith_worker *worker);
/* |received - ours|; infinite where it is not finite. */
double kith_worker_guard_distance(const struct kith_worker *worker,
                                  const struct kith_compared *compared);
/* Of our own. */
double kith_worker_guard_norm(struct kith_worker *worker,
                              const struct kith_compared *compared);
/* Squared, on the guard's coordinates: what formats have added. */
double kith_worker_guard_rounding(const struct kith_worker *worker,
                                  const struct kith_compared *compared);
/* Of a model on the batch of our last step; NaN: there was none. */
double kith_worker_guard_loss(struct kith_worker *worker, const void *model);

/* ---- guarding.c: nothing to do where there is no guard */

/* `known`: of kith_worker_config. */
KITH_MUST_CHECK bool kith_worker_guard_open(struct kith_worker *worker,
                                            void *known);
/* What it takes for the guard, but for its answers. */
size_t kith_worker_guard_bytes(const struct kith_worker *worker);
void kith_worker_guard_close(struct kith_worker *worker);
void kith_worker_guard_borrow(struct kith_worker *worker,
                              const struct kith_worker *lender);
/* Before the first edge of a MERGE, and after its last; x is another one. */
void kith_worker_guard_begin(struct kith_worker *worker,
                             const struct kith_work *work);
void kith_worker_guard_end(struct kith_worker *worker);
/* How much of what this edge received is let in, in [0, 1]. Sets delta_sum to
 * what is withheld where that is 0. */
double kith_worker_guard_weigh(struct kith_worker *worker,
                               struct kith_work_edge *edge);
/* It was merged with that share: weight and delta_sum are of the whole. */
void kith_worker_guard_merged(struct kith_worker *worker,
                              struct kith_work_edge *edge);
/* It is taken back; false: nothing of it was let in. */
bool kith_worker_guard_undo(struct kith_worker *worker,
                            const struct kith_work_edge *edge);

#endif
