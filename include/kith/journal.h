/* The journal of a real run: what every peer's driver gave to kith_node_step,
 * in order, so that the run can be carried out again in one process.
 *
 *   an incarnation     BEGIN  EVENT (START)  EVENT ...  EVENT  END
 *   BEGIN   step of the save it went on from, hash of its model then
 *   EVENT   kind, time; from; a message's header and slot; a result
 *   LIE     from the next item on what is sent is one (kith/lie.h)
 *   END     was the item that was out carried out? A killed peer has no END.
 *
 * Entries are variable in length and follow one another; they travel and are
 * stored in numbered parts, cut anywhere. A peer hands a part on before what
 * the step said leaves it: whatever a neighbour ever heard is in the journal,
 * though the peer is killed the moment after.
 *
 * The reader trusts nothing: counts and lengths are bounded before anything is
 * allocated, ranks are below KITH_PEERS_MAX, times never go back.
 * Test: unit/test_journal.c, fuzz/fuzz_journal.c,
 * integration/test_lab_replay.sh. */
#ifndef KITH_JOURNAL_H
#define KITH_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/evaluation.h"
#include "kith/node.h"
#include "kith/rundb.h"
#include "kith/worker.h"

/* Of the entries' bytes; in the table `run`, key `journal`. 4 knew no part of a
 * step, and is read. */
#define KITH_JOURNAL_VERSION 5
#define KITH_JOURNAL_OLDEST 4
/* The most bytes of a part: one record of the lab's pipe. */
#define KITH_JOURNAL_PART_BYTES 480u
/* Peers of a journal: the processes of a lab. */
#define KITH_JOURNAL_PEERS_MAX 256u
/* No entry is longer: two varints, a header, a slot, a distance. */
#define KITH_JOURNAL_ENTRY_BYTES_MAX 160u
/* A final model is kept beside the journal up to this size as float64;
 * of a larger one the digest alone. */
#define KITH_JOURNAL_MODEL_BYTES_MAX (UINT64_C(64) << 20)

enum kith_journal_kind {
    KITH_JOURNAL_BEGIN,
    KITH_JOURNAL_EVENT,
    KITH_JOURNAL_END,
    KITH_JOURNAL_LIE,
};

struct kith_journal_entry {
    enum kith_journal_kind kind;
    uint64_t step, digest;       /* BEGIN; digest 0: from the initial model */
    bool adopt;                  /* BEGIN */
    bool ran;                    /* END */
    struct kith_lie lie;         /* LIE */
    struct kith_event event;     /* EVENT; unpacked, its pointers are NULL */
    struct kith_message message; /* unpacked: of a MESSAGE */
    struct kith_work_result result; /* unpacked: of a WORK_DONE */
};

/* What times are counted from: zeroed at BEGIN, one for each incarnation. */
struct kith_journal_clock {
    kith_ns now_ns;
    int64_t utc_s;
};

/* Hash of a model z (dim): what tells two of them apart. Never 0. */
uint64_t kith_journal_digest(const double *z, size_t dim);

/* Bytes written to `bytes` (KITH_JOURNAL_ENTRY_BYTES_MAX). Reads what `event`
 * points to. Cannot fail. */
size_t kith_journal_pack(struct kith_journal_clock *clock,
                         const struct kith_journal_entry *entry,
                         uint8_t *bytes);
/* The first entry of `bytes` and how long it is. KITH_EAGAIN: it is cut short;
 * KITH_EPARSE: no entry. The clock moves on KITH_OK alone. */
KITH_MUST_CHECK enum kith_err
kith_journal_unpack(struct kith_journal_clock *clock, const uint8_t *bytes,
                    size_t size, struct kith_journal_entry *entry,
                    size_t *used);

/* ---- into a run database */

/* Makes its tables. Once, before the two below, in a new database. */
enum kith_err kith_rundb_journal_begin(struct kith_rundb *store);
/* Of model.run: as many values, the last of which are buffers, as the first of
 * its processes has said. Once. */
enum kith_err kith_rundb_journal_vectors(struct kith_rundb *store, uint32_t dim,
                                         uint32_t buffers);
/* Part 0, 1, ... of an incarnation; errors stick, as in rundb.h. */
enum kith_err kith_rundb_journal(struct kith_rundb *store, kith_id peer,
                                 uint32_t incarnation, uint32_t part,
                                 const uint8_t *bytes, size_t size);
/* How a peer ended (KITH_NOBODY: the average, z may be NULL). */
enum kith_err kith_rundb_model(struct kith_rundb *store, kith_id peer,
                               uint64_t step, const struct kith_score *score,
                               const double *z, size_t dim);

/* ---- out of one */

struct kith_journal;
#define KITH_JOURNAL_ERROR_BYTES KITH_RUNDB_ERROR_BYTES

/* The journal of the lab run in `path`, of this experiment. `note` (same size)
 * says where another build wrote it, else "". KITH_ENOENT, KITH_EINVAL: no
 * such file; KITH_EPARSE: not a run database, or damaged; KITH_EVERSION;
 * KITH_EMISMATCH: of another command or experiment, without a journal, or gone
 * on with later. */
KITH_MUST_CHECK enum kith_err
kith_journal_open(const char *path, const struct kith_experiment *experiment,
                  struct kith_journal **journal, char *note, char *error);
/* What kith_rundb_journal_vectors() wrote: dim and buffers of the config; 0,
 * where no process ever said so. KITH_EPARSE: damaged. */
KITH_MUST_CHECK enum kith_err
kith_journal_vectors(const struct kith_journal *journal,
                     struct kith_model_config *config, char *error);
/* The peer's next entry and which incarnation it is of. KITH_ENOENT: there is
 * no more. KITH_EPARSE: damaged, or a part is missing; says where. */
KITH_MUST_CHECK enum kith_err
kith_journal_next(struct kith_journal *journal, kith_id peer,
                  uint32_t *incarnation, struct kith_journal_entry *entry,
                  char *error);
/* Has this peer a later incarnation than this one? */
bool kith_journal_returns(const struct kith_journal *journal, kith_id peer,
                          uint32_t incarnation);
/* What kith_rundb_model wrote; KITH_ENOENT: nothing of this peer. values: (dim)
 * into the caller's z (may be NULL); *kept: they were there. */
struct kith_journal_model {
    uint64_t step, digest;
    struct kith_score score;
    bool kept;
};
KITH_MUST_CHECK enum kith_err
kith_journal_model(struct kith_journal *journal, kith_id peer, size_t dim,
                   struct kith_journal_model *model, double *z, char *error);
void kith_journal_close(struct kith_journal *journal);

#endif
