/* Checkpoints beside the training: a thread hashes, writes and syncs what was
 * copied at one moment, while the next steps are taken.
 *
 *   training thread   begin: copy -> WRITING          take: WRITTEN -> IDLE
 *   saver's thread           WRITING -> hash, write, fsync, rename -> WRITTEN
 *
 * Two saves never overlap: a begin waits for the one under way. Until its
 * rename the file before it stands, whatever ends the process.
 *
 * Cost: begin makes one copy of model, optimiser and algorithm vectors, into
 * memory of that size which is kept until close.
 * Test: unit/test_saver.c, integration/test_resume.sh */
#ifndef KITH_SAVER_H
#define KITH_SAVER_H

#include <stdbool.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/worker.h"

struct kith_saver;

/* How a save ended: of `path`, the caller's, at `step`. */
struct kith_saved {
    enum kith_err err; /* as kith_save_write() */
    const char *path;
    uint64_t step;
    kith_ns took_ns; /* in the saver's thread */
    char error[KITH_DATA_ERROR_BYTES];
};

/* `written` (may be NULL) is called by the saver's thread after each save.
 * KITH_ENOMEM. */
KITH_MUST_CHECK enum kith_err kith_saver_open(void (*written)(void *arg),
                                              void *arg,
                                              struct kith_saver **saver);
/* The state of the worker, which no other thread changes meanwhile, will become
 * the file `path` (kept until it has). Of saves before it whose result was not
 * taken, the last one that failed is still told. KITH_ENOMEM, KITH_EDEVICE,
 * with a line in `error` (KITH_DATA_ERROR_BYTES): nothing is written, and what
 * was there stays. */
KITH_MUST_CHECK enum kith_err
kith_saver_begin(struct kith_saver *saver, struct kith_worker *worker,
                 const char *path, const struct kith_standing *standing,
                 bool keep_previous, char *error);
bool kith_saver_busy(struct kith_saver *saver);
/* The result of a save: of one that failed first, then of the last one. False:
 * none is left to take. */
bool kith_saver_take(struct kith_saver *saver, struct kith_saved *saved);
/* Until no save is under way. */
void kith_saver_wait(struct kith_saver *saver);
/* Waits for the save under way; NULL is no saver. */
void kith_saver_close(struct kith_saver *saver);

#endif
