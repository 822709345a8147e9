/* See kith/npz.h.
 *
 *   for each array   local header | name.npy | npy header | elements
 *   at the end       a directory entry for each | end of directory
 *
 * Sums (CRC-32) stand before what they are of, which is written in no order:
 * they are taken from the file when all of it is there. */
#define _POSIX_C_SOURCE 200809L /* posix_fallocate, pwrite */
#include "kith/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "kith/assert.h"
#include "kith/limits.h"
#include "kith/plain_file.h"
#include "kith/text.h"

#define LOCAL_BYTES 30u
#define ENTRY_BYTES 46u
#define END_BYTES 22u
/* An .npy header: its dictionary is filled up with spaces. */
#define HEADER_BYTES 192u
#define CHUNK 4096u

struct entry {
    char name[24]; /* NAME.npy */
    bool wide;
    uint64_t at;    /* of the local header */
    uint64_t bytes; /* .npy header and elements */
    char header[HEADER_BYTES + 1];
};

struct kith_npz {
    const char *path;
    char partial[KITH_PATH_BYTES_MAX + 16];
    int fd;
    int code; /* the first errno */
    unsigned count;
    struct entry entries[KITH_NPZ_ARRAYS_MAX];
};

static unsigned element_bytes(const struct entry *entry)
{
    return entry->wide ? sizeof(double) : sizeof(float);
}

/* Of the .npy header within the file. */
static uint64_t array_at(const struct entry *entry)
{
    return entry->at + LOCAL_BYTES + strlen(entry->name);
}

static uint64_t end_of(const struct entry *entry)
{
    return array_at(entry) + entry->bytes;
}

/* The most of 64 bits where it is more. */
static uint64_t times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static void describe(struct entry *entry, const struct kith_npz_array *array)
{
    const size_t dictionary = HEADER_BYTES - 10;
    char *const text = entry->header;
    KITH_ASSERT(array->rank >= 1 && array->rank <= KITH_NPZ_RANK_MAX);
    KITH_ASSERT(strlen(array->name) <= 16);
    entry->wide = array->wide;
    entry->bytes = element_bytes(entry);
    (void)snprintf(entry->name, sizeof entry->name, "%s.npy", array->name);
    memcpy(text, "\x93NUMPY\x01", 8); /* and a minor version of 0 */
    text[8] = (char)dictionary;
    text[9] = (char)(dictionary >> 8);
    size_t at = kith_text_add(text, HEADER_BYTES, 10,
                              "{'descr': '<f%u', 'fortran_order': False, "
                              "'shape': (",
                              element_bytes(entry));
    for (unsigned i = 0; i < array->rank; i++) {
        at = kith_text_add(text, HEADER_BYTES, at, "%" PRIu64 ",",
                           array->sizes[i]);
        entry->bytes = times(entry->bytes, array->sizes[i]);
    }
    at = kith_text_add(text, HEADER_BYTES, at, "), }");
    memset(text + at, ' ', HEADER_BYTES - at);
    text[HEADER_BYTES - 1] = '\n';
    if (entry->bytes <= UINT64_MAX - HEADER_BYTES)
        entry->bytes += HEADER_BYTES;
}

