/* What weights.c, save.c and restore.c share. */
#ifndef KITH_TRAINING_CHECKPOINT_WEIGHTS_H
#define KITH_TRAINING_CHECKPOINT_WEIGHTS_H

#include "atomic_file.h"
#include "kith/checkpoint.h"
#include "kith/model.h"
#include "kith/names.h"

bool kith_checkpoint_same_shape(const struct kith_tensor_entry *a,
                                const struct kith_tensor_entry *b);
/* A file that is read: its bytes and its header. */
struct source {
    const char *path;
    char *error;
    struct kith_file_map map;
    struct kith_safetensors file;
};
/* `check` (may be NULL) sees the bytes before the header is read. Nothing needs
 * closing on an error. */
KITH_MUST_CHECK enum kith_err
kith_source_open(struct source *source, const char *path, char *error,
                 enum kith_err (*check)(const struct source *source));
void kith_source_close(struct source *source);
/* "reading PATH: WHAT"; returns err. */
static inline enum kith_err refuse(const struct source *source,
                                   enum kith_err err, const char *what)
{
    return kith_file_complain(source->error, err, "reading", source->path,
                              what);
}
/* A text of the header, malloc'd; NULL: there is none of that key. */
KITH_MUST_CHECK enum kith_err kith_source_text(const struct source *source,
                                               const char *key, char **text);
/* The tensor that stands for a view, NULL: none; `wanted` is its name and shape
 * there, and `pair` says so where names do. */
const struct kith_tensor_entry *
kith_source_find(const struct source *source, const struct kith_names *names,
                 const struct kith_model_view *view,
                 struct kith_tensor_entry *wanted,
                 const struct kith_names_pair **pair);
/* Every view, into z (dim). KITH_EMISMATCH: as kith_source_misfits() says. */
KITH_MUST_CHECK enum kith_err
kith_source_views(const struct source *source, const struct kith_names *names,
                  const struct kith_layout *layout, double *z,
                  size_t error_size);
/* One line of which views did not fit, how, and what was close, as many as
 * error_size bytes hold (misfits.c). KITH_EMISMATCH. */
enum kith_err kith_source_misfits(const struct source *source,
                                  const struct kith_names *names,
                                  const struct kith_layout *layout,
                                  size_t error_size);
/* The entry of a view under PREFIX + its name. */
void kith_checkpoint_entry(struct kith_tensor_entry *entry, const char *prefix,
                           enum kith_dtype dtype,
                           const struct kith_model_view *view);

#endif
