/* A run database: one SQLite file, the same schema from sim, lab, train and
 * peer, so that one query compares prediction with reality. */
#ifndef KITH_RUNDB_H
#define KITH_RUNDB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/build.h"
#include "kith/check.h"
#include "kith/curve.h"
#include "kith/data_store.h"
#include "kith/err.h"
#include "kith/experiment.h"
#include "kith/node.h"
#include "kith/series.h"
#include "kith/zone_map.h"

struct kith_rundb;
#define KITH_RUNDB_ERROR_BYTES 512

/* Creates DIRECTORY/NAME-WORLD-N.db with the first free N, never overwriting:
 * the path is written to `path` (KITH_PATH_BYTES_MAX). Checks that it can be
 * written before any work is done. */
KITH_MUST_CHECK enum kith_err
kith_rundb_create(const char *directory, const char *world,
                  const struct kith_experiment *experiment,
                  struct kith_rundb **store, char *path, char *error);
/* The part of a database of many runs (kith/sweep.h) that one process writes:
 * the new file `path`, all rows with that id. */
KITH_MUST_CHECK enum kith_err
kith_rundb_create_part(const char *path, uint32_t run_id, const char *world,
                       const struct kith_experiment *experiment,
                       struct kith_rundb **store, char *error);
/* From now on a thread of the store's writes trace events; nothing else changes
 * for the caller, who does not fork while the store is open. Without a thread
 * to be had they are written at once. Test: unit/test_store. */
void kith_rundb_start_writer(struct kith_rundb *store);
/* The database of an interrupted run of the same experiment and world; nothing
 * is changed yet. KITH_ENOENT, KITH_EPARSE, KITH_EVERSION, KITH_EMISMATCH. */
KITH_MUST_CHECK enum kith_err
kith_rundb_reopen(const char *path, const char *world,
                  const struct kith_experiment *experiment,
                  struct kith_rundb **store, char *error);
/* The experiment that a run database keeps, malloc'd. */
KITH_MUST_CHECK enum kith_err kith_rundb_experiment(const char *path,
                                                    char **text, char *error);
/* It is of this peer of a cluster, started for the `incarnation`th time from 0
 * on: what joins its database with the others' (kith/join.h). */
enum kith_err kith_rundb_member(struct kith_rundb *store, kith_id rank,
                                uint32_t incarnation);
/* Commits and closes; safe after any failure. */
KITH_MUST_CHECK enum kith_err kith_rundb_close(struct kith_rundb *store,
                                               char *error);

/* The step of the sender when it made the snapshot of this MODEL: a round's
 * message says the round in place of it, and each `every` steps begin one. */
static inline uint64_t
kith_rundb_sender_step(const struct kith_node_config *config,
                       const struct kith_message *model)
{
    const uint32_t phases = config->phases > 1 ? config->phases : 1;
    return model->pattern == KITH_PATTERN_ROUND &&
                   config->algorithm->wait != KITH_WAIT_NO
               ? (model->id.counter / phases + 1) * config->every
               : model->step;
}
/* Takes out what the run will do again: rows from step `first` on, verdicts,
 * summary. UINT64_MAX: no rows.
 * `each` (may be NULL) sees the rows that stay, oldest first. */
KITH_MUST_CHECK enum kith_err
kith_rundb_go_back(struct kith_rundb *store, uint64_t first, void *user,
                   void (*each)(void *user, const struct kith_row *row));
/* Takes out all that the run has written: it writes everything again. What the
 * caller says of data and machine stays. */
KITH_MUST_CHECK enum kith_err kith_rundb_start_over(struct kith_rundb *store);
/* One above every incarnation in the trace events; 0: there is none. */
KITH_MUST_CHECK enum kith_err kith_rundb_incarnation(struct kith_rundb *store,
                                                     uint32_t *next);
/* Errors stick: the first one is returned by every later call and by close. */
enum kith_err kith_rundb_row(struct kith_rundb *store,
                             const struct kith_row *row);
enum kith_err kith_rundb_mark(struct kith_rundb *store, kith_id peer,
                              kith_ns time_ns, const struct kith_mark *mark);
enum kith_err kith_rundb_fault(struct kith_rundb *store, kith_ns happened_ns,
                               const struct kith_atom *atom);
/* Where a run's zones are, and what went from place to place in slots of time
 * of this length; once, at the end of a run. */
enum kith_err kith_rundb_zone_map(struct kith_rundb *store,
                                  const struct kith_zones *zones,
                                  const struct kith_zone_map *map,
                                  kith_ns slot_ns);