static void put(uint8_t **at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static void write_at(struct kith_npz *npz, uint64_t at, const void *bytes,
                     size_t size)
{
    const char *from = bytes;
    while (npz->code == 0 && size > 0) {
        const ssize_t written = pwrite(npz->fd, from, size, (off_t)at);
        if (written < 0 && errno != EINTR)
            npz->code = errno;
        if (written <= 0)
            continue;
        from += written;
        at += (uint64_t)written;
        size -= (size_t)written;
    }
}

/* What a local header and a directory entry say alike, from the version on. No
 * date: the first that there is, so that bytes depend on elements alone. */
static void put_about(uint8_t **at, const struct entry *entry, uint32_t sum)
{
    put(at, 2, 20);       /* version of a reader: 2.0 */
    put(at, 4, 0);        /* no flags, stored */
    put(at, 4, 0x210000); /* 1 January 1980 */
    put(at, 4, sum);
    put(at, 4, entry->bytes);
    put(at, 4, entry->bytes);
    put(at, 2, strlen(entry->name));
    put(at, 2, 0); /* nothing extra */
}

static void write_local(struct kith_npz *npz, const struct entry *entry,
                        uint32_t sum)
{
    uint8_t header[LOCAL_BYTES], *at = header;
    put(&at, 4, 0x04034b50);
    put_about(&at, entry, sum);
    write_at(npz, entry->at, header, sizeof header);
    write_at(npz, entry->at + LOCAL_BYTES, entry->name, strlen(entry->name));
}

/* Returns where it ends. */
static uint64_t write_entry(struct kith_npz *npz, const struct entry *entry,
                            uint32_t sum, uint64_t where)
{
    uint8_t header[ENTRY_BYTES] = {0}, *at = header;
    put(&at, 4, 0x02014b50);
    put(&at, 2, 20);
    put_about(&at, entry, sum);
    at += 10; /* no comment, first disk, no attributes */
    put(&at, 4, entry->at);
    write_at(npz, where, header, sizeof header);
    write_at(npz, where + ENTRY_BYTES, entry->name, strlen(entry->name));
    return where + ENTRY_BYTES + strlen(entry->name);
}

static void write_end(struct kith_npz *npz, uint64_t where, uint64_t end)
{
    uint8_t header[END_BYTES] = {0}, *at = header;
    put(&at, 4, 0x06054b50);
    at += 4; /* one disk */
    put(&at, 2, npz->count);
    put(&at, 2, npz->count);
    put(&at, 4, end - where);
    put(&at, 4, where);
    write_at(npz, end, header, sizeof header);
}

static uint32_t sum_of(struct kith_npz *npz, const struct entry *entry)
{
    uint8_t chunk[16 * CHUNK];
    uint64_t at = array_at(entry);
    uLong sum = crc32(0, NULL, 0);
    while (npz->code == 0 && at < end_of(entry)) {
        const uint64_t left = end_of(entry) - at;
        const size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
        const ssize_t count = pread(npz->fd, chunk, size, (off_t)at);
        if (count == 0 || (count < 0 && errno != EINTR))
            npz->code = count == 0 ? EIO : errno;
        if (count <= 0)
            continue;
        sum = crc32(sum, chunk, (uInt)count);
        at += (uint64_t)count;
    }
    return (uint32_t)sum;
}

static uint64_t directory_bytes(const struct kith_npz *npz)
{
    uint64_t bytes = END_BYTES;
    for (unsigned i = 0; i < npz->count; i++)
        bytes += ENTRY_BYTES + strlen(npz->entries[i].name);
    return bytes;
}

static enum kith_err too_large(const struct kith_npz *npz, double bytes,
                               char *error)
{
    char what[160];
    (void)snprintf(what, sizeof what,
                   "it would take %.3g GiB, and the most is 4 GiB: fewer "
                   "steps, peers or parameters will fit",
                   bytes / 0x1p30);
    return kith_file_complain(error, KITH_ELIMIT, "writing", npz->path, what);
}

static enum kith_err lay_out(struct kith_npz *npz,
                             const struct kith_npz_array *arrays, char *error)
{
    double total = (double)directory_bytes(npz);
    uint64_t at = 0;
    for (unsigned i = 0; i < npz->count; i++) {
        struct entry *entry = &npz->entries[i];
        describe(entry, &arrays[i]);
        entry->at = at;
        total +=
            (double)(LOCAL_BYTES + strlen(entry->name)) + (double)entry->bytes;
        at = total > KITH_NPZ_BYTES_MAX ? 0 : end_of(entry);
    }
    total += (double)directory_bytes(npz) - END_BYTES;
    return total > KITH_NPZ_BYTES_MAX ? too_large(npz, total, error) : KITH_OK;
}

static enum kith_err make_file(struct kith_npz *npz, char *error)
{
    const struct entry *last = &npz->entries[npz->count - 1];
    npz->fd = kith_file_create(npz->partial);
    if (npz->fd < 0)
        npz->code = errno;
    else /* it does not set errno */
        npz->code = posix_fallocate(
            npz->fd, 0, (off_t)(end_of(last) + directory_bytes(npz)));
    for (unsigned i = 0; i < npz->count; i++)
        write_at(npz, array_at(&npz->entries[i]), npz->entries[i].header,
                 HEADER_BYTES);
    return npz->code == 0
               ? KITH_OK
               : kith_file_complain(error, kith_file_error(npz->code),
                                    "writing", npz->path, strerror(npz->code));
}

enum kith_err kith_npz_create(const char *path,
                              const struct kith_npz_array *arrays,
                              unsigned count, struct kith_npz **npz,
                              char *error)
{
    KITH_ASSERT(count >= 1 && count <= KITH_NPZ_ARRAYS_MAX);
    *npz = NULL;
    if (strlen(path) >= KITH_PATH_BYTES_MAX)
        return kith_file_complain(error, KITH_ELIMIT, "writing", path,
                                  "the path is too long");
    struct kith_npz *made = calloc(1, sizeof *made);
    if (made == NULL)
        return kith_file_complain(error, KITH_ENOMEM, "writing", path,
                                  "out of memory");
    *made = (struct kith_npz){.path = path, .fd = -1, .count = count};
    (void)snprintf(made->partial, sizeof made->partial, "%s.partial", path);
    enum kith_err err = lay_out(made, arrays, error);
    if (err == KITH_OK)
        err = make_file(made, error);
    if (err == KITH_OK)
        *npz = made;
    else
        kith_npz_abandon(made);
    return err;
}

void kith_npz_write(struct kith_npz *npz, unsigned index, uint64_t first,
                    size_t count, const double *values)
{
    const struct entry *entry = &npz->entries[index];
    const unsigned bytes = element_bytes(entry);
    const uint64_t at = array_at(entry) + HEADER_BYTES + first * bytes;
    KITH_ASSERT(index < npz->count && at + count * bytes <= end_of(entry));
    if (entry->wide) {
        write_at(npz, at, values, count * bytes);
        return;
    }
    float narrow[CHUNK];
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < some; i++)
            narrow[i] = (float)values[done + i];
        write_at(npz, at + done * bytes, narrow, some * bytes);
    }
}

enum kith_err kith_npz_commit(struct kith_npz *npz, char *error)
{
    const uint64_t where = end_of(&npz->entries[npz->count - 1]);
    uint64_t end = where;
    for (unsigned i = 0; i < npz->count; i++) {
        const uint32_t sum = sum_of(npz, &npz->entries[i]);
        write_local(npz, &npz->entries[i], sum);
        end = write_entry(npz, &npz->entries[i], sum, end);
    }
    write_end(npz, where, end);
    if (npz->code == 0 && fsync(npz->fd) != 0)
        npz->code = errno;
    if (npz->code == 0 && rename(npz->partial, npz->path) != 0)
        npz->code = errno;
    enum kith_err err = KITH_OK;
    if (npz->code == 0)
        kith_file_sync_name(npz->path);
    else
        err = kith_file_complain(error, kith_file_error(npz->code), "writing",
                                 npz->path, strerror(npz->code));
    kith_npz_abandon(npz); /* of what was renamed nothing is there */
    return err;
}

void kith_npz_abandon(struct kith_npz *npz)
{
    if (npz == NULL)
        return;
    if (npz->fd >= 0) {
        (void)close(npz->fd);
        (void)unlink(npz->partial);
    }
    free(npz);
}
