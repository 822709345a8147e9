/* A run database that is gone on with: the run was interrupted and goes on from
 * a checkpoint, which may be older than the last rows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/plain_file.h"
#include "kith/text.h"
#include "rundb.h"
#include "tables.h"

static enum kith_err refuse(char *error, const char *path, enum kith_err err,
                            const char *what)
{
    snprintf(error, KITH_RUNDB_ERROR_BYTES, "cannot go on with %.200s: %s",
             path, what);
    return err;
}

bool kith_rundb_read_text(sqlite3 *database, const char *sql, char *text,
                          size_t size)
{
    sqlite3_stmt *statement;
    bool found = false;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        return false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *value = (const char *)sqlite3_column_text(statement, 0);
        kith_text_copy(text, size, value == NULL ? "" : value);
        found = true;
    }
    sqlite3_finalize(statement);
    return found;
}

bool kith_rundb_is_plain(sqlite3 *database)
{
    char text[24];
    return kith_rundb_read_text(
               database,
               "SELECT count(*) FROM sqlite_schema WHERE "
               "lower(name) IN ('run', 'journal', 'models') AND "
               "(type <> 'table' OR sql LIKE 'CREATE VIRTUAL%')",
               text, sizeof text) &&
           strcmp(text, "0") == 0;
}

static enum kith_err check_run(sqlite3 *database, const char *path,
                               const char *world,
                               const struct kith_experiment *experiment,
                               char *error)
{
    char text[64], wanted[256];
    snprintf(wanted, sizeof wanted, "%d", RUNDB_APPLICATION_ID);
    if (!kith_rundb_read_text(database, "PRAGMA application_id", text,
                              sizeof text) ||
        strcmp(text, wanted) != 0)
        return refuse(error, path, KITH_EPARSE, "not a run database of kith");
    snprintf(wanted, sizeof wanted, "%d", RUNDB_SCHEMA_VERSION);
    if (!kith_rundb_read_text(database, "PRAGMA user_version", text,
                              sizeof text) ||
        strcmp(text, wanted) != 0)
        return refuse(error, path, KITH_EVERSION,
                      "written by another version of kith");
    if (!kith_rundb_read_text(database,
                              "SELECT value FROM run WHERE key='world'", text,
                              sizeof text) ||
        strcmp(text, world) != 0)
        return refuse(error, path, KITH_EMISMATCH,
                      "it is a run of another command");
    char what[200], *yaml = NULL, unread[KITH_RUNDB_ERROR_BYTES];
    if (!kith_rundb_read_text(
            database, "SELECT value FROM run WHERE key='experiment_hash'", text,
            sizeof text))
        text[0] = '\0';
    (void)!kith_rundb_experiment(path, &yaml, unread);
    const bool same =
        kith_experiment_is(experiment, text, yaml, what, sizeof what);
    free(yaml);
    if (!same) {
        snprintf(wanted, sizeof wanted, "it is of another experiment: %s",
                 what);
        return refuse(error, path, KITH_EMISMATCH, wanted);
    }
    return KITH_OK;
}

enum kith_err kith_rundb_reopen(const char *path, const char *world,
                                const struct kith_experiment *experiment,
                                struct kith_rundb **out, char *error)
{
    struct kith_rundb *store = calloc(1, sizeof *store);
    if (store == NULL)
        return refuse(error, path, KITH_ENOMEM, "out of memory");
    kith_text_copy(store->path, sizeof store->path, path);
    store->run_id = 1;
    char why[KITH_FILE_WHY_BYTES];
    enum kith_err err = kith_file_check(path, why);
    if (err != KITH_OK)
        err = refuse(error, path, err, why);
    else if (sqlite3_open_v2(path, &store->database,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                             NULL) != SQLITE_OK)
        err = refuse(error, path, KITH_ENOENT, sqlite3_errmsg(store->database));
    if (err == KITH_OK)
        err = check_run(store->database, path, world, experiment, error);
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
    snprintf(error, KITH_RUNDB_ERROR_BYTES,
             "cannot read the experiment of %.200s: %s; give the run database "
             "of a kith lab",
             path, what);
    return err;
}

enum kith_err kith_rundb_experiment(const char *path, char **text, char *error)
{
    sqlite3 *database = NULL;
    char why[KITH_FILE_WHY_BYTES];
    *text = NULL;
    enum kith_err err = kith_file_check(path, why);
    if (err != KITH_OK)
        err = unread(error, path, err, why);
    /* Not read-only: what a full disk or a kill cut short is taken back. */
    else if (sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL) !=
             SQLITE_OK)
        err = unread(error, path, KITH_ENOENT, sqlite3_errmsg(database));
    else if ((*text = malloc(KITH_YAML_BYTES_MAX + 1)) == NULL)
        err = unread(error, path, KITH_ENOMEM, "out of memory");
    else if (!kith_rundb_is_plain(database) ||
             !kith_rundb_read_text(
                 database, "SELECT value FROM run WHERE key='experiment'",
                 *text, KITH_YAML_BYTES_MAX + 1) ||
             (*text)[0] == '\0')
        err = unread(error, path, KITH_EPARSE, "not a run database of kith");
    sqlite3_close(database);
    if (err != KITH_OK) {
        free(*text);
        *text = NULL;
    }
    return err;
}

