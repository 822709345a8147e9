/* Pieces of the file itself: see kith/pieces.h. */
#define _POSIX_C_SOURCE 200809L /* pread */
#include <errno.h>
#include <unistd.h>

#include "kith/pieces.h"
#include "kith/plain_file.h"
#include "kith/text.h"

enum kith_err kith_piece_origin_init(struct kith_piece_origin *origin,
                                     const char *path,
                                     const struct kith_manifest *manifest)
{
    origin->bytes = manifest->bytes;
    origin->piece_bytes = manifest->piece_bytes;
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
static enum kith_err read_piece(void *owner, uint32_t piece, unsigned attempt,
                                size_t size, uint8_t *bytes)
{
    const struct kith_piece_origin *const origin = owner;
    char why[KITH_FILE_WHY_BYTES];
    int file;
    (void)attempt;
    enum kith_err err = kith_file_open(origin->path, &file, NULL, why);
    if (err != KITH_OK)
        return err;
    err = read_at(file, (uint64_t)piece * origin->piece_bytes, size, bytes);
    (void)close(file);
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
