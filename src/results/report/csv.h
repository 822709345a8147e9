/* Fields of CSV (RFC 4180). */
#ifndef KITH_RESULTS_REPORT_CSV_H
#define KITH_RESULTS_REPORT_CSV_H

#include <sqlite3.h>
#include <stdio.h>

/* Text that a spreadsheet would run as a formula gets an apostrophe in front.
 */
void kith_csv_text(FILE *out, const char *text);
/* Column `at` of the current row; empty where it is NULL or not finite. */
void kith_csv_value(FILE *out, sqlite3_stmt *row, int at);

#endif
