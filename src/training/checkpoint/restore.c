/* Checkpoints are read with suspicion: the hash before anything in the file is
 * believed, then whose it is, then every tensor and text, and only then is the
 * worker touched. What was refused is named, with what to do. */
#include <inttypes.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/backend.h"
#include "kith/text.h"
#include "save.h"

/* By its first bytes, as far as there are any. */
static enum kith_err check_opening(const struct source *source)
{
    const struct kith_file_map *map = &source->map;
    const size_t opening = sizeof SAVE_OPENING - 1;
    const size_t there = map->size < 8 ? 0 : map->size - 8;
    if (there > 0 && memcmp(map->bytes + 8, SAVE_OPENING,
                            there < opening ? there : opening) != 0)
        return refuse(source, KITH_EVERSION,
                      "not a checkpoint of kith, or its first bytes are "
                      "damaged; weights alone are for kith train --init");
    return map->size > SAVE_HASH_AT + SAVE_HASH_DIGITS
               ? KITH_OK
               : refuse(source, KITH_EPARSE, "it is truncated");
}

static enum kith_err check_hash(const struct source *source)
{
    const enum kith_err err = check_opening(source);
    if (err != KITH_OK)
        return err;
    uint8_t hash[SAVE_HASH_BYTES];
    char digits[SAVE_HASH_DIGITS + 1], zeros[SAVE_HASH_DIGITS];
    const uint8_t *bytes = source->map.bytes;
    crypto_generichash_state state;
    memset(zeros, '0', sizeof zeros);
    (void)crypto_generichash_init(&state, NULL, 0, SAVE_HASH_BYTES);
    (void)crypto_generichash_update(&state, bytes, SAVE_HASH_AT);
    (void)crypto_generichash_update(&state, (const uint8_t *)zeros,
                                    sizeof zeros);
    (void)crypto_generichash_update(
        &state, bytes + SAVE_HASH_AT + SAVE_HASH_DIGITS,
        source->map.size - SAVE_HASH_AT - SAVE_HASH_DIGITS);
    (void)crypto_generichash_final(&state, hash, sizeof hash);
    (void)sodium_bin2hex(digits, sizeof digits, hash, sizeof hash);
    if (memcmp(digits, bytes + SAVE_HASH_AT, SAVE_HASH_DIGITS) == 0)
        return KITH_OK;
    return refuse(source, KITH_EPARSE,
                  "its checksum does not match: truncated or damaged");
}

/* Hash, header and version; nothing needs closing on an error. */
static enum kith_err source_open(struct source *source, const char *path,
                                 char *error)
{
    if (sodium_init() < 0)
        return kith_file_complain(error, KITH_EDEVICE, "reading", path,
                                  "libsodium refuses to start");
    const enum kith_err err = kith_source_open(source, path, error, check_hash);
    if (err != KITH_OK)
        return err;
    const char *found = kith_safetensors_text(&source->file, "kith");
    if (found != NULL && strcmp(found, SAVE_VERSION) == 0)
        return KITH_OK;
    kith_source_close(source);
    return refuse(source, KITH_EVERSION,
                  "written by another version of kith: not " SAVE_VERSION);
}

static bool number(const struct source *source, const char *key,
                   uint64_t *value)
{
    const char *text = kith_safetensors_text(&source->file, key);
    return text != NULL && kith_text_u64(text, value) == KITH_OK;
}

/* The weights of push-sum, and the like. */
static enum kith_err read_scalars(const struct source *source,
                                  const struct kith_task *task, double *scalars)
{
    const struct kith_algorithm *algorithm = task->algorithm;
    for (unsigned i = 0; i < algorithm->scalar_count; i++) {
        char key[32], *end = NULL;
        (void)snprintf(key, sizeof key, "scalar.%u", i);
        const char *text = kith_safetensors_text(&source->file, key);
        scalars[i] = text == NULL ? NAN : strtod(text, &end);
        if (text == NULL || *end != '\0' ||
            !kith_algorithm_is_sane(algorithm, task->peers, scalars[i]))
            return refuse(source, KITH_EPARSE,
                          "a weight in it is none of its algorithm's");
    }
    return KITH_OK;
}

