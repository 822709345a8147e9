/* The IDX header: 0, 0, type, rank, then rank sizes of 32 bits, big-endian.
 * LeCun et al., "The MNIST database", http://yann.lecun.com/exdb/mnist. */
#include "data_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "kith/plain_file.h"

enum { TYPE_UINT8 = 0x08, PREFIX_BYTES = 4, SIZE_BYTES = 4 };

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

enum kith_err kith_idx_parse(const uint8_t *bytes, size_t size,
                             struct kith_idx *idx)
{
    memset(idx, 0, sizeof *idx);
    if (size < PREFIX_BYTES)
        return KITH_EAGAIN;
    if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != TYPE_UINT8)
        return KITH_EPARSE;
    const uint32_t rank = bytes[3];
    if (rank == 0)
        return KITH_EPARSE;
    if (rank > KITH_IDX_RANK_MAX)
        return KITH_ELIMIT;
    const size_t offset = PREFIX_BYTES + rank * SIZE_BYTES;
    if (size < offset)
        return KITH_EAGAIN;
    uint64_t total = 1;
    uint32_t sizes[KITH_IDX_RANK_MAX] = {0};
    for (uint32_t i = 0; i < rank; i++) {
        sizes[i] = big_endian(bytes + PREFIX_BYTES + i * SIZE_BYTES);
        if (sizes[i] == 0)
            return KITH_EPARSE;
        /* Below 2^31 * 2^32, so no overflow. */
        total *= sizes[i];
        if (total > KITH_IDX_BYTES_MAX)
            return KITH_ELIMIT;
    }
    idx->rank = rank;
    memcpy(idx->sizes, sizes, sizeof sizes);
    idx->offset = offset;
    idx->bytes = (size_t)total;
    if (size - offset < idx->bytes)
        return KITH_EAGAIN;
    return size - offset == idx->bytes ? KITH_OK : KITH_EPARSE;
}

/* ---- the data set: four files, plain or gzip
 *
 *   FOLDER/{train,t10k}-images-idx3-ubyte[.gz]   (count, height, width)
 *   FOLDER/{train,t10k}-labels-idx1-ubyte[.gz]   (count)
 *
 * Plain images are mapped. Of gzip the header is read first and bounds what
 * follows: exactly the announced bytes are inflated, so a gzip bomb costs one
 * byte more than its header admits. */

enum { HEADER_BYTES_MAX = PREFIX_BYTES + SIZE_BYTES * KITH_IDX_RANK_MAX };

struct idx_file {
    struct data_file file;
    struct kith_idx idx;
    const uint8_t *data; /* (idx.bytes), the set's */
    bool mapped;
};

/* Reads until `size` bytes are there or the file ends. */
static enum kith_err inflate_exactly(gzFile zip, const char *path,
                                     uint8_t *bytes, size_t size, size_t *got,
                                     char *error)
{
    *got = 0;
    while (*got < size) {
        const size_t left = size - *got, most = 1u << 20;
        const int count =
            gzread(zip, bytes + *got, (unsigned)(left < most ? left : most));
        if (count < 0) {
            int code = 0;
            const char *text = gzerror(zip, &code);
            return kith_data_complain(error, KITH_EIO, path,
                                      "%s; fetch the file again",
                                      code == Z_ERRNO ? strerror(errno) : text);
        }
        if (count == 0)
            break;
        *got += (size_t)count;
    }
    return KITH_OK;
}

static enum kith_err refuse_header(const struct idx_file *out,
                                   enum kith_err err, size_t got, char *error)
{
    if (err == KITH_ELIMIT)
        return kith_data_complain(error, err, out->file.path,
                                  "more than %u dimensions or 2 GiB of data",
                                  KITH_IDX_RANK_MAX);
    return kith_data_complain(error, KITH_EPARSE, out->file.path,
                              "not an IDX file of unsigned bytes (%zu bytes of "
                              "header)",
                              got);
}

