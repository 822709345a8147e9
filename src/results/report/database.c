/* A run database, read by a report.
 *
 * The file may come from anybody. It is opened read-only, with its triggers,
 * views and functions distrusted; only ordinary tables of the expected names
 * are read, every query of report.sql is bounded, and values leave through
 * kith/json.h and csv.h. */
#include "src/results/report/database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "kith/json.h"
#include "kith/limits.h"
#include "kith/plain_file.h"
#include "kith/report.h"
#include "kith/series.h"
#include "kith/text.h"
#include "src/results/report/assets.h"
#include "src/results/report/csv.h"

/* Points of one page over all its runs: what a browser draws without delay. */
#define POINTS_MAX 24000u
/* Peers of one page drawn one by one; the averaged model always is. */
#define PEERS_MAX 64u

/* Cells of one database that are drawn, the shipped presets among them; the
 * comparison has all. */
#define CELLS_MAX 64u

static const char *const tables[] = {
    "run", "summary", "series", "marks", "mark_kinds", "faults", "verdicts"};
/* From schema 3 on. */
static const char *const later_tables[] = {"runs", "cells", "settings"};

static enum kith_err refuse(const struct kith_database *database,
                            const char *found, char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "reading the run database %s: %s; give a .db file written by "
                  "kith sim, lab, train or peer",
                  database->path, found);
    return KITH_EPARSE;
}

static enum kith_err fail(const struct kith_database *database, char *error)
{
    (void)refuse(database, sqlite3_errmsg(database->handle), error);
    return sqlite3_errcode(database->handle) == SQLITE_NOMEM ? KITH_ENOMEM
                                                             : KITH_EPARSE;
}

void kith_database_sql(const struct kith_database *database, const char *name,
                       char sql[KITH_SQL_BYTES])
{
    kith_sql(kith_asset_report_queries().bytes, name, database->version, sql);
}

/* The whole number that the query `name` says about `value`. */
static enum kith_err count_of(const struct kith_database *database,
                              const char *name, int64_t value, int64_t *count,
                              char *error)
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    kith_database_sql(database, name, sql);
    kith_query_begin(&query, database->handle, sql, "");
    if (sqlite3_bind_parameter_count(query.statement) > 0)
        sqlite3_bind_int64(query.statement, 1, value);
    if (kith_query_next(&query))
        *count = kith_query_whole(&query, 0);
    return kith_query_end(&query) ? KITH_OK : fail(database, error);
}

static enum kith_err check_tables(const struct kith_database *database,
                                  const char *const *names, size_t count,
                                  char *error)
{
    char found[96], sql[KITH_SQL_BYTES];
    kith_database_sql(database, "table", sql);
    for (size_t i = 0; i < count; i++) {
        struct kith_query query;
        kith_query_begin(&query, database->handle, sql, "s", names[i]);
        const bool there =
            kith_query_next(&query) && kith_query_whole(&query, 0) == 1;
        if (!kith_query_end(&query))
            return fail(database, error);
        if (!there) {
            snprintf(found, sizeof found, "it has no table '%s'", names[i]);
            return refuse(database, found, error);
        }
    }
    return KITH_OK;
}

/* One run, or those of a plan? */
static enum kith_err check_later(struct kith_database *database, char *error)
{
    int64_t plans = 0;
    enum kith_err err =
        check_tables(database, later_tables,
                     sizeof later_tables / sizeof *later_tables, error);
    if (err == KITH_OK)
        err = count_of(database, "plans", 0, &plans, error);
    database->many = plans > 0;
    return err;
}

/* The mark of a run database, its version, and ordinary tables with the names
 * we read: a view could hold any query. */
static enum kith_err check_schema(struct kith_database *database, char *error)
{
    int64_t application = 0, version = 0;
    char found[96];

    if (!kith_query_one_whole(database->handle, "PRAGMA application_id",
                              &application) ||
        !kith_query_one_whole(database->handle, "PRAGMA user_version",
                              &version))
        return fail(database, error);
    if (application != KITH_RUNDB_APPLICATION_ID) {
        return refuse(database, "it is no run database of kith", error);
    }
    if (version < KITH_RUNDB_SCHEMA_OLDEST ||
        version > KITH_RUNDB_SCHEMA_VERSION) {
        snprintf(found, sizeof found,
                 "its schema is version %" PRId64 ", this kith reads %d to %d",
                 version, KITH_RUNDB_SCHEMA_OLDEST, KITH_RUNDB_SCHEMA_VERSION);
        return refuse(database, found, error);
    }
    database->version = (int)version;
    const enum kith_err err =
        check_tables(database, tables, sizeof tables / sizeof *tables, error);
    return err == KITH_OK && version >= 3 ? check_later(database, error) : err;
}

