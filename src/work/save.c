/* Saves: a model on disk that survives a crash of the machine.
 *
 *   magic(16) | 12 words of 64 bits, little-endian | x | optimiser state | hash
 *
 * hash is BLAKE2b-256 over all before it. Vectors are raw, in the backend's
 * element type. A save is written to PATH.partial, flushed, then renamed, so
 * PATH is always whole; the one before stays as PATH.previous. Reading checks
 * name, sizes, experiment, hash and scalars before the worker is touched. */
#define _POSIX_C_SOURCE 200809L /* fsync, fileno, link */
#include "private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

static const char magic[16] = "kith-save-v1";

enum word {
    WORD_EXPERIMENT,
    WORD_DIM,
    WORD_ELEMENT,
    WORD_STATES,
    WORD_SCALARS,
    WORD_STEP,
    WORD_EPOCH,
    WORD_CURSOR,
    WORD_PEER,
    WORD_RESERVED,
    WORD_SCALAR_0,
    WORD_COUNT = WORD_SCALAR_0 + KITH_SCALARS_MAX
};
enum {
    HASH_BYTES = 32,
    HEADER_BYTES = sizeof magic + 8 * WORD_COUNT,
    CHUNK_BYTES = 1 << 16
};
_Static_assert(HASH_BYTES >= crypto_generichash_BYTES_MIN &&
                   HASH_BYTES <= crypto_generichash_BYTES_MAX,
               "BLAKE2b can give this many bytes");

struct header {
    uint64_t word[WORD_COUNT];
};

static enum kith_err complain(char *error, enum kith_err err, const char *doing,
                              const char *path, const char *what)
{
    const size_t length = strlen(path), shown = length < 250 ? length : 250;
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "%s save %s: %s", doing,
                   path + (length - shown), what);
    return err;
}

static enum kith_err from_errno(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return KITH_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return KITH_EPERM;
    case ENOSPC:
    case EDQUOT:
        return KITH_ENOSPC;
    default:
        return KITH_EIO;
    }
}

static void put_header(const struct header *header, uint8_t *bytes)
{
    memcpy(bytes, magic, sizeof magic);
    for (size_t i = 0; i < WORD_COUNT; i++) {
        for (unsigned k = 0; k < 8; k++)
            bytes[sizeof magic + 8 * i + k] =
                (uint8_t)(header->word[i] >> (8 * k));
    }
}

static void get_header(const uint8_t *bytes, struct header *header)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        header->word[i] = 0;
        for (unsigned k = 0; k < 8; k++)
            header->word[i] |= (uint64_t)bytes[sizeof magic + 8 * i + k]
                               << (8 * k);
    }
}

static struct header worker_header(const struct kith_worker *worker,
                                   uint64_t step)
{
    struct header header = {{0}};
    header.word[WORD_EXPERIMENT] = kith_experiment_hash(worker->experiment);
    header.word[WORD_DIM] = worker->dim;
    header.word[WORD_ELEMENT] = worker->backend->element_bytes;
    for (unsigned i = 0; i < KITH_STATES_MAX; i++)
        header.word[WORD_STATES] += worker->state[i] != NULL;
    header.word[WORD_SCALARS] = worker->algorithm->scalar_count;
    header.word[WORD_STEP] = step;
    header.word[WORD_EPOCH] = worker->epoch;
    header.word[WORD_CURSOR] = worker->cursor;
    header.word[WORD_PEER] = worker->self;
    memcpy(&header.word[WORD_SCALAR_0], worker->scalars,
           sizeof worker->scalars);
    return header;
}

struct writer {
    FILE *file;
    crypto_generichash_state hash;
};

static bool write_bytes(struct writer *writer, const void *bytes, size_t size)
{
    crypto_generichash_update(&writer->hash, bytes, size);
    return fwrite(bytes, 1, size, writer->file) == size;
}

