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

const struct kith_tensor_entry *
kith_source_find(const struct source *source, const struct kith_names *names,
                 const struct kith_model_view *view,
                 struct kith_tensor_entry *wanted,
                 const struct kith_names_pair **pair)
{
    *pair = kith_names_entry(names, view, wanted);
    return *pair == NULL ? find_view(&source->file, view)
                         : kith_safetensors_find(&source->file, wanted->name);
}

static enum kith_err read_view(const struct source *source,
                               const struct kith_tensor_entry *tensor,
                               const struct kith_names_pair *pair,
                               const struct kith_model_view *view, double *z)
{
    const uint8_t *bytes = source->map.bytes + tensor->offset;
    if (pair == NULL || pair->axis_count == 0) {
        kith_dtype_read(tensor->dtype, view->elements, bytes, z);
        return KITH_OK;
    }
    double *theirs = malloc((view->elements + 1) * sizeof *theirs);
    if (theirs == NULL)
        return refuse(source, KITH_ENOMEM, "no memory");
    kith_dtype_read(tensor->dtype, view->elements, bytes, theirs);
    kith_names_to_ours(pair, view, theirs, z);
    free(theirs);
    return KITH_OK;
}

enum kith_err kith_source_views(const struct source *source,
                                const struct kith_names *names,
                                const struct kith_layout *layout, double *z,
                                size_t error_size)
{
    bool fits = true;
    for (uint32_t i = 0; i < layout->view_count && fits; i++) {
        const struct kith_model_view *view = &layout->views[i];
        const struct kith_names_pair *pair;
        struct kith_tensor_entry wanted;
        const struct kith_tensor_entry *tensor =
            kith_source_find(source, names, view, &wanted, &pair);
        fits = tensor != NULL && kith_checkpoint_same_shape(tensor, &wanted);
        const enum kith_err err =
            fits ? read_view(source, tensor, pair, view, z + view->offset)
                 : KITH_OK;
        if (err != KITH_OK)
            return err;
    }
    return fits ? KITH_OK
                : kith_source_misfits(source, names, layout, error_size);
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

/* Of names and layout, before a file is opened. */
static enum kith_err check_names(const struct kith_names *names,
                                 const struct kith_layout *layout, char *error)
{
    char why[KITH_NAMES_ERROR_BYTES];
    if (names == NULL || kith_names_check(names, layout, why) == KITH_OK)
        return KITH_OK;
    (void)kith_text_copy(error, KITH_WEIGHTS_ERROR_BYTES, why);
    return KITH_EMISMATCH;
}

enum kith_err kith_weights_read(const char *path,
                                const struct kith_names *names,
                                const struct kith_layout *layout, double *z,
                                char *error)
{
    struct source source;
    if (check_names(names, layout, error) != KITH_OK)
        return KITH_EMISMATCH;
    enum kith_err err = kith_source_open(&source, path, error, NULL);
    if (err != KITH_OK)
        return err;
    err =
        kith_source_views(&source, names, layout, z, KITH_WEIGHTS_ERROR_BYTES);
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

static enum kith_err write_view(struct work_writer *writer,
                                const struct kith_names_pair *pair,
                                const struct kith_model_view *view,
                                const double *z)
{
    if (pair == NULL || pair->axis_count == 0) {
        write_singles(writer, z, view->elements);
        return KITH_OK;
    }
    double *theirs = malloc((view->elements + 1) * sizeof *theirs);
    if (theirs == NULL)
        return KITH_ENOMEM;
    kith_names_to_theirs(pair, view, z, theirs);
    write_singles(writer, theirs, view->elements);
    free(theirs);
    return KITH_OK;
}

static enum kith_err write_views(const char *path,
                                 const struct kith_names *names,
                                 const struct kith_layout *layout,
                                 const double *z, const uint8_t *header,
                                 size_t header_bytes, char *error)
{
    struct work_writer writer;
    enum kith_err err = kith_atomic_file_open(&writer, path, error);
    if (err != KITH_OK)
        return err;
    kith_atomic_file_write(&writer, header, header_bytes);
    for (uint32_t i = 0; i < layout->view_count && err == KITH_OK; i++) {
        const struct kith_model_view *view = &layout->views[i];
        struct kith_tensor_entry entry;
        err = write_view(&writer, kith_names_entry(names, view, &entry), view,
                         z + view->offset);
    }
    if (err == KITH_OK)
        return kith_atomic_file_commit(&writer, false, error);
    kith_atomic_file_abandon(&writer);
    return kith_file_complain(error, err, "writing", path, "no memory");
}

/* Two of one name would be one. */
static enum kith_err check_twins(const struct kith_names *names,
                                 const struct kith_tensor_entry *entries,
                                 uint32_t count, char *error)
{
    for (uint32_t i = 0; names != NULL && i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(entries[i].name, entries[k].name) == 0) {
                (void)snprintf(error, KITH_WEIGHTS_ERROR_BYTES,
                               "%.300s: two tensors of the model would be "
                               "called \"%s\"",
                               names->path, entries[i].name);
                return KITH_EMISMATCH;
            }
    return KITH_OK;
}

enum kith_err kith_weights_write(const char *path,
                                 const struct kith_names *names,
                                 const struct kith_layout *layout,
                                 const double *z, char *error)
{
    static const struct kith_text_entry texts[] = {{"format", "pt"}};
    uint8_t *header = NULL;
    size_t header_bytes = 0;
    if (check_names(names, layout, error) != KITH_OK)
        return KITH_EMISMATCH;
    struct kith_tensor_entry *entries =
        calloc(layout->view_count + 1, sizeof *entries);
    if (entries == NULL)
        return kith_file_complain(error, KITH_ENOMEM, "writing", path,
                                  "no memory");
    for (uint32_t i = 0; i < layout->view_count; i++)
        (void)kith_names_entry(names, &layout->views[i], &entries[i]);
    enum kith_err err = check_twins(names, entries, layout->view_count, error);
    if (err == KITH_OK) {
        err = kith_safetensors_header(entries, layout->view_count, texts, 1,
                                      &header, &header_bytes);
        if (err != KITH_OK)
            (void)kith_file_complain(error, err, "writing", path,
                                     err == KITH_ENOMEM ? "no memory"
                                                        : "too many tensors");
    }
    free(entries);
    if (err == KITH_OK)
        err = write_views(path, names, layout, z, header, header_bytes, error);
    free(header);
    return err;
}
