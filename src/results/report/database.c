/* A run database, read by a report.
 *
 * The file may come from anybody. It is opened read-only, with its triggers,
 * views and functions distrusted; only ordinary tables of the expected names
 * are read, every query of report.sql is bounded, and values leave through
 * kith/json.h and csv.h. */
#include "src/results/report/database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "kith/asset.h"
#include "kith/json.h"
#include "kith/limits.h"
#include "kith/plain_file.h"
#include "kith/report.h"
#include "kith/series.h"
#include "kith/text.h"
#include "kith/zone_map.h"
#include "src/results/report/csv.h"
#include "src/results/report/spread.h"

KITH_ASSET(report_queries, KITH_REPORT_SOURCE "/report.sql");

/* Points of one page over all its runs: what a browser draws without delay. */
#define POINTS_MAX 24000u
/* Peers of one page drawn one by one; the averaged model always is. */
#define PEERS_MAX 64u

/* The graph of peers: one node each up to KITH_NODES_MAX, else a node a place,
 * or where nobody knows of any a group of neighbouring ranks. Groups of the
 * traffic matrix, its slots in time, and its numbers on one page over all its
 * runs; links of single peers at a moment. */
#define GROUPS_MAX 64
#define SLOTS_MAX 24
#define TRAFFIC_MAX 50000
#define LINKS_MAX 1000

/* Cells of one database that are drawn, the shipped presets among them; the
 * comparison has all. */
#define CELLS_MAX 64u

/* The last three from schema 3 on. */
static const char *const tables[] = {
    "run",    "summary",  "series", "marks", "mark_kinds",
    "faults", "verdicts", "runs",   "cells", "settings"};
#define TABLES (sizeof tables / sizeof *tables)

static void refuse(struct kith_database *database, enum kith_err err,
                   const char *found)
{
    if (database->err == KITH_OK)
        database->err = kith_text_fail(
            database->error, KITH_REPORT_ERROR_BYTES, err,
            "reading the run database %s: %s; give a .db file written by "
            "kith sim, lab, train or peer",
            database->path, found);
}

static void fail(struct kith_database *database)
{
    const int code = sqlite3_errcode(database->handle) & 0xff;
    refuse(database,
           code == SQLITE_NOMEM  ? KITH_ENOMEM
           : code == SQLITE_BUSY ? KITH_EBUSY
                                 : KITH_EPARSE,
           sqlite3_errmsg(database->handle));
}

/* A section of report.sql for the schema of this database. */
static void database_sql(const struct kith_database *database, const char *name,
                         char sql[KITH_SQL_BYTES])
{
    kith_sql(kith_asset_report_queries().bytes, name, database->version, sql);
}

void kith_database_query(const struct kith_database *database, const char *name,
                         struct kith_query *query, const char *types, ...)
{
    char sql[KITH_SQL_BYTES];
    int at = 0;
    va_list values;
    database_sql(database, name, sql);
    kith_query_begin(query, database->handle, sql, "");
    va_start(values, types);
    if (query->statement != NULL)
        kith_query_bind(query->statement, &at, types, values);
    va_end(values);
}

int64_t kith_database_count(struct kith_database *database, const char *name,
                            int64_t value)
{
    char sql[KITH_SQL_BYTES];
    int64_t count = 0;
    database_sql(database, name, sql);
    if (!kith_query_one_whole(database->handle, sql, &count, "i", value))
        fail(database);
    return count;
}

void kith_database_end(struct kith_database *database, struct kith_query *query)
{
    if (!kith_query_end(query))
        fail(database);
}

/* The mark of a run database, its version, and ordinary tables with the names
 * we read: a view could hold any query. */
static void check_schema(struct kith_database *database)
{
    int64_t application = 0, version = 0;
    char found[96], sql[KITH_SQL_BYTES];
    if (!kith_query_one_whole(database->handle, "PRAGMA application_id",
                              &application, "") ||
        !kith_query_one_whole(database->handle, "PRAGMA user_version", &version,
                              ""))
        fail(database);
    if (application != KITH_RUNDB_APPLICATION_ID)
        refuse(database, KITH_EPARSE, "it is no run database of kith");
    snprintf(found, sizeof found,
             "its schema is version %" PRId64 ", this kith reads %d to %d",
             version, KITH_RUNDB_SCHEMA_OLDEST, KITH_RUNDB_SCHEMA_VERSION);
    if (version < KITH_RUNDB_SCHEMA_OLDEST ||
        version > KITH_RUNDB_SCHEMA_VERSION)
        refuse(database, KITH_EPARSE, found);
    database->version = (int)version;
    database_sql(database, "table", sql);
    const size_t count = version >= 3 ? TABLES : TABLES - 3;
    for (size_t i = 0; i < count && database->err == KITH_OK; i++) {
        int64_t there = 0;
        if (!kith_query_one_whole(database->handle, sql, &there, "s",
                                  tables[i]))
            fail(database);
        snprintf(found, sizeof found, "it has no table '%s'", tables[i]);
        if (there != 1)
            refuse(database, KITH_EPARSE, found);
    }
    if (version >= 3 && database->err == KITH_OK)
        database->many = kith_database_count(database, "plans", 0) > 0;
}