enum kith_err kith_database_open(const char *path,
                                 struct kith_database *database, char *error)
{
    *database = (struct kith_database){.path = path};
    char why[KITH_FILE_WHY_BYTES];
    if (kith_file_check(path, why) != KITH_OK) {
        return refuse(database, why, error);
    }
    if (access(path, R_OK) != 0) {
        return refuse(database, strerror(errno), error);
    }
    const int code =
        sqlite3_open_v2(path, &database->handle,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_PRIVATECACHE, NULL);
    if (database->handle == NULL) {
        kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                      "reading the run database %s: out of memory", path);
        return KITH_ENOMEM;
    }
    enum kith_err err = KITH_OK;
    if (code != SQLITE_OK) {
        err = fail(database, error);
    } else {
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
                          NULL);
        sqlite3_limit(database->handle, SQLITE_LIMIT_LENGTH,
                      2 * (int)KITH_YAML_BYTES_MAX);
        sqlite3_busy_timeout(database->handle, 5000);
        sqlite3_exec(database->handle, "BEGIN", NULL, NULL, NULL);
        err = check_schema(database, error);
    }
    if (err != KITH_OK) {
        kith_database_close(database);
    }
    return err;
}

void kith_database_close(struct kith_database *database)
{
    sqlite3_close(database->handle);
    database->handle = NULL;
}

/* A column of the row as JSON: integers beyond 2^53 are text, for a browser
 * could not hold them; blobs, of which the schema has none to show, null. */
static json_t *value_of(sqlite3_stmt *row, int at)
{
    const int64_t exact = INT64_C(1) << 53,
                  whole = sqlite3_column_int64(row, at);
    char text[24];
    switch (sqlite3_column_type(row, at)) {
    case SQLITE_INTEGER:
        (void)snprintf(text, sizeof text, "%" PRId64, whole);
        return whole > exact || whole < -exact ? kith_json_text(text)
                                               : json_integer(whole);
    case SQLITE_FLOAT:
        return kith_json_real(sqlite3_column_double(row, at));
    case SQLITE_TEXT:
        return kith_json_bytes((const char *)sqlite3_column_text(row, at),
                               (size_t)sqlite3_column_bytes(row, at));
    default:
        return json_null();
    }
}

/* What a query of the page is about: up to three whole numbers. */
struct bounds {
    int64_t values[3]; /* ?1, ?2, ?3 */
};

/* {"columns": [...], "rows": [[...], ...]} of one query as `key` of `page`. */
static enum kith_err add_table(const struct kith_database *database,
                               json_t *page, const char *key, const char *name,
                               struct bounds bounds, char *error)
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    json_t *columns = json_array(), *rows = json_array();
    kith_database_sql(database, name, sql);
    kith_query_begin(&query, database->handle, sql, "");
    for (int i = 0; i < sqlite3_bind_parameter_count(query.statement); i++)
        sqlite3_bind_int64(query.statement, i + 1, bounds.values[i]);
    const int count = sqlite3_column_count(query.statement);
    for (int i = 0; i < count; i++)
        (void)json_array_append_new(
            columns, kith_json_text(sqlite3_column_name(query.statement, i)));
    while (kith_query_next(&query)) {
        json_t *row = json_array();
        for (int i = 0; i < count; i++)
            (void)json_array_append_new(row, value_of(query.statement, i));
        (void)json_array_append_new(rows, row);
    }
    (void)json_object_set_new(
        page, key, json_pack("{s:o, s:o}", "columns", columns, "rows", rows));
    return kith_query_end(&query) ? KITH_OK : fail(database, error);
}

/* The series, thinned: of each peer every so many rows and the last. */
static enum kith_err add_series(const struct kith_database *database,
                                json_t *page, const char *name, int64_t about,
                                unsigned runs, char *error)
{
    int64_t rows = 0;
    char count[32];
    (void)snprintf(count, sizeof count, "%s.count", name);
    const enum kith_err err = count_of(database, count, about, &rows, error);
    const struct bounds bounds = {
        {about, rows / (int64_t)(POINTS_MAX / runs) + 1, 2 * POINTS_MAX}};
    return err == KITH_OK
               ? add_table(database, page, "series", name, bounds, error)
               : err;
}

