/* `kith report`: run databases in; a table of what runs are compared by, and
 * one self-contained page, CSV or figure, out. */
#ifndef KITH_REPORT_H
#define KITH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kith/err.h"
#include "kith/json.h"
#include "kith/sweep.h"

#define KITH_REPORT_ERROR_BYTES 512
/* Files of one report, and databases compared in it, each of which may hold
 * many runs: more lines than this cannot be told apart. Files of peers of one
 * cluster are one database (kith/join.h). */
#define KITH_REPORT_FILES_MAX 64u
#define KITH_REPORT_RUNS_MAX 16u

enum kith_report_form {
    KITH_REPORT_PAGE,     /* one HTML page that loads nothing from elsewhere */
    KITH_REPORT_TABLE,    /* CSV: a row for each run */
    KITH_REPORT_SETTINGS, /* .tex or .csv: a row for each setting */
    KITH_REPORT_POINTS,   /* CSV: all rows of all series */
    KITH_REPORT_FIGURE, /* one plot: .pdf, .svg or .png, by the name of `out` */
};

/* What a run is to come to: a test loss or less, or an accuracy or more, of the
 * averaged model. NaN: each experiment's own target_loss. */
struct kith_target {
    bool is_accuracy;
    double value;
};
struct kith_report_options {
    struct kith_target target;
    const char *baseline; /* a cell's name, KEY=VALUE or VALUE; NULL: none */
    const char *what; /* of a figure "Y:X", as in accuracy:bytes; of a table of
                         settings its columns, as in accuracy,loss, or all */
};

/* Read `count` run databases (kith/rundb.h) and write `out`. Databases are
 * opened read-only; a run that is still being written may be read. `out`
 * appears whole or not at all (temporary file, then rename).
 *
 *   error        (KITH_REPORT_ERROR_BYTES) one line: what was attempted, what
 *                was found, what to do; untouched on success
 *
 * Returns KITH_OK, or
 *   KITH_EINVAL  count is 0 or above KITH_REPORT_FILES_MAX, or their runs are
 *                more than KITH_REPORT_RUNS_MAX; no such figure
 *   KITH_EUNSUPPORTED  a figure, in a build without cairo
 *   KITH_ENOENT  a database is not there, or not readable
 *   KITH_EPARSE  a file is no run database, or one of another version
 *   KITH_ENOSPC, KITH_EIO     `out` cannot be written
 *   KITH_ENOMEM
 *
 * All text of a database is escaped: a hostile name stays text.
 * Test    tests/integration/test_report.sh, test_figure.sh
 */
KITH_MUST_CHECK enum kith_err
kith_report_write(const char *const *databases, unsigned count, const char *out,
                  enum kith_report_form form,
                  const struct kith_report_options *options, char *error);

/* Joins shards of a sweep to the new database `out`: kith_runs_merge of
 * kith/sweep.h, on files that are opened and distrusted as above.
 *
 *   error    (KITH_REPORT_ERROR_BYTES)
 *
 * Returns the errors of both. */
KITH_MUST_CHECK enum kith_err kith_report_merge(const char *const *databases,
                                                unsigned count, const char *out,
                                                uint32_t *missing, char *error);

/* What runs are compared by: kith/results.def. */
enum kith_column {
#define KITH_RESULT(kind, name)
#define KITH_COMPARED(kind, name, place, ...) KITH_COLUMN_##name = place,
#define KITH_REACHED(name, place, ...) KITH_COLUMN_##name = place,
#include "kith/results.def"
};
enum {
#define KITH_RESULT(kind, name)
#define KITH_COMPARED(kind, name, ...) KITH_COLUMN_COUNTED_##name,
#define KITH_REACHED(name, ...) KITH_COLUMN_COUNTED_##name,
#include "kith/results.def"
    KITH_COLUMN_COUNT
};

/* One run; NaN: not measured, or never. */
struct kith_outcome {
    uint32_t database, run_id;
    uint32_t cell; /* index of its kith_cell_outcome */
    uint64_t seed;
    uint32_t violations;
    enum kith_run_state state;
    char problem[KITH_PROBLEM_BYTES];
    double values[KITH_COLUMN_COUNT];
};

struct kith_spread {
    uint32_t count;         /* runs that have the value */
    double mean, deviation; /* of a sample; NaN for fewer than two */
    double low, high;
};

/* From a baseline, over the seeds that both have. */
struct kith_difference {
    uint32_t pairs;
    double mean;
    double half; /* of its 95 % confidence interval; NaN: fewer than two */
};

struct kith_cell_outcome {
    uint32_t database, cell; /* as numbered there */
    char label[KITH_LABEL_BYTES];
    char refused[KITH_PROBLEM_BYTES]; /* "": it is not */
    struct kith_setting settings[KITH_SETTINGS_MAX];
    uint32_t setting_count;
    uint32_t first_run;                          /* of its outcomes */
    uint32_t runs, states[KITH_RUN_STATE_COUNT]; /* of its runs */
    uint32_t violations;
    struct kith_spread spreads[KITH_COLUMN_COUNT];
    uint32_t baseline; /* 1 + the cell it is compared with; 0: none */
    struct kith_difference differences[KITH_COLUMN_COUNT];
};

struct kith_comparison {
    struct kith_outcome *outcomes; /* (outcome_count), by cell and seed */
    uint32_t outcome_count;
    struct kith_cell_outcome *cells; /* (cell_count) */
    uint32_t cell_count;
};

/* The same errors as above. */
KITH_MUST_CHECK enum kith_err
kith_compare(const char *const *databases, unsigned count,
             const struct kith_report_options *options,
             struct kith_comparison *comparison, char *error);
void kith_comparison_close(struct kith_comparison *comparison);
/* A line for each cell, mean and deviation over its seeds. */
void kith_comparison_print(const struct kith_comparison *comparison, FILE *out);
/* Adds "cells" and "runs" to a document. */
void kith_comparison_add_to(const struct kith_comparison *comparison,
                            json_t *document);

#endif
