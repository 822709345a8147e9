/* The folder for the saves of one run: the one that is named, or a private one,
 * $TMPDIR/kith-lab-XXXXXX, 0700.
 *
 * It is locked while its launcher lives. A launcher that was killed leaves its
 * private folder behind; the next one finds it unlocked and removes it. */
#ifndef KITH_LAB_SAVE_FOLDER_H
#define KITH_LAB_SAVE_FOLDER_H

#include <stdbool.h>

#include "kith/err.h"
#include "kith/limits.h"

struct lab_folder {
    char path[KITH_PATH_BYTES_MAX]; /* "": none */
    int lock_fd;
    bool keep; /* what is in it is still wanted: kith_lab_folder_close lets it
                  be */
};

/* named: may be there already; NULL: a private one. KITH_ENOSPC, KITH_EPERM or,
 * where another lab uses it, KITH_EBUSY with one line in error
 * (KITH_LAB_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_lab_folder_open(struct lab_folder *folder, const char *named, char *error);
/* Unless it is to be kept, removes it and what is in it. Harmless on one that
 * was never opened, as long as it is zeroed. */
void kith_lab_folder_close(struct lab_folder *folder);

#endif
