/* The lab: an experiment with real processes on this machine.
 *
 *   launcher --fork--> peer 0..n-1, each in kith_peer_run()
 *      ^ rows, marks, lines: one pipe per peer       (src/lab/records.h)
 *      | start, slow, cut, heal, stop: one pipe per peer
 *
 * The launcher alone writes the run database, carries the file's faults out
 * (SIGKILL, fork, SIGSTOP, SIGCONT, control lines) and evaluates the saves at
 * the end. It never starts a thread, so that it may fork at any time, and no
 * process outlives it, whatever ends it.
 * Test: integration/test_lab_resumes.sh, unit/test_lab_rows.c,
 * unit/test_lab_process.c, integration/test_lab_*.
 */
#ifndef KITH_LAB_H
#define KITH_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/limits.h"
#include "kith/liveness.h"
#include "kith/node.h"
#include "kith/rundb.h"
#include "kith/types.h"

#define KITH_LAB_ERROR_BYTES 1024
/* Processes of one lab: three descriptors and some MB for each. */
#define KITH_LAB_PEERS_MAX 256u

/* Where the run stands, about once a second. */
struct kith_lab_progress {
    kith_ns time_ns;             /* since the common start */
    uint64_t step_min, step_max; /* over live peers */
    uint64_t steps;              /* own share; UINT64_MAX: by time */
    uint32_t alive;              /* peers */
    uint64_t exchanges;          /* so far */
    double loss; /* mean of live peers' training losses; NaN: none has told */
    struct kith_speed speed; /* of all live peers, as in a summary */
    double accuracy;         /* of the averaged model; NaN: not evaluated yet */
};

/* What a search asks of a run, beyond kith_summary. */
struct kith_lab_report {
    uint64_t marks[KITH_MARK_COUNT]; /* how often each was reached */
    char died[160]; /* the first peer that ended without a fault, or not in
                       time; "": none did */
    char not_live[KITH_LIVENESS_TEXT_BYTES]; /* "": all that must happen did */
};

struct kith_lab_options {
    const struct kith_experiment *experiment; /* read only */
    const struct kith_dataset *dataset; /* NULL where the model needs none */
    struct kith_rundb *store;           /* created; stays the caller's */
    /* Folder of the peers' saves, made where it is missing, and kept where the
     * run does not complete; NULL: a private one below $TMPDIR, never kept. */
    const char *saves;
    bool resume; /* go on from those saves, and from the rows in the store */
    bool record; /* keep a journal of it: kith/journal.h; not with resume */
    /* Programs of model.run print into files beside this one, whose ending .db
     * makes way for .peer-RANK.out; NULL where there are none. */
    const char *output;
    uint16_t port; /* peer i listens on 127.0.0.1:port + i; 0: any free ones */
    /* May be NULL; else liveness is watched, whatever the file asserts. */
    struct kith_lab_report *report;
    void *user;
    /* Any may be NULL. Lines are for people and have no newline. on_line: a
     * fault as it happened, a peer that died; on_peer_line: what a peer logs
     * (connected, refused, ...) and when, since the common start, which is
     * much. */
    void (*on_progress)(void *user, const struct kith_lab_progress *progress);
    void (*on_line)(void *user, const char *line);
    void (*on_peer_line)(void *user, kith_id peer, kith_ns time_ns,
                         const char *line);
};

/* Runs the experiment to its end, evaluates it, and writes rows, marks, faults,
 * verdicts and kith_rundb_finish() into the store, which stays open. SIGINT and
 * SIGTERM stop the run early, in order: KITH_OK with summary->completed false;
 * SIGPIPE is ignored meanwhile.
 * A run that goes on keeps its clock: what the file's faults, stop.time and
 * rows say is counted from its first start. Each peer goes on from its own save
 * and adopts nobody's; what was crashed, slow, paused or cut is so again.
 *
 * Returns KITH_OK, or, with one line in `error` (KITH_LAB_ERROR_BYTES):
 *   KITH_ELIMIT      more than KITH_LAB_PEERS_MAX peers
 *   KITH_EADDRINUSE  a port is busy
 *   KITH_ENOSPC, KITH_EPERM, KITH_EIO  a save or the database cannot be written
 *   KITH_EBUSY       no process, pipe or socket could be made
 *   KITH_EMISMATCH   processes of model.run have models of other sizes
 *   KITH_EDEVICE     every peer died, or one before the common start, or a
 *                    device failed
 *   KITH_ENOMEM, KITH_EUNSUPPORTED
 * All processes have ended when it returns, whatever it returns. */
KITH_MUST_CHECK enum kith_err
kith_lab_run(const struct kith_lab_options *options,
             struct kith_summary *summary, char *error);

/* The folder for the saves of one run: the one that is named, or a private one,
 * $TMPDIR/kith-lab-XXXXXX, 0700.
 *
 * It is locked while its launcher lives. A launcher that was killed leaves its
 * private folder behind; the next one finds it unlocked and removes it. */
struct kith_lab_folder {
    char path[KITH_PATH_BYTES_MAX]; /* "": none */
    int lock_fd;
    bool keep; /* what is in it is still wanted: kith_lab_folder_close lets it
                  be */
};

/* named: may be there already; NULL: a private one. KITH_ENOSPC, KITH_EPERM or,
 * where another lab uses it, KITH_EBUSY with one line in error
 * (KITH_LAB_ERROR_BYTES). */
KITH_MUST_CHECK enum kith_err
kith_lab_folder_open(struct kith_lab_folder *folder, const char *named,
                     char *error);
/* Unless it is to be kept, removes it and what is in it. Harmless on one that
 * was never opened, as long as it is zeroed. */
void kith_lab_folder_close(struct kith_lab_folder *folder);

#endif