enum kith_err kith_database_open(const char *path, int wait_ms,
                                 struct kith_database *database, char *error)
{
    *database = (struct kith_database){.path = path, .error = error};
    char why[KITH_FILE_WHY_BYTES];
    if (kith_file_check(path, why) != KITH_OK)
        refuse(database, KITH_EPARSE, why);
    else if (access(path, R_OK) != 0)
        refuse(database, KITH_EPARSE, strerror(errno));
    if (database->err != KITH_OK)
        return database->err;
    const int code =
        sqlite3_open_v2(path, &database->handle,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_PRIVATECACHE, NULL);
    if (database->handle == NULL)
        return kith_text_fail(error, KITH_REPORT_ERROR_BYTES, KITH_ENOMEM,
                              "reading the run database %s: out of memory",
                              path);
    if (code != SQLITE_OK) {
        fail(database);
    } else {
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
                          NULL);
        sqlite3_limit(database->handle, SQLITE_LIMIT_LENGTH,
                      2 * (int)KITH_YAML_BYTES_MAX);
        sqlite3_busy_timeout(database->handle, wait_ms);
        sqlite3_exec(database->handle, "BEGIN", NULL, NULL, NULL);
        check_schema(database);
    }
    if (database->err != KITH_OK)
        kith_database_close(database);
    return database->err;
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

/* {"columns": [...], "rows": [[...], ...]} of one query as `key` of `page`;
 * `about`, `every` and `most` are its ?1, ?2 and ?3. */
static void add_table(struct kith_database *database, json_t *page,
                      const char *key, const char *name, int64_t about,
                      int64_t every, int64_t most)
{
    struct kith_query query;
    if (database->err != KITH_OK)
        return;
    json_t *columns = json_array(), *rows = json_array();
    kith_database_query(database, name, &query, "iii", about, every, most);
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
    kith_database_end(database, &query);
}

/* The series, thinned: of each peer every so many rows and the last. */
static void add_series(struct kith_database *database, json_t *page,
                       const char *name, int64_t about, unsigned runs)
{
    char count[32];
    (void)snprintf(count, sizeof count, "%s.count", name);
    const int64_t rows = kith_database_count(database, count, about);
    add_table(database, page, "series", name, about,
              rows / (int64_t)(POINTS_MAX / runs) + 1, 2 * POINTS_MAX);
}

unsigned kith_database_lines(struct kith_database *database)
{
    const int64_t count =
        database->many ? kith_database_count(database, "drawn.count", 0) : 1;
    return count < (int64_t)CELLS_MAX ? (unsigned)count : CELLS_MAX;
}

void kith_database_name(const struct kith_database *database,
                        char name[KITH_DATABASE_NAME_BYTES])
{
    const char *slash = strrchr(database->path, '/');
    const char *file = slash != NULL ? slash + 1 : database->path;
    const size_t at =
        kith_text_add(name, KITH_DATABASE_NAME_BYTES, 0, "%.255s", file);
    if (database->more > 0)
        kith_text_add(name, KITH_DATABASE_NAME_BYTES, at, " and %u more",
                      database->more);
}

static json_t *name_json(const struct kith_database *database)
{
    char name[KITH_DATABASE_NAME_BYTES];
    kith_database_name(database, name);
    return kith_json_text(name);
}

static void add_cells(struct kith_database *database, json_t *pages,
                      unsigned index, unsigned runs)
{
    struct kith_query query;
    kith_database_query(database, "drawn", &query, "i", (int64_t)CELLS_MAX);
    while (database->err == KITH_OK && kith_query_next(&query)) {
        const int64_t cell = kith_query_whole(&query, 0);
        json_t *page = json_pack("{s:I, s:I, s:o, s:o}", "database",
                                 (json_int_t)index, "cell", (json_int_t)cell,
                                 "label", value_of(query.statement, 1), "file",
                                 name_json(database));
        (void)json_array_append_new(pages, page);
        add_table(database, page, "facts", "cell.facts", cell, 0, 0);
        add_table(database, page, "seeds", "cell.seeds", cell, 0, 0);
        add_series(database, page, "cell.series", cell, runs);
    }
    kith_database_end(database, &query);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of how many places a run of many peers in zones tells; 0: of none. */
static int64_t count_places(struct kith_database *database)
{
    static const char *const those[] = {"places", "zones", "zone_traffic"};
    char sql[KITH_SQL_BYTES];
    database_sql(database, "table", sql);
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        int64_t there = 0;
        if (!kith_query_one_whole(database->handle, sql, &there, "s", those[i]))
            fail(database);
        if (there != 1)
            return 0;
    }
    return kith_database_count(database, "places.count", 0);
}

