/* The open database, shared by the files of this folder. */
#ifndef KITH_RESULTS_RUNDB_RUNDB_H
#define KITH_RESULTS_RUNDB_RUNDB_H

#include <sqlite3.h>

#include "kith/sweep.h"
#include "kith/rundb.h"

enum statement {
    ROW,
    MARKS, /* all that wait */
    FAULT,
    VERDICT,
    SUMMARY,
    RUN,
    FINISH,
    JOURNAL, /* from here on: of recorded runs alone */
    MODEL,
    STATEMENT_COUNT
};

/* Rows of marks, by far the most, are inserted so many at a time; as often as
 * that the clock is looked at. */
#define RUNDB_TOGETHER 1024u
#define RUNDB_LOOK 16u
/* One fills while the others become rows: a thread may come late. */
#define RUNDB_BATCHES 8u

struct store_mark {
    kith_id peer;
    kith_ns time_ns;
    struct kith_mark mark;
};

struct store_batch {
    struct store_mark marks[RUNDB_TOGETHER]; /* (count) */
    uint32_t count;
};

/* Its calls come from one thread at a time: the database takes no lock. */
struct kith_rundb {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENT_COUNT];
    uint32_t run_id;                           /* of all rows that come */
    kith_ns begun_ns;                          /* of the transaction */
    uint32_t rows;                             /* in it; 0: none is open */
    struct store_batch batches[RUNDB_BATCHES]; /* of marks */
    unsigned filling, leaving;                 /* which of them */
    struct store_ahead *ahead;                 /* where they leave; or NULL */
    enum kith_err err;
    char path[KITH_PATH_BYTES_MAX];
    char error[KITH_RUNDB_ERROR_BYTES];
};

/* The first failure is kept and rolled back. */
enum kith_err kith_rundb_stick(struct kith_rundb *store, const char *what);
enum kith_err kith_rundb_exec(struct kith_rundb *store, const char *sql,
                              const char *what);
/* The statements of the table from `first` up to `end`. */
enum kith_err kith_rundb_prepare(struct kith_rundb *store, enum statement first,
                                 enum statement end);
/* The first column of the first row, or false. */
bool kith_rundb_read_text(sqlite3 *database, const char *sql, char *text,
                          size_t size);
/* marks.c: the table `waiting`, before MARKS is prepared. */
enum kith_err kith_rundb_marks_open(struct kith_rundb *store);
/* The batch that leaves becomes rows; the one after it is next, also where it
 * failed: false. */
bool kith_rundb_marks_write(struct kith_rundb *store);
/* The batch that fills leaves: becomes rows, or is on its way there. */
enum kith_err kith_rundb_marks_leave(struct kith_rundb *store);
/* All marks are rows, and the database is the caller's. */
enum kith_err kith_rundb_marks_settle(struct kith_rundb *store);
/* marks_thread.c: until no more batches than that are the thread's; at 0 the
 * database is the caller's. */
enum kith_err kith_rundb_ahead_wait(struct kith_rundb *store, unsigned batches);
/* The thread has the database, and one batch more. */
void kith_rundb_ahead_go(struct kith_rundb *store);
void kith_rundb_ahead_end(struct kith_rundb *store);
/* Are what a replay reads ordinary tables? A view or a virtual table could be
 * any query, one without end among them. */
bool kith_rundb_is_plain(sqlite3 *database);
void kith_rundb_free(struct kith_rundb *store);
/* A row of the table run. */
enum kith_err kith_rundb_run(struct kith_rundb *store, const char *key,
                             const char *format, ...) KITH_PRINTF(3, 4);
enum kith_err kith_rundb_pair(struct kith_rundb *store,
                              enum statement statement, const char *key,
                              const char *value);
/* The row of the table runs, at its end; *reached_s: when the averaged model
 * came to target_loss, NaN: never. */
enum kith_err kith_rundb_finish_run(struct kith_rundb *store,
                                    const struct kith_experiment *experiment,
                                    const struct kith_summary *summary,
                                    double *reached_s);

enum kith_err kith_rundb_errno(int code);
/* What to do about it, for a message. */
const char *kith_rundb_advice(enum kith_err err);
/* Reserves the first free DIRECTORY/NAME-WORLD-N.db by creating it. */
enum kith_err kith_rundb_create_file(const char *directory, const char *world,
                                     const char *name, char *path, char *error);
/* An empty store on that file, which is there; its tables are made. On an error
 * the store stays, to be freed. */
enum kith_err kith_rundb_open_new(struct kith_rundb *store, const char *path);
/* The time in UTC, as it stands in a database. */
void kith_rundb_utc(char text[32]);

#endif
