/* Pieces of the files themselves: see kith/pieces.h. */
#define _POSIX_C_SOURCE 200809L /* pread */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kith/pieces.h"
#include "kith/plain_file.h"
#include "kith/text.h"

enum kith_err kith_piece_origin_init(struct kith_piece_origin *origin,
                                     const char *path,
                                     const struct kith_manifest *manifest)
{
    origin->manifest = manifest;
    return kith_text_copy(origin->path, sizeof origin->path, path)
               ? KITH_OK
               : KITH_ELIMIT;
}

static enum kith_err read_at(int file, uint64_t at, size_t size, uint8_t *bytes)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t count =
            pread(file, bytes + done, size - done, (off_t)(at + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? kith_file_error(errno) : KITH_EPARSE;
        done += (size_t)count;
    }
    return KITH_OK;
}

/* Opened for each: a mount may go and come back. */
static enum kith_err read_file(const char *path, uint64_t at, size_t size,
                               uint8_t *bytes)
{
    char why[KITH_FILE_WHY_BYTES];
    int file;
    enum kith_err err = kith_file_open(path, &file, NULL, why);
    if (err != KITH_OK)
        return err;
    err = read_at(file, at, size, bytes);
    (void)close(file);
    return err;
}

/* What of the piece lies in this file. */
static enum kith_err read_part(const struct kith_piece_origin *origin,
                               const struct kith_manifest_file *file,
                               uint64_t first, size_t size, uint8_t *bytes)
{
    char path[KITH_PATH_BYTES_MAX];
    const uint64_t from = first > file->at ? first : file->at;
    const uint64_t end = first + size < file->at + file->size
                             ? first + size
                             : file->at + file->size;
    if (from >= end)
        return KITH_OK;
    const int length =
        snprintf(path, sizeof path, "%s/%s", origin->path, file->name);
    if (length < 0 || (size_t)length >= sizeof path)
        return KITH_ELIMIT;
    return read_file(path, from - file->at, (size_t)(end - from),
                     bytes + (from - first));
}

static enum kith_err read_piece(void *owner, uint32_t piece, unsigned attempt,
                                size_t size, uint8_t *bytes)
{
    const struct kith_piece_origin *const origin = owner;
    const struct kith_manifest *const manifest = origin->manifest;
    const uint64_t first = (uint64_t)piece * manifest->piece_bytes;
    struct kith_manifest_file file = {.next = 0};
    enum kith_err err = KITH_OK;
    (void)attempt;
    if (manifest->file_count == 0)
        return read_file(origin->path, first, size, bytes);
    memset(bytes, 0, size); /* what lies between files */
    while (err == KITH_OK && kith_manifest_next(manifest, &file))
        err = read_part(origin, &file, first, size, bytes);
    return err;
}

struct kith_piece_source
kith_piece_origin_source(struct kith_piece_origin *origin)
{
    return (struct kith_piece_source){.name = "origin",
                                      .is_origin = true,
                                      .attempts = 1,
                                      .owner = origin,
                                      .read = read_piece};
}