struct kith_zone_traffic {
    uint32_t slot, from, to; /* places */
    uint64_t done, failed;   /* exchanges, as the mark's peer saw them */
    uint64_t bytes;          /* sent */
};
enum kith_err kith_rundb_zone_traffic(struct kith_rundb *store,
                                      const struct kith_zone_traffic *traffic);
/* All verdicts of a finished run. */
enum kith_err kith_rundb_verdicts(struct kith_rundb *store,
                                  const struct kith_experiment *experiment,
                                  const struct kith_checks *checks);
/* Commits what there is: a checkpoint that follows is past no lost row. */
enum kith_err kith_rundb_commit(struct kith_rundb *store);
/* Commits what is older than a second; for drivers whose rows pause. */
enum kith_err kith_rundb_flush(struct kith_rundb *store);
/* The summary: key and value as text; shown by --json and the report. */
enum kith_err kith_rundb_summary(struct kith_rundb *store, const char *key,
                                 const char *value);
/* Rows of the data set, into the summary when a run begins: `train_rows`, which
 * are an epoch, and `test_rows`. */
enum kith_err kith_rundb_data_rows(struct kith_rundb *store, size_t train,
                                   size_t test);
const char *kith_rundb_error(const struct kith_rundb *store);

/* What --json prints (docs/operations.md); NaN and UINT64_MAX print as
 * null: what does not apply. */
struct kith_summary {
    const char *world; /* "train" | "sim" | "lab" | "peer" */
    uint64_t trace_hash;
    bool has_trace_hash;
    double virtual_s, wall_s;
    uint64_t events, steps, samples;
    struct {
        double averaged, mean, worst;
    } accuracy, loss;
    /* As of struct kith_values; 0 and NaN: no own model was scored. */
    struct {
        uint32_t peers;
        double accuracy_error;
    } scored;
    double consensus_distance;
    struct {
        double last, lowest; /* at the end; at any evaluation */
    } correlation;
    struct {
        uint64_t attempts, done, failed, refused, skipped, torn;
    } exchanges;
    uint64_t bytes_sent, bytes_per_peer_max;
    uint32_t nodes; /* machines that bytes_sent is of; 0: the peers */
    struct {
        double mean, max; /* as in a row, over all peers; NaN: not measured */
    } staleness;
    /* Time spent on training steps, as a share of the time until a peer's own
     * share was done (else the end); mean over peers. NaN: not measured. */
    double utilisation;
    /* kith/channel_use.h, over all peers: bytes in flight while there are any;
     * seconds, and of the time in which an exchange is open; of both ends of an
     * exchange that was done. NaN: not measured, or there was none. */
    struct {
        double in_flight_mean, in_flight_max, idle_s, idle_share, passes;
    } channel;
    /* Points of the curve, the end included, of KITH_CURVE_POINTS; rows of the
     * test set of those before it, 0: all. points 0: no curve was asked for. */
    struct {
        uint32_t points, left_out, rows;
    } curve;
    double time_to_target_s; /* kith_rundb_finish fills it in; NaN: never */
    struct kith_speed speed; /* of all peers over the whole run; mfu: of their
                                mean, memory: of the largest */
    struct {
        double train_s, aead_s, socket_s, other_s; /* NaN in sim */
    } cpu;
    struct kith_piece_totals pieces; /* of all peers; count 0: none was used */
    uint32_t faults, violations;
    struct kith_checks checks; /* the violations by name; zeros: none */
    bool completed;            /* not interrupted */
    /* Of kith peer, which has no average to judge by: its model is not finite;
     * and it has exchanged nothing with anybody. */
    bool diverged, alone;
};
/* Nothing counted, nothing measured; world "train" | "sim" | "lab" | "peer". */
struct kith_summary kith_summary_unknown(const char *world);
/* What all rows together counted, into the summary and into the values of
 * checks; and the values of the last evaluation into the summary. */
void kith_summary_count(struct kith_summary *summary,
                        const struct kith_row *sum);
void kith_values_count(struct kith_values *values, const struct kith_row *sum);
void kith_summary_values(struct kith_summary *summary,
                         const struct kith_values *values);
/* Nothing where no point was planned by kith/curve.h: `evaluate` a time or end.
 */
void kith_summary_curve(struct kith_summary *summary,
                        const struct kith_curve *curve);
/* Writes the summary into the store, and fills in time_to_target_s. */
enum kith_err kith_rundb_finish(struct kith_rundb *store,
                                const struct kith_experiment *experiment,
                                struct kith_summary *summary);
/* One JSON object, a line; or a table for people, on standard output. */
void kith_summary_json(FILE *out, const struct kith_experiment *experiment,
                       const struct kith_summary *summary, const char *path);
void kith_summary_print(const struct kith_experiment *experiment,
                        const struct kith_summary *summary, const char *path);

#endif
