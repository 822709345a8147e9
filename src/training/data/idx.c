/* The IDX header: 0, 0, type, rank, then rank sizes of 32 bits, big-endian.
 * LeCun et al., "The MNIST database", http://yann.lecun.com/exdb/mnist. */
#include "data_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

enum { TYPE_UINT8 = 0x08, PREFIX_BYTES = 4, SIZE_BYTES = 4 };

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

enum kith_err kith_idx_parse(const uint8_t *bytes, size_t size,
                             struct kith_array *array)
{
    struct kith_array found = {.type = "u1"};
    memset(array, 0, sizeof *array);
    if (size < PREFIX_BYTES)
        return KITH_EAGAIN;
    if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != TYPE_UINT8)
        return KITH_EPARSE;
    found.rank = bytes[3];
    if (found.rank == 0)
        return KITH_EPARSE;
    if (found.rank > KITH_IDX_RANK_MAX)
        return KITH_ELIMIT;
    found.offset = PREFIX_BYTES + found.rank * SIZE_BYTES;
    if (size < found.offset)
        return KITH_EAGAIN;
    uint64_t total = 1;
    for (uint32_t i = 0; i < found.rank; i++) {
        found.sizes[i] = big_endian(bytes + PREFIX_BYTES + i * SIZE_BYTES);
        if (found.sizes[i] == 0)
            return KITH_EPARSE;
        /* Below 2^31 * 2^32, so no overflow. */
        total *= found.sizes[i];
        if (total > KITH_IDX_BYTES_MAX)
            return KITH_ELIMIT;
    }
    found.bytes = (size_t)total;
    *array = found;
    if (size - found.offset < found.bytes)
        return KITH_EAGAIN;
    return size - found.offset == found.bytes ? KITH_OK : KITH_EPARSE;
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

/* `got` of the bytes that begin with a header. */
static enum kith_err check_header(struct kith_data_opening *opening,
                                  const uint8_t *bytes, size_t got,
                                  struct kith_array *array)
{
    const enum kith_err err = kith_idx_parse(bytes, got, array);
    if (err == KITH_ELIMIT)
        return kith_data_refuse(opening, err,
                                "more than %u dimensions or 2 GiB of data",
                                KITH_IDX_RANK_MAX);
    if (array->rank > 0)
        return KITH_OK;
    const size_t rank = got >= PREFIX_BYTES ? bytes[3] : 0;
    const size_t header = PREFIX_BYTES + rank * SIZE_BYTES;
    return kith_data_refuse(opening, KITH_EPARSE,
                            "not an IDX file of unsigned bytes (%zu bytes of "
                            "header)",
                            got < header ? got : header);
}

/* `got`: bytes that follow the header, as far as they were read. */
static enum kith_err check_length(struct kith_data_opening *opening,
                                  const struct kith_array *array, size_t got)
{
    if (got == array->bytes)
        return KITH_OK;
    return kith_data_refuse(opening, KITH_EPARSE,
                            "its header announces %zu bytes, %s%zu follow; "
                            "fetch the file again",
                            array->bytes, got > array->bytes ? "at least " : "",
                            got);
}

static bool is_gzip(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* Up to `size` more bytes of the stream, or of those that follow it. */
static enum kith_err inflate_some(struct kith_data_opening *opening,
                                  z_stream *zip, uint8_t *bytes, size_t size,
                                  size_t *got)
{
    int code;
    zip->next_out = bytes;
    zip->avail_out = (unsigned)size;
    do {
        code = inflate(zip, Z_NO_FLUSH);
    } while (code == Z_STREAM_END && zip->avail_out > 0 &&
             is_gzip(zip->next_in, zip->avail_in) && inflateReset(zip) == Z_OK);
    *got = size - zip->avail_out;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR)
        return KITH_OK;
    return kith_data_refuse(opening, KITH_EIO, "%s; fetch the file again",
                            zip->msg != NULL ? zip->msg : zError(code));
}

