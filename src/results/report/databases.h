/* The databases of a report: those of a cluster's peers are one. */
#ifndef KITH_RESULTS_REPORT_DATABASES_H
#define KITH_RESULTS_REPORT_DATABASES_H

#include "kith/report.h"
#include "src/results/report/database.h"

struct kith_databases {
    struct kith_database list[KITH_REPORT_RUNS_MAX]; /* (count) */
    unsigned count;
};

/* Opens all files, and joins what is of one run (kith/join.h). The order is
 * that of the first files. A rank that comes a second time, from a peer that
 * was started again or from the same cluster's next run, begins another run.
 * `error` holds KITH_REPORT_ERROR_BYTES; nothing to close after an error. */
KITH_MUST_CHECK enum kith_err
kith_databases_open(const char *const *paths, unsigned count, int wait_ms,
                    struct kith_databases *databases, char *error);
void kith_databases_close(struct kith_databases *databases);

#endif