/* The same of places; slots are joined where a page has many runs. */
static void add_map(struct kith_database *database, json_t *page, int64_t ranks,
                    int64_t places, unsigned runs)
{
    const int64_t cells = TRAFFIC_MAX / runs / (places * places);
    const int64_t most = least(SLOTS_MAX, cells > 0 ? cells : 1);
    const int64_t all = kith_database_count(database, "zone_slots", 0);
    if (database->err != KITH_OK)
        return;
    const int64_t joined = (all + most - 1) / most;
    const int64_t slots = (all + joined - 1) / joined;
    const int64_t slot_ns =
        joined * least(kith_database_count(database, "zone_slot", 0),
                       INT64_MAX / joined);
    (void)json_object_set_new(
        page, "graph",
        json_pack("{s:I, s:I, s:I, s:I, s:f}", "ranks", (json_int_t)ranks,
                  "nodes", (json_int_t)places, "groups", (json_int_t)places,
                  "slots", (json_int_t)slots, "slot_s", (double)slot_ns / 1e9));
    add_table(database, page, "places", "places", 0, 0, 0);
    add_table(database, page, "zones", "zones", 0, 0, 0);
    add_table(database, page, "nodes", "nodes.places", ranks, slots, slot_ns);
    add_table(database, page, "traffic", "traffic.places", joined, 0, 0);
}

/* Who exchanged with whom, and how far from the mean each was, in time. */
static void add_graph(struct kith_database *database, json_t *page,
                      unsigned runs)
{
    const int64_t ranks = kith_database_count(database, "ranks", 0);
    const int64_t groups = least(ranks, GROUPS_MAX);
    const int64_t nodes = ranks > KITH_NODES_MAX ? groups : ranks;
    if (ranks <= 0)
        return;
    const int64_t places = nodes < ranks ? count_places(database) : 0;
    if (places > 0) {
        add_map(database, page, ranks, places, runs);
        return;
    }
    int64_t slots = least(SLOTS_MAX, TRAFFIC_MAX / runs / (groups * groups));
    slots = slots > 0 ? slots : 1;
    const int64_t links = LINKS_MAX / runs;
    (void)json_object_set_new(
        page, "graph",
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "ranks", (json_int_t)ranks,
                  "nodes", (json_int_t)nodes, "groups", (json_int_t)groups,
                  "slots", (json_int_t)slots, "links", (json_int_t)links));
    add_table(database, page, "nodes", "nodes", ranks, nodes, slots);
    add_table(database, page, "traffic", "traffic", ranks, groups, slots);
    if (nodes > groups)
        add_table(database, page, "pairs", "pairs", ranks, links, slots);
}

static void add_run(struct kith_database *database, json_t *pages,
                    unsigned index, unsigned runs)
{
    /* Tables of the page and the queries of the same name. */
    static const char *const parts[] = {"facts",    "summary",  "faults",
                                        "verdicts", "outcomes", "events",
                                        "last",     "speed",    "identities"};
    const unsigned peers = PEERS_MAX / runs > 0 ? PEERS_MAX / runs : 1;
    const int64_t all = kith_database_count(database, "peers.count", 0);
    const int64_t events = kith_database_count(database, "events.count", 0);
    const int64_t faults = kith_database_count(database, "faults.count", 0);
    json_t *page = json_pack(
        "{s:I, s:n, s:o, s:I, s:I, s:I}", "database", (json_int_t)index, "cell",
        "file", name_json(database), "peers_all", (json_int_t)all, "events_all",
        (json_int_t)events, "faults_all", (json_int_t)faults);
    (void)json_array_append_new(pages, page);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_table(database, page, parts[i], parts[i], 0, 0, 0);
    add_series(database, page, "series", peers, runs);
    kith_spread_add(database, all, page);
    add_graph(database, page, runs);
}

void kith_database_json(struct kith_database *database, unsigned index,
                        unsigned runs, json_t *pages)
{
    (database->many ? add_cells : add_run)(database, pages, index, runs);
}

void kith_database_csv(struct kith_database *database, bool heading, FILE *out)
{
    struct kith_query query;
    kith_database_query(
        database, database->version >= 3 ? "points" : "points.1", &query, "");
    const int columns = sqlite3_column_count(query.statement);
    if (heading) {
        fputs("run", out);
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            kith_csv_text(out, sqlite3_column_name(query.statement, i));
        }
        fputs("\r\n", out);
    }
    char name[KITH_DATABASE_NAME_BYTES];
    kith_database_name(database, name);
    while (kith_query_next(&query)) {
        kith_csv_text(out, name);
        for (int i = 0; i < columns; i++) {
            fputc(',', out);
            kith_csv_value(out, query.statement, i);
        }
        fputs("\r\n", out);
    }
    kith_database_end(database, &query);
}
