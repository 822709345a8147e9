/* A model's weights in a safetensors file, and nothing else. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights.h"
#include "kith/text.h"

static const char *const prefixes[] = {"", "transformer.", "model."};

static const struct kith_tensor_entry *
find_view(const struct kith_safetensors *file,
          const struct kith_model_view *view)
{
    char name[KITH_TENSOR_NAME_BYTES];
    const struct kith_tensor_entry *found = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !found;
         i++) {
        (void)snprintf(name, sizeof name, "%s%s", prefixes[i], view->name);
        found = kith_safetensors_find(file, name);
    }
    return found;
}

static void shape_text(const struct kith_tensor_entry *tensor, char text[96])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < tensor->rank; i++)
        at = kith_text_add(text, 96, at, "%s%" PRIu64, i == 0 ? "" : ", ",
                           tensor->shape[i]);
}

void kith_checkpoint_entry(struct kith_tensor_entry *entry, const char *prefix,
                           enum kith_dtype dtype,
                           const struct kith_model_view *view)
{
    *entry = (struct kith_tensor_entry){.dtype = dtype, .rank = view->rank};
    (void)snprintf(entry->name, sizeof entry->name, "%s%s", prefix, view->name);
    for (uint32_t i = 0; i < view->rank; i++)
        entry->shape[i] = view->shape[i];
}

/* Sides past the rank are 0. */
bool kith_checkpoint_same_shape(const struct kith_tensor_entry *a,
                                const struct kith_tensor_entry *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

enum kith_err kith_source_views(const struct source *source,
                                const struct kith_layout *layout, double *z)
{
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        const struct kith_tensor_entry *tensor = find_view(&source->file, view);
        char what[KITH_CHECKPOINT_ERROR_BYTES], found[96], wanted[96];
        struct kith_tensor_entry entry;
        kith_checkpoint_entry(&entry, "", KITH_DTYPE_F32, view);
        const bool fits =
            tensor != NULL && kith_checkpoint_same_shape(tensor, &entry);
        if (tensor == NULL) {
            (void)snprintf(what, sizeof what,
                           "it has no tensor %s: another model's?", view->name);
        } else if (!fits) {
            shape_text(tensor, found);
            shape_text(&entry, wanted);
            (void)snprintf(what, sizeof what,
                           "tensor %s is (%s), the model's is (%s)",
                           tensor->name, found, wanted);
        }
        if (!fits)
            return refuse(source, KITH_EMISMATCH, what);
        kith_dtype_read(tensor->dtype, view->elements,
                        source->map.bytes + tensor->offset, z + view->offset);
    }
    return KITH_OK;
}

enum kith_err
kith_source_open(struct source *source, const char *path, char *error,
                 enum kith_err (*check)(const struct source *source))
{
    char why[KITH_CHECKPOINT_ERROR_BYTES];
    *source = (struct source){.path = path, .error = error};
    enum kith_err err = kith_file_map_open(path, &source->map, error);
    if (err == KITH_OK && check != NULL)
        err = check(source);
    if (err == KITH_OK) {
        err = kith_safetensors_parse(source->map.bytes, source->map.size,
                                     &source->file, why);
        if (err != KITH_OK)
            (void)refuse(source, err, why);
    }
    if (err != KITH_OK)
        kith_source_close(source);
    return err;
}

void kith_source_close(struct source *source)
{
    kith_safetensors_free(&source->file);
    kith_file_map_close(&source->map);
}

enum kith_err kith_source_text(const struct source *source, const char *key,
                               char **text)
{
    const char *found = kith_safetensors_text(&source->file, key);
    *text = found == NULL ? NULL : strdup(found);
    return found != NULL && *text == NULL
               ? refuse(source, KITH_ENOMEM, "no memory")
               : KITH_OK;
}

enum kith_err kith_weights_read(const char *path,
                                const struct kith_layout *layout, double *z,
                                char *error)
{
    struct source source;
    enum kith_err err = kith_source_open(&source, path, error, NULL);
    if (err != KITH_OK)
        return err;
    err = kith_source_views(&source, layout, z);
    kith_source_close(&source);
    return err;
}

enum kith_err kith_checkpoint_text(const char *path, const char *key,
                                   char **text, char *error)
{
    struct source source;
    *text = NULL;
    enum kith_err err = kith_source_open(&source, path, error, NULL);
    if (err != KITH_OK)
        return err;
    err = kith_source_text(&source, key, text);
    kith_source_close(&source);
    return err;
}

/* float64 to float32, a piece at a time. */
static void write_singles(struct work_writer *writer, const double *z, size_t n)
{
    float chunk[4096];
    for (size_t at = 0; at < n; at += 4096) {
        const size_t count = n - at < 4096 ? n - at : 4096;
        for (size_t i = 0; i < count; i++)
            chunk[i] = (float)z[at + i];
        kith_atomic_file_write(writer, chunk, count * sizeof chunk[0]);
    }
}

enum kith_err kith_weights_write(const char *path,
                                 const struct kith_layout *layout,
                                 const double *z, char *error)
{
    static const struct kith_text_entry texts[] = {{"format", "pt"}};
    struct work_writer writer;
    uint8_t *header = NULL;
    size_t header_bytes = 0;
    struct kith_tensor_entry *entries =
        calloc(layout->view_count + 1, sizeof *entries);
    enum kith_err err = KITH_ENOMEM;
    if (entries != NULL) {
        for (uint32_t i = 0; i < layout->view_count; i++)
            kith_checkpoint_entry(&entries[i], "", KITH_DTYPE_F32,
                                  &layout->views[i]);
        err = kith_safetensors_header(entries, layout->view_count, texts, 1,
                                      &header, &header_bytes);
    }
    free(entries);
    if (err != KITH_OK)
        return kith_file_complain(error, err, "writing", path,
                                  err == KITH_ENOMEM ? "no memory"
                                                     : "too many tensors");
    err = kith_atomic_file_open(&writer, path, error);
    if (err == KITH_OK) {
        kith_atomic_file_write(&writer, header, header_bytes);
        for (uint32_t i = 0; i < layout->view_count; i++)
            write_singles(&writer, z + layout->views[i].offset,
                          layout->views[i].elements);
        err = kith_atomic_file_commit(&writer, false, error);
    }
    free(header);
    return err;
}