static enum kith_err check_experiment(const struct source *source,
                                      const struct kith_owner *owner)
{
    char what[200], text[256];
    if (owner->is(owner->experiment,
                  kith_safetensors_text(&source->file, "experiment"),
                  kith_safetensors_text(&source->file, "source"), what,
                  sizeof what))
        return KITH_OK;
    (void)snprintf(text, sizeof text, "it belongs to another experiment: %s",
                   what);
    return refuse(source, KITH_EMISMATCH, text);
}

static bool real(const struct source *source, const char *key, double *value)
{
    char *end;
    const char *text = kith_safetensors_text(&source->file, key);
    if (text == NULL || text[0] == '\0')
        return false;
    *value = strtod(text, &end);
    return *end == '\0';
}

/* 146 years: clocks and periods are added to it. */
#define ELAPSED_MAX ((uint64_t)INT64_MAX / 2)

static enum kith_err read_standing(const struct source *source,
                                   struct kith_standing *standing)
{
    uint64_t elapsed, stale;
    if (!number(source, "step", &standing->step) ||
        !number(source, "elapsed", &elapsed) || elapsed > ELAPSED_MAX ||
        !real(source, "loss.sum", &standing->loss_sum) ||
        !number(source, "loss.count", &standing->loss_count) ||
        !real(source, "best", &standing->best) ||
        !number(source, "best.step", &standing->best_step) ||
        !number(source, "best.stale", &stale) || stale > UINT32_MAX)
        return refuse(source, KITH_EPARSE, "its place in the run is missing");
    standing->elapsed_ns = (kith_ns)elapsed;
    standing->stale = (uint32_t)stale;
    /* Of reports alone: what makes no sense counts as not measured. */
    if (!real(source, "peak", &standing->peak) || !isfinite(standing->peak) ||
        standing->peak < 0)
        standing->peak = 0;
    return KITH_OK;
}

/* Every tensor that the worker needs, in its type and shape. */
static enum kith_err check_tensors(const struct source *source,
                                   const struct kith_worker_content *content)
{
    const size_t most = SAVE_PARTS_MAX * content->layout->view_count;
    struct kith_tensor_entry *wanted = calloc(most + 1, sizeof *wanted);
    if (wanted == NULL)
        return refuse(source, KITH_ENOMEM, "no memory");
    const size_t count = kith_save_entries(content, wanted);
    bool fits = source->file.tensor_count == count;
    for (size_t i = 0; i < count && fits; i++) {
        const struct kith_tensor_entry *found =
            kith_safetensors_find(&source->file, wanted[i].name);
        fits = found != NULL && found->dtype == wanted[i].dtype &&
               kith_checkpoint_same_shape(found, &wanted[i]);
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
    double wide[SAVE_CHUNK];
    (void)snprintf(name, sizeof name, "%s%s", prefix, view->name);
    const struct kith_tensor_entry *tensor =
        kith_safetensors_find(&source->file, name);
    const size_t width = kith_dtype_bytes(tensor->dtype);
    for (size_t at = 0; at < view->elements; at += SAVE_CHUNK) {
        const size_t left = view->elements - at;
        const size_t count = left < SAVE_CHUNK ? left : SAVE_CHUNK;
        kith_dtype_read(tensor->dtype, count,
                        source->map.bytes + tensor->offset + at * width, wide);
        backend->write(count, wide,
                       (char *)vector +
                           (view->offset + at) * backend->element_bytes);
    }
}

static void get_vectors(const struct source *source,
                        const struct kith_worker_content *content)
{
    const struct kith_layout *layout = content->layout;
    struct save_part parts[SAVE_PARTS_MAX];
    const size_t count = kith_save_parts(content, parts);
    for (size_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < layout->view_count; i++) {
            if (layout->views[i].offset < parts[k].elements)
                get_view(source, parts[k].prefix, &layout->views[i],
                         content->backend, parts[k].vector);
        }
    }
}

