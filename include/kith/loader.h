/* Batches: which examples come next, changed how, on which backend.
 *
 * An epoch is a shuffle of its own and so are its augmentations, from streams
 * named by (seed, entity, epoch) and drawn by position, so that a place in the
 * stream of batches is (epoch, cursor): a resumed or moved peer continues
 * exactly. With `ahead` a thread of the loader's own fills the next batch while
 * the last one is used; the batches are the same.
 * Test: unit/test_loader.c. */
#ifndef KITH_LOADER_H
#define KITH_LOADER_H

#include "kith/data.h"
#include "kith/err.h"

/* Rows of one batch: a bound for the size arithmetic, far above use. */
#define KITH_BATCH_MAX ((size_t)1 << 20)

struct kith_augment {
    uint32_t crop; /* pad by so many zeros on each side, cut back at random */
    bool flip;     /* left to right, with probability 1/2 */
};

struct kith_loader_config {
    const struct kith_examples *examples;
    const struct kith_backend *backend;
    const uint32_t *rows; /* (row_count) own examples, ascending; lent. NULL:
                             all, and row_count is not read */
    size_t row_count, batch;
    uint64_t seed, entity;
    struct kith_augment augment;
    bool shuffle; /* false: in order, for evaluation; the last batch of an
                     epoch is then short, and no batch spans two epochs */
    bool ahead;
    /* kith_loader_borrow() of it from the start; NULL: batches of its own. */
    const struct kith_loader *lender;
};

struct kith_loader;
KITH_MUST_CHECK enum kith_err
kith_loader_open(const struct kith_loader_config *config,
                 struct kith_loader **loader, char *error);
void kith_loader_close(struct kith_loader *loader);
/* Bytes that its batches take, as kith_loader_open takes them: of `features`
 * values or tokens an example. Test: unit/test_plan_memory.c */
size_t kith_loader_bytes(enum kith_input input, size_t features,
                         const struct kith_backend *backend, size_t batch,
                         bool ahead);

/* The next batch: inputs, labels and rows are set, on the backend (labels and
 * tokens too), valid until the call after next. */
void kith_loader_next(struct kith_loader *loader, struct kith_batch *batch);
/* From now on its batches stand in that other one's memory, which has no thread
 * either, takes batches of as many of the same examples, and is closed after
 * it: they are valid until either gives the next one but one.
 * Test: unit/test_loader.c */
void kith_loader_borrow(struct kith_loader *loader,
                        const struct kith_loader *lender);
/* NULL: all is well. Else a line that names the mapped file which cannot be
 * read any more, or not as it was, and for good: batches are zeros from there
 * on, so ask before what came of one is kept. Any thread. */
const char *kith_loader_failed(const struct kith_loader *loader);

/* Where the batch after the last one given begins. */
struct kith_place {
    uint32_t epoch;
    uint64_t cursor;
};
struct kith_place kith_loader_place(const struct kith_loader *loader);
/* KITH_EINVAL: the cursor is past the rows. */
KITH_MUST_CHECK enum kith_err kith_loader_seek(struct kith_loader *loader,
                                               struct kith_place place);
/* Nanoseconds that kith_loader_next has waited for the thread. */
uint64_t kith_loader_waited(const struct kith_loader *loader);
/* Examples given so far: adds to counts->memory or counts->mapped. */
void kith_loader_count(const struct kith_loader *loader,
                       struct kith_data_counts *counts);

#endif
