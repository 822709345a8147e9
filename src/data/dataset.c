/* A data set of four IDX files, plain or gzip:
 *
 *   FOLDER/{train,t10k}-images-idx3-ubyte[.gz]   (count, height, width)
 *   FOLDER/{train,t10k}-labels-idx1-ubyte[.gz]   (count)
 *
 * The header is read first and bounds what follows: exactly the announced bytes
 * are inflated, so a gzip bomb costs one byte more than its header admits. */
#include "kith/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum { HEADER_BYTES_MAX = 4 + 4 * KITH_IDX_RANK_MAX };

struct idx_file {
    char path[KITH_PATH_BYTES_MAX];
    struct kith_idx idx;
    uint8_t *data; /* (idx.bytes), malloc'd */
};

static enum kith_err complain(char *error, enum kith_err err, const char *path,
                              const char *format, ...) KITH_PRINTF(4, 5);

static enum kith_err complain(char *error, enum kith_err err, const char *path,
                              const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    /* The end of a long path says more than its beginning. */
    const size_t length = strlen(path), shown = length < 230 ? length : 230;
    (void)snprintf(error, KITH_DATA_ERROR_BYTES, "reading %s%s: %s",
                   shown < length ? "..." : "", path + (length - shown), what);
    return err;
}

static enum kith_err missing(char *error, const char *path)
{
    return complain(error, KITH_ENOENT, path,
                    "no such file, nor with .gz; for Fashion-MNIST: apt-get "
                    "install dataset-fashion-mnist, then data.path "
                    "/usr/share/datasets/fashion-mnist");
}

/* Reads until `size` bytes are there or the file ends. */
static enum kith_err read_exactly(gzFile file, const char *path, uint8_t *bytes,
                                  size_t size, size_t *got, char *error)
{
    *got = 0;
    while (*got < size) {
        const size_t left = size - *got, most = 1u << 20;
        const int count =
            gzread(file, bytes + *got, (unsigned)(left < most ? left : most));
        if (count < 0) {
            int code = 0;
            const char *text = gzerror(file, &code);
            return complain(error, KITH_EIO, path, "%s",
                            code == Z_ERRNO ? strerror(errno) : text);
        }
        if (count == 0)
            break;
        *got += (size_t)count;
    }
    return KITH_OK;
}

/* The part of the header that says how long the header is, then the rest. */
static enum kith_err read_header(gzFile file, struct idx_file *out, char *error)
{
    uint8_t bytes[HEADER_BYTES_MAX];
    size_t got = 0;
    enum kith_err err = read_exactly(file, out->path, bytes, 4, &got, error);
    if (err != KITH_OK)
        return err;
    err = kith_idx_parse(bytes, got, &out->idx);
    if (err == KITH_EAGAIN && got == 4) {
        size_t more = 0;
        err = read_exactly(file, out->path, bytes + 4, 4u * bytes[3], &more,
                           error);
        if (err != KITH_OK)
            return err;
        got += more;
        err = kith_idx_parse(bytes, got, &out->idx);
    }
    if (err == KITH_EAGAIN && out->idx.rank > 0)
        return KITH_OK;
    if (err == KITH_ELIMIT)
        return complain(error, err, out->path,
                        "more than %u dimensions or 2 GiB of data",
                        KITH_IDX_RANK_MAX);
    return complain(error, KITH_EPARSE, out->path,
                    "not an IDX file of unsigned bytes (%zu bytes of header)",
                    got);
}

/* Bytes of the file on disk; 0 where it will not say (a pipe). */
static uint64_t disk_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    (void)fclose(file);
    return size > 0 ? (uint64_t)size : 0;
}

static enum kith_err read_data(gzFile file, struct idx_file *out, char *error)
{
    /* A header that lies costs no memory: deflate never packs more than
     * 1,032 bytes into one. */
    const size_t size = out->idx.bytes;
    const uint64_t disk = disk_bytes(out->path);
    if (disk > 0 && size / 1032 > disk)
        return complain(error, KITH_EPARSE, out->path,
                        "its header announces %zu bytes, more than its %" PRIu64
                        " bytes can hold",
                        size, disk);
    /* One byte more than announced, to see that nothing follows. */
    out->data = malloc(size + 1);
    if (out->data == NULL)
        return complain(error, KITH_ENOMEM, out->path,
                        "no memory for its %zu bytes", size);
    size_t got = 0;
    const enum kith_err err =
        read_exactly(file, out->path, out->data, size + 1, &got, error);
    if (err != KITH_OK)
        return err;
    if (got != size)
        return complain(error, KITH_EPARSE, out->path,
                        "its header announces %zu bytes, %s%zu follow", size,
                        got > size ? "at least " : "", got);
    return KITH_OK;
}

