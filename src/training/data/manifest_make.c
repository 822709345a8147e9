/* A manifest of what lies at a path: see kith/pieces.h. */
#define _POSIX_C_SOURCE 200809L /* scandir, stat */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "kith/assert.h"
#include "kith/pieces.h"
#include "kith/plain_file.h"
#include "kith/text.h"

/* What is written, in one: head, hashes, files. */
struct making {
    const char *path;
    char *error;
    struct dirent **names;
    int name_count;
    uint8_t *files; /* (files_bytes) */
    struct kith_manifest manifest;
};

static void put(uint8_t *to, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static enum kith_err refuse(const struct making *making, enum kith_err err,
                            const char *name, const char *what)
{
    return kith_text_fail(making->error, KITH_PIECES_ERROR_BYTES, err,
                          "making a manifest of %.120s%s%.60s: %s",
                          making->path, name[0] == '\0' ? "" : "/", name, what);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A plain file of the folder, with bytes in it; else it is passed over. */
static enum kith_err add_file(struct making *making, const char *name)
{
    struct kith_manifest *const manifest = &making->manifest;
    char path[KITH_PATH_BYTES_MAX];
    struct stat about;
    const size_t length = strlen(name);
    const uint64_t at = (manifest->bytes + KITH_MANIFEST_ALIGN - 1) /
                        KITH_MANIFEST_ALIGN * KITH_MANIFEST_ALIGN;
    if (snprintf(path, sizeof path, "%s/%s", making->path, name) >=
        (int)sizeof path)
        return refuse(making, KITH_ELIMIT, "", "the path is too long");
    if (stat(path, &about) != 0)
        return refuse(making, kith_file_error(errno), name, strerror(errno));
    if (!S_ISREG(about.st_mode) || about.st_size == 0)
        return KITH_OK;
    if (manifest->file_count == KITH_MANIFEST_FILES_MAX || length > UINT8_MAX)
        return refuse(making, KITH_ELIMIT, name,
                      "a folder's manifest has up to 4096 files");
    uint8_t *const to = making->files + manifest->files_bytes;
    put(to, (uint64_t)about.st_size);
    to[8] = (uint8_t)length;
    memcpy(to + 9, name, length);
    manifest->files_bytes += 9 + length;
    manifest->file_count++;
    manifest->bytes = at + (uint64_t)about.st_size;
    return KITH_OK;
}

/* The file at the path, or the files of the folder there. */
static enum kith_err find_files(struct making *making)
{
    struct stat about;
    if (stat(making->path, &about) != 0)
        return refuse(making, kith_file_error(errno), "", strerror(errno));
    if (!S_ISDIR(about.st_mode)) {
        making->manifest.bytes = (uint64_t)about.st_size;
        return KITH_OK;
    }
    making->name_count =
        scandir(making->path, &making->names, is_shown, kith_file_by_name);
    if (making->name_count < 0)
        return refuse(making, kith_file_error(errno), "", strerror(errno));
    making->files = calloc((size_t)making->name_count + 1, 8 + 1 + UINT8_MAX);
    if (making->files == NULL)
        return refuse(making, KITH_ENOMEM, "", "no memory");
    making->manifest.files = making->files;
    enum kith_err err = KITH_OK;
    for (int i = 0; i < making->name_count && err == KITH_OK; i++)
        err = add_file(making, making->names[i]->d_name);
    return err;
}

/* Each piece is read as a peer reads it. */
static enum kith_err hash_pieces(struct making *making, uint8_t *hashes,
                                 uint8_t *piece)
{
    const struct kith_manifest *const manifest = &making->manifest;
    struct kith_piece_origin origin;
    enum kith_err err = kith_piece_origin_init(&origin, making->path, manifest);
    const struct kith_piece_source source = kith_piece_origin_source(&origin);
    for (uint32_t i = 0; i < manifest->count && err == KITH_OK; i++) {
        const size_t size = kith_manifest_size(manifest, i);
        err = source.read(source.owner, i, 0, size, piece);
        kith_manifest_hash(piece, size,
                           hashes + (size_t)i * KITH_PIECE_HASH_BYTES);
    }
    return err == KITH_OK ? err
                          : refuse(making, err, "", "a file cannot be read");
}

static enum kith_err write_all(struct making *making, uint8_t **bytes,
                               size_t *size)
{
    struct kith_manifest *const manifest = &making->manifest;
    manifest->count =
        kith_manifest_count(manifest->bytes, manifest->piece_bytes);
    if (manifest->count == 0)
        return refuse(making, KITH_ELIMIT, "",
                      "there is nothing, or more than pieces can be");
    const size_t hashes = (size_t)manifest->count * KITH_PIECE_HASH_BYTES;
    *size = KITH_MANIFEST_HEAD_BYTES + hashes + manifest->files_bytes;
    *bytes = malloc(*size + manifest->piece_bytes);
    if (*bytes == NULL)
        return refuse(making, KITH_ENOMEM, "", "no memory");
    kith_manifest_write_head(manifest, *bytes);
    if (manifest->files_bytes > 0)
        memcpy(*bytes + KITH_MANIFEST_HEAD_BYTES + hashes, making->files,
               manifest->files_bytes);
    return hash_pieces(making, *bytes + KITH_MANIFEST_HEAD_BYTES,
                       *bytes + *size);
}

enum kith_err kith_manifest_make(const char *path, uint32_t piece_bytes,
                                 uint8_t **bytes, size_t *size, char *error)
{
    struct making making = {
        .path = path, .error = error, .manifest = {.piece_bytes = piece_bytes}};
    *bytes = NULL;
    enum kith_err err = sodium_init() < 0
                            ? refuse(&making, KITH_EDEVICE, "", "no hashes")
                            : find_files(&making);
    if (err == KITH_OK)
        err = write_all(&making, bytes, size);
    for (int i = 0; i < making.name_count; i++)
        free(making.names[i]);
    free(making.names);
    free(making.files);
    if (err != KITH_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return err;
}
