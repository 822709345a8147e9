/* Data sets: what they hold, how they are opened, how peers share them.
 *
 * One file per format, one line in src/training/data/datasets.def. Large files
 * are mapped, never copied; a parser is pure and bounded and is what the fuzzer
 * feeds. Test: unit/test_data_*.c. */
#ifndef KITH_DATA_H
#define KITH_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/model.h"
#include "kith/rng.h"

enum kith_element {
    KITH_ELEMENT_U8,  /* images: bytes, the model sees byte / 255 */
    KITH_ELEMENT_F32, /* values as they are (.npy) */
    KITH_ELEMENT_U16, /* tokens */
    KITH_ELEMENT_I32, /* tokens */
};

/* A piece of a token stream that lies in one file. */
struct kith_segment {
    const void *values;   /* (tokens) */
    size_t first, tokens; /* of the stream */
};

/* A set of examples. Images: `values` (count, features), features = height
 * width channels in that order, and a label each. Tokens: one stream, `values`
 * (tokens), or several segments one after another; example i is the window of
 * `features` = context tokens that begins at i * context (+ a shift drawn per
 * epoch in training), its labels the same window one token later; count =
 * (tokens - 1) / context. */
struct kith_examples {
    enum kith_input input;
    enum kith_element element;
    const void *values;    /* NULL where there are segments */
    const int32_t *labels; /* images: 0 <= label < classes */
    size_t count, features, tokens;
    uint32_t shape[3]; /* images: height, width, channels; flat: 1, 1, n */
    uint32_t classes;  /* 1 + the largest label of either part; tokens: the
                          vocabulary, that is, 1 + the largest token where no
                          file says it */
    /* Images: the model sees (v - mean[c]) / deviation[c] of v in [0, 1];
     * 0 and 1 where the experiment does not say. */
    float mean[4], deviation[4];
    const struct kith_segment *segments; /* (segment_count), by `first` */
    size_t segment_count;
    /* Characters: their code points by token, in hexadecimal, a blank after
     * each, so that a checkpoint can say what its tokens mean; else NULL. */
    const char *alphabet;
    bool mapped;       /* values are pages of a file, not memory of our own, */
    const void *owner; /* and this is the set's, which knows the file */
};

/* Where examples came from, in examples. The layers of data.cache: the origin
 * is read once, the local disk at the next opening, memory from then on. */
struct kith_data_counts {
    uint64_t origin; /* read from data.path itself */
    uint64_t disk;   /* read from data.cache */
    uint64_t memory; /* given to training out of decoded memory */
    uint64_t mapped; /* given out of a mapped file: the system's page cache */
    uint64_t refetched; /* files whose cached copy was damaged or outdated */
};

/* A message for people: which file, what was found, what to do. */
#define KITH_DATA_ERROR_BYTES 512

struct kith_dataset {
    struct kith_examples train, test;
    char alphabet[256][5]; /* text: the characters by token, UTF-8; else "" */
    struct kith_data_counts counts;   /* of opening: origin, disk, refetched */
    char note[KITH_DATA_ERROR_BYTES]; /* "", or a line for the user: what went
                                         another way than asked */
    void *owner;                      /* the opener's: files, maps, memory */
    void (*close)(void *owner);
};

struct kith_data_store;

/* What `data:` says. */
struct kith_data_config {
    const struct kith_dataset_kind *kind;
    char path[KITH_PATH_BYTES_MAX];  /* a folder or a file, as the kind says */
    char cache[KITH_PATH_BYTES_MAX]; /* local copies on first touch; "": none */
    char manifest[KITH_PATH_BYTES_MAX];  /* of what is at `path`, for peers that
                                            share it (data_store.h); "": none */
    const struct kith_data_store *store; /* complete: files are read from its
                                            memory. NULL: from `path` */
    uint32_t context;                    /* tokens: of the model; images: 0 */
    double test_share; /* text, bytes: the last part is the test set, 0.1 */
    bool normalise;    /* images: by the training set's mean and deviation */
    /* synthetic: of the model, how much, and from which draws. */
    uint32_t shape[3], classes;
    uint64_t rows; /* training examples; the test set has a tenth of them */
    double spread; /* gaussian: of the classes' means; its test set: 1/4 */
    uint64_t seed;
};

enum kith_data_part { KITH_DATA_TRAIN, KITH_DATA_TEST };
struct kith_data_opening;

struct kith_dataset_kind {
    const char *name, *paper, *summary;
    enum kith_input input; /* NONE: what the model takes */
    uint64_t rows; /* where data.rows is not given; 0: the kind reads files */
    bool cut;      /* the test set is the last data.test_share */
    bool spreads;  /* data.spread is read */
    /* Called by kith_dataset_open alone, for the training set, then for the
     * test set; once for both where they are cut. `examples` is empty, and is
     * closed on error with a message that says what to do. Sizes are bounded
     * before allocation. */
    enum kith_err (*open)(struct kith_data_opening *opening,
                          enum kith_data_part part,
                          struct kith_examples *examples);
};
extern const struct kith_dataset_kind *const kith_dataset_kinds[];
const struct kith_dataset_kind *kith_dataset_kind_find(const char *name);

