/* A run database that is gone on with: the run was interrupted and goes on from
 * a checkpoint, which may be older than the last rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plain_file.h"
#include "kith/text.h"
#include "rundb_store.h"

enum kith_err kith_rundb_refuse(char *error, const char *path,
                                enum kith_err err, const char *what)
{
    snprintf(error, KITH_RUNDB_ERROR_BYTES, "cannot go on with %.200s: %s",
             path, what);
    return err;
}

enum kith_err kith_rundb_open_file(const char *path, sqlite3 **database,
                                   char why[RUNDB_WHY_BYTES])
{
    _Static_assert(RUNDB_WHY_BYTES >= KITH_FILE_WHY_BYTES, "room for both");
    enum kith_err err = kith_file_check(path, why);
    if (err == KITH_OK &&
        sqlite3_open_v2(path, database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        kith_text_copy(why, RUNDB_WHY_BYTES, sqlite3_errmsg(*database));
        err = KITH_ENOENT;
    }
    return err;
}

bool kith_rundb_is_plain(sqlite3 *database)
{
    int64_t others;
    return kith_query_one_whole(
               database,
               "SELECT count(*) FROM sqlite_schema WHERE "
               "lower(name) IN ('run', 'journal', 'models') AND "
               "(type <> 'table' OR sql LIKE 'CREATE VIRTUAL%')",
               &others, "") &&
           others == 0;
}

bool kith_rundb_fact(sqlite3 *database, const char *key, char *text,
                     size_t size)
{
    struct kith_query query;
    kith_query_begin(&query, database, "SELECT value FROM run WHERE key = ?",
                     "s", key);
    const bool found = kith_query_next(&query);
    if (found)
        kith_query_text(&query, 0, text, size);
    return kith_query_end(&query) && found;
}

enum kith_err kith_rundb_check_file(sqlite3 *database, int oldest, char *what,
                                    size_t size)
{
    int64_t application = 0, version = 0;
    if (!kith_query_one_whole(database, "PRAGMA application_id", &application,
                              "") ||
        application != KITH_RUNDB_APPLICATION_ID ||
        !kith_query_one_whole(database, "PRAGMA user_version", &version, "")) {
        (void)snprintf(what, size, "not a run database of kith");
        return KITH_EPARSE;
    }
    if (version >= oldest && version <= KITH_RUNDB_SCHEMA_VERSION)
        return KITH_OK;
    char wanted[32] = "";
    if (oldest < KITH_RUNDB_SCHEMA_VERSION)
        (void)snprintf(wanted, sizeof wanted, "%d to ", oldest);
    (void)snprintf(what, size, "found schema %" PRId64 ", this kith reads %s%d",
                   version, wanted, KITH_RUNDB_SCHEMA_VERSION);
    return KITH_EVERSION;
}

/* Another text, or the same one, hashed by a kith with another hash? */
static enum kith_err check_hash(sqlite3 *database, const char *path,
                                const struct kith_experiment *experiment,
                                char *error)
{
    char text[64] = "", wanted[256], what[200], *yaml = NULL;
    char unread[KITH_RUNDB_ERROR_BYTES];
    (void)kith_rundb_fact(database, "experiment_hash", text, sizeof text);
    (void)!kith_rundb_experiment(path, &yaml, unread);
    const bool same =
        kith_experiment_is(experiment, text, yaml, what, sizeof what);
    free(yaml);
    if (same)
        return KITH_OK;
    (void)snprintf(wanted, sizeof wanted, "it is of another experiment: %s",
                   what);
    return kith_rundb_refuse(error, path, KITH_EMISMATCH, wanted);
}

static enum kith_err check_run(sqlite3 *database, const char *path,
                               const char *world,
                               const struct kith_experiment *experiment,
                               char *error)
{
    char text[96];
    const enum kith_err err = kith_rundb_check_file(
        database, KITH_RUNDB_SCHEMA_VERSION, text, sizeof text);
    if (err != KITH_OK)
        return kith_rundb_refuse(error, path, err, text);
    if (!kith_rundb_fact(database, "world", text, sizeof text) ||
        strcmp(text, world) != 0)
        return kith_rundb_refuse(error, path, KITH_EMISMATCH,
                                 "it is a run of another command");
    return check_hash(database, path, experiment, error);
}

enum kith_err kith_rundb_reopen(const char *path, const char *world,
                                const struct kith_experiment *experiment,
                                struct kith_rundb **out, char *error)
{
    struct kith_rundb *store = calloc(1, sizeof *store);
    if (store == NULL)
        return kith_rundb_refuse(error, path, KITH_ENOMEM, "out of memory");
    kith_text_copy(store->path, sizeof store->path, path);
    store->run_id = 1;
    char why[RUNDB_WHY_BYTES];
    enum kith_err err = kith_rundb_open_file(path, &store->database, why);
    if (err != KITH_OK) {
        err = kith_rundb_refuse(error, path, err, why);
    } else {
        /* Its writer may have been killed a moment ago, and not be gone. */
        sqlite3_busy_timeout(store->database, KITH_RUNDB_OPEN_WAIT_MS);
        err = check_run(store->database, path, world, experiment, error);
        sqlite3_busy_timeout(store->database, 0);
    }
    if (err == KITH_OK &&
        (err = kith_rundb_prepare(store, ROW, JOURNAL)) != KITH_OK)
        kith_text_copy(error, KITH_RUNDB_ERROR_BYTES, store->error);
    if (err != KITH_OK) {
        kith_rundb_free(store);
        return err;
    }
    *out = store;
    return KITH_OK;
}

