/* The open database, shared by the files of this folder. */
#ifndef KITH_RESULTS_RUNDB_RUNDB_STORE_H
#define KITH_RESULTS_RUNDB_RUNDB_STORE_H

#include <sqlite3.h>

#include "kith/asset.h"
#include "kith/query.h"
#include "kith/rundb.h"
#include "kith/sweep.h"

enum statement {
    ROW,
    EVENT,
    EVENTS, /* RUNDB_TOGETHER rows */
    FAULT,
    VERDICT,
    SUMMARY,
    RUN,
    FINISH,
    JOURNAL, /* these two: of recorded runs alone */
    MODEL,
    PLACE, /* from here on: of runs with a map alone */
    ZONE,
    ZONE_TRAFFIC,
    STATEMENT_COUNT
};

/* Trace events, by far the most rows, are handed on so many at a time; as often
 * as that the clock is looked at. */
#define RUNDB_BATCH_EVENTS 1024u
#define RUNDB_TOGETHER 64u
#define RUNDB_LOOK 16u
/* One is filled while the others become rows: a thread may come late. */
#define RUNDB_BATCHES 8u

struct rundb_event {
    kith_id peer;
    kith_ns time_ns;
    struct kith_mark mark;
};

struct rundb_batch {
    struct rundb_event events[RUNDB_BATCH_EVENTS]; /* (count) */
    uint32_t count;
};

/* Its calls come from one thread at a time: the database takes no lock. */
struct kith_rundb {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENT_COUNT];
    uint32_t run_id;                           /* of all rows that come */
    kith_ns begun_ns;                          /* of the transaction */
    uint32_t rows;                             /* in it; 0: none is open */
    struct rundb_batch batches[RUNDB_BATCHES]; /* of trace events */
    unsigned filling, writing;                 /* which of them */
    struct rundb_writer *writer;               /* the thread, or NULL */
    enum kith_err err;
    char path[KITH_PATH_BYTES_MAX];
    char error[KITH_RUNDB_ERROR_BYTES];
};

/* A section of statements.sql, for the schema of today. */
void kith_rundb_sql(const char *name, char text[KITH_SQL_BYTES]);

/* The first failure is kept and rolled back; what follows is not carried out
 * and returns it. */
enum kith_err kith_rundb_stick(struct kith_rundb *store, const char *what);
enum kith_err kith_rundb_exec(struct kith_rundb *store, const char *sql,
                              const char *what);
/* A statement with values, as kith_query_begin() has them. */
enum kith_err kith_rundb_change(struct kith_rundb *store, const char *what,
                                const char *sql, const char *types, ...);
/* The statements of the table from `first` up to `end`. */
enum kith_err kith_rundb_prepare(struct kith_rundb *store, enum statement first,
                                 enum statement end);
/* A section of schema.sql; false: sqlite3_errmsg() says why. */
bool kith_rundb_make_tables(sqlite3 *database, const char *section);
enum kith_err kith_rundb_create_tables(struct kith_rundb *store,
                                       const char *section);
/* events.c: the batch that is filled becomes rows, or is on its way there. */
enum kith_err kith_rundb_events_hand_on(struct kith_rundb *store);
/* All events are rows, and the database is the caller's. */
enum kith_err kith_rundb_events_settle(struct kith_rundb *store);
/* Until no more batches than that are the thread's; at 0 the database is the
 * caller's. */
enum kith_err kith_rundb_writer_wait(struct kith_rundb *store,
                                     unsigned batches);
void kith_rundb_writer_end(struct kith_rundb *store);
/* A run database of kith with a schema from `oldest` to today's; else what it
 * is instead, and KITH_EPARSE or KITH_EVERSION. */
enum kith_err kith_rundb_check_file(sqlite3 *database, int oldest, char *what,
                                    size_t size);
/* A fact of the run, the table `run`; false: it is not there. */
bool kith_rundb_fact(sqlite3 *database, const char *key, char *text,
                     size_t size);
/* Are what a replay reads ordinary tables? A view or a virtual table could be
 * any query, one without end among them. */
bool kith_rundb_is_plain(sqlite3 *database);
/* Opens a file that is there, for writing where that is allowed: what a full
 * disk or a kill cut short is taken back first. Else `why` says what it is. */
#define RUNDB_WHY_BYTES 256
enum kith_err kith_rundb_open_file(const char *path, sqlite3 **database,
                                   char why[RUNDB_WHY_BYTES]);
void kith_rundb_free(struct kith_rundb *store);
/* A row of the table run. */
enum kith_err kith_rundb_run(struct kith_rundb *store, const char *key,
                             const char *format, ...) KITH_PRINTF(3, 4);
enum kith_err kith_rundb_pair(struct kith_rundb *store,
                              enum statement statement, const char *key,
                              const char *value);
/* summary.c: the row of the table runs, at its end. */
struct kith_results {
#define REAL double
#define COUNT uint64_t
#define KITH_RESULT(kind, name) kind name;
#include "kith/results.def"
#undef REAL
#undef COUNT
};
/* Writes it, with time_to_target_s as the series has it. */
enum kith_err kith_rundb_finish_run(struct kith_rundb *store,
                                    enum kith_run_state state,
                                    struct kith_results *results);

enum kith_err kith_rundb_errno(int code);
/* What to do about it, for a message. */
const char *kith_rundb_advice(enum kith_err err);
/* "cannot go on with PATH: WHAT"; returns err. */
enum kith_err kith_rundb_refuse(char *error, const char *path,
                                enum kith_err err, const char *what);
/* Reserves the first free DIRECTORY/NAME-WORLD-N.db by creating it. */
enum kith_err kith_rundb_create_file(const char *directory, const char *world,
                                     const char *name, char *path, char *error);
/* How long the opening of a store waits for somebody who reads the file, or for
 * its last writer to be gone. Rows need no wait: they are committed later. */
#define KITH_RUNDB_OPEN_WAIT_MS 2000
/* An empty store on that file, which is there; its tables are made, after
 * whoever looks at the new file meanwhile. On an error the store stays, to be
 * freed. */
enum kith_err kith_rundb_open_new(struct kith_rundb *store, const char *path);
/* The time in UTC, as it stands in a database. */
void kith_rundb_utc(char text[32]);

#endif
