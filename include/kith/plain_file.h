/* Opening what a user named: a regular file, or a line that says what it is;
 * and making the temporary file that a rename puts in its place.
 *
 * A FIFO that nobody writes to is waited for, a device may give bytes for ever;
 * neither is what an experiment, a data set, a checkpoint or a database is.
 * Test: unit/test_file.c; integration/test_cli_refuses.sh. */
#ifndef KITH_PLAIN_FILE_H
#define KITH_PLAIN_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/err.h"

#define KITH_FILE_WHY_BYTES 128
#define KITH_FILE_ERROR_BYTES 512

/* What an errno of a file operation means: KITH_ENOENT, KITH_EPERM,
 * KITH_ENOSPC, KITH_ENOMEM, else KITH_EIO. */
enum kith_err kith_file_error(int code);

/* Opens for reading, without waiting, close-on-exec. *fd is the caller's; bytes
 * (may be NULL): its size now.
 *
 * Returns KITH_OK, or, with `why` (KITH_FILE_WHY_BYTES) a phrase without the
 * path and nothing to close,
 *   KITH_EINVAL  a folder, FIFO, socket or device
 *   else         kith_file_error */
KITH_MUST_CHECK enum kith_err kith_file_open(const char *path, int *fd,
                                             size_t *bytes, char *why);
/* The same for a file that somebody else opens (SQLite). */
KITH_MUST_CHECK enum kith_err kith_file_check(const char *path, char *why);

/* For scandir(): the order of bytes, whatever the locale. */
int kith_file_by_name(const struct dirent **a, const struct dirent **b);

/* A new file to write, in the place of what stands there: a link that somebody
 * else put there is not followed, a FIFO's reader not waited for.
 * Close-on-exec. -1 or NULL: errno says why. Test: unit/test_file.c. */
KITH_MUST_CHECK int kith_file_create(const char *path);
KITH_MUST_CHECK FILE *kith_file_create_stream(const char *path);

/* The stream of a descriptor, which is closed on an error; NULL of -1. */
FILE *kith_file_stream(int fd, const char *mode);

/* Flushes, closes and renames what kith_file_create_stream has made: PATH is
 * whole or what it was before. 0 or, with `partial` removed, errno. */
KITH_MUST_CHECK int kith_file_commit(FILE *file, const char *partial,
                                     const char *path);
/* A rename to this path, or a new file there, is on the disk, where the file
 * system of its folder says so. */
void kith_file_sync_name(const char *path);

/* Writes "DOING PATH: what" to error (KITH_FILE_ERROR_BYTES), of a long path
 * its end; returns err. */
enum kith_err kith_file_complain(char *error, enum kith_err err,
                                 const char *doing, const char *path,
                                 const char *what);

/* A whole file, mapped read-only; size 0: bytes is NULL. Errors as those of
 * kith_file_open, with a phrase in `why` (KITH_FILE_WHY_BYTES), or with a line
 * in `error` (KITH_FILE_ERROR_BYTES). */
struct kith_file_map {
    const uint8_t *bytes;
    size_t size;
};
KITH_MUST_CHECK enum kith_err
kith_file_map(const char *path, struct kith_file_map *map, char *why);
KITH_MUST_CHECK enum kith_err
kith_file_map_open(const char *path, struct kith_file_map *map, char *error);
void kith_file_map_close(struct kith_file_map *map);
/* It was read: its pages are the system's again, and come back if need be. */
void kith_file_map_rest(const struct kith_file_map *map);

#endif