static enum kith_err inflate_all(struct kith_data_opening *opening,
                                 z_stream *zip, size_t disk,
                                 struct kith_array *array, const uint8_t **out)
{
    uint8_t header[HEADER_BYTES_MAX];
    size_t got, more;
    enum kith_err err = inflate_some(opening, zip, header, sizeof header, &got);
    if (err == KITH_OK)
        err = check_header(opening, header, got, array);
    if (err != KITH_OK)
        return err;
    /* A header that lies costs no memory: deflate never packs more than
     * 1,032 bytes into one. */
    if (array->bytes / 1032 > disk)
        return kith_data_refuse(opening, KITH_EPARSE,
                                "its header announces %zu bytes, more than its "
                                "%zu bytes can hold",
                                array->bytes, disk);
    /* One byte more than announced, to see that nothing follows. */
    const size_t room = array->bytes + 1;
    uint8_t *data = kith_data_alloc(opening, room, 1, "bytes");
    if (data == NULL)
        return KITH_ENOMEM;
    got = got - array->offset < room ? got - array->offset : room;
    memcpy(data, header + array->offset, got);
    *out = data;
    err = inflate_some(opening, zip, data + got, room - got, &more);
    return err == KITH_OK ? check_length(opening, array, got + more) : err;
}

static enum kith_err read_zip(struct kith_data_opening *opening,
                              const struct kith_file_map *map,
                              struct kith_array *array, const uint8_t **data)
{
    enum { GZIP = 16 };
    /* As much as 2 GiB of data can need. */
    const unsigned size = map->size < UINT_MAX ? (unsigned)map->size : UINT_MAX;
    z_stream zip = {.next_in = map->bytes, .avail_in = size};
    if (inflateInit2(&zip, MAX_WBITS + GZIP) != Z_OK)
        return kith_data_refuse(opening, KITH_ENOMEM,
                                "no memory to inflate it");
    const enum kith_err err =
        inflate_all(opening, &zip, map->size, array, data);
    (void)inflateEnd(&zip);
    kith_file_map_rest(map);
    return err;
}

/* FOLDER/NAME or, failing that, FOLDER/NAME.gz; gzip is known by its bytes. */
static enum kith_err read_idx(struct kith_data_opening *opening,
                              const char *name, struct kith_array *array,
                              const uint8_t **data, bool *mapped)
{
    char zipped[64];
    struct kith_file_map map;
    (void)snprintf(zipped, sizeof zipped, "%s.gz", name);
    enum kith_err err = kith_data_find(opening, name);
    if (err == KITH_ENOENT) {
        err = kith_data_find(opening, zipped);
        if (err == KITH_ENOENT) /* What the message names. */
            opening->path[strlen(opening->path) - strlen(".gz")] = '\0';
    }
    err = kith_data_map(
        opening, err,
        "no such file, nor with .gz; for Fashion-MNIST: apt-get install "
        "dataset-fashion-mnist, then data.path "
        "/usr/share/datasets/fashion-mnist",
        &map);
    if (err != KITH_OK)
        return err;
    *mapped = !is_gzip(map.bytes, map.size);
    if (!*mapped)
        return read_zip(opening, &map, array, data);
    err = check_header(opening, map.bytes, map.size, array);
    *data = map.bytes + array->offset;
    return err == KITH_OK
               ? check_length(opening, array, map.size - array->offset)
               : err;
}

static enum kith_err open_idx(struct kith_data_opening *opening,
                              enum kith_data_part part,
                              struct kith_examples *examples)
{
    const bool train = part == KITH_DATA_TRAIN;
    struct kith_array array;
    const uint8_t *data;
    bool mapped;
    enum kith_err err = read_idx(
        opening, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte",
        &array, &data, &examples->mapped);
    if (err != KITH_OK)
        return err;
    if (array.rank < 2)
        return kith_data_refuse(opening, KITH_EPARSE,
                                "images need at least 2 dimensions, found 1");
    kith_data_images(examples, KITH_ELEMENT_U8, data, array.rank, array.sizes);
    kith_data_count(opening, examples->count);
    err = read_idx(opening,
                   train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte",
                   &array, &data, &mapped);
    if (err != KITH_OK)
        return err;
    if (array.rank != 1)
        return kith_data_refuse(opening, KITH_EPARSE,
                                "labels need 1 dimension, found %u",
                                array.rank);
    return kith_data_labels(opening, &array, data, examples);
}

const struct kith_dataset_kind kith_dataset_idx = {
    .name = "idx",
    .paper = "LeCun et al., Proc. IEEE 1998 (the format)",
    .summary = "{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in a folder",
    .input = KITH_INPUT_IMAGES,
    .open = open_idx,
};
