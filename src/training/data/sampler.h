/* Which examples a batch has, and as what. */
#ifndef KITH_TRAINING_DATA_SAMPLER_H
#define KITH_TRAINING_DATA_SAMPLER_H

#include <stdatomic.h>

#include "data_files.h"

struct batch_slot {
    void *inputs;
    int32_t *labels;
    size_t rows;
    struct kith_place end; /* where the batch after it begins */
};

/* One thread at a time fills; `stop` and `failed` are any thread's. */
struct sampler {
    const struct kith_loader_config *config;
    const struct kith_backend *host;
    const struct kith_examples *examples;
    size_t row_count;
    size_t input_bytes, label_count; /* of one example */
    size_t value_bytes;              /* of one value as it is stored */

    uint32_t *order; /* (row_count), for order_epoch */
    uint32_t order_epoch;
    bool order_known;
    size_t shift;          /* of this epoch's windows */
    void *scratch;         /* one augmented image */
    struct pixels *pixels; /* of tokens not filled */

    atomic_bool stop;   /* a batch may end early: it is of use to nobody */
    atomic_bool failed; /* `error` says why, and stays */
    char error[KITH_DATA_ERROR_BYTES];
};

/* Of zeros. `config` stays; of one with a lender, borrow before the first fill.
 */
KITH_MUST_CHECK enum kith_err
kith_sampler_open(struct sampler *sampler,
                  const struct kith_loader_config *config, char *error);
void kith_sampler_borrow(struct sampler *sampler, const struct sampler *lender);
void kith_sampler_close(struct sampler *sampler);
/* The batch at `place`, into the slot's memory; zeros where its file has
 * changed. */
void kith_sampler_fill(struct sampler *sampler, struct kith_place place,
                       struct batch_slot *slot);
/* Whatever was being filled, by a thread that has gone, is filled anew. */
void kith_sampler_forget(struct sampler *sampler);
/* Of one example. */
size_t kith_sampler_input_bytes(enum kith_input input, size_t features,
                                const struct kith_backend *host);
/* "preparing batches: what" as the error's text; returns err. */
enum kith_err kith_sampler_refuse(char *error, enum kith_err err,
                                  const char *what);

#endif
