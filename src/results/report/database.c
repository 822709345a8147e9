/* A run database, read by a report.
 *
 * The file may come from anybody. It is opened read-only, with its triggers,
 * views and functions distrusted; only ordinary tables of the expected names
 * are read, every query is bounded, and values leave through escape.h. */
#include "src/results/report/database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/plain_file.h"
#include "kith/limits.h"
#include "kith/report.h"
#include "kith/text.h"
#include "src/results/report/escape.h"
#include "kith/rundb_tables.h"

/* Points of one page over all its runs: what a browser draws without delay. */
#define POINTS_MAX 24000u
/* Peers of one page drawn one by one; the averaged model always is. */
#define PEERS_MAX 64u

/* Marks worth a line each; the others are counted. */
#define NOTABLE                                                                \
    "('undone','torn','adopted','bad','gated','nonfinite','finished')"

/* Cells of one database that are drawn, the shipped presets among them; the
 * comparison has all. */
#define CELLS_MAX 64u

static const char *const tables[] = {
    "run", "summary", "series", "marks", "mark_kinds", "faults", "verdicts"};
/* From schema 3 on. */
static const char *const later_tables[] = {"runs", "cells", "settings"};

static enum kith_err fail(const struct kith_database *database, int code,
                          char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "reading the run database %s: %s; give a .db file written by "
                  "kith sim, lab, train or peer",
                  database->path, sqlite3_errmsg(database->handle));
    return code == SQLITE_NOMEM ? KITH_ENOMEM : KITH_EPARSE;
}

static enum kith_err prepare(const struct kith_database *database,
                             const char *sql, sqlite3_stmt **statement,
                             char *error)
{
    const int code =
        sqlite3_prepare_v2(database->handle, sql, -1, statement, NULL);
    return code == SQLITE_OK ? KITH_OK : fail(database, code, error);
}

/* One whole number; what the query must be able to answer. */
static enum kith_err count_of(const struct kith_database *database,
                              const char *sql, const char *text, int64_t *count,
                              char *error)
{
    sqlite3_stmt *statement = NULL;
    enum kith_err err = prepare(database, sql, &statement, error);
    if (err != KITH_OK) {
        return err;
    }
    if (text != NULL) {
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    }
    const int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        *count = sqlite3_column_int64(statement, 0);
    } else {
        err = fail(database, code, error);
    }
    sqlite3_finalize(statement);
    return err;
}

static enum kith_err refuse(const struct kith_database *database,
                            const char *found, char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "reading the run database %s: %s; give a .db file written by "
                  "kith sim, lab, train or peer",
                  database->path, found);
    return KITH_EPARSE;
}

