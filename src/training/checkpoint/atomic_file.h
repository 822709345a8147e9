/* Files that are written whole or not at all. */
#ifndef KITH_TRAINING_CHECKPOINT_ATOMIC_FILE_H
#define KITH_TRAINING_CHECKPOINT_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/err.h"
#include "kith/limits.h"
#include "kith/plain_file.h"

/* Written to PATH.partial, flushed to the disk, then renamed: PATH is always
 * whole. The one before stays as PATH.previous where asked. */
struct work_writer {
    FILE *file;
    const char *path;
    int code; /* errno of the first failure, 0: none */
    char partial[KITH_PATH_BYTES_MAX + 16];
};
KITH_MUST_CHECK enum kith_err kith_atomic_file_open(struct work_writer *writer,
                                                    const char *path,
                                                    char *error);
/* A failure is kept for kith_atomic_file_commit. */
void kith_atomic_file_write(struct work_writer *writer, const void *bytes,
                            size_t size);
/* Over what stands at `offset`; the position is lost. */
void kith_atomic_file_write_at(struct work_writer *writer, long offset,
                               const void *bytes, size_t size);
/* Closes; on an error nothing is left but what was there before. */
KITH_MUST_CHECK enum kith_err
kith_atomic_file_commit(struct work_writer *writer, bool keep_previous,
                        char *error);

/* Instead: nothing is left but what was there before. */
void kith_atomic_file_abandon(struct work_writer *writer);

#endif
