/* A peer's checkpoint: its model, what its optimiser keeps, and where it
 * stands, as one safetensors file.
 *
 *   __metadata__   blake2b first, so that it stands at a known place: 64 hex
 *                  digits over the whole file with zeros in their place;
 *                  kith, experiment, source, step, epoch, cursor, peer,
 *                  scalar.K, machine
 *   NAME           each view of the model
 *   optimiser.K.NAME   each trained view of state vector K
 *
 * Reading checks the hash before anything in the file is believed, then the
 * experiment, then every tensor, and only then touches the worker. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "kith/text.h"
#include "private.h"

static const char version[] = "checkpoint-v1";
static const char opening[] = "{\"__metadata__\":{\"blake2b\":\"";
enum {
    HASH_AT = 8 + sizeof opening - 1, /* of the digits in the file */
    HASH_DIGITS = 64,
    HASH_BYTES = 32,
    CHUNK = 8192, /* elements */
    TEXTS_MAX = 16
};

/* ---- writing */

struct texts {
    struct kith_text_entry entries[TEXTS_MAX];
    char values[TEXTS_MAX][96];
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

static void worker_texts(const struct kith_worker *worker, uint64_t step,
                         struct texts *texts)
{
    static const char zeros[HASH_DIGITS + 1] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    static const char *const scalars[] = {"scalar.0", "scalar.1", "scalar.2"};
    _Static_assert(KITH_SCALARS_MAX <= 3, "a name for each scalar");
    const struct kith_place place = kith_worker_place(worker);
    texts->count = 0;
    add_text(texts, "blake2b", zeros);
    add_text(texts, "format", "pt");
    add_text(texts, "kith", version);
    add_number(texts, "experiment", kith_experiment_hash(worker->experiment));
    add_number(texts, "step", step);
    add_number(texts, "epoch", place.epoch);
    add_number(texts, "cursor", place.cursor);
    add_number(texts, "peer", worker->self);
    for (unsigned i = 0; i < worker->algorithm->scalar_count; i++) {
        char *text = texts->values[texts->count];
        (void)snprintf(text, sizeof texts->values[0], "%a", worker->scalars[i]);
        add_text(texts, scalars[i], text);
    }
    char *machine = texts->values[texts->count];
    kith_worker_machine(worker, machine, sizeof texts->values[0]);
    add_text(texts, "machine", machine);
    add_text(texts, "source",
             worker->experiment->source == NULL ? ""
                                                : worker->experiment->source);
}

static unsigned state_count(const struct kith_worker *worker)
{
    unsigned count = 0;
    while (count < KITH_STATES_MAX && worker->state[count] != NULL)
        count++;
    return count;
}

/* The views, then those of every state vector. */
static size_t fill_entries(const struct kith_worker *worker,
                           struct kith_tensor_entry *entries)
{
    const enum kith_dtype dtype =
        worker->backend->element_bytes == 8 ? KITH_DTYPE_F64 : KITH_DTYPE_F32;
    const struct kith_layout *layout = worker->layout;
    size_t count = 0;
    for (uint32_t i = 0; i < layout->view_count; i++)
        checkpoint_entry(&entries[count++], "", dtype, &layout->views[i]);
    for (unsigned k = 0; k < state_count(worker); k++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "optimiser.%u.", k);
        for (uint32_t i = 0; i < layout->view_count; i++) {
            if (layout->views[i].offset < layout->trained)
                checkpoint_entry(&entries[count++], prefix, dtype,
                                 &layout->views[i]);
        }
    }
    return count;
}

static enum kith_err make_header(const struct kith_worker *worker,
                                 uint64_t step, uint8_t **header,
                                 size_t *header_bytes)
{
    struct texts texts;
    struct kith_tensor_entry *entries =
        calloc((1 + KITH_STATES_MAX) * worker->layout->view_count + 1,
               sizeof *entries);
    if (entries == NULL)
        return KITH_ENOMEM;
    worker_texts(worker, step, &texts);
    const size_t count = fill_entries(worker, entries);
    const enum kith_err err = kith_safetensors_header(
        entries, count, texts.entries, texts.count, header, header_bytes);
    free(entries);
    return err;
}

struct sink {
    struct work_writer writer;
    crypto_generichash_state hash;
};

static void put(struct sink *sink, const void *bytes, size_t size)
{
    (void)crypto_generichash_update(&sink->hash, bytes, size);
    work_write(&sink->writer, bytes, size);
}