/* False with errno set: the disk said no. */
static bool write_all(struct kith_worker *worker, uint64_t step, FILE *file)
{
    struct writer writer = {.file = file};
    uint8_t bytes[HEADER_BYTES], hash[HASH_BYTES];
    const struct header header = worker_header(worker, step);
    crypto_generichash_init(&writer.hash, NULL, 0, HASH_BYTES);
    put_header(&header, bytes);
    bool ok =
        write_bytes(&writer, bytes, sizeof bytes) &&
        write_bytes(&writer, worker->slots[KITH_SLOT_LIVE], worker->bytes);
    for (unsigned i = 0; i < KITH_STATES_MAX && ok; i++) {
        if (worker->state[i] != NULL)
            ok = write_bytes(&writer, worker->state[i], worker->bytes);
    }
    crypto_generichash_final(&writer.hash, hash, sizeof hash);
    return ok && fwrite(hash, 1, sizeof hash, file) == sizeof hash &&
           fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* PATH becomes PATH.previous, then the new file becomes PATH. The link keeps
 * PATH in place meanwhile; where links are refused a rename has to do. */
static int put_in_place(const char *partial, const char *path,
                        const char *previous)
{
    if (unlink(previous) != 0 && errno != ENOENT)
        return -1;
    if (link(path, previous) != 0 && errno != ENOENT &&
        rename(path, previous) != 0)
        return -1;
    return rename(partial, path);
}

enum kith_err kith_save_write(struct kith_worker *worker, const char *path,
                              uint64_t step, char *error)
{
    char partial[KITH_PATH_BYTES_MAX + 16], previous[KITH_PATH_BYTES_MAX + 16];
    const size_t length = strlen(path);
    if (length >= KITH_PATH_BYTES_MAX)
        return complain(error, KITH_ELIMIT, "writing", path,
                        "the path is too long");
    memcpy(partial, path, length);
    memcpy(partial + length, ".partial", sizeof ".partial");
    memcpy(previous, path, length);
    memcpy(previous + length, ".previous", sizeof ".previous");
    if (sodium_init() < 0)
        return complain(error, KITH_EDEVICE, "writing", path,
                        "libsodium refuses to start");
    FILE *file = fopen(partial, "wb");
    if (file == NULL)
        return complain(error, from_errno(errno), "writing", partial,
                        strerror(errno));
    bool ok = write_all(worker, step, file);
    int code = ok ? 0 : errno;
    if (fclose(file) != 0 && ok) {
        ok = false;
        code = errno;
    }
    if (ok && put_in_place(partial, path, previous) != 0) {
        ok = false;
        code = errno;
    }
    if (ok)
        return KITH_OK;
    (void)remove(partial);
    return complain(error, from_errno(code), "writing", path, strerror(code));
}

struct reader {
    FILE *file;
    const char *path;
    struct header header;
    char *error;
};

static enum kith_err refuse(const struct reader *reader, enum kith_err err,
                            const char *what)
{
    return complain(reader->error, err, "reading", reader->path, what);
}

/* How long the file must be; dim and element are within bounds by now. */
static uint64_t expected_bytes(const struct header *header)
{
    return HEADER_BYTES +
           (1 + header->word[WORD_STATES]) * header->word[WORD_DIM] *
               header->word[WORD_ELEMENT] +
           HASH_BYTES;
}

static enum kith_err check_header(const struct reader *reader,
                                  const struct kith_experiment *experiment)
{
    const uint64_t *word = reader->header.word;
    if (word[WORD_EXPERIMENT] != kith_experiment_hash(experiment))
        return refuse(reader, KITH_EMISMATCH,
                      "it belongs to another experiment (model, data, "
                      "training, gossip, seed or peers differ)");
    if (word[WORD_DIM] != experiment->model->dim(&experiment->model_config))
        return refuse(reader, KITH_EMISMATCH,
                      "its model has another number of parameters");
    if (word[WORD_ELEMENT] != 4 && word[WORD_ELEMENT] != 8)
        return refuse(reader, KITH_EPARSE, "elements of 4 or 8 bytes expected");
    if (word[WORD_STATES] > KITH_STATES_MAX ||
        word[WORD_SCALARS] != experiment->gossip.algorithm->scalar_count)
        return refuse(reader, KITH_EMISMATCH,
                      "its algorithm or optimiser keeps other state");
    return KITH_OK;
}

/* Length and hash of the whole file; the position ends after the header. */
static enum kith_err check_content(const struct reader *reader)
{
    uint64_t left = expected_bytes(&reader->header) - HASH_BYTES;
    uint8_t chunk[4096], hash[HASH_BYTES], found[HASH_BYTES + 1];
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, HASH_BYTES);
    rewind(reader->file);
    while (left > 0) {
        const size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
        if (fread(chunk, 1, size, reader->file) != size)
            return refuse(reader, KITH_EPARSE,
                          "it is truncated; the one before is PATH.previous");
        crypto_generichash_update(&state, chunk, size);
        left -= size;
    }
    crypto_generichash_final(&state, hash, sizeof hash);
    const size_t size = fread(found, 1, sizeof found, reader->file);
    if (size != HASH_BYTES)
        return refuse(reader, KITH_EPARSE,
                      size < HASH_BYTES
                          ? "it is truncated; the one before is PATH.previous"
                          : "something follows its end");
    if (memcmp(hash, found, HASH_BYTES) != 0)
        return refuse(reader, KITH_EPARSE,
                      "its checksum does not match: damaged; the one before "
                      "is PATH.previous");
    return fseek(reader->file, HEADER_BYTES, SEEK_SET) == 0
               ? KITH_OK
               : refuse(reader, KITH_EIO, strerror(errno));
}