enum kith_err kith_database_lines(const struct kith_database *database,
                                  unsigned *lines, char *error)
{
    int64_t count = 1;
    enum kith_err err = KITH_OK;
    if (database->many)
        err = count_of(database, "drawn.count", 0, &count, error);
    *lines = count < (int64_t)CELLS_MAX ? (unsigned)count : CELLS_MAX;
    return err;
}

static const char *name_of(const struct kith_database *database)
{
    const char *slash = strrchr(database->path, '/');
    return slash != NULL ? slash + 1 : database->path;
}

static enum kith_err add_cell(const struct kith_database *database,
                              json_t *page, int64_t cell, unsigned runs,
                              char *error)
{
    const struct bounds bounds = {{cell}};
    enum kith_err err =
        add_table(database, page, "facts", "cell.facts", bounds, error);
    if (err == KITH_OK)
        err = add_table(database, page, "seeds", "cell.seeds", bounds, error);
    return err == KITH_OK
               ? add_series(database, page, "cell.series", cell, runs, error)
               : err;
}

static enum kith_err add_cells(const struct kith_database *database,
                               json_t *pages, unsigned index, unsigned runs,
                               char *error)
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    enum kith_err err = KITH_OK;
    kith_database_sql(database, "drawn", sql);
    kith_query_begin(&query, database->handle, sql, "i", (int64_t)CELLS_MAX);
    while (err == KITH_OK && kith_query_next(&query)) {
        const int64_t cell = kith_query_whole(&query, 0);
        json_t *page = json_pack("{s:I, s:I, s:o, s:o}", "database",
                                 (json_int_t)index, "cell", (json_int_t)cell,
                                 "label", value_of(query.statement, 1), "file",
                                 kith_json_text(name_of(database)));
        (void)json_array_append_new(pages, page);
        err = add_cell(database, page, cell, runs, error);
    }
    return kith_query_end(&query) || err != KITH_OK ? err
                                                    : fail(database, error);
}

static enum kith_err add_run(const struct kith_database *database,
                             json_t *pages, unsigned index, unsigned runs,
                             char *error)
{
    /* Tables of the page and the queries of the same name. */
    static const char *const parts[] = {"facts",    "summary",  "faults",
                                        "verdicts", "outcomes", "events",
                                        "last",     "speed"};
    const unsigned peers = PEERS_MAX / runs > 0 ? PEERS_MAX / runs : 1;
    int64_t all = 0, events = 0;
    enum kith_err err = count_of(database, "peers.count", 0, &all, error);
    if (err == KITH_OK)
        err = count_of(database, "events.count", 0, &events, error);
    json_t *page = json_pack("{s:I, s:n, s:o, s:I, s:I}", "database",
                             (json_int_t)index, "cell", "file",
                             kith_json_text(name_of(database)), "peers_all",
                             (json_int_t)all, "events_all", (json_int_t)events);
    (void)json_array_append_new(pages, page);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && err == KITH_OK; i++)
        err = add_table(database, page, parts[i], parts[i],
                        (struct bounds){{0}}, error);
    return err == KITH_OK
               ? add_series(database, page, "series", peers, runs, error)
               : err;
}

enum kith_err kith_database_json(const struct kith_database *database,
                                 unsigned index, unsigned runs, json_t *pages,
                                 char *error)
{
    return (database->many ? add_cells : add_run)(database, pages, index, runs,
                                                  error);
}

enum kith_err kith_database_csv(const struct kith_database *database,
                                bool heading, FILE *out, char *error)
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    kith_database_sql(database, database->version >= 3 ? "points" : "points.1",
                      sql);
    kith_query_begin(&query, database->handle, sql, "");
    const int columns = sqlite3_column_count(query.statement);
    if (heading) {
        fputs("run", out);
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            kith_csv_text(out, sqlite3_column_name(query.statement, i));
        }
        fputs("\r\n", out);
    }
    while (kith_query_next(&query)) {
        kith_csv_text(out, name_of(database));
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            kith_csv_value(out, query.statement, i);
        }
        fputs("\r\n", out);
    }
    return kith_query_end(&query) ? KITH_OK : fail(database, error);
}
