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

struct sink {
    struct work_writer writer;
    crypto_generichash_state hash;
    bool finite; /* all values so far */
};

static void put(struct sink *sink, const void *bytes, size_t size)
{
    (void)crypto_generichash_update(&sink->hash, bytes, size);
    kith_atomic_file_write(&sink->writer, bytes, size);
}

/* Elements [0, n) of a vector on the backend, in its own element type. */
static void put_vector(struct sink *sink, const struct kith_backend *backend,
                       const void *vector, size_t n)
{
    double wide[SAVE_CHUNK];
    float single[SAVE_CHUNK];
    for (size_t at = 0; at < n; at += SAVE_CHUNK) {
        const size_t count = n - at < SAVE_CHUNK ? n - at : SAVE_CHUNK;
        backend->read(count, (const char *)vector + at * backend->element_bytes,
                      wide);
        for (size_t i = 0; i < count; i++) {
            single[i] = (float)wide[i];
            sink->finite = sink->finite && isfinite(wide[i]);
        }
        if (backend->element_bytes == sizeof(double))
            put(sink, wide, count * sizeof wide[0]);
        else
            put(sink, single, count * sizeof single[0]);
    }
}

/* Everything of which a checkpoint is made; false: the model is not finite. */
static bool put_worker(struct sink *sink,
                       const struct kith_worker_content *content)
{
    struct save_part parts[SAVE_PARTS_MAX];
    const size_t count = kith_save_parts(content, parts);
    bool finite = true;
    for (size_t k = 0; k < count; k++) {
        sink->finite = true;
        put_vector(sink, content->backend, parts[k].vector, parts[k].elements);
        finite &= k > 0 || sink->finite; /* the first is the model */
    }
    return finite;
}

/* What was read from a device that fails is worth nothing, and a model that is
 * not finite must not take the place of one that is. */
static enum kith_err put_all(struct sink *sink,
                             const struct kith_worker_content *content,
                             const uint8_t *header, size_t header_bytes,
                             char *error)
{
    uint8_t hash[SAVE_HASH_BYTES];
    char digits[SAVE_HASH_DIGITS + 1];
    (void)crypto_generichash_init(&sink->hash, NULL, 0, SAVE_HASH_BYTES);
    put(sink, header, header_bytes);
    const bool finite = put_worker(sink, content);
    const struct kith_backend *backend = content->backend;
    /* Not the data's: a model is no worse for what could not be read next. */
    const char *failed = backend->failed == NULL ? NULL : backend->failed();
    const char *path = sink->writer.path;
    if (failed != NULL)
        return kith_file_complain(error, KITH_EDEVICE, "writing", path, failed);
    if (!finite)
        return kith_file_complain(
            error, KITH_ENONFINITE, "writing", path,
            "the model has a value that is not finite; what "
            "was there before stays");
    (void)crypto_generichash_final(&sink->hash, hash, sizeof hash);
    (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
    kith_atomic_file_write_at(&sink->writer, SAVE_HASH_AT, digits,
                              SAVE_HASH_DIGITS);
    return KITH_OK;
}

enum kith_err kith_save_write(struct kith_worker *worker, const char *path,
                              const struct kith_standing *standing,
                              bool keep_previous, char *error)
{
    const struct kith_worker_content content = kith_worker_content(worker);
    struct sink sink;
    uint8_t *header;
    size_t header_bytes;
    if (sodium_init() < 0)
        return kith_file_complain(error, KITH_EDEVICE, "writing", path,
                                  "libsodium refuses to start");
    enum kith_err err = make_header(
        &content, standing, kith_worker_place(worker), &header, &header_bytes);
    if (err != KITH_OK)
        return kith_file_complain(error, err, "writing", path,
                                  err == KITH_ENOMEM
                                      ? "no memory for its header"
                                      : "its header is too long");
    err = kith_atomic_file_open(&sink.writer, path, error);
    if (err == KITH_OK) {
        err = put_all(&sink, &content, header, header_bytes, error);
        if (err == KITH_OK)
            err = kith_atomic_file_commit(&sink.writer, keep_previous, error);
        else
            kith_atomic_file_abandon(&sink.writer);
    }
    free(header);
    return err;
}