static enum kith_err unread(char *error, const char *path, enum kith_err err,
                            const char *what)
{
    snprintf(
        error, KITH_RUNDB_ERROR_BYTES,
        "cannot read the experiment of %.200s: %.200s; give the run database "
        "of a kith lab",
        path, what);
    return err;
}

enum kith_err kith_rundb_experiment(const char *path, char **text, char *error)
{
    sqlite3 *database = NULL;
    char why[RUNDB_WHY_BYTES];
    *text = NULL;
    enum kith_err err = kith_rundb_open_file(path, &database, why);
    if (err != KITH_OK)
        err = unread(error, path, err, why);
    else if ((*text = malloc(KITH_YAML_BYTES_MAX + 1)) == NULL)
        err = unread(error, path, KITH_ENOMEM, "out of memory");
    else if (!kith_rundb_is_plain(database) ||
             !kith_rundb_fact(database, "experiment", *text,
                              KITH_YAML_BYTES_MAX + 1) ||
             (*text)[0] == '\0')
        err = unread(error, path, KITH_EPARSE, "not a run database of kith");
    sqlite3_close(database);
    if (err != KITH_OK) {
        free(*text);
        *text = NULL;
    }
    return err;
}

/* Speeds stay where they were measured. */
static void read_row(const struct kith_query *query, struct kith_row *row)
{
    *row =
        kith_row_unknown(sqlite3_column_type(query->statement, 0) == SQLITE_NULL
                             ? KITH_NOBODY
                             : (kith_id)kith_query_whole(query, 0));
    row->time_ns = (kith_ns)(kith_query_real(query, 1) * 1e9);
    for (unsigned i = 0; i < kith_series_column_count; i++) {
        const struct kith_series_column *column = &kith_series_columns[i];
        void *value = (char *)row + column->offset;
        if (column->place == KITH_SERIES_speed)
            continue;
        if (column->kind >= KITH_SERIES_REAL)
            *(double *)value = kith_query_real(query, 2 + (int)i);
        else
            *(uint64_t *)value = (uint64_t)kith_query_whole(query, 2 + (int)i);
    }
}

static enum kith_err each_row(struct kith_rundb *store, void *user,
                              void (*each)(void *user,
                                           const struct kith_row *row))
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    kith_rundb_sql("back", sql);
    kith_query_begin(&query, store->database, sql, "");
    while (kith_query_next(&query)) {
        struct kith_row row;
        read_row(&query, &row);
        each(user, &row);
    }
    return kith_query_end(&query) ? KITH_OK
                                  : kith_rundb_stick(store, "reading rows");
}

enum kith_err
kith_rundb_go_back(struct kith_rundb *store, uint64_t first, void *user,
                   void (*each)(void *user, const struct kith_row *row))
{
    char sql[320], when[32];
    kith_rundb_utc(when);
    snprintf(sql, sizeof sql,
             "SAVEPOINT back; DELETE FROM series WHERE step >= %" PRId64 ";"
             "DELETE FROM verdicts; DELETE FROM summary WHERE key NOT IN "
             "('train_rows', 'test_rows');"
             "UPDATE runs SET state = 'running'; RELEASE back",
             (int64_t)(first < INT64_MAX ? first : INT64_MAX));
    enum kith_err err = kith_rundb_exec(store, sql, "going back");
    if (err == KITH_OK)
        err = kith_rundb_run(store, "resumed_utc", "%s", when);
    if (err == KITH_OK && each != NULL)
        err = each_row(store, user, each);
    return err;
}

enum kith_err kith_rundb_start_over(struct kith_rundb *store)
{
    if (kith_rundb_commit(store) != KITH_OK)
        return store->err;
    sqlite3_busy_timeout(store->database, KITH_RUNDB_OPEN_WAIT_MS);
    (void)kith_rundb_exec(
        store,
        "SAVEPOINT over; DELETE FROM series; DELETE FROM marks;"
        "DELETE FROM faults; DELETE FROM verdicts;"
        "DROP TABLE IF EXISTS places; DROP TABLE IF EXISTS zones;"
        "DROP TABLE IF EXISTS zone_traffic;"
        "DELETE FROM summary WHERE key NOT IN ('train_rows', 'test_rows', "
        "'hosts'); UPDATE runs SET state = 'running'; RELEASE over",
        "starting over");
    sqlite3_busy_timeout(store->database, 0);
    return store->err;
}

enum kith_err kith_rundb_incarnation(struct kith_rundb *store, uint32_t *next)
{
    int64_t first;
    if (!kith_query_one_whole(
            store->database,
            "SELECT coalesce(max(incarnation) + 1, 0) FROM marks", &first, ""))
        return kith_rundb_stick(store, "reading trace events");
    if (first < 0 || first >= UINT32_MAX)
        return KITH_ELIMIT;
    *next = (uint32_t)first;
    return KITH_OK;
}
