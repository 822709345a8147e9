/* The worker's insides, shared by worker.c, items.c and save.c. */
#ifndef KITH_WORK_PRIVATE_H
#define KITH_WORK_PRIVATE_H

#include "kith/worker.h"

/* Optimiser state vectors: Adam needs two. */
#define KITH_STATES_MAX 2u
/* Rows of one batch: a bound for the size arithmetic, far above use. */
#define KITH_BATCH_MAX (1u << 20)

/* The live model and three kinds of snapshot. */
#define KITH_ROLES 4u

struct kith_worker {
    const struct kith_experiment *experiment;
    const struct kith_backend *backend;
    const struct kith_algorithm *algorithm;
    const struct kith_model *model;
    const struct kith_examples *train; /* NULL without data */
    kith_id self;
    uint64_t steps;
    size_t dim, bytes;
    double scalars[KITH_SCALARS_MAX];

    void *block;                  /* every vector below, one allocation */
    void *gradient;               /* (dim); NULL where nothing is learnt */
    void *at;                     /* (dim) z = factor x; NULL: z is x */
    void *state[KITH_STATES_MAX]; /* (dim) each, the optimiser's */
    void *scratch;                /* the model's */
    void *inputs;                 /* (batch, features) */
    uint8_t *labels;              /* (batch) */

    uint32_t *rows;  /* (row_count) own rows, ascending */
    uint32_t *order; /* (row_count) rows, shuffled for this epoch */
    size_t row_count, cursor;
    uint32_t epoch;

    /* A snapshot is x itself until x is about to change: then x moves on to a
     * vector that no snapshot stands in. There are as many vectors as there are
     * slots in these roles, so where two share one, another is free. */
    void *vectors[KITH_ROLES];
    uint32_t slot_count;
    void *slots[]; /* (slot_count) vectors by enum kith_slot; NULL: unused */
};

/* Start epoch `epoch` of the batch stream at row `cursor`. */
void kith_worker_seek(struct kith_worker *worker, uint32_t epoch,
                      size_t cursor);
/* The slot of a role, the live model first. */
uint32_t kith_worker_role(unsigned role);
/* z = factor * x. */
double kith_worker_factor(const struct kith_worker *worker);
/* Zeroed memory, 64-byte aligned, on huge pages where that is worth it. NULL
 * where there is none; free(*owner) gives it back. */
void *kith_aligned_zero(size_t bytes, void **owner);
/* `bytes` rounded up to whole cache lines. */
size_t kith_aligned_size(size_t bytes);

#endif
