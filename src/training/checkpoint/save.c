/* A peer's checkpoint: its model, what its optimiser keeps, and where it
 * stands, as one safetensors file.
 *
 *   __metadata__   blake2b first, so that it stands at a known place: 64 hex
 *                  digits over the whole file with zeros in their place;
 *                  kith, role, experiment, source, step, epoch, cursor, peer,
 *                  elapsed, loss.*, best.*, scalar.K, peak, products, machine
 *   NAME           each view of the model
 *   optimiser.K.NAME   each trained view of state vector K
 *   algorithm.K.NAME   each gossiped view of the algorithm's own vector K
 *
 * How it is read stands in restore.c. */
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/backend.h"
#include "save.h"

enum { TEXTS_MAX = 32 };

struct texts {
    struct kith_text_entry entries[TEXTS_MAX];
    char values[TEXTS_MAX][SAVE_TEXT_BYTES];
    size_t count;
};

static void add_text(struct texts *texts, const char *key, const char *value)
{
    texts->entries[texts->count++] = (struct kith_text_entry){key, value};
}

static void add_number(struct texts *texts, const char *key, uint64_t value)
{
    char *text = texts->values[texts->count];
    (void)snprintf(text, sizeof texts->values[0], "%" PRIu64, value);
    add_text(texts, key, text);
}

/* As hexadecimal: all bits. */
static void add_real(struct texts *texts, const char *key, double value)
{
    char *text = texts->values[texts->count];
    (void)snprintf(text, sizeof texts->values[0], "%a", value);
    add_text(texts, key, text);
}

static void standing_texts(const struct kith_standing *standing,
                           struct texts *texts)
{
    add_number(texts, "step", standing->step);
    add_number(texts, "elapsed", (uint64_t)standing->elapsed_ns);
    add_real(texts, "loss.sum", standing->loss_sum);
    add_number(texts, "loss.count", standing->loss_count);
    add_real(texts, "best", standing->best);
    add_number(texts, "best.step", standing->best_step);
    add_number(texts, "best.stale", standing->stale);
    add_real(texts, "peak", standing->peak);
}

static void worker_texts(const struct kith_worker_content *content,
                         const struct kith_standing *standing,
                         struct kith_place place, struct texts *texts)
{
    static const char zeros[SAVE_HASH_DIGITS + 1] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    static const char *const scalars[] = {"scalar.0", "scalar.1", "scalar.2"};
    _Static_assert(KITH_SCALARS_MAX <= 3, "a name for each scalar");
    const struct kith_owner *owner = &content->task->owner;
    const char *source = owner->source;
    texts->count = 0;
    add_text(texts, "blake2b", zeros);
    add_text(texts, "format", "pt");
    add_text(texts, "kith", SAVE_VERSION);
    add_text(texts, "role", owner->role);
    char *hash = texts->values[texts->count];
    owner->hash(owner->experiment, hash);
    add_text(texts, "experiment", hash);
    standing_texts(standing, texts);
    add_number(texts, "epoch", place.epoch);
    add_number(texts, "cursor", place.cursor);
    add_number(texts, "peer", content->self);
    for (unsigned i = 0; i < content->task->algorithm->scalar_count; i++)
        add_real(texts, scalars[i], content->scalars[i]);
    add_text(texts, "products", kith_backend_product_name());
    char *machine = texts->values[texts->count];
    kith_machine_describe(content->backend, machine, sizeof texts->values[0]);
    add_text(texts, "machine", machine);
    if (content->train != NULL && content->train->alphabet != NULL)
        add_text(texts, "alphabet", content->train->alphabet);
    add_text(texts, "source", source == NULL ? "" : source);
}

static size_t add_parts(struct save_part *parts, size_t count, const char *of,
                        void *const *vectors, unsigned most, size_t elements)
{
    for (unsigned k = 0; k < most && vectors[k] != NULL; k++) {
        struct save_part *part = &parts[count++];
        (void)snprintf(part->prefix, sizeof part->prefix, "%s.%u.", of, k);
        part->vector = vectors[k];
        part->elements = elements;
    }
    return count;
}