static double column_real(sqlite3_stmt *statement, int at)
{
    return sqlite3_column_type(statement, at) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, at);
}

static uint64_t column_whole(sqlite3_stmt *statement, int at)
{
    return (uint64_t)sqlite3_column_int64(statement, at);
}

/* SERIES, in its order. */
#define SERIES                                                                 \
    "peer, time_s, step, samples, loss, accuracy, consensus_distance, "        \
    "bytes_sent, bytes_received, waiting_s, staleness, staleness_max, "        \
    "received, training_s, attempts, done, failed, refused, skipped, torn, "   \
    "cpu_train_s, cpu_aead_s, cpu_socket_s, cpu_other_s"

static void column_row(sqlite3_stmt *statement, struct kith_row *row)
{
    *row = (struct kith_row){
        .peer = sqlite3_column_type(statement, 0) == SQLITE_NULL
                    ? KITH_NOBODY
                    : (kith_id)sqlite3_column_int64(statement, 0),
        .time_ns = (kith_ns)(column_real(statement, 1) * 1e9),
        .step = column_whole(statement, 2),
        .samples = column_whole(statement, 3),
        .loss = column_real(statement, 4),
        .accuracy = column_real(statement, 5),
        .consensus_distance = column_real(statement, 6),
        .bytes_sent = column_whole(statement, 7),
        .bytes_received = column_whole(statement, 8),
        .waiting_s = column_real(statement, 9),
        .staleness = column_real(statement, 10),
        .staleness_max = column_real(statement, 11),
        .received = column_whole(statement, 12),
        .training_s = column_real(statement, 13),
        .attempts = column_whole(statement, 14),
        .done = column_whole(statement, 15),
        .failed = column_whole(statement, 16),
        .refused = column_whole(statement, 17),
        .skipped = column_whole(statement, 18),
        .torn = column_whole(statement, 19),
        .cpu_train_s = column_real(statement, 20),
        .cpu_aead_s = column_real(statement, 21),
        .cpu_socket_s = column_real(statement, 22),
        .cpu_other_s = column_real(statement, 23)};
}

static enum kith_err each_row(struct kith_rundb *store, void *user,
                              void (*each)(void *user,
                                           const struct kith_row *row))
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store->database,
                           "SELECT " SERIES " FROM series ORDER BY rowid", -1,
                           &statement, NULL) != SQLITE_OK)
        return kith_rundb_stick(store, "reading rows");
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct kith_row row;
        column_row(statement, &row);
        each(user, &row);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? KITH_OK
                               : kith_rundb_stick(store, "reading rows");
}

enum kith_err
kith_rundb_go_back(struct kith_rundb *store, uint64_t first, void *user,
                   void (*each)(void *user, const struct kith_row *row))
{
    char sql[256], when[32];
    kith_rundb_utc(when);
    snprintf(sql, sizeof sql,
             "BEGIN; DELETE FROM series WHERE step >= %" PRId64 ";"
             "DELETE FROM verdicts; DELETE FROM summary;"
             "UPDATE runs SET state = 'running'; COMMIT",
             (int64_t)(first < INT64_MAX ? first : INT64_MAX));
    enum kith_err err = kith_rundb_exec(store, sql, "going back");
    if (err == KITH_OK)
        err = kith_rundb_run(store, "resumed_utc", "%s", when);
    if (err == KITH_OK && each != NULL)
        err = each_row(store, user, each);
    return err;
}

enum kith_err kith_rundb_incarnation(struct kith_rundb *store, uint32_t *next)
{
    char text[24];
    uint64_t most;
    if (!kith_rundb_read_text(
            store->database,
            "SELECT coalesce(max(incarnation) + 1, 0) FROM marks", text,
            sizeof text))
        return kith_rundb_stick(store, "reading marks");
    if (kith_text_u64(text, &most) != KITH_OK || most >= UINT32_MAX)
        return KITH_ELIMIT;
    *next = (uint32_t)most;
    return KITH_OK;
}
