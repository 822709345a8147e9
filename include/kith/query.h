/* SQL of this program and its values: statements of .sql files, bound and read
 * by letters, so that no caller counts columns twice. */
#ifndef KITH_QUERY_H
#define KITH_QUERY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/err.h"
#include "kith/types.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

#define KITH_SQL_BYTES 8192u
/* A section of a .sql file, the text behind the line "-- :NAME", for a database
 * of this schema. In it stand for each column, in the order of the table,
 *   {series}         its name, or NULL AS its name where the schema lacks it
 *   {series.csv}     the same by groups, {series.charts} those with a chart
 *   {series.types}   its name and type     {series.values}   a question mark
 * each with a comma in front, and {results...} likewise. */
void kith_sql(const char *file, const char *name, int schema,
              char text[KITH_SQL_BYTES]);

/* Binds values from place *at + 1 on:
 *   i  int64_t    u  uint64_t, beyond INT64_MAX: NULL    p  kith_id, or NULL
 *   r  double, not finite: NULL                          t  kith_ns, as seconds
 *   s  const char *, or NULL          b  const void *, or NULL, and size_t */
void kith_query_bind(sqlite3_stmt *statement, int *at, const char *types,
                     va_list values);

/* One value at that place, of type r or p. */
void kith_query_bind_real(sqlite3_stmt *statement, int at, double value);
void kith_query_bind_peer(sqlite3_stmt *statement, int at, kith_id peer);

/* A statement from its preparation to its end. A failure ends it, and is told
 * by sqlite3_errmsg(). */
struct kith_query {
    sqlite3_stmt *statement;
    int code;
};
void kith_query_begin(struct kith_query *query, sqlite3 *database,
                      const char *sql, const char *types, ...);
/* Steps on; is there a row? */
bool kith_query_next(struct kith_query *query);
/* Releases it; did nothing fail? */
KITH_MUST_CHECK bool kith_query_end(struct kith_query *query);
/* Carries `to` out with each row of `from`, whose columns are bound behind its
 * first `behind` values, and ends both; they may be of different databases. */
KITH_MUST_CHECK bool kith_query_copy(struct kith_query *from,
                                     struct kith_query *to, int behind);
/* Carries a statement out that has no rows. */
KITH_MUST_CHECK bool kith_query_run(sqlite3 *database, const char *sql,
                                    const char *types, va_list values);

/* Columns of the row: NULL is NAN, 0 and "". */
double kith_query_real(const struct kith_query *query, int at);
int64_t kith_query_whole(const struct kith_query *query, int at);
void kith_query_text(const struct kith_query *query, int at, char *text,
                     size_t size);
/* The first column of the first row; false: there is none. */
KITH_MUST_CHECK bool kith_query_one_whole(sqlite3 *database, const char *sql,
                                          int64_t *value, const char *types,
                                          ...);

#endif
