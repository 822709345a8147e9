/* A place: what a process of a lab needs to be one of its peers.
 *
 *   kith lab --fork--> built-in peer: the place stands in its memory
 *            --fork, exec--> model.run: a descriptor has it (KITH_PLACE=N)
 *
 * Rank, keys, members and save, and three descriptors: rows to the launcher,
 * control lines from it, a listening socket. A program takes its place once:
 * the descriptor is emptied and closed, the others close on exec. Nothing of it
 * is in the environment but that number, or on a command line, or on a disk.
 *
 * A speaker tells the launcher what the peer says: rows, marks, lines, how it
 * ended. It never waits for the launcher: a record that finds the pipe full
 * joins a short queue, and when that is full too, rows and trace lines are
 * dropped and counted. What the launcher steers by waits for room, a bounded
 * time.
 *
 * Some processes have another task, to evaluate: `average_fd` is the averaged
 * model then, and no run is to begin.
 *
 * Test: unit/test_lab_place.c, integration/test_lab_program.sh */
#ifndef KITH_LAB_PLACE_H
#define KITH_LAB_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/evaluation.h"
#include "kith/experiment.h"
#include "kith/limits.h"
#include "kith/member_file.h"
#include "kith/peer.h"
#include "kith/rundb.h"
#include "kith/session.h"

/* The environment's variable: the number of a descriptor. */
#define KITH_PLACE_VARIABLE "KITH_PLACE"

struct kith_lab_place {
    const struct kith_experiment *experiment;
    const struct kith_identity *identity;
    const struct kith_trust *trust;    /* of a lab: an authority, no lists */
    const struct kith_member *members; /* (experiment->peers) */
    char save[KITH_PATH_BYTES_MAX];
    kith_id self;
    uint32_t incarnation;
    bool adopts;  /* a neighbour's model: it was there before */
    bool resumes; /* from its save, where there is one */
    bool records; /* keeps a journal */
    int rows_fd, control_fd, listen_fd;

    int average_fd; /* (dim) float32, to be evaluated; -1: a peer's place */
    struct kith_average_facts {
        uint64_t step;  /* mean over the models in it */
        uint32_t peers; /* how many there are */
        double consensus_distance, correlation;
    } average;
};

/* The place in a descriptor that outlives exec. KITH_EIO: errno says why. */
KITH_MUST_CHECK enum kith_err
kith_lab_place_give(const struct kith_lab_place *place, int *fd);
/* Takes the place that the environment names: experiment, keys and members are
 * in `member`, to be closed by kith_member_file_close(), and `place` points to
 * them. With one line in `error` (KITH_EXPERIMENT_ERROR_BYTES):
 *   KITH_ENOENT   no lab has started this process, or its place is taken
 *   KITH_EVERSION `kith` and this library are of different builds
 *   KITH_EPARSE, KITH_ENOMEM, and what kith_experiment_parse() returns */
KITH_MUST_CHECK enum kith_err
kith_lab_place_take(struct kith_lab_place *place,
                    struct kith_member_file *member, char *error);
/* Its average, (dim) float32, malloc'd. KITH_EMISMATCH: other sizes. */
KITH_MUST_CHECK enum kith_err
kith_lab_place_average(const struct kith_lab_place *place, size_t dim,
                       float **values);

/* What else wants to hear; any may be NULL. on_open: everything is open, before
 * the launcher knows; on_start: it has said when all begin. */
struct kith_listener {
    void *user;
    void (*on_open)(void *user);
    void (*on_start)(void *user);
    void (*on_log)(void *user, const char *line);
};

struct kith_speaker;
/* Both are lent until kith_speaker_close(); listener NULL: nobody. KITH_ENOMEM.
 */
KITH_MUST_CHECK enum kith_err
kith_speaker_open(const struct kith_lab_place *place,
                  const struct kith_listener *listener,
                  struct kith_speaker **speaker);
void kith_speaker_close(struct kith_speaker *speaker);
/* Those of kith_peer_run() in this place; what trains is the caller's. */
void kith_speaker_options(struct kith_speaker *speaker,
                          struct kith_peer_options *options);
/* After kith_peer_run(): how it ended. `text`: the error, "". */
void kith_speaker_end(struct kith_speaker *speaker, enum kith_err err,
                      const struct kith_peer_report *report, const char *text);
/* A row after the end: the last one, with this score. */
void kith_speaker_row(struct kith_speaker *speaker, const struct kith_row *row);
/* In the place of a run: where the data came from; the average's score. */
void kith_speaker_pieces(struct kith_speaker *speaker,
                         const struct kith_piece_totals *totals);
void kith_speaker_score(struct kith_speaker *speaker,
                        const struct kith_score *score);

#endif
