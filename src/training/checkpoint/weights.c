/* A model's weights in a safetensors file, and nothing else. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights.h"
#include "kith/assert.h"

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

bool kith_checkpoint_same_shape(const struct kith_tensor_entry *tensor,
                                const struct kith_model_view *view)
{
    if (tensor->rank != view->rank)
        return false;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (tensor->shape[i] != view->shape[i])
            return false;
    }
    return true;
}

static void shape_text(uint32_t rank, const uint64_t *shape, char text[96])
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < rank && at < 90; i++)
        at += (size_t)snprintf(text + at, 96 - at, "%s%llu", i == 0 ? "" : ", ",
                               (unsigned long long)shape[i]);
}

static enum kith_err other_shape(const char *path, char *error,
                                 const struct kith_tensor_entry *tensor,
                                 const struct kith_model_view *view)
{
    char what[KITH_CHECKPOINT_ERROR_BYTES], found[96], wanted[96];
    uint64_t shape[4] = {0};
    for (uint32_t i = 0; i < view->rank; i++)
        shape[i] = view->shape[i];
    shape_text(tensor->rank, tensor->shape, found);
    shape_text(view->rank, shape, wanted);
    (void)snprintf(what, sizeof what, "tensor %s is (%s), the model's is (%s)",
                   tensor->name, found, wanted);
    return kith_file_complain(error, KITH_EMISMATCH, "reading", path, what);
}

enum kith_err kith_checkpoint_read_views(const char *path,
                                         const struct kith_safetensors *file,
                                         const uint8_t *bytes,
                                         const struct kith_layout *layout,
                                         double *z, char *error)
{
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        const struct kith_tensor_entry *tensor = find_view(file, view);
        char what[KITH_CHECKPOINT_ERROR_BYTES];
        if (tensor == NULL) {
            (void)snprintf(what, sizeof what,
                           "it has no tensor %s: another model's?", view->name);
            return kith_file_complain(error, KITH_EMISMATCH, "reading", path,
                                      what);
        }
        if (!kith_checkpoint_same_shape(tensor, view))
            return other_shape(path, error, tensor, view);
        kith_dtype_read(tensor->dtype, view->elements, bytes + tensor->offset,
                        z + view->offset);
    }
    return KITH_OK;
}

enum kith_err kith_weights_read(const char *path,
                                const struct kith_layout *layout, double *z,
                                char *error)
{
    struct kith_file_map map;
    struct kith_safetensors file;
    char why[KITH_CHECKPOINT_ERROR_BYTES];
    enum kith_err err = kith_file_map_open(path, &map, error);
    if (err != KITH_OK)
        return err;
    err = kith_safetensors_parse(map.bytes, map.size, &file, why);
    if (err == KITH_OK) {
        err = kith_checkpoint_read_views(path, &file, map.bytes, layout, z,
                                         error);
        kith_safetensors_free(&file);
    } else {
        kith_file_complain(error, err, "reading", path, why);
    }
    kith_file_map_close(&map);
    return err;
}

enum kith_err kith_checkpoint_text(const char *path, const char *key,
                                   char **text, char *error)
{
    struct kith_file_map map;
    struct kith_safetensors file;
    char why[KITH_CHECKPOINT_ERROR_BYTES];
    *text = NULL;
    enum kith_err err = kith_file_map_open(path, &map, error);
    if (err != KITH_OK)
        return err;
    err = kith_safetensors_parse(map.bytes, map.size, &file, why);
    if (err == KITH_OK) {
        const char *found = kith_safetensors_text(&file, key);
        const size_t size = found == NULL ? 0 : strlen(found) + 1;
        *text = found == NULL ? NULL : malloc(size);
        if (*text != NULL)
            memcpy(*text, found, size);
        else if (found != NULL)
            err = kith_file_complain(error, KITH_ENOMEM, "reading", path,
                                     "no memory");
        kith_safetensors_free(&file);
    } else {
        kith_file_complain(error, err, "reading", path, why);
    }
    kith_file_map_close(&map);
    return err;
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
