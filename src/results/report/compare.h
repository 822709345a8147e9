/* A comparison, as it is built and written. */
#ifndef KITH_RESULTS_REPORT_COMPARE_H
#define KITH_RESULTS_REPORT_COMPARE_H

#include "kith/report.h"
#include "src/results/report/database.h"

/* The runs of one more database, `index` in the caller's list. */
KITH_MUST_CHECK enum kith_err
kith_comparison_add(struct kith_comparison *comparison,
                    const struct kith_database *database, uint32_t index,
                    double target_loss, char *error);
/* Spreads of all cells, once all runs are there. */
void kith_comparison_finish(struct kith_comparison *comparison);
/* A row for each run; `files` are the databases' names. */
void kith_comparison_csv(const struct kith_comparison *comparison,
                         const struct kith_database *databases, FILE *out);

#endif