/* A note in source->error where another machine or build wrote it. */
static void compare_machines(const struct source *source,
                             const struct kith_worker_content *content)
{
    char here[SAVE_TEXT_BYTES];
    const char *there = kith_safetensors_text(&source->file, "machine");
    kith_machine_describe(content->backend, here, sizeof here);
    source->error[0] = '\0';
    if (there == NULL || strcmp(here, there) != 0)
        (void)snprintf(source->error, KITH_DATA_ERROR_BYTES,
                       "the last bits may differ from an uninterrupted run: "
                       "%.180s wrote the checkpoint, this is %.180s",
                       there == NULL ? "?" : there, here);
}

/* What multiplied matrices goes on doing so, where it is here. */
static void take_products(const struct source *source)
{
    const char *products = kith_safetensors_text(&source->file, "products");
    if (products != NULL && strcmp(products, kith_backend_product_name()) != 0)
        (void)!kith_backend_product(products);
}

static enum kith_err check_owner(const struct source *source,
                                 const struct kith_worker_content *content)
{
    uint64_t peer;
    const char *role = kith_safetensors_text(&source->file, "role");
    if (role == NULL || !number(source, "peer", &peer))
        return refuse(source, KITH_EPARSE, "its place in the run is missing");
    if (strcmp(role, content->task->owner.role) != 0)
        return refuse(source, KITH_EMISMATCH,
                      role[0] == 't' ? "it belongs to kith train, not to a peer"
                                     : "it belongs to a peer of kith lab or "
                                       "kith peer, not to kith train");
    if (peer != content->self)
        return refuse(source, KITH_EMISMATCH, "it belongs to another peer");
    return KITH_OK;
}

static enum kith_err restore(const struct source *source,
                             struct kith_worker *worker,
                             struct kith_standing *standing)
{
    struct kith_standing read = {.step = 0};
    uint64_t epoch = 0, cursor = 0;
    double scalars[KITH_SCALARS_MAX];
    const struct kith_worker_content content = kith_worker_content(worker);
    memcpy(scalars, content.scalars, sizeof scalars);
    enum kith_err err = check_experiment(source, &content.task->owner);
    if (err == KITH_OK)
        err = check_owner(source, &content);
    if (err == KITH_OK)
        err = read_standing(source, &read);
    if (err == KITH_OK && (!number(source, "epoch", &epoch) ||
                           !number(source, "cursor", &cursor)))
        err = refuse(source, KITH_EPARSE, "its place in the data is missing");
    if (err == KITH_OK)
        err = check_tensors(source, &content);
    if (err == KITH_OK)
        err = read_scalars(source, content.task, scalars);
    if (err == KITH_OK &&
        (epoch > UINT32_MAX ||
         kith_worker_go_to(
             worker, (struct kith_place){(uint32_t)epoch, cursor}) != KITH_OK))
        err = refuse(source, KITH_EPARSE, "its place in the data is nowhere");
    if (err != KITH_OK)
        return err;
    memcpy(content.scalars, scalars, sizeof scalars);
    get_vectors(source, &content);
    take_products(source);
    compare_machines(source, &content);
    *standing = read;
    return KITH_OK;
}

enum kith_err kith_save_read(struct kith_worker *worker, const char *path,
                             struct kith_standing *standing, char *error)
{
    struct source source;
    enum kith_err err = source_open(&source, path, error);
    if (err != KITH_OK)
        return err;
    err = restore(&source, worker, standing);
    kith_source_close(&source);
    return err;
}

