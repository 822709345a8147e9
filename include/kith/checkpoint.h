/* Checkpoints: one safetensors file that holds a peer's model and all else it
 * needs to go on: optimiser state, step, scalars, place in the data.
 *
 * The tensors of the model stand under the names of its views (Hugging Face's
 * for gpt), in their stored shapes, as F32 (F64 from naive64), so that any
 * reader of safetensors loads them; state vectors stand beside them as
 * "optimiser.K.NAME". The rest is text in `__metadata__`, with BLAKE2b-256 of
 * everything else in the file. Written to a temporary file, fsync, rename, the
 * previous one kept as PATH.previous; read only where the hash is right.
 * Test: unit/test_safetensors.c, unit/test_save.c, fuzz_safetensors,
 * integration/test_resume.sh.
 */
#ifndef KITH_CHECKPOINT_H
#define KITH_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/model.h"

/* X(NAME, text, bytes): the element types that are read; F32 and F64 are
 * written. */
#define KITH_DTYPES(X)                                                         \
    X(F32, "F32", 4)                                                           \
    X(F64, "F64", 8)                                                           \
    X(BF16, "BF16", 2)                                                         \
    X(F16, "F16", 2)
enum kith_dtype {
#define KITH_X(name, text, bytes) KITH_DTYPE_##name,
    KITH_DTYPES(KITH_X)
#undef KITH_X
        KITH_DTYPE_COUNT
};

#define KITH_TENSOR_NAME_BYTES (2 * KITH_NAME_MAX)
#define KITH_CHECKPOINT_ERROR_BYTES 512

struct kith_tensor_entry {
    char name[KITH_TENSOR_NAME_BYTES];
    enum kith_dtype dtype;
    uint32_t rank;
    uint64_t shape[4];
    size_t offset, bytes; /* in the file */
};

struct kith_text_entry {
    const char *key, *value;
};

/* A header. The data follow it: each tensor within the file, none overlapping,
 * no byte between them. */
struct kith_safetensors {
    struct kith_tensor_entry *tensors; /* (tensor_count) */
    size_t tensor_count;
    struct kith_text_entry *texts; /* (text_count) of __metadata__ */
    size_t text_count;
    void *owner;
};

/* Reads the header of a whole file in memory. Pure; at most
 * KITH_SAFETENSORS_HEADER_MAX bytes of header and KITH_TENSORS_MAX tensors.
 * KITH_EPARSE, KITH_ELIMIT or KITH_ENOMEM with the reason in `error`
 * (KITH_CHECKPOINT_ERROR_BYTES); nothing needs freeing then. Tensors come out
 * sorted by name. Cost: one pass over the header. */
KITH_MUST_CHECK enum kith_err
kith_safetensors_parse(const uint8_t *bytes, size_t size,
                       struct kith_safetensors *file, char *error);
void kith_safetensors_free(struct kith_safetensors *file);
/* NULL: no such tensor; no such key. */
const struct kith_tensor_entry *
kith_safetensors_find(const struct kith_safetensors *file, const char *name);
const char *kith_safetensors_text(const struct kith_safetensors *file,
                                  const char *key);

/* The bytes that come before the data, a multiple of 64 of them, for tensors
 * that follow each other in the order given; sets each offset and bytes.
 * *header is malloc'd. KITH_ENOMEM, or KITH_ELIMIT: the header is too long. */
KITH_MUST_CHECK enum kith_err
kith_safetensors_header(struct kith_tensor_entry *tensors, size_t tensor_count,
                        const struct kith_text_entry *texts, size_t text_count,
                        uint8_t **header, size_t *header_bytes);

/* n elements of this type to float64. */
void kith_dtype_read(enum kith_dtype dtype, size_t n, const uint8_t *bytes,
                     double *out);
size_t kith_dtype_bytes(enum kith_dtype dtype);

/* ---- weights alone: what other programs read and write */

/* Every view of the layout from a safetensors file, into z (dim), float64. A
 * name may have "transformer." or "model." before it; tensors that no view
 * names are left alone (a tied head, attention masks). BF16 and F16 are
 * widened. `names` (NULL: ours) is what they are called and how they lie there.
 * KITH_EMISMATCH: names do not fit the model, or views are missing or have
 * other shapes, which the line says of each, and what was close; all errors
 * with a line in `error` (KITH_WEIGHTS_ERROR_BYTES). */
#define KITH_WEIGHTS_ERROR_BYTES 1536
struct kith_names; /* kith/names.h */
KITH_MUST_CHECK enum kith_err
kith_weights_read(const char *path, const struct kith_names *names,
                  const struct kith_layout *layout, double *z, char *error);
/* The views of z as F32, which Hugging Face's loaders read. KITH_EMISMATCH:
 * as above, or two would have one name. */
KITH_MUST_CHECK enum kith_err
kith_weights_write(const char *path, const struct kith_names *names,
                   const struct kith_layout *layout, const double *z,
                   char *error);

/* The experiment that a checkpoint of ours was written under, malloc'd and
 * terminated, so that it can be evaluated, sampled and exported alone; its
 * hash has been checked. KITH_EVERSION: not a checkpoint of kith. */
KITH_MUST_CHECK enum kith_err
kith_checkpoint_experiment(const char *path, char **text, char *error);

/* A text of `__metadata__`, malloc'd; NULL: there is none of that key. For
 * files that were opened before: no hash is checked. */
KITH_MUST_CHECK enum kith_err kith_checkpoint_text(const char *path,
                                                   const char *key, char **text,
                                                   char *error);

#endif
