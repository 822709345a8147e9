/* What save.c writes and restore.c reads. */
#ifndef KITH_TRAINING_CHECKPOINT_SAVE_H
#define KITH_TRAINING_CHECKPOINT_SAVE_H

#include "weights.h"
#include "kith/worker.h"

/* Bump where the meaning of a text or of a tensor changes. */
#define SAVE_VERSION "checkpoint-v1"
/* The header begins so, and the digits of the hash follow. */
#define SAVE_OPENING "{\"__metadata__\":{\"blake2b\":\""

enum {
    SAVE_HASH_AT = 8 + sizeof SAVE_OPENING - 1, /* of the digits in the file */
    SAVE_HASH_DIGITS = 64,
    SAVE_HASH_BYTES = 32,
    SAVE_CHUNK = 8192,    /* elements converted at a time */
    SAVE_PIECE = 1 << 18, /* bytes hashed and then written: in the cache */
    SAVE_TEXT_BYTES = 320 /* of a machine's description */
};

/* A vector of the worker's and how its tensors are called. */
struct save_part {
    char prefix[32];
    void *vector;
    size_t elements; /* views below it are the part's */
};
enum { SAVE_PARTS_MAX = 1 + KITH_STATES_MAX + KITH_ALGORITHM_VECTORS_MAX };
/* All that a checkpoint holds, in its order in the file; returns how many. */
size_t kith_save_parts(const struct kith_worker_content *content,
                       struct save_part parts[SAVE_PARTS_MAX]);
/* The tensors of these parts; at most SAVE_PARTS_MAX * view_count. */
size_t kith_save_entries(const struct kith_worker_content *content,
                         struct kith_tensor_entry *entries);

/* A checkpoint's bytes, but for its hash, at one moment. Zeros: none yet;
 * memory is kept from one to the next. */
struct save_image {
    uint8_t *bytes; /* (size) */
    size_t size, capacity;
    size_t model_at, model_elements, element_bytes;
};
/* KITH_ENOMEM, KITH_ELIMIT, KITH_EDEVICE. On the thread that owns the worker.
 */
KITH_MUST_CHECK enum kith_err
kith_save_take(struct kith_worker *worker, const char *path,
               const struct kith_standing *standing, struct save_image *image,
               char *error);
/* Hashes and writes it: the rest of kith_save_write(). On any thread. */
KITH_MUST_CHECK enum kith_err kith_save_put(struct save_image *image,
                                            const char *path,
                                            bool keep_previous, char *error);
void kith_save_image_free(struct save_image *image);

#endif
