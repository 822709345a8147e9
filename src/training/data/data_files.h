/* What the kinds of data sets share: finding a file (through the cache),
 * mapping it, memory that lives as long as the set, messages. */
#ifndef KITH_TRAINING_DATA_DATA_FILES_H
#define KITH_TRAINING_DATA_DATA_FILES_H

#include <dirent.h>

#include "kith/loader.h"
#include "kith/plain_file.h"

/* Arrays and tokens are mapped as they lie in their files. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data files are little-endian");

/* Classes of images: labels are u2 at most. */
#define DATA_CLASSES_MAX 65536u

/* One kith_dataset_open, and the file that it has come to. */
struct kith_data_opening {
    const struct kith_data_config *config;
    struct kith_dataset *set;
    char *error;                     /* (KITH_DATA_ERROR_BYTES) */
    char path[KITH_PATH_BYTES_MAX];  /* of the origin: what messages name */
    char local[KITH_PATH_BYTES_MAX]; /* what is read: itself or its copy */
    bool cached;                     /* the copy was there before */
    struct kith_file_map stored;     /* the file, of config->store */
    enum kith_err err;               /* what it has come to in the end */
};

/* "reading PATH: what" as the error's text, PATH that of the opening; returns
 * err. */
enum kith_err kith_data_refuse(struct kith_data_opening *opening,
                               enum kith_err err, const char *format, ...)
    KITH_PRINTF(3, 4);

/* Comes to config->path, or `name` in that folder. KITH_ENOENT, without a
 * message: neither there nor in the cache. */
KITH_MUST_CHECK enum kith_err kith_data_find(struct kith_data_opening *opening,
                                             const char *name);
/* Names of the folder opening->path that `is_wanted`, in their order; the
 * caller frees them and the list. -1: errno. */
int kith_data_scan(const struct kith_data_opening *opening,
                   int (*is_wanted)(const struct dirent *entry),
                   struct dirent ***names);
/* The whole file, read-only, mapped until the set is closed. `found`: what
 * kith_data_find has returned; `missing`: what the message says of
 * KITH_ENOENT. */
KITH_MUST_CHECK enum kith_err kith_data_map(struct kith_data_opening *opening,
                                            enum kith_err found,
                                            const char *missing,
                                            struct kith_file_map *map);
/* bus_error.c: read(argument), which touches mapped files. False: a page was
 * not there, at *where; `read` ended in the middle of what it did. */
KITH_MUST_CHECK bool kith_data_guard(void (*read)(void *), void *argument,
                                     const void **where);
/* "reading PATH: what" of the mapped file that holds `where`: it has shrunk, or
 * its disk has failed; `changed`: it has been written to. Returns KITH_EIO. */
enum kith_err kith_data_spoiled(const void *owner, const void *where,
                                bool changed, char *error);
/* Memory for `count` things of `size` bytes until the set is closed, 64-byte
 * aligned; NULL, with "no memory for `count` `things`" as the message. */
void *kith_data_alloc(struct kith_data_opening *opening, size_t count,
                      size_t size, const char *things);
/* Counts `examples` read from this file. */
void kith_data_count(struct kith_data_opening *opening, size_t examples);
/* Bytes of one value as it is stored. */
size_t kith_data_value_bytes(enum kith_element element);
/* Where a token of the stream stands. */
const void *kith_data_token(const struct kith_examples *examples, size_t at);
/* Images with these sizes, count first: 2 to 4. Labels are not set. */
void kith_data_images(struct kith_examples *examples, enum kith_element element,
                      const void *values, uint32_t rank, const uint64_t *sizes);
/* Labels of such images from an array of u1, u2, i4 or i8 in this file, and
 * classes, 1 + the largest. KITH_EPARSE: not one each, or one is negative or
 * above DATA_CLASSES_MAX - 1. */
KITH_MUST_CHECK enum kith_err
kith_data_labels(struct kith_data_opening *opening,
                 const struct kith_array *array, const uint8_t *data,
                 struct kith_examples *examples);
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

/* cache.c: comes to the copy of opening->path in data.cache.
 *   KITH_OK      it is whole and checked; counts of refetched copies
 *   KITH_ENOENT  no such file at the origin and no copy either
 *   else         no copy can be had; set->note is a line for the user */
KITH_MUST_CHECK enum kith_err
kith_data_cache_fetch(struct kith_data_opening *opening);

#endif
