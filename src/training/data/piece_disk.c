/* Pieces on the local disk: see kith/pieces.h. */
#define _POSIX_C_SOURCE 200809L /* mkdir */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "kith/pieces.h"
#include "kith/plain_file.h"
#include "kith/text.h"

enum kith_err kith_piece_disk_init(struct kith_piece_disk *disk,
                                   const char *folder,
                                   const struct kith_manifest *manifest,
                                   uint32_t self)
{
    uint8_t root[KITH_PIECE_HASH_BYTES];
    kith_manifest_root(manifest, root);
    kith_text_hex(disk->root, root, (sizeof disk->root - 1) / 2);
    disk->self = self;
    if (!kith_text_copy(disk->folder, sizeof disk->folder, folder))
        return KITH_ELIMIT;
    return mkdir(folder, 0777) == 0 || errno == EEXIST ? KITH_OK
                                                       : kith_file_error(errno);
}

static void name_piece(const struct kith_piece_disk *disk, uint32_t piece,
                       char path[KITH_PATH_BYTES_MAX])
{
    (void)snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s-%u", disk->folder,
                   disk->root, piece);
}

static enum kith_err read_piece(void *owner, uint32_t piece, unsigned attempt,
                                size_t size, uint8_t *bytes)
{
    char path[KITH_PATH_BYTES_MAX], why[KITH_FILE_WHY_BYTES];
    size_t found;
    int fd;
    (void)attempt;
    name_piece(owner, piece, path);
    enum kith_err err = kith_file_open(path, &fd, &found, why);
    if (err != KITH_OK)
        return err;
    FILE *const file = kith_file_stream(fd, "rb");
    if (file == NULL)
        return KITH_ENOMEM;
    err = found == size && fread(bytes, 1, size, file) == size ? KITH_OK
                                                               : KITH_EPARSE;
    (void)fclose(file);
    return err;
}

static enum kith_err keep_piece(void *owner, uint32_t piece, size_t size,
                                const uint8_t *bytes)
{
    const struct kith_piece_disk *const disk = owner;
    char path[KITH_PATH_BYTES_MAX], partial[KITH_PATH_BYTES_MAX];
    name_piece(disk, piece, path);
    (void)snprintf(partial, sizeof partial, "%s/%s-%u.partial-%u", disk->folder,
                   disk->root, piece, disk->self);
    FILE *const file = kith_file_create_stream(partial);
    if (file == NULL)
        return kith_file_error(errno);
    (void)fwrite(bytes, 1, size, file); /* a failure shows at the commit */
    const int code = kith_file_commit(file, partial, path);
    return code == 0 ? KITH_OK : kith_file_error(code);
}

struct kith_piece_source kith_piece_disk_source(struct kith_piece_disk *disk)
{
    return (struct kith_piece_source){.name = "disk",
                                      .attempts = 1,
                                      .owner = disk,
                                      .read = read_piece,
                                      .keep = keep_piece};
}
