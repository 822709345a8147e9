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
};

/* Opens read-only, checks that it is a run database, begins one read
 * transaction. `error` holds KITH_REPORT_ERROR_BYTES. Nothing to close after
 * an error. */
KITH_MUST_CHECK enum kith_err kith_database_open(const char *path,
                                                 struct kith_database *database,
                                                 char *error);
void kith_database_close(struct kith_database *database);

/* What a page draws of it: one run, or each cell of many that has one. */
KITH_MUST_CHECK enum kith_err
kith_database_lines(const struct kith_database *database, unsigned *lines,
                    char *error);
/* Appends those to the array `pages`; `runs` of the whole page share its room
 * for points. `index`: of the database in the comparison. */
KITH_MUST_CHECK enum kith_err
kith_database_json(const struct kith_database *database, unsigned index,
                   unsigned runs, json_t *pages, char *error);
/* A section of report.sql for the schema of this database. */
void kith_database_sql(const struct kith_database *database, const char *name,
                       char sql[KITH_SQL_BYTES]);
/* All rows of the series as CSV, the run's file name in front. */
KITH_MUST_CHECK enum kith_err
kith_database_csv(const struct kith_database *database, bool heading, FILE *out,
                  char *error);

#endif