enum kith_err kith_save_resume(struct kith_worker *worker, const char *path,
                               struct kith_standing *standing, char *error)
{
    char previous[KITH_PATH_BYTES_MAX + 16], aside[sizeof previous];
    char why[2][KITH_DATA_ERROR_BYTES];
    error[0] = '\0';
    if (strlen(path) >= KITH_PATH_BYTES_MAX)
        return kith_file_complain(error, KITH_ELIMIT, "reading", path,
                                  "the path is too long");
    const enum kith_err first = kith_save_read(worker, path, standing, error);
    /* What cannot be read now may be whole: only what was read and is not
     * right makes way for the one before it. */
    const bool refused = first == KITH_EPARSE || first == KITH_EVERSION ||
                         first == KITH_EMISMATCH || first == KITH_ENONFINITE ||
                         first == KITH_ELIMIT || first == KITH_EINVAL;
    if (!refused && first != KITH_ENOENT)
        return first;
    (void)snprintf(previous, sizeof previous, "%s.previous", path);
    (void)snprintf(aside, sizeof aside, "%s.refused", path);
    memcpy(why[0], error, sizeof why[0]);
    const enum kith_err err =
        kith_save_read(worker, previous, standing, why[1]);
    if (err == KITH_ENOENT && first == KITH_ENOENT)
        return first;
    if (err != KITH_OK) {
        const bool one = err == KITH_ENOENT;
        (void)snprintf(error, KITH_RESUME_ERROR_BYTES,
                       "%s%s%s; to start afresh take %s away or save elsewhere",
                       why[0], one ? "" : "; and ", one ? "" : why[1],
                       one ? "it" : "them");
        return first == KITH_ENOENT ? err : first;
    }
    const bool kept = first == KITH_ENOENT || rename(path, aside) == 0;
    (void)snprintf(error, KITH_RESUME_ERROR_BYTES,
                   "%s%s; going on from the one before it, .previous, at step "
                   "%" PRIu64 "%s%s",
                   why[0],
                   first != KITH_ENOENT && kept ? " (now .refused)" : "",
                   standing->step, why[1][0] == '\0' ? "" : "; ", why[1]);
    return KITH_OK;
}

static enum kith_err read_parameters(const struct source *source,
                                     const struct kith_task *task,
                                     const struct kith_layout *layout,
                                     double *z, uint64_t *step)
{
    double scalars[KITH_SCALARS_MAX];
    const struct kith_algorithm *algorithm = task->algorithm;
    const char *role = kith_safetensors_text(&source->file, "role");
    const bool gossips = role != NULL && strcmp(role, "peer") == 0;
    enum kith_err err = check_experiment(source, &task->owner);
    if (err == KITH_OK && !number(source, "step", step))
        err = refuse(source, KITH_EPARSE, "its place in the run is missing");
    if (err == KITH_OK && gossips)
        err = read_scalars(source, task, scalars);
    if (err == KITH_OK)
        err = kith_source_views(source, NULL, layout, z,
                                KITH_CHECKPOINT_ERROR_BYTES);
    const bool scaled = err == KITH_OK && gossips && algorithm->factor != NULL;
    const double factor = scaled ? algorithm->factor(scalars) : 1;
    for (size_t i = 0; i < layout->gossiped && factor != 1; i++)
        z[i] *= factor;
    return err;
}

enum kith_err kith_save_parameters(const struct kith_task *task,
                                   const struct kith_backend *backend,
                                   const char *path, double **z, size_t *dim,
                                   uint64_t *step, char *error)
{
    struct source source;
    struct kith_graph *network = NULL;
    char why[KITH_MODEL_ERROR_BYTES];
    *z = NULL;
    enum kith_err err = source_open(&source, path, error);
    if (err != KITH_OK)
        return err;
    const struct kith_graph_options options = {.backend = backend, .rows = 1};
    err = kith_graph_open(task->model, task->model_config, &options, &network,
                          why);
    if (err == KITH_OK) {
        const struct kith_layout *layout = kith_graph_layout(network);
        *dim = layout->dim;
        *z = malloc((*dim > 0 ? *dim : 1) * sizeof **z);
        err = *z == NULL ? refuse(&source, KITH_ENOMEM, "no memory for it")
                         : read_parameters(&source, task, layout, *z, step);
        kith_graph_close(network);
    } else {
        refuse(&source, err, why);
    }
    if (err != KITH_OK) {
        free(*z);
        *z = NULL;
    }
    kith_source_close(&source);
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
    err = found == NULL || found[0] == '\0'
              ? refuse(&source, KITH_EPARSE, "it names no experiment")
              : kith_source_text(&source, "source", text);
    kith_source_close(&source);
    return err;
}
