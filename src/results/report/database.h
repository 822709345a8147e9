/* A run database, opened to be read by a report. */
#ifndef KITH_RESULTS_REPORT_DATABASE_H
#define KITH_RESULTS_REPORT_DATABASE_H

#include <stdbool.h>
#include <stdio.h>
#include <sqlite3.h>

#include "kith/err.h"
#include "kith/json.h"
#include "kith/query.h"

struct kith_database {
    sqlite3 *handle;
    const char *path; /* the caller's */
    int version;      /* of its schema */
    bool many;        /* runs: those of a plan (kith/sweep.h) */
    unsigned more;    /* files that were joined with `path` */
    char *error;      /* (KITH_REPORT_ERROR_BYTES) the caller's: of the first */
    enum kith_err err; /* failure, which is kept */
};

/* How long a command waits for a run that is writing. */
#define KITH_DATABASE_WAIT_MS 5000
/* Opens read-only, checks that it is a run database, begins one read
 * transaction. `error` holds KITH_REPORT_ERROR_BYTES. Nothing to close after
 * an error; KITH_EBUSY: a run was writing for longer than wait_ms. */
KITH_MUST_CHECK enum kith_err kith_database_open(const char *path, int wait_ms,
                                                 struct kith_database *database,
                                                 char *error);
void kith_database_close(struct kith_database *database);

/* What a page draws of it: one run, or each cell of many that has one. */
unsigned kith_database_lines(struct kith_database *database);
/* Appends those to the array `pages`; `runs` of the whole page share its room
 * for points. `index`: of the database in the comparison. */
void kith_database_json(struct kith_database *database, unsigned index,
                        unsigned runs, json_t *pages);
/* How people know it: its file without folders, and how many more. */
#define KITH_DATABASE_NAME_BYTES 280
void kith_database_name(const struct kith_database *database,
                        char name[KITH_DATABASE_NAME_BYTES]);
/* Begins a section of report.sql; values beyond those it asks for are not
 * bound. */
void kith_database_query(const struct kith_database *database, const char *name,
                         struct kith_query *query, const char *types, ...);
/* Ends it; a failure is the database's. */
void kith_database_end(struct kith_database *database,
                       struct kith_query *query);
/* The whole number that the query `name` says about `value`. */
int64_t kith_database_count(struct kith_database *database, const char *name,
                            int64_t value);
/* All rows of the series as CSV, the run's file name in front. */
void kith_database_csv(struct kith_database *database, bool heading, FILE *out);

#endif