size_t kith_save_parts(const struct kith_worker_content *content,
                       struct save_part parts[SAVE_PARTS_MAX])
{
    const struct kith_layout *layout = content->layout;
    parts[0] = (struct save_part){.vector = content->model,
                                  .elements = content->layout->dim};
    const size_t count = add_parts(parts, 1, "optimiser", content->states,
                                   KITH_STATES_MAX, layout->trained);
    return add_parts(parts, count, "algorithm", content->own,
                     content->task->algorithm->vectors, layout->gossiped);
}

size_t kith_save_entries(const struct kith_worker_content *content,
                         struct kith_tensor_entry *entries)
{
    const enum kith_dtype dtype =
        content->backend->element_bytes == 8 ? KITH_DTYPE_F64 : KITH_DTYPE_F32;
    const struct kith_layout *layout = content->layout;
    struct save_part parts[SAVE_PARTS_MAX];
    const size_t part_count = kith_save_parts(content, parts);
    size_t count = 0;
    for (size_t k = 0; k < part_count; k++) {
        for (uint32_t i = 0; i < layout->view_count; i++) {
            if (layout->views[i].offset < parts[k].elements)
                kith_checkpoint_entry(&entries[count++], parts[k].prefix, dtype,
                                      &layout->views[i]);
        }
    }
    return count;
}

static enum kith_err make_header(const struct kith_worker_content *content,
                                 const struct kith_standing *standing,
                                 struct kith_place place, uint8_t **header,
                                 size_t *header_bytes)
{
    struct texts texts;
    struct kith_tensor_entry *entries = calloc(
        SAVE_PARTS_MAX * content->layout->view_count + 1, sizeof *entries);
    if (entries == NULL)
        return KITH_ENOMEM;
    worker_texts(content, standing, place, &texts);
    const size_t count = kith_save_entries(content, entries);
    const enum kith_err err = kith_safetensors_header(
        entries, count, texts.entries, texts.count, header, header_bytes);
    free(entries);
    return err;
}

/* ---- taking: all that must not change meanwhile */

/* Elements [0, n) of a vector on the backend, in its own element type. Where it
 * lies in the host's memory that is a copy. */
static void take_vector(const struct kith_backend *backend, const void *vector,
                        size_t n, uint8_t *out)
{
    const size_t width = backend->element_bytes;
    double wide[SAVE_CHUNK];
    float single[SAVE_CHUNK];
    if (backend->host == backend) {
        memcpy(out, vector, n * width);
        return;
    }
    for (size_t at = 0; at < n; at += SAVE_CHUNK) {
        const size_t count = n - at < SAVE_CHUNK ? n - at : SAVE_CHUNK;
        backend->read(count, (const char *)vector + at * width, wide);
        for (size_t i = 0; i < count; i++)
            single[i] = (float)wide[i];
        memcpy(out + at * width,
               width == sizeof(double) ? (const void *)wide : single,
               count * width);
    }
}

static bool make_room(struct save_image *image, size_t size)
{
    if (size > image->capacity) {
        kith_save_image_free(image);
        image->bytes = malloc(size);
        if (image->bytes == NULL)
            return false;
        image->capacity = size;
    }
    image->size = size;
    return true;
}

static bool take_worker(struct save_image *image,
                        const struct kith_worker_content *content,
                        const uint8_t *header, size_t header_bytes)
{
    struct save_part parts[SAVE_PARTS_MAX];
    const size_t count = kith_save_parts(content, parts);
    const size_t width = content->backend->element_bytes;
    size_t at = header_bytes, size = header_bytes;
    for (size_t k = 0; k < count; k++)
        size += parts[k].elements * width;
    if (!make_room(image, size))
        return false;
    image->model_at = header_bytes;
    image->model_elements = parts[0].elements;
    image->element_bytes = width;
    memcpy(image->bytes, header, header_bytes);
    for (size_t k = 0; k < count; k++) {
        take_vector(content->backend, parts[k].vector, parts[k].elements,
                    image->bytes + at);
        at += parts[k].elements * width;
    }
    return true;
}