/* Opens and checks every file of a set, through data.cache where that is set.
 * Labels, tokens and values are checked here, once: a mapped file (all but
 * gzip, CIFAR and text) must stay as it is until the set is closed. One that
 * shrinks meanwhile, or a token outside the vocabulary, is found where it is
 * read: kith_loader_failed. A copy in data.cache is replaced, never changed.
 *
 * Returns KITH_OK, or, with `error` saying which file and what to do and the
 * set closed,
 *   KITH_ENOENT, KITH_EPERM, KITH_EIO  a file is not there or cannot be read
 *   KITH_EPARSE, KITH_ELIMIT           it is damaged, or above a bound
 *   KITH_EINVAL                        it does not fit the configuration
 *   KITH_ENOMEM
 *
 * Test    test_data.c, test_data_cache.c; fuzz_idx, _npy, _cifar, _shard. */
KITH_MUST_CHECK enum kith_err
kith_dataset_open(const struct kith_data_config *config,
                  struct kith_dataset *set, char *error);
void kith_dataset_close(struct kith_dataset *set);
/* Tells two sets of a kind apart that two processes have opened: shapes, and of
 * values, tokens and labels all bytes up to 1 MiB each, or 256 places of 4 KiB
 * from the first to the last, so that a mapped file of any size costs no more
 * than that. A set that differs elsewhere alone is not told apart. NULL: hash.
 * Test: unit/test_data.c */
uint64_t kith_dataset_hash(uint64_t hash, const struct kith_dataset *set);

/* `count` tokens from place `first` of the stream on, first + count <= tokens,
 * each below `classes`. */
void kith_examples_tokens(const struct kith_examples *examples, size_t first,
                          size_t count, int32_t *tokens);

/* The header of a file that holds one array. */
struct kith_array {
    char type[4]; /* "u1", "f4", ... as NumPy names them */
    uint32_t rank;
    uint64_t sizes[KITH_IDX_RANK_MAX];
    size_t offset, bytes; /* of the data */
};

/* An IDX file of type uint8 in memory: rank, sizes, offset of the data.
 * Pure, bounded: what the fuzzer feeds. Returns KITH_OK where bytes are exactly
 * one image, or
 *   KITH_EAGAIN  it goes on: rank 0 while the header is short, else the header
 *                is whole and `array` says how much data follows
 *   KITH_EPARSE  not IDX, not uint8, a size of 0, or something after the data
 *   KITH_ELIMIT  rank above KITH_IDX_RANK_MAX, data above KITH_IDX_BYTES_MAX */
KITH_MUST_CHECK enum kith_err kith_idx_parse(const uint8_t *bytes, size_t size,
                                             struct kith_array *array);

/* A NumPy array file: version 1 to 3, little-endian, C order, of u1, u2, i4,
 * i8 or f4; else KITH_EPARSE, or KITH_ELIMIT past the bounds of limits.h. The
 * whole file is given; offset + bytes == size. */
KITH_MUST_CHECK enum kith_err kith_npy_parse(const uint8_t *bytes, size_t size,
                                             struct kith_array *array);

/* CIFAR-10 binary: records of 1 label byte (< 10) and 3 planes of 32 x 32. */
KITH_MUST_CHECK enum kith_err kith_cifar_parse(const uint8_t *bytes,
                                               size_t size, size_t *records);

/* A GPT-2 token shard (.bin): 256 little-endian int32 of header (20240520,
 * version 1, tokens), then uint16 tokens; a file without that header is
 * plain uint16. */
struct kith_shard {
    size_t offset, tokens;
};
KITH_MUST_CHECK enum kith_err
kith_shard_parse(const uint8_t *bytes, size_t size, struct kith_shard *shard);

/* ---- splits */

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

/* Which training examples belong to whom of `peers`: same answer on every peer
 * of a seed (stream SPLIT). Every peer gets at least one; every example goes to
 * exactly one peer (classes(k): where k * peers < classes, examples of unused
 * classes are left out). KITH_EINVAL: fewer examples than peers, k above the
 * classes there are, or a split by class of tokens. O(classes (examples +
 * peers)) time. Test: unit/test_split.c */
struct kith_shares {
    uint32_t *rows; /* peer 0's, ascending, then peer 1's, ... */
    size_t *first;  /* (peers + 1) of each peer's in rows */
};
KITH_MUST_CHECK enum kith_err kith_split_shares(const struct kith_split *split,
                                                const struct kith_examples *set,
                                                uint64_t seed, uint32_t peers,
                                                struct kith_shares *shares);
void kith_shares_free(struct kith_shares *shares);
/* Those of `peer` alone: *rows is malloc'd, the caller frees it. */
KITH_MUST_CHECK enum kith_err kith_split_rows(const struct kith_split *split,
                                              const struct kith_examples *set,
                                              uint64_t seed, uint32_t peers,
                                              uint32_t peer, uint32_t **rows,
                                              size_t *count);

#endif