static enum kith_err check_tables(const struct kith_database *database,
                                  const char *const *names, size_t count,
                                  char *error)
{
    char found[96];
    for (size_t i = 0; i < count; i++) {
        int64_t there = 0;
        const enum kith_err err =
            count_of(database,
                     "SELECT count(*) FROM sqlite_schema WHERE type = "
                     "'table' AND name = ?1 AND sql NOT LIKE "
                     "'CREATE VIRTUAL%'",
                     names[i], &there, error);
        if (err != KITH_OK) {
            return err;
        }
        if (there != 1) {
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
    if (err == KITH_OK) {
        err = count_of(database,
                       "SELECT count(*) FROM run WHERE run_id = 0 AND key = "
                       "'seeds'",
                       NULL, &plans, error);
    }
    database->many = plans > 0;
    return err;
}

/* The mark of a run database, its version, and ordinary tables with the names
 * we read: a view could hold any query. */
static enum kith_err check_schema(struct kith_database *database, char *error)
{
    int64_t application = 0, version = 0;
    char found[96];

    enum kith_err err =
        count_of(database, "PRAGMA application_id", NULL, &application, error);
    if (err == KITH_OK) {
        err = count_of(database, "PRAGMA user_version", NULL, &version, error);
    }
    if (err != KITH_OK) {
        return err;
    }
    if (application != RUNDB_APPLICATION_ID) {
        return refuse(database, "it is no run database of kith", error);
    }
    if (version < RUNDB_SCHEMA_OLDEST || version > RUNDB_SCHEMA_VERSION) {
        snprintf(found, sizeof found,
                 "its schema is version %" PRId64 ", this kith reads %d to %d",
                 version, RUNDB_SCHEMA_OLDEST, RUNDB_SCHEMA_VERSION);
        return refuse(database, found, error);
    }
    database->version = (int)version;
    err = check_tables(database, tables, sizeof tables / sizeof *tables, error);
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
        err = fail(database, code, error);
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

/* "name":{"columns":[...],"rows":[[...],...]} of one query. */
static enum kith_err put_table(const struct kith_database *database,
                               const char *name, const char *sql, FILE *out,
                               char *error)
{
    sqlite3_stmt *row = NULL;
    enum kith_err err = prepare(database, sql, &row, error);
    if (err != KITH_OK) {
        return err;
    }
    const int columns = sqlite3_column_count(row);
    fprintf(out, ",\n\"%s\":{\"columns\":[", name);
    for (int i = 0; i < columns; i++) {
        fprintf(out, "%s\"%s\"", i > 0 ? "," : "", sqlite3_column_name(row, i));
    }
    fputs("],\"rows\":[", out);
    int code = sqlite3_step(row);
    for (bool first = true; code == SQLITE_ROW; first = false) {
        fputs(first ? "\n[" : ",\n[", out);
        for (int i = 0; i < columns; i++) {
            if (i > 0) {
                fputc(',', out);
            }
            kith_write_json_value(out, row, i);
        }
        fputc(']', out);
        code = sqlite3_step(row);
    }
    if (code != SQLITE_DONE) {
        err = fail(database, code, error);
    }
    fputs("]}", out);
    sqlite3_finalize(row);
    return err;
}

/* The columns of a series in a database's own version: what an older one does
 * not have is NULL. */
#define BEFORE_SPEED                                                           \
    "peer, time_s, step, samples, loss, accuracy, consensus_distance, "        \
    "bytes_sent, bytes_received, waiting_s, staleness, attempts, done, "       \
    "failed, refused, skipped, torn, cpu_train_s, cpu_aead_s, cpu_socket_s, "  \
    "cpu_other_s"

static const char *speed_columns(const struct kith_database *database)
{
    return database->version >= 2 ? RUNDB_SPEED_NAMES : RUNDB_SPEED_NULLS;
}

static const char *age_columns(const struct kith_database *database)
{
    return database->version >= 3 ? RUNDB_AGE_NAMES : RUNDB_AGE_NULLS;
}
/* Samples over the time that they took, as the summary has it: a row that says
 * more samples weighs more, one without any nothing. */
#define RATE(name)                                                             \
    " sum(count) FILTER (WHERE " name " > 0) /"                                \
    " sum(count / nullif(" name ", 0)) AS " name ","
#define SPEEDS                                                                 \
    "WITH counted AS (SELECT *, max(0, samples - lag(samples, 1, 0) OVER"      \
    " (PARTITION BY peer ORDER BY time_s)) AS count FROM series"               \
    " WHERE memory_bytes IS NOT NULL) "                                        \
    "SELECT peer," RATE("samples_per_s") RATE("tokens_per_s")                  \
        RATE("flop_per_s")                                                     \
            RATE("mfu") " max(data_wait_s) AS data_wait_s,"                    \
                        " last.exchange_overlap AS exchange_overlap,"          \
                        " max(memory_bytes) AS memory_bytes FROM counted"      \
                        " JOIN (SELECT peer, exchange_overlap, max(time_s) "   \
                        "FROM counted"                                         \
                        " GROUP BY peer) AS last USING(peer) GROUP BY peer "   \
                        "ORDER BY peer LIMIT 500"

/* Rates of each peer over all its rows, and what only grows. */
static enum kith_err put_speed(const struct kith_database *database, FILE *out,
                               char *error)
{
    return put_table(database, "speed",
                     database->version >= 2 ? SPEEDS
                                            : "SELECT peer" RUNDB_SPEED_NULLS
                                              " FROM series WHERE 0",
                     out, error);
}

/* The first peers by rank, and the averaged model. */
#define SHOWN                                                                  \
    "(peer IS NULL OR peer IN (SELECT DISTINCT peer FROM series WHERE peer "   \
    "IS "                                                                      \
    "NOT NULL ORDER BY peer LIMIT %u))"

/* The series, thinned: of each shown peer every stride-th row and the last. */
static enum kith_err put_series(const struct kith_database *database,
                                unsigned runs, FILE *out, char *error)
{
    const unsigned peers = PEERS_MAX / runs > 0 ? PEERS_MAX / runs : 1;
    char sql[2048];
    int64_t rows = 0;

    kith_text_add(sql, sizeof sql, 0,
                  "SELECT count(*) FROM series WHERE " SHOWN, peers);
    enum kith_err err = count_of(database, sql, NULL, &rows, error);
    if (err != KITH_OK) {
        return err;
    }
    const int64_t room = (int64_t)(POINTS_MAX / runs);
    const int64_t stride = rows / room + 1;
    kith_text_add(
        sql, sizeof sql, 0,
        "WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY peer "
        "ORDER BY time_s, step) AS place, count(*) OVER (PARTITION BY peer) AS "
        "count_ FROM series WHERE " SHOWN ") "
        "SELECT ifnull(peer, -1) AS peer, time_s, step, samples, loss, "
        "accuracy, consensus_distance, bytes_sent, waiting_s, staleness, "
        "done%s%s FROM numbered WHERE place %% %" PRId64 " = 0 OR place = 1 OR "
        "place = count_ ORDER BY 1, time_s, step LIMIT %u",
        peers, age_columns(database), speed_columns(database), stride,
        2 * POINTS_MAX);
    return put_table(database, "series", sql, out, error);
}

/* One cell: each seed's averaged model stands where a run has its peers. */
static enum kith_err put_cell(const struct kith_database *database,
                              int64_t cell, unsigned runs, FILE *out,
                              char *error)
{
    const struct {
        const char *name, *sql;
    } parts[] = {
        {"facts",
         "SELECT key, value FROM run WHERE run_id = (SELECT min(run_id) FROM "
         "runs WHERE cell = %" PRId64 " AND state IN ('done', 'diverged')) "
         "LIMIT 200"},
        {"seeds", "SELECT run_id, seed FROM runs WHERE cell = %" PRId64
                  " ORDER BY run_id LIMIT 64"},
    };
    char sql[2048];
    int64_t rows = 0;
    enum kith_err err = KITH_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && err == KITH_OK;
         i++) {
        kith_text_add(sql, sizeof sql, 0, parts[i].sql, cell);
        err = put_table(database, parts[i].name, sql, out, error);
    }
    kith_text_add(sql, sizeof sql, 0,
                  "SELECT count(*) FROM series JOIN runs USING(run_id) WHERE "
                  "cell = %" PRId64 " AND peer IS NULL",
                  cell);
    if (err == KITH_OK) {
        err = count_of(database, sql, NULL, &rows, error);
    }
    const int64_t stride = rows / (int64_t)(POINTS_MAX / runs + 1) + 1;
    kith_text_add(
        sql, sizeof sql, 0,
        "WITH numbered AS (SELECT s.*, row_number() OVER (PARTITION BY "
        "run_id ORDER BY time_s, step) AS place, count(*) OVER (PARTITION BY "
        "run_id) AS count_ FROM series s JOIN runs r USING(run_id) WHERE "
        "r.cell = %" PRId64 " AND s.peer IS NULL) "
        "SELECT run_id AS peer, time_s, step, samples, loss, accuracy, "
        "consensus_distance, bytes_sent, waiting_s, staleness, done, "
        "staleness_max, received, training_s FROM numbered WHERE place %% "
        "%" PRId64 " = 0 OR place = 1 OR place = count_ ORDER BY 1, time_s, "
        "step LIMIT %u",
        cell, stride, 2 * POINTS_MAX);
    return err == KITH_OK ? put_table(database, "series", sql, out, error)
                          : err;
}

/* Cells with something to draw, the first of them. */
#define DRAWN                                                                  \
    "FROM cells WHERE cell IN (SELECT cell FROM runs WHERE state IN "          \
    "('done', 'diverged'))"

enum kith_err kith_database_lines(const struct kith_database *database,
                                  unsigned *lines, char *error)
{
    int64_t count = 1;
    enum kith_err err = KITH_OK;
    if (database->many) {
        err = count_of(database, "SELECT count(*) " DRAWN, NULL, &count, error);
    }
    *lines = count < (int64_t)CELLS_MAX ? (unsigned)count : CELLS_MAX;
    return err;
}

static enum kith_err put_cells(const struct kith_database *database,
                               const char *name, unsigned index, unsigned runs,
                               FILE *out, char *error)
{
    sqlite3_stmt *row = NULL;
    char sql[256];
    kith_text_add(sql, sizeof sql, 0,
                  "SELECT cell, label " DRAWN " ORDER BY cell LIMIT %u",
                  CELLS_MAX);
    enum kith_err err = prepare(database, sql, &row, error);
    bool first = true;
    while (err == KITH_OK && sqlite3_step(row) == SQLITE_ROW) {
        const int64_t cell = sqlite3_column_int64(row, 0);
        fprintf(out, "%s{\"database\":%u,\"cell\":%" PRId64 ",\"label\":",
                first ? "" : ",\n", index, cell);
        kith_write_json_value(out, row, 1);
        fputs(",\"file\":", out);
        kith_write_json_text(out, name, strlen(name));
        err = put_cell(database, cell, runs, out, error);
        fputc('}', out);
        first = false;
    }
    sqlite3_finalize(row);
    return err;
}

enum kith_err kith_database_json(const struct kith_database *database,
                                 unsigned index, unsigned runs, FILE *out,
                                 char *error)
{
    static const struct {
        const char *name, *sql;
    } parts[] = {
        {"facts", "SELECT key, value FROM run LIMIT 200"},
        {"summary", "SELECT key, value FROM summary LIMIT 200"},
        {"faults", "SELECT happened_s AS time_s, fault AS kind, peer, other, "
                   "factor FROM faults ORDER BY happened_s LIMIT 1000"},
        {"verdicts", "SELECT assertion AS text, held, value, at_s AS time_s "
                     "FROM verdicts LIMIT 100"},
        {"outcomes", "SELECT name AS kind, count(*) AS count, sum(sum) AS sum "
                     "FROM marks JOIN mark_kinds USING(kind) GROUP BY kind "
                     "ORDER BY kind LIMIT 100"},
        {"events",
         "SELECT time_s, peer, name AS kind, other, initiator, "
         "incarnation, counter, sum FROM marks JOIN mark_kinds "
         "USING(kind) WHERE name IN " NOTABLE " ORDER BY time_s LIMIT 500"},
        {"last", "SELECT peer, step, samples, loss, accuracy, attempts, done, "
                 "failed, refused, skipped, torn, bytes_sent, bytes_received, "
                 "waiting_s, max(time_s) AS time_s FROM series WHERE peer IS "
                 "NOT NULL GROUP BY peer ORDER BY peer LIMIT 500"},
    };
    const char *name = strrchr(database->path, '/');
    name = name != NULL ? name + 1 : database->path;
    int64_t peers = 0, events = 0;

    if (database->many) {
        return put_cells(database, name, index, runs, out, error);
    }
    enum kith_err err =
        count_of(database, "SELECT count(DISTINCT peer) FROM series", NULL,
                 &peers, error);
    if (err == KITH_OK) {
        err = count_of(database,
                       "SELECT count(*) FROM marks JOIN mark_kinds "
                       "USING(kind) WHERE name IN " NOTABLE,
                       NULL, &events, error);
    }
    if (err != KITH_OK) {
        return err;
    }
    fprintf(out, "{\"database\":%u,\"cell\":null,\"file\":", index);
    kith_write_json_text(out, name, strlen(name));
    fprintf(out, ",\"peers_all\":%" PRId64 ",\"events_all\":%" PRId64, peers,
            events);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && err == KITH_OK;
         i++) {
        err = put_table(database, parts[i].name, parts[i].sql, out, error);
    }
    if (err == KITH_OK) {
        err = put_speed(database, out, error);
    }
    if (err == KITH_OK) {
        err = put_series(database, runs, out, error);
    }
    fputc('}', out);
    return err;
}

enum kith_err kith_database_csv(const struct kith_database *database,
                                bool heading, FILE *out, char *error)
{
    const char *name = strrchr(database->path, '/');
    name = name != NULL ? name + 1 : database->path;
    sqlite3_stmt *row = NULL;
    char sql[1024];
    kith_text_add(sql, sizeof sql, 0,
                  "SELECT %s, " BEFORE_SPEED
                  "%s%s FROM series ORDER BY 1, peer, time_s",
                  database->version >= 3 ? "run_id" : "1 AS run_id",
                  age_columns(database), speed_columns(database));
    enum kith_err err = prepare(database, sql, &row, error);
    if (err != KITH_OK) {
        return err;
    }
    const int columns = sqlite3_column_count(row);
    if (heading) {
        fputs("run", out);
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            const char *column = sqlite3_column_name(row, i);
            kith_write_csv_text(out, column, strlen(column));
        }
        fputs("\r\n", out);
    }
    int code = sqlite3_step(row);
    for (; code == SQLITE_ROW; code = sqlite3_step(row)) {
        kith_write_csv_text(out, name, strlen(name));
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            kith_write_csv_value(out, row, i);
        }
        fputs("\r\n", out);
    }
    if (code != SQLITE_DONE) {
        err = fail(database, code, error);
    }
    sqlite3_finalize(row);
    return err;
}
