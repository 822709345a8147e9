/* A comparison, as it is built and written. */
#ifndef KITH_RESULTS_REPORT_COMPARE_H
#define KITH_RESULTS_REPORT_COMPARE_H

#include "kith/report.h"
#include "src/results/report/database.h"

/* The runs of one more database, `index` in the caller's list. A failure is the
 * database's. */
void kith_comparison_add(struct kith_comparison *comparison,
                         struct kith_database *database, uint32_t index,
                         struct kith_target target);
/* Spreads of all cells, once all runs are there. */
void kith_comparison_finish(struct kith_comparison *comparison);
/* After that: each cell against its baseline. KITH_EINVAL: none is called so.
 * Test: tests/integration/test_report_paired.sh. */
KITH_MUST_CHECK enum kith_err
kith_comparison_pair(struct kith_comparison *comparison, const char *baseline,
                     char *error);
/* What |T| of Student's distribution exceeds in one case of 20. */
double kith_student_95(uint32_t degrees);
/* A row for each setting, with its differences where `paired`. `what` as in
 * kith_report_options; KITH_EINVAL: there is no such column. */
KITH_MUST_CHECK enum kith_err
kith_comparison_settings(const struct kith_comparison *comparison,
                         const char *what, bool paired, bool latex, FILE *out,
                         char *error);
/* "columns" of a page: what is compared, for its table. */
json_t *kith_comparison_heads(void);

/* How the values of a column are written for people. */
enum kith_comparison_format {
    KITH_FORMAT_NUMBER,
    KITH_FORMAT_WHOLE,
    KITH_FORMAT_SECONDS,
    KITH_FORMAT_BYTES,
    KITH_FORMAT_PERCENT,
};
/* results.def, by place. */
extern const struct kith_comparison_column {
    const char *name, *heading, *title; /* title: of the page */
    enum kith_comparison_format format;
} kith_comparison_columns[KITH_COLUMN_COUNT];
/* A row for each run; `files` are the databases' names. */
void kith_comparison_csv(const struct kith_comparison *comparison,
                         const struct kith_database *databases, FILE *out);

#endif
