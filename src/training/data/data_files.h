/* What the kinds of data sets share: finding a file (through the cache),
 * mapping it, memory that lives as long as the set, messages. */
#ifndef KITH_TRAINING_DATA_DATA_FILES_H
#define KITH_TRAINING_DATA_DATA_FILES_H

#include "kith/loader.h"

/* Arrays and tokens are mapped as they lie in their files. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data files are little-endian");

/* Classes of images: labels are u2 at most. */
#define DATA_CLASSES_MAX 65536u

/* One kith_dataset_open. */
struct data_opening {
    const struct kith_data_config *config;
    struct kith_dataset *set;
    char *error; /* (KITH_DATA_ERROR_BYTES) */
};

struct data_file {
    char path[KITH_PATH_BYTES_MAX];  /* of the origin: what messages name */
    char local[KITH_PATH_BYTES_MAX]; /* what is read: itself or its copy */
    bool cached;                     /* the copy was there before */
};

struct data_bytes {
    const uint8_t *bytes;
    size_t size;
};

/* "reading PATH: what" into `error`; returns err. */
enum kith_err kith_data_complain(char *error, enum kith_err err,
                                 const char *path, const char *format, ...)
    KITH_PRINTF(4, 5);

/* config->path, or `name` in that folder. KITH_ENOENT, without a message:
 * neither there nor in the cache. */
KITH_MUST_CHECK enum kith_err kith_data_find(struct data_opening *opening,
                                             const char *name,
                                             struct data_file *file);
/* The whole file, read-only, mapped until the set is closed. */
KITH_MUST_CHECK enum kith_err kith_data_map(struct data_opening *opening,
                                            const struct data_file *file,
                                            struct data_bytes *bytes);
/* bus_error.c: read(argument), which touches mapped files. False: a page was
 * not there, at *where; `read` ended in the middle of what it did. */
KITH_MUST_CHECK bool kith_data_guard(void (*read)(void *), void *argument,
                                     const void **where);
/* "reading PATH: what" of the mapped file that holds `where`: it has shrunk, or
 * its disk has failed; `changed`: it has been written to. */
void kith_data_spoiled(const void *owner, const void *where, bool changed,
                       char *error);
/* Memory until the set is closed, 64-byte aligned; NULL: none. */
void *kith_data_alloc(struct data_opening *opening, size_t bytes);
/* Counts `examples` read from this file. */
void kith_data_count(struct data_opening *opening, const struct data_file *file,
                     size_t examples);
/* A tokens' set of what stands in `values` or `segments`: how many windows.
 * KITH_EINVAL: not one. */
KITH_MUST_CHECK enum kith_err kith_data_windows(struct data_opening *opening,
                                                const char *path,
                                                struct kith_examples *examples);
/* Where a token of the stream stands. */
const void *kith_data_token(const struct kith_examples *examples, size_t at);
/* Cuts `whole` in two: the last test_share of its tokens is the test set. */
KITH_MUST_CHECK enum kith_err kith_data_cut(struct data_opening *opening,
                                            const char *path,
                                            const struct kith_examples *whole);
/* Classes of int32 labels, 1 + the largest. KITH_EPARSE: one is negative or
 * above DATA_CLASSES_MAX - 1. */
KITH_MUST_CHECK enum kith_err
kith_data_classes(const int32_t *labels, size_t count, uint32_t *classes);
/* shape and features of images with these sizes, count first: 2 to 4. */
void kith_data_shape(struct kith_examples *examples, uint32_t rank,
                     const uint64_t *sizes);
/* Channels that have a mean of their own: up to 4, else all are one. */
uint32_t kith_data_channels(const struct kith_examples *examples);

/* pixels.c: one image, changed by draws of `rng` into `out`: padded by crop
 * zeros and cut back at a random place, turned left to right half the time. */
void kith_data_pixels_augment(const struct kith_examples *examples,
                              const struct kith_augment *augment,
                              struct kith_rng *rng, const void *image,
                              void *out);
/* What a model sees of a value: (v - mean) / deviation. */
struct pixels {
    bool plain; /* mean 0, deviation 1: bytes are converted by the backend */
    uint32_t channels;
    float table[4][256]; /* of bytes */
};
void kith_data_pixels_init(struct pixels *pixels,
                           const struct kith_examples *examples);
void kith_data_pixels_convert(const struct pixels *pixels,
                              const struct kith_examples *examples,
                              const struct kith_backend *host,
                              const void *image, void *out);

/* cache.c: the local copy of `origin`.
 *   KITH_OK      `local` is whole and checked
 *   KITH_ENOENT  no such file at the origin and no copy either
 *   else         no copy can be had; `why` is a line for the user */
struct cache_result {
    bool cached;    /* the copy was there before */
    bool refetched; /* one was there, but damaged or outdated */
    char local[KITH_PATH_BYTES_MAX];
    char why[KITH_DATA_ERROR_BYTES];
};
KITH_MUST_CHECK enum kith_err
kith_data_cache_fetch(const char *cache, const char *origin,
                      struct cache_result *result);

#endif