/* Elements [0, n) of a vector on the backend, in its own element type. */
static void put_vector(struct sink *sink, const struct kith_backend *backend,
                       const void *vector, size_t n)
{
    double wide[CHUNK];
    float single[CHUNK];
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t count = n - at < CHUNK ? n - at : CHUNK;
        backend->read(count, (const char *)vector + at * backend->element_bytes,
                      wide);
        for (size_t i = 0; i < count; i++)
            single[i] = (float)wide[i];
        if (backend->element_bytes == sizeof(double))
            put(sink, wide, count * sizeof wide[0]);
        else
            put(sink, single, count * sizeof single[0]);
    }
}

enum kith_err kith_save_write(struct kith_worker *worker, const char *path,
                              uint64_t step, char *error)
{
    struct sink sink;
    uint8_t *header, hash[HASH_BYTES];
    size_t header_bytes;
    char digits[HASH_DIGITS + 1];
    if (sodium_init() < 0)
        return work_complain(error, KITH_EDEVICE, "writing", path,
                             "libsodium refuses to start");
    enum kith_err err = make_header(worker, step, &header, &header_bytes);
    if (err != KITH_OK)
        return work_complain(error, err, "writing", path,
                             "no memory for its header");
    err = work_writer_open(&sink.writer, path, error);
    if (err == KITH_OK) {
        (void)crypto_generichash_init(&sink.hash, NULL, 0, HASH_BYTES);
        put(&sink, header, header_bytes);
        put_vector(&sink, worker->backend, worker->slots[KITH_SLOT_LIVE],
                   worker->dim);
        for (unsigned k = 0; k < state_count(worker); k++)
            put_vector(&sink, worker->backend, worker->state[k],
                       worker->layout->trained);
        (void)crypto_generichash_final(&sink.hash, hash, sizeof hash);
        (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
        work_write_at(&sink.writer, HASH_AT, digits, HASH_DIGITS);
        err = work_writer_commit(&sink.writer, true, error);
    }
    free(header);
    return err;
}

/* ---- reading */

struct source {
    const char *path;
    char *error;
    struct work_map map;
    struct kith_safetensors file;
};

static enum kith_err refuse(const struct source *source, enum kith_err err,
                            const char *what)
{
    return work_complain(source->error, err, "reading", source->path, what);
}

static bool is_ours(const struct work_map *map)
{
    return map->size > HASH_AT + HASH_DIGITS &&
           memcmp(map->bytes + 8, opening, sizeof opening - 1) == 0;
}

static enum kith_err check_hash(const struct source *source)
{
    uint8_t hash[HASH_BYTES];
    char digits[HASH_DIGITS + 1], zeros[HASH_DIGITS];
    const uint8_t *bytes = source->map.bytes;
    crypto_generichash_state state;
    memset(zeros, '0', sizeof zeros);
    (void)crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    (void)crypto_generichash_update(&state, bytes, HASH_AT);
    (void)crypto_generichash_update(&state, (const uint8_t *)zeros,
                                    sizeof zeros);
    (void)crypto_generichash_update(&state, bytes + HASH_AT + HASH_DIGITS,
                                    source->map.size - HASH_AT - HASH_DIGITS);
    (void)crypto_generichash_final(&state, hash, sizeof hash);
    (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
    if (memcmp(digits, bytes + HASH_AT, HASH_DIGITS) == 0)
        return KITH_OK;
    return refuse(source, KITH_EPARSE,
                  "its checksum does not match: truncated or damaged; the one "
                  "before is PATH.previous");
}

static void source_close(struct source *source)
{
    kith_safetensors_free(&source->file);
    work_map_close(&source->map);
}

/* Hash, header and version; nothing needs closing on an error. */
static enum kith_err source_open(struct source *source, const char *path,
                                 char *error)
{
    char why[KITH_CHECKPOINT_ERROR_BYTES];
    *source = (struct source){.path = path, .error = error};
    if (sodium_init() < 0)
        return refuse(source, KITH_EDEVICE, "libsodium refuses to start");
    enum kith_err err = work_map_open(path, &source->map, error);
    if (err != KITH_OK)
        return err;
    err = is_ours(&source->map)
              ? check_hash(source)
              : refuse(source, KITH_EVERSION, "not a checkpoint of kith");
    if (err == KITH_OK) {
        err = kith_safetensors_parse(source->map.bytes, source->map.size,
                                     &source->file, why);
        if (err != KITH_OK)
            refuse(source, err, why);
    }
    const char *found = kith_safetensors_text(&source->file, "kith");
    if (err == KITH_OK && (found == NULL || strcmp(found, version) != 0))
        err = refuse(source, KITH_EVERSION,
                     "written by another version of kith: not checkpoint-v1");
    if (err != KITH_OK)
        source_close(source);
    return err;
}

static bool number(const struct source *source, const char *key,
                   uint64_t *value)
{
    const char *text = kith_safetensors_text(&source->file, key);
    return text != NULL && kith_text_u64(text, value) == KITH_OK;
}

/* The weights of push-sum: shares of one, never 0. */
static enum kith_err read_scalars(const struct source *source, unsigned count,
                                  double *scalars)
{
    for (unsigned i = 0; i < count; i++) {
        char key[32], *end;
        (void)snprintf(key, sizeof key, "scalar.%u", i);
        const char *text = kith_safetensors_text(&source->file, key);
        scalars[i] = text == NULL ? NAN : strtod(text, &end);
        if (text == NULL || *end != '\0' || !isfinite(scalars[i]) ||
            scalars[i] <= 0)
            return refuse(source, KITH_EPARSE,
                          "a weight in it is not a positive number; the one "
                          "before is PATH.previous");
    }
    return KITH_OK;
}

static enum kith_err check_experiment(const struct source *source,
                                      const struct kith_experiment *experiment)
{
    uint64_t hash;
    if (!number(source, "experiment", &hash) ||
        hash != kith_experiment_hash(experiment))
        return refuse(source, KITH_EMISMATCH,
                      "it belongs to another experiment (model, data, "
                      "training, gossip, seed or peers differ)");
    return KITH_OK;
}

/* Every tensor that the worker needs, in its type and shape. */
static enum kith_err check_tensors(const struct source *source,
                                   const struct kith_worker *worker)
{
    const size_t most = (1 + KITH_STATES_MAX) * worker->layout->view_count;
    struct kith_tensor_entry *wanted = calloc(most + 1, sizeof *wanted);
    if (wanted == NULL)
        return refuse(source, KITH_ENOMEM, "no memory");
    const size_t count = fill_entries(worker, wanted);
    bool fits = source->file.tensor_count == count;
    for (size_t i = 0; i < count && fits; i++) {
        const struct kith_tensor_entry *found =
            kith_safetensors_find(&source->file, wanted[i].name);
        fits = found != NULL && found->dtype == wanted[i].dtype &&
               found->rank == wanted[i].rank &&
               memcmp(found->shape, wanted[i].shape, sizeof found->shape) == 0;
    }
    free(wanted);
    return fits ? KITH_OK
                : refuse(source, KITH_EMISMATCH,
                         "it was written by another backend or optimiser, or "
                         "its model has other tensors");
}

/* One view of one vector, from the file to the backend. */
static void get_view(const struct source *source, const char *prefix,
                     const struct kith_model_view *view,
                     const struct kith_backend *backend, void *vector)
{
    char name[KITH_TENSOR_NAME_BYTES];
    double wide[CHUNK];
    (void)snprintf(name, sizeof name, "%s%s", prefix, view->name);
    const struct kith_tensor_entry *tensor =
        kith_safetensors_find(&source->file, name);
    const size_t width = kith_dtype_bytes(tensor->dtype);
    for (size_t at = 0; at < view->elements; at += CHUNK) {
        const size_t left = view->elements - at;
        const size_t count = left < CHUNK ? left : CHUNK;
        kith_dtype_read(tensor->dtype, count,
                        source->map.bytes + tensor->offset + at * width, wide);
        backend->write(count, wide,
                       (char *)vector +
                           (view->offset + at) * backend->element_bytes);
    }
}

static void get_vectors(const struct source *source, struct kith_worker *worker)
{
    const struct kith_layout *layout = worker->layout;
    for (uint32_t i = 0; i < layout->view_count; i++) {
        const struct kith_model_view *view = &layout->views[i];
        get_view(source, "", view, worker->backend,
                 worker->slots[KITH_SLOT_LIVE]);
        for (unsigned k = 0; k < state_count(worker); k++) {
            char prefix[32];
            (void)snprintf(prefix, sizeof prefix, "optimiser.%u.", k);
            if (view->offset < layout->trained)
                get_view(source, prefix, view, worker->backend,
                         worker->state[k]);
        }
    }
}

/* A note in source->error where another machine wrote it. */
static void compare_machines(const struct source *source,
                             const struct kith_worker *worker)
{
    char here[96];
    const char *there = kith_safetensors_text(&source->file, "machine");
    kith_worker_machine(worker, here, sizeof here);
    source->error[0] = '\0';
    if (there == NULL || strcmp(here, there) != 0)
        (void)snprintf(source->error, KITH_DATA_ERROR_BYTES,
                       "resuming on another machine: the last bits may differ "
                       "from an uninterrupted run (\"%.90s\" wrote it, this is "
                       "\"%s\")",
                       there == NULL ? "?" : there, here);
}

static enum kith_err resume(const struct source *source,
                            struct kith_worker *worker, uint64_t *step)
{
    uint64_t epoch, cursor, peer;
    double scalars[KITH_SCALARS_MAX];
    memcpy(scalars, worker->scalars, sizeof scalars);
    enum kith_err err = check_experiment(source, worker->experiment);
    if (err == KITH_OK &&
        (!number(source, "step", step) || !number(source, "peer", &peer) ||
         !number(source, "epoch", &epoch) ||
         !number(source, "cursor", &cursor)))
        err = refuse(source, KITH_EPARSE, "its place in the run is missing");
    if (err == KITH_OK && peer != worker->self)
        err = refuse(source, KITH_EMISMATCH, "it belongs to another peer");
    if (err == KITH_OK)
        err = check_tensors(source, worker);
    if (err == KITH_OK)
        err = read_scalars(source, worker->algorithm->scalar_count, scalars);
    if (err == KITH_OK &&
        (epoch > UINT32_MAX ||
         kith_worker_go_to(
             worker, (struct kith_place){(uint32_t)epoch, cursor}) != KITH_OK))
        err = refuse(source, KITH_EPARSE, "its place in the data is nowhere");
    if (err != KITH_OK)
        return err;
    memcpy(worker->scalars, scalars, sizeof scalars);
    get_vectors(source, worker);
    compare_machines(source, worker);
    return KITH_OK;
}

enum kith_err kith_save_read(struct kith_worker *worker, const char *path,
                             uint64_t *step, char *error)
{
    struct source source;
    enum kith_err err = source_open(&source, path, error);
    if (err != KITH_OK)
        return err;
    err = resume(&source, worker, step);
    source_close(&source);
    return err;
}

static enum kith_err read_parameters(const struct source *source,
                                     const struct kith_experiment *experiment,
                                     const struct kith_layout *layout,
                                     double *z, uint64_t *step)
{
    double scalars[KITH_SCALARS_MAX];
    const struct kith_algorithm *algorithm = experiment->gossip.algorithm;
    enum kith_err err = check_experiment(source, experiment);
    if (err == KITH_OK && !number(source, "step", step))
        err = refuse(source, KITH_EPARSE, "its place in the run is missing");
    if (err == KITH_OK)
        err = read_scalars(source, algorithm->scalar_count, scalars);
    if (err == KITH_OK)
        err =
            checkpoint_read_views(source->path, &source->file,
                                  source->map.bytes, layout, z, source->error);
    const double factor = err != KITH_OK || algorithm->factor == NULL
                              ? 1
                              : algorithm->factor(scalars);
    for (size_t i = 0; i < layout->gossiped && factor != 1; i++)
        z[i] *= factor;
    return err;
}

enum kith_err kith_save_parameters(const struct kith_experiment *experiment,
                                   const char *path, double **z, size_t *dim,
                                   uint64_t *step, char *error)
{
    struct source source;
    struct kith_network *network = NULL;
    char why[KITH_MODEL_ERROR_BYTES];
    *z = NULL;
    enum kith_err err = source_open(&source, path, error);
    if (err != KITH_OK)
        return err;
    const struct kith_network_options options = {.backend = experiment->backend,
                                                 .rows = 1};
    err = kith_network_open(experiment->model, &experiment->model_config,
                            &options, &network, why);
    if (err == KITH_OK) {
        const struct kith_layout *layout = kith_network_layout(network);
        *dim = layout->dim;
        *z = malloc((*dim > 0 ? *dim : 1) * sizeof **z);
        err = *z == NULL
                  ? refuse(&source, KITH_ENOMEM, "no memory for it")
                  : read_parameters(&source, experiment, layout, *z, step);
        kith_network_close(network);
    } else {
        refuse(&source, err, why);
    }
    if (err != KITH_OK) {
        free(*z);
        *z = NULL;
    }
    source_close(&source);
    return err;
}

enum kith_err kith_checkpoint_experiment(const char *path, char **text,
                                         char *error)
{
    struct source source;
    *text = NULL;
    enum kith_err err = source_open(&source, path, error);
    if (err != KITH_OK)
        return err;
    const char *found = kith_safetensors_text(&source.file, "source");
    if (found == NULL || found[0] == '\0')
        err = refuse(&source, KITH_EPARSE, "it names no experiment");
    else if ((*text = strdup(found)) == NULL)
        err = refuse(&source, KITH_ENOMEM, "no memory");
    source_close(&source);
    return err;
}
