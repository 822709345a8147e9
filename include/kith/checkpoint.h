/* Checkpoints: one safetensors file that holds a peer's model and all else it
 * needs to go on: optimiser state, step, scalars, place in the data.
 *
 * The tensors of the model stand under the names of its views (Hugging Face's
 * for gpt), in their stored shapes, as F32 (F64 from naive64), so that any
 * reader of safetensors loads them; state vectors stand beside them as
 * "optimiser.K.NAME". The rest is text in `__metadata__`, with BLAKE2b-256 of
 * everything else in the file. Written to a temporary file, fsync, rename, the
 * previous one kept as PATH.previous; read only where the hash is right.
 * Test: unit/test_checkpoint.c, fuzz_safetensors, integration/test_resume.sh.
 */
#ifndef KITH_CHECKPOINT_H
#define KITH_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kith_dtype {
    KITH_DTYPE_F32,
    KITH_DTYPE_F64,
    KITH_DTYPE_BF16,
    KITH_DTYPE_F16
};

struct kith_tensor_entry {
    char name[2 * KITH_NAME_MAX];
    enum kith_dtype dtype;
    uint32_t rank;
    uint64_t shape[4];
    size_t offset, bytes; /* in the file */
};

/* A parsed header. Pure, bounded before allocation: at most
 * KITH_SAFETENSORS_HEADER_MAX bytes of header, KITH_TENSORS_MAX tensors, each
 * within the file, none overlapping, no byte of data unnamed. */
struct kith_safetensors {
    struct kith_tensor_entry *tensors; /* (tensor_count), by name */
    size_t tensor_count;
    char (*keys)[KITH_NAME_MAX]; /* (key_count) of __metadata__ */
    char **values;
    size_t key_count;
};
KITH_MUST_CHECK enum kith_err
kith_safetensors_parse(const uint8_t *bytes, size_t size,
                       struct kith_safetensors *file, char *error);
void kith_safetensors_free(struct kith_safetensors *file);
const struct kith_tensor_entry *
kith_safetensors_find(const struct kith_safetensors *file, const char *name);
/* NULL: no such key. */
const char *kith_safetensors_value(const struct kith_safetensors *file,
                                   const char *key);

#ifdef __cplusplus
}
#endif
#endif
