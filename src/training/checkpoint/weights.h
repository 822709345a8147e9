/* What weights.c and save.c share. */
#ifndef KITH_TRAINING_CHECKPOINT_WEIGHTS_H
#define KITH_TRAINING_CHECKPOINT_WEIGHTS_H

#include "atomic_file.h"
#include "kith/checkpoint.h"
#include "kith/model.h"

bool kith_checkpoint_same_shape(const struct kith_tensor_entry *a,
                                const struct kith_tensor_entry *b);
/* Every view from the file's bytes, into z (dim). */
KITH_MUST_CHECK enum kith_err kith_checkpoint_read_views(
    const char *path, const struct kith_safetensors *file, const uint8_t *bytes,
    const struct kith_layout *layout, double *z, char *error);
/* The entry of a view under PREFIX + its name. */
void kith_checkpoint_entry(struct kith_tensor_entry *entry, const char *prefix,
                           enum kith_dtype dtype,
                           const struct kith_model_view *view);

#endif
