/* See kith/query.h. */
#include "kith/query.h"

#include <math.h>
#include <sqlite3.h>

#include "kith/text.h"

void kith_query_bind_real(sqlite3_stmt *statement, int at, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(statement, at, value);
    else
        sqlite3_bind_null(statement, at);
}

static void bind_whole(sqlite3_stmt *statement, int at, uint64_t value)
{
    if (value <= INT64_MAX)
        sqlite3_bind_int64(statement, at, (sqlite3_int64)value);
    else
        sqlite3_bind_null(statement, at);
}

void kith_query_bind_peer(sqlite3_stmt *statement, int at, kith_id peer)
{
    bind_whole(statement, at, peer == KITH_NOBODY ? UINT64_MAX : peer);
}

/* A NULL pointer is bound as NULL. */
static void bind_bytes(sqlite3_stmt *statement, int at, va_list *values)
{
    const void *bytes = va_arg(*values, const void *);
    const size_t size = va_arg(*values, size_t);
    sqlite3_bind_blob64(statement, at, bytes, size, SQLITE_TRANSIENT);
}

void kith_query_bind(sqlite3_stmt *statement, int *at, const char *types,
                     va_list list)
{
    va_list values;
    va_copy(values, list);
    for (; *types != '\0'; types++) {
        const int place = ++*at;
        switch (*types) {
        case 'i':
            sqlite3_bind_int64(statement, place, va_arg(values, int64_t));
            break;
        case 'u':
            bind_whole(statement, place, va_arg(values, uint64_t));
            break;
        case 'p':
            kith_query_bind_peer(statement, place, va_arg(values, kith_id));
            break;
        case 'r':
            kith_query_bind_real(statement, place, va_arg(values, double));
            break;
        case 't':
            kith_query_bind_real(statement, place,
                                 (double)va_arg(values, kith_ns) / 1e9);
            break;
        case 's':
            sqlite3_bind_text(statement, place, va_arg(values, const char *),
                              -1, SQLITE_TRANSIENT);
            break;
        default:
            bind_bytes(statement, place, &values);
        }
    }
    va_end(values);
}

static void begin(struct kith_query *query, sqlite3 *database, const char *sql,
                  const char *types, va_list values)
{
    int at = 0;
    *query = (struct kith_query){0};
    query->code =
        sqlite3_prepare_v2(database, sql, -1, &query->statement, NULL);
    if (query->code == SQLITE_OK)
        kith_query_bind(query->statement, &at, types, values);
}

void kith_query_begin(struct kith_query *query, sqlite3 *database,
                      const char *sql, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    begin(query, database, sql, types, values);
    va_end(values);
}

bool kith_query_next(struct kith_query *query)
{
    if (query->code == SQLITE_OK || query->code == SQLITE_ROW)
        query->code = sqlite3_step(query->statement);
    return query->code == SQLITE_ROW;
}

bool kith_query_end(struct kith_query *query)
{
    sqlite3_finalize(query->statement);
    query->statement = NULL;
    return query->code == SQLITE_OK || query->code == SQLITE_ROW ||
           query->code == SQLITE_DONE;
}

bool kith_query_run(sqlite3 *database, const char *sql, const char *types,
                    va_list values)
{
    struct kith_query query;
    begin(&query, database, sql, types, values);
    (void)kith_query_next(&query);
    return kith_query_end(&query);
}

/* One row. */
static bool copy_row(const struct kith_query *from, struct kith_query *to,
                     int behind)
{
    const int columns = sqlite3_column_count(from->statement);
    for (int i = 0; i < columns; i++)
        sqlite3_bind_value(to->statement, i + 1 + behind,
                           sqlite3_column_value(from->statement, i));
    to->code = sqlite3_step(to->statement);
    return sqlite3_reset(to->statement) == SQLITE_OK;
}

bool kith_query_copy(struct kith_query *from, struct kith_query *to, int behind)
{
    bool copied = true;
    while (copied && to->statement != NULL && kith_query_next(from))
        copied = copy_row(from, to, behind);
    copied = kith_query_end(from) && copied;
    return kith_query_end(to) && copied;
}

double kith_query_real(const struct kith_query *query, int at)
{
    const double value = sqlite3_column_double(query->statement, at);
    return sqlite3_column_type(query->statement, at) == SQLITE_NULL ||
                   !isfinite(value)
               ? (double)NAN
               : value;
}

int64_t kith_query_whole(const struct kith_query *query, int at)
{
    return sqlite3_column_int64(query->statement, at);
}

void kith_query_text(const struct kith_query *query, int at, char *text,
                     size_t size)
{
    const unsigned char *value = sqlite3_column_text(query->statement, at);
    kith_text_copy(text, size, value == NULL ? "" : (const char *)value);
}

bool kith_query_one_whole(sqlite3 *database, const char *sql, int64_t *value,
                          const char *types, ...)
{
    struct kith_query query;
    va_list values;
    va_start(values, types);
    begin(&query, database, sql, types, values);
    va_end(values);
    const bool found = kith_query_next(&query);
    if (found)
        *value = kith_query_whole(&query, 0);
    return kith_query_end(&query) && found;
}
