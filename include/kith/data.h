/* Data sets: IDX files (plain or gzip), kept as bytes, and their splits. */
#ifndef KITH_DATA_H
#define KITH_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kith_examples {
    uint8_t *images; /* (count, features) */
    uint8_t *labels; /* (count) */
    size_t count, features;
    uint32_t classes; /* 1 + the largest label */
};

struct kith_dataset {
    struct kith_examples train, test;
};

/* A message for people: which file, what was found, what to do. */
#define KITH_DATA_ERROR_BYTES 512

/* Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] below folder, sizes
 * bounded before allocation. On error `*dataset` needs no close and `error`
 * (KITH_DATA_ERROR_BYTES) says what to do. */
KITH_MUST_CHECK enum kith_err kith_dataset_open_idx(const char *folder,
                                                    struct kith_dataset *set,
                                                    char *error);
void kith_dataset_close(struct kith_dataset *set);

/* An IDX image of type uint8 in memory: rank, sizes, offset of the data.
 * Pure, bounded: what the fuzzer feeds. Returns KITH_OK where bytes are exactly
 * one image, or
 *   KITH_EAGAIN  it goes on: rank 0 while the header is short, else the header
 *                is whole and `idx` says how much data follows
 *   KITH_EPARSE  not IDX, not uint8, a size of 0, or something after the data
 *   KITH_ELIMIT  rank above KITH_IDX_RANK_MAX, data above KITH_IDX_BYTES_MAX */
struct kith_idx {
    uint32_t rank;
    uint32_t sizes[KITH_IDX_RANK_MAX];
    size_t offset, bytes; /* of the data */
};
KITH_MUST_CHECK enum kith_err kith_idx_parse(const uint8_t *bytes, size_t size,
                                             struct kith_idx *idx);

enum kith_split_kind {
    KITH_SPLIT_IID,       /* a shuffled, even share */
    KITH_SPLIT_DIRICHLET, /* class mix of each peer ~ Dirichlet(alpha) */
    KITH_SPLIT_CLASSES,   /* k classes per peer */
};
struct kith_split {
    enum kith_split_kind kind;
    double alpha;
    uint32_t classes;
};
/* "iid", "dirichlet(0.1)", "classes(2)". KITH_EPARSE: none of them, or alpha
 * outside (0, 10^6], k outside [1, 256]. */
KITH_MUST_CHECK enum kith_err kith_split_parse(const char *text,
                                               struct kith_split *split);

/* Which training rows belong to `peer` of `peers`: same answer on every peer
 * of a seed (stream SPLIT). Every peer gets at least one row; every row goes
 * to exactly one peer (classes(k): where k * peers < classes, rows of unused
 * classes are left out). *rows is malloc'd, ascending, the caller frees it.
 * KITH_EINVAL: fewer rows than peers, or k above the classes there are. */
KITH_MUST_CHECK enum kith_err kith_split_rows(const struct kith_split *split,
                                              const struct kith_examples *set,
                                              uint64_t seed, uint32_t peers,
                                              uint32_t peer, uint32_t **rows,
                                              size_t *count);

#ifdef __cplusplus
}
#endif
#endif