/* They are shares of a weight. The hash tells of damage, not of a writer whose
 * own were broken. */
static enum kith_err check_scalars(const struct reader *reader)
{
    double scalars[KITH_SCALARS_MAX];
    memcpy(scalars, &reader->header.word[WORD_SCALAR_0], sizeof scalars);
    for (uint64_t i = 0; i < reader->header.word[WORD_SCALARS]; i++)
        if (!isfinite(scalars[i]) || scalars[i] <= 0)
            return refuse(reader, KITH_EPARSE,
                          "a weight in it is not a positive number; the one "
                          "before is PATH.previous");
    return KITH_OK;
}

/* Opens and checks everything; on success reader->file stands at x. */
static enum kith_err reader_open(struct reader *reader,
                                 const struct kith_experiment *experiment,
                                 const char *path, char *error)
{
    uint8_t bytes[HEADER_BYTES];
    *reader = (struct reader){.path = path, .error = error};
    if (sodium_init() < 0)
        return refuse(reader, KITH_EDEVICE, "libsodium refuses to start");
    reader->file = fopen(path, "rb");
    if (reader->file == NULL)
        return refuse(reader, from_errno(errno), strerror(errno));
    enum kith_err err = KITH_OK;
    if (fread(bytes, 1, sizeof bytes, reader->file) != sizeof bytes)
        err = refuse(reader, KITH_EPARSE, "it is truncated: no whole header");
    else if (memcmp(bytes, magic, sizeof magic) != 0)
        err = refuse(reader, KITH_EVERSION, "not a kith-save-v1 file");
    if (err == KITH_OK) {
        get_header(bytes, &reader->header);
        err = check_header(reader, experiment);
    }
    if (err == KITH_OK)
        err = check_content(reader);
    if (err == KITH_OK)
        err = check_scalars(reader);
    if (err != KITH_OK)
        (void)fclose(reader->file);
    return err;
}

static bool read_vector(const struct reader *reader, void *vector, size_t size)
{
    return fread(vector, 1, size, reader->file) == size;
}

