/* A private folder for the saves of one run: $TMPDIR/kith-lab-XXXXXX, 0700.
 *
 * It is locked while its launcher lives. A launcher that was killed leaves its
 * folder behind; the next one finds it unlocked and removes it. */
#ifndef KITH_LAB_FOLDER_H
#define KITH_LAB_FOLDER_H

#include "kith/err.h"
#include "kith/limits.h"

struct lab_folder {
    char path[KITH_PATH_BYTES_MAX]; /* "": none */
    int lock_fd;
};

/* KITH_ENOSPC or KITH_EPERM with one line in error (KITH_LAB_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err lab_folder_open(struct lab_folder *folder,
                                              char *error);
/* Removes it and what is in it. Harmless on one that was never opened, as long
 * as it is zeroed. */
void lab_folder_close(struct lab_folder *folder);

#endif
