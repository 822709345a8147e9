/* Values of a database, written so that they stay values. */
#ifndef KITH_RESULTS_REPORT_ESCAPE_H
#define KITH_RESULTS_REPORT_ESCAPE_H

#include <sqlite3.h>
#include <stdio.h>

/* A JSON string that is also safe inside a <script> element: <, >, & and the
 * two line separators are written \uXXXX, malformed UTF-8 becomes U+FFFD. */
void kith_write_json_text(FILE *out, const char *text, size_t size);
/* Column `at` of the current row as JSON. Numbers that are not finite are
 * null, integers beyond 2^53 are text: a browser could not hold them. */
void kith_write_json_value(FILE *out, sqlite3_stmt *row, int at);
/* A CSV field (RFC 4180). Text that a spreadsheet would run as a formula gets
 * an apostrophe in front. */
void kith_write_csv_text(FILE *out, const char *text, size_t size);
void kith_write_csv_value(FILE *out, sqlite3_stmt *row, int at);

#endif