/* What was read from a device that fails is worth nothing. */
enum kith_err kith_save_take(struct kith_worker *worker, const char *path,
                             const struct kith_standing *standing,
                             struct save_image *image, char *error)
{
    const struct kith_worker_content content = kith_worker_content(worker);
    const struct kith_backend *backend = content.backend;
    uint8_t *header;
    size_t header_bytes;
    enum kith_err err = make_header(
        &content, standing, kith_worker_place(worker), &header, &header_bytes);
    if (err != KITH_OK)
        return kith_file_complain(error, err, "writing", path,
                                  err == KITH_ENOMEM
                                      ? "no memory for its header"
                                      : "its header is too long");
    const bool taken = take_worker(image, &content, header, header_bytes);
    free(header);
    if (!taken)
        return kith_file_complain(error, KITH_ENOMEM, "writing", path,
                                  "no memory for a copy of the state");
    /* Not the data's: a model is no worse for what could not be read next. */
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    return failed == NULL ? KITH_OK
                          : kith_file_complain(error, KITH_EDEVICE, "writing",
                                               path, failed);
}

void kith_save_image_free(struct save_image *image)
{
    free(image->bytes);
    *image = (struct save_image){.bytes = NULL};
}

/* ---- putting: hash, write, sync, rename */

/* All exponent bits are set in what is not finite. */
static bool is_finite(const struct save_image *image)
{
    const uint8_t *model = image->bytes + image->model_at;
    bool finite = true;
    for (size_t i = 0; i < image->model_elements; i++) {
        float single;
        double wide;
        if (image->element_bytes == sizeof wide) {
            memcpy(&wide, model + i * sizeof wide, sizeof wide);
            finite &= isfinite(wide) != 0;
        } else {
            memcpy(&single, model + i * sizeof single, sizeof single);
            finite &= isfinite(single) != 0;
        }
    }
    return finite;
}

/* The hash stands in the header, over the file with zeros in its place. */
static void put_bytes(struct work_writer *writer,
                      const struct save_image *image)
{
    uint8_t hash[SAVE_HASH_BYTES];
    char digits[SAVE_HASH_DIGITS + 1];
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, SAVE_HASH_BYTES);
    for (size_t at = 0; at < image->size; at += SAVE_PIECE) {
        const size_t left = image->size - at;
        const size_t count = left < SAVE_PIECE ? left : SAVE_PIECE;
        (void)crypto_generichash_update(&state, image->bytes + at, count);
        kith_atomic_file_write(writer, image->bytes + at, count);
    }
    (void)crypto_generichash_final(&state, hash, sizeof hash);
    (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
    kith_atomic_file_write_at(writer, SAVE_HASH_AT, digits, SAVE_HASH_DIGITS);
}

/* A model that is not finite must not take the place of one that is. */
enum kith_err kith_save_put(struct save_image *image, const char *path,
                            bool keep_previous, char *error)
{
    struct work_writer writer;
    if (sodium_init() < 0)
        return kith_file_complain(error, KITH_EDEVICE, "writing", path,
                                  "libsodium refuses to start");
    if (!is_finite(image))
        return kith_file_complain(
            error, KITH_ENONFINITE, "writing", path,
            "the model has a value that is not finite; what "
            "was there before stays");
    const enum kith_err err = kith_atomic_file_open(&writer, path, error);
    if (err != KITH_OK)
        return err;
    put_bytes(&writer, image);
    return kith_atomic_file_commit(&writer, keep_previous, error);
}

enum kith_err kith_save_write(struct kith_worker *worker, const char *path,
                              const struct kith_standing *standing,
                              bool keep_previous, char *error)
{
    struct save_image image = {.bytes = NULL};
    enum kith_err err = kith_save_take(worker, path, standing, &image, error);
    if (err == KITH_OK)
        err = kith_save_put(&image, path, keep_previous, error);
    kith_save_image_free(&image);
    return err;
}