enum kith_err kith_save_read(struct kith_worker *worker, const char *path,
                             uint64_t *step, char *error)
{
    struct reader reader;
    enum kith_err err = reader_open(&reader, worker->experiment, path, error);
    if (err != KITH_OK)
        return err;
    const uint64_t *word = reader.header.word;
    const struct header own = worker_header(worker, 0);
    if (word[WORD_PEER] != worker->self)
        err = refuse(&reader, KITH_EMISMATCH, "it belongs to another peer");
    else if (word[WORD_ELEMENT] != worker->backend->element_bytes ||
             word[WORD_STATES] != own.word[WORD_STATES])
        err = refuse(&reader, KITH_EMISMATCH,
                     "it was written by another backend or optimiser");
    else if (word[WORD_CURSOR] > worker->row_count ||
             word[WORD_EPOCH] > UINT32_MAX)
        err = refuse(&reader, KITH_EPARSE, "its place in the data is nowhere");
    if (err == KITH_OK) {
        bool ok =
            read_vector(&reader, worker->slots[KITH_SLOT_LIVE], worker->bytes);
        for (unsigned i = 0; i < KITH_STATES_MAX && ok; i++) {
            if (worker->state[i] != NULL)
                ok = read_vector(&reader, worker->state[i], worker->bytes);
        }
        if (!ok)
            err = refuse(&reader, KITH_EIO, "it changed while it was read");
    }
    if (err == KITH_OK) {
        memcpy(worker->scalars, &word[WORD_SCALAR_0], sizeof worker->scalars);
        if (worker->train != NULL)
            kith_worker_seek(worker, (uint32_t)word[WORD_EPOCH],
                             (size_t)word[WORD_CURSOR]);
        *step = word[WORD_STEP];
    }
    (void)fclose(reader.file);
    return err;
}

/* count elements of 4 or 8 bytes to float64. */
static void widen(const void *raw, uint64_t element, size_t count, double *out)
{
    const float *single = raw;
    if (element == sizeof(double))
        memcpy(out, raw, count * sizeof(double));
    for (size_t i = 0; i < count && element == sizeof(float); i++)
        out[i] = (double)single[i];
}

static enum kith_err read_parameters(const struct reader *reader,
                                     const struct kith_experiment *experiment,
                                     double *z, size_t dim)
{
    static const size_t at_once = CHUNK_BYTES / sizeof(double);
    double chunk[CHUNK_BYTES / sizeof(double)];
    double scalars[KITH_SCALARS_MAX];
    const uint64_t element = reader->header.word[WORD_ELEMENT];
    memcpy(scalars, &reader->header.word[WORD_SCALAR_0], sizeof scalars);
    const double factor = experiment->gossip.algorithm->factor == NULL
                              ? 1
                              : experiment->gossip.algorithm->factor(scalars);
    for (size_t at = 0; at < dim; at += at_once) {
        const size_t count = dim - at < at_once ? dim - at : at_once;
        if (!read_vector(reader, chunk, count * (size_t)element))
            return refuse(reader, KITH_EIO, "it changed while it was read");
        widen(chunk, element, count, z + at);
        for (size_t i = 0; i < count; i++)
            z[at + i] *= factor;
    }
    return KITH_OK;
}

enum kith_err kith_save_parameters(const struct kith_experiment *experiment,
                                   const char *path, double **z, size_t *dim,
                                   uint64_t *step, char *error)
{
    struct reader reader;
    *z = NULL;
    enum kith_err err = reader_open(&reader, experiment, path, error);
    if (err != KITH_OK)
        return err;
    *dim = (size_t)reader.header.word[WORD_DIM];
    *step = reader.header.word[WORD_STEP];
    *z = malloc((*dim > 0 ? *dim : 1) * sizeof **z);
    err = *z == NULL ? refuse(&reader, KITH_ENOMEM, "no memory for it")
                     : read_parameters(&reader, experiment, *z, *dim);
    if (err != KITH_OK) {
        free(*z);
        *z = NULL;
    }
    (void)fclose(reader.file);
    return err;
}
