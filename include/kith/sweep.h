/* A run database of many runs: the cells of a plan, each with several seeds.
 *
 * Only the launcher writes it. Each run writes a part of its own beside it, an
 * ordinary run database (kith_rundb_create_part); when the run has ended its
 * part is taken over in one transaction, rows and state together, and removed.
 * So whatever ends the launcher, a run is there whole or not at all, and what
 * is not there is done again.
 * Test: unit/test_runs.c, integration/test_sim_sweep.sh. */
#ifndef KITH_SWEEP_H
#define KITH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/limits.h"

/* X(NAME, text): of the column runs.state. */
#define KITH_RUN_STATES(X)                                                     \
    X(PLANNED, "planned")         /* not begun, or not to its end */           \
    X(RUNNING, "running")         /* a file with one run, being written */     \
    X(INTERRUPTED, "interrupted") /* the same, ended before its end */         \
    X(DONE, "done")                                                            \
    X(DIVERGED, "diverged")   /* it came to its end without a finite loss */   \
    X(FAILED, "failed")       /* it did not; `problem` says why */             \
    X(REFUSED, "refused")     /* its cell makes no sense; no row of runs */    \
    X(ELSEWHERE, "elsewhere") /* another shard's; no row of runs */
enum kith_run_state {
#define KITH_X(name, text) KITH_RUN_##name,
    KITH_RUN_STATES(KITH_X)
#undef KITH_X
        KITH_RUN_STATE_COUNT
};
const char *kith_run_state_name(enum kith_run_state state);
/* The state of that name; of none: `other`. */
enum kith_run_state kith_run_state_find(const char *name,
                                        enum kith_run_state other);

#define KITH_SETTINGS_MAX 8u
#define KITH_SETTING_BYTES 256u
#define KITH_LABEL_BYTES 384u
#define KITH_PROBLEM_BYTES 1024u

struct kith_setting {
    char key[KITH_NAME_MAX * 2];
    char value[KITH_SETTING_BYTES];
};

struct kith_cell {
    char label[KITH_LABEL_BYTES];     /* for people, unique in the plan */
    char path[KITH_PATH_BYTES_MAX];   /* the file; paths in it start there */
    char *experiment;                 /* its text, settings applied */
    uint64_t seed;                    /* the first one */
    char refused[KITH_PROBLEM_BYTES]; /* why it makes no sense; "": it does */
    struct kith_setting settings[KITH_SETTINGS_MAX]; /* (setting_count) */
    uint32_t setting_count;
};

/* Run r, from 0, is cell r % cell_count with seed number r / cell_count: more
 * seeds come behind. Its run_id is r + 1.
 *
 * A shard is the part of a plan that one machine of several runs: cell c, from
 * 0, is of shard c % shards + 1. Its database knows the whole plan and has the
 * runs of its own cells, under the numbers that they have in the whole. */
struct kith_plan {
    char name[KITH_NAME_MAX], kind[KITH_NAME_MAX]; /* NAME-KIND-N.db */
    uint32_t shard, shards; /* 1 to shards; 0: all cells are run */
    uint32_t seeds, cell_count;
    struct kith_cell *cells; /* (cell_count), malloc'd, texts too */
};
/* Both together have a bound: KITH_RUNS_MAX. */
#define KITH_RUNS_MAX 100000u
void kith_plan_free(struct kith_plan *plan);
/* As a plan's cells are run: PLANNED, REFUSED or ELSEWHERE. */
enum kith_run_state kith_plan_cell(const struct kith_plan *plan, uint32_t cell);
/* "2/4" of a shard: false where it is something else. */
KITH_MUST_CHECK bool kith_shard_read(const char *text, uint32_t *shard,
                                     uint32_t *shards);

struct kith_runs;

/* DIRECTORY/NAME-KIND-N.db with the first free N; `path` as in
 * kith_rundb_create, `error` has KITH_RUNDB_ERROR_BYTES everywhere here. The
 * plan stays the caller's. */
KITH_MUST_CHECK enum kith_err kith_runs_create(const char *directory,
                                               const struct kith_plan *plan,
                                               struct kith_runs **runs,
                                               char *path, char *error);
/* One that is there: KITH_EBUSY where another process writes it, KITH_ENOENT,
 * KITH_EPARSE, KITH_EVERSION. Parts that were left behind are removed. */
KITH_MUST_CHECK enum kith_err
kith_runs_open(const char *path, struct kith_runs **runs, char *error);
/* The newest DIRECTORY/NAME-KIND-N.db that has exactly this plan's cells, at
 * least one run of which is missing: its path, or KITH_ENOENT. */
KITH_MUST_CHECK enum kith_err
kith_runs_find(const char *directory, const struct kith_plan *plan, char *path);
/* As it stands in the database. */
const struct kith_plan *kith_runs_plan(const struct kith_runs *runs);
/* More seeds; fewer change nothing. */
KITH_MUST_CHECK enum kith_err kith_runs_extend(struct kith_runs *runs,
                                               uint32_t seeds, char *error);
uint32_t kith_runs_count(const struct kith_runs *runs);
enum kith_run_state kith_runs_state(const struct kith_runs *runs, uint32_t run);
/* Where this run's part belongs, below the folder PATH.parts. */
void kith_runs_part(const struct kith_runs *runs, uint32_t run,
                    char path[KITH_PATH_BYTES_MAX]);
/* A child of fork() calls this first: it must not hold on to the database. */
void kith_runs_forget(struct kith_runs *runs);
/* The part of a run that came to its end becomes rows of the database. */
KITH_MUST_CHECK enum kith_err kith_runs_take(struct kith_runs *runs,
                                             uint32_t run, char *error);
/* What a run that did not leaves behind: a state and a reason. */
KITH_MUST_CHECK enum kith_err kith_runs_fail(struct kith_runs *runs,
                                             uint32_t run, const char *problem,
                                             char *error);
/* Removes the parts of runs that were cut short. */
void kith_runs_close(struct kith_runs *runs);

/* Shards become the database of the whole plan: the rows that a sweep in one
 * piece has, but for the order in which its runs came to their ends. Values are
 * copied from one connection to the other: nothing in a foreign file can run.
 *
 *   databases  (count) open for reading, of the schema of today, ordinary
 *              tables
 *   paths      (count) what they are called in messages
 *   out        the new file; never overwritten, and gone after an error
 *   missing    runs that no database has at an end: they stand as planned, and
 *              kith sim --resume goes on with them
 *
 * Returns KITH_OK, or
 *   KITH_EEXIST     out is there
 *   KITH_EMISMATCH  one has another plan, a run is in two, or a database is of
 *                   a kith with other trace events
 *   KITH_EPARSE     one holds no plan, or runs of none
 *   and what writing a database returns
 *
 * Cost    every row is copied once; O(runs) bytes.
 * Test    integration/test_sim_shards.sh */
typedef struct sqlite3 sqlite3;
KITH_MUST_CHECK enum kith_err kith_runs_merge(sqlite3 *const *databases,
                                              const char *const *paths,
                                              unsigned count, const char *out,
                                              uint32_t *missing, char *error);

#endif