/* Opens FOLDER/NAME or, failing that, FOLDER/NAME.gz. */
static enum kith_err open_either(const char *folder, const char *name,
                                 struct idx_file *out, gzFile *file,
                                 char *error)
{
    const int length =
        snprintf(out->path, sizeof out->path - 3, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof out->path - 3)
        return complain(error, KITH_ELIMIT, folder,
                        "the path is longer than %zu bytes",
                        sizeof out->path - 4);
    *file = gzopen(out->path, "rb");
    if (*file == NULL && errno == ENOENT) {
        memcpy(out->path + length, ".gz", 4);
        *file = gzopen(out->path, "rb");
        if (*file == NULL)
            out->path[length] = '\0';
    }
    if (*file != NULL)
        return KITH_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return missing(error, out->path);
    const int reason = errno;
    return complain(error,
                    reason == EACCES   ? KITH_EPERM
                    : reason == ENOMEM ? KITH_ENOMEM
                                       : KITH_EIO,
                    out->path, "%s", strerror(reason));
}

static enum kith_err read_file(const char *folder, const char *name,
                               struct idx_file *out, char *error)
{
    memset(out, 0, sizeof *out);
    gzFile file = NULL;
    enum kith_err err = open_either(folder, name, out, &file, error);
    if (err != KITH_OK)
        return err;
    err = read_header(file, out, error);
    if (err == KITH_OK)
        err = read_data(file, out, error);
    if (err != KITH_OK) {
        free(out->data);
        out->data = NULL;
    }
    (void)gzclose_r(file);
    return err;
}

static enum kith_err check_pair(const struct idx_file *images,
                                const struct idx_file *labels, char *error)
{
    if (images->idx.rank < 2)
        return complain(error, KITH_EPARSE, images->path,
                        "images need at least 2 dimensions, found 1");
    if (labels->idx.rank != 1)
        return complain(error, KITH_EPARSE, labels->path,
                        "labels need 1 dimension, found %u", labels->idx.rank);
    if (images->idx.sizes[0] != labels->idx.sizes[0])
        return complain(error, KITH_EPARSE, labels->path,
                        "%u labels for %u images", labels->idx.sizes[0],
                        images->idx.sizes[0]);
    return KITH_OK;
}

static enum kith_err open_examples(const char *folder, const char *part,
                                   struct kith_examples *examples, char *error)
{
    char name[64];
    struct idx_file images, labels;
    (void)snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    enum kith_err err = read_file(folder, name, &images, error);
    if (err != KITH_OK)
        return err;
    (void)snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    err = read_file(folder, name, &labels, error);
    if (err == KITH_OK)
        err = check_pair(&images, &labels, error);
    if (err != KITH_OK) {
        free(images.data);
        free(labels.data);
        return err;
    }
    *examples = (struct kith_examples){.images = images.data,
                                       .labels = labels.data,
                                       .count = images.idx.sizes[0],
                                       .features = images.idx.bytes /
                                                   images.idx.sizes[0],
                                       .classes = 1};
    for (size_t i = 0; i < examples->count; i++) {
        if (examples->labels[i] >= examples->classes)
            examples->classes = examples->labels[i] + 1u;
    }
    return KITH_OK;
}

enum kith_err kith_dataset_open_idx(const char *folder,
                                    struct kith_dataset *set, char *error)
{
    memset(set, 0, sizeof *set);
    enum kith_err err = open_examples(folder, "train", &set->train, error);
    if (err == KITH_OK)
        err = open_examples(folder, "t10k", &set->test, error);
    if (err == KITH_OK && set->train.features != set->test.features)
        err = complain(error, KITH_EPARSE, folder,
                       "training images have %zu pixels, test images %zu",
                       set->train.features, set->test.features);
    if (err != KITH_OK)
        kith_dataset_close(set);
    return err;
}

void kith_dataset_close(struct kith_dataset *set)
{
    free(set->train.images);
    free(set->train.labels);
    free(set->test.images);
    free(set->test.labels);
    memset(set, 0, sizeof *set);
}