/* The part of the header that says how long the header is, then the rest. */
static enum kith_err inflate_header(gzFile zip, struct idx_file *out,
                                    char *error)
{
    uint8_t bytes[HEADER_BYTES_MAX];
    size_t got = 0;
    enum kith_err err =
        inflate_exactly(zip, out->file.path, bytes, PREFIX_BYTES, &got, error);
    if (err != KITH_OK)
        return err;
    err = kith_idx_parse(bytes, got, &out->idx);
    if (err == KITH_EAGAIN && got == PREFIX_BYTES) {
        size_t more = 0;
        err = inflate_exactly(zip, out->file.path, bytes + got,
                              (size_t)SIZE_BYTES * bytes[3], &more, error);
        if (err != KITH_OK)
            return err;
        got += more;
        err = kith_idx_parse(bytes, got, &out->idx);
    }
    if (err == KITH_EAGAIN && out->idx.rank > 0)
        return KITH_OK;
    return refuse_header(out, err, got, error);
}

static enum kith_err wrong_length(const struct idx_file *out, size_t got,
                                  char *error)
{
    return kith_data_complain(
        error, KITH_EPARSE, out->file.path,
        "its header announces %zu bytes, %s%zu follow; fetch "
        "the file again",
        out->idx.bytes, got > out->idx.bytes ? "at least " : "", got);
}

static enum kith_err inflate_data(struct data_opening *opening, gzFile zip,
                                  size_t disk, struct idx_file *out)
{
    /* A header that lies costs no memory: deflate never packs more than
     * 1,032 bytes into one. */
    const size_t size = out->idx.bytes;
    if (size / 1032 > disk)
        return kith_data_complain(
            opening->error, KITH_EPARSE, out->file.path,
            "its header announces %zu bytes, more than its "
            "%zu bytes can hold",
            size, disk);
    /* One byte more than announced, to see that nothing follows. */
    uint8_t *data = kith_data_alloc(opening, size + 1);
    if (data == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM, out->file.path,
                                  "no memory for its %zu bytes", size);
    size_t got = 0;
    const enum kith_err err = inflate_exactly(zip, out->file.path, data,
                                              size + 1, &got, opening->error);
    if (err != KITH_OK)
        return err;
    out->data = data;
    return got == size ? KITH_OK : wrong_length(out, got, opening->error);
}

static enum kith_err read_zip(struct data_opening *opening, size_t disk,
                              struct idx_file *out)
{
    char why[KITH_FILE_WHY_BYTES];
    int descriptor;
    enum kith_err err = kith_file_open(out->file.local, &descriptor, NULL, why);
    if (err != KITH_OK)
        return kith_data_complain(opening->error, err, out->file.path, "%s",
                                  why);
    gzFile zip = gzdopen(descriptor, "rb");
    if (zip == NULL) {
        (void)close(descriptor);
        return kith_data_complain(opening->error, KITH_ENOMEM, out->file.path,
                                  "no memory to inflate it");
    }
    err = inflate_header(zip, out, opening->error);
    if (err == KITH_OK)
        err = inflate_data(opening, zip, disk, out);
    (void)gzclose_r(zip);
    return err;
}

static enum kith_err read_plain(struct data_opening *opening,
                                const struct data_bytes *bytes,
                                struct idx_file *out)
{
    const enum kith_err err =
        kith_idx_parse(bytes->bytes, bytes->size, &out->idx);
    out->data = bytes->bytes + out->idx.offset;
    out->mapped = true;
    if (err == KITH_OK)
        return err;
    /* A whole header, and then too little or too much. */
    const uint8_t rank = bytes->size >= PREFIX_BYTES ? bytes->bytes[3] : 0;
    const size_t offset = PREFIX_BYTES + (size_t)rank * SIZE_BYTES;
    if (err == KITH_ELIMIT || out->idx.rank == 0)
        return refuse_header(out, err,
                             bytes->size < offset ? bytes->size : offset,
                             opening->error);
    return wrong_length(out, bytes->size - offset, opening->error);
}

