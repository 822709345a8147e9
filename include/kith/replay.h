/* Replay of a real run: a lab's journal (journal.h) carried out in one process,
 * with the same node, the same work items in the same order, and no socket.
 *
 *   a MESSAGE waits until its sender has sent the equal one; a MODEL's bytes
 *   are those of the sender's slot as it was sent; lost ones are passed over
 *
 * Of a program's peers (model.run) decisions alone are replayed: what an item
 * found is what the record says, and values are nobody's.
 * On the same build and processor the final models have the bytes of the lab's;
 * whatever the record says and the replay does not do is an error that names
 * the peer and its event. Test: integration/test_lab_replay.sh. */
#ifndef KITH_REPLAY_H
#define KITH_REPLAY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/journal.h"

#define SIM_REPLAY_ERROR_BYTES 1024

/* Values that differ, of those compared; relative: to the larger of the two. */
struct sim_agreement {
    uint64_t compared, differ;
    double relative_max;
};

struct sim_replay_model {
    kith_id peer;
    uint64_t step;
    bool same; /* the digest says: the same bytes */
    bool kept; /* values were kept, and are compared */
    struct sim_agreement values;
    struct kith_score lab, replay;
};

struct sim_replay_report {
    uint32_t peers, restarts;
    bool decisions; /* alone: no value is compared */
    uint64_t events, messages, items, steps;
    uint64_t lost;                   /* messages sent that nobody received */
    struct sim_agreement losses;     /* of every training step */
    uint32_t model_count;            /* peers that left a final model */
    struct sim_replay_model *models; /* (model_count) malloc'd */
    bool averaged;                   /* and so was their average */
    struct sim_replay_model average; /* no values of its own */
    double relative_max; /* over the models' values that were kept */
    double accuracy_gap; /* most, of any model or the average */
    bool diverged;       /* what the error says */
};

struct sim_replay_options {
    const char *path; /* the run database */
    /* What it keeps, opened as for a lab. */
    const struct kith_experiment *experiment;
    const struct kith_dataset *dataset; /* NULL where the model needs none */
    const char *saves; /* a folder for what restarted peers go on from */
    void (*progress)(uint64_t events, kith_ns time_ns, void *arg);
    void *arg;
    const volatile sig_atomic_t *stop; /* non-zero: end now; may be NULL */
};

/* Carries the whole journal out. `report` is filled in as far as it came,
 * `note` (KITH_JOURNAL_ERROR_BYTES) is "" or says what may make a difference;
 * `error` (SIM_REPLAY_ERROR_BYTES) one line where the answer is not KITH_OK:
 *   KITH_EMISMATCH  with report->diverged: peer, event, expected and found;
 *                   else as kith_journal_open
 *   KITH_EAGAIN     stopped
 *   KITH_ENOMEM, KITH_EPARSE, KITH_EVERSION, KITH_ENOENT, KITH_EIO, ... */
KITH_MUST_CHECK enum kith_err
sim_replay(const struct sim_replay_options *options,
           struct sim_replay_report *report, char *note, char *error);
void sim_replay_report_close(struct sim_replay_report *report);

#endif