/* FOLDER/NAME or, failing that, FOLDER/NAME.gz; gzip is known by its bytes. */
static enum kith_err read_idx(struct data_opening *opening, const char *name,
                              struct idx_file *out)
{
    memset(out, 0, sizeof *out);
    enum kith_err err = kith_data_find(opening, name, &out->file);
    if (err == KITH_ENOENT) {
        char zipped[64];
        struct data_file plain = out->file;
        (void)snprintf(zipped, sizeof zipped, "%s.gz", name);
        err = kith_data_find(opening, zipped, &out->file);
        if (err == KITH_ENOENT)
            return kith_data_complain(
                opening->error, err, plain.path,
                "no such file, nor with .gz; for Fashion-MNIST: apt-get "
                "install dataset-fashion-mnist, then data.path "
                "/usr/share/datasets/fashion-mnist");
    }
    struct data_bytes bytes;
    if (err == KITH_OK)
        err = kith_data_map(opening, &out->file, &bytes);
    if (err != KITH_OK)
        return err;
    if (bytes.size >= 2 && bytes.bytes[0] == 0x1f && bytes.bytes[1] == 0x8b)
        return read_zip(opening, bytes.size, out);
    return read_plain(opening, &bytes, out);
}

static enum kith_err check_pair(const struct idx_file *images,
                                const struct idx_file *labels, char *error)
{
    if (images->idx.rank < 2)
        return kith_data_complain(error, KITH_EPARSE, images->file.path,
                                  "images need at least 2 dimensions, found 1");
    if (labels->idx.rank != 1)
        return kith_data_complain(error, KITH_EPARSE, labels->file.path,
                                  "labels need 1 dimension, found %u",
                                  labels->idx.rank);
    if (images->idx.sizes[0] != labels->idx.sizes[0])
        return kith_data_complain(error, KITH_EPARSE, labels->file.path,
                                  "%u labels for %u images",
                                  labels->idx.sizes[0], images->idx.sizes[0]);
    return KITH_OK;
}

static enum kith_err open_part(struct data_opening *opening, const char *part,
                               struct kith_examples *examples)
{
    char name[64];
    struct idx_file images, labels;
    (void)snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    enum kith_err err = read_idx(opening, name, &images);
    if (err != KITH_OK)
        return err;
    (void)snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    err = read_idx(opening, name, &labels);
    if (err == KITH_OK)
        err = check_pair(&images, &labels, opening->error);
    if (err != KITH_OK)
        return err;
    const size_t count = images.idx.sizes[0];
    int32_t *wide = kith_data_alloc(opening, count * sizeof *wide);
    if (wide == NULL)
        return kith_data_complain(opening->error, KITH_ENOMEM, labels.file.path,
                                  "no memory for %zu labels", count);
    for (size_t i = 0; i < count; i++)
        wide[i] = labels.data[i];
    uint64_t sizes[KITH_IDX_RANK_MAX];
    for (unsigned i = 0; i < KITH_IDX_RANK_MAX; i++)
        sizes[i] = images.idx.sizes[i];
    examples->input = KITH_INPUT_IMAGES;
    examples->element = KITH_ELEMENT_U8;
    examples->values = images.data;
    examples->mapped = images.mapped;
    examples->labels = wide;
    examples->count = count;
    kith_data_shape(examples, images.idx.rank, sizes);
    kith_data_count(opening, &images.file, count);
    return kith_data_classes(wide, count, &examples->classes);
}

static enum kith_err open_idx(const struct kith_data_config *config,
                              struct kith_dataset *set, char *error)
{
    struct data_opening opening = {config, set, error};
    const enum kith_err err = open_part(&opening, "train", &set->train);
    return err == KITH_OK ? open_part(&opening, "t10k", &set->test) : err;
}

const struct kith_dataset_kind kith_dataset_idx = {
    .name = "idx",
    .paper = "LeCun et al., Proc. IEEE 1998 (the format)",
    .summary = "{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in a folder",
    .input = KITH_INPUT_IMAGES,
    .open = open_idx,
};
