/* From nothing to an open run database, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kith/text.h"
#include "rundb_store.h"

KITH_ASSET(rundb_schema, KITH_RUNDB_SOURCE "/schema.sql");

/* Runs of one name in one folder before we ask for another folder. */
#define RUNS_MAX 100000u
/* How long the end of a run waits for readers. */
#define CLOSE_WAIT_MS 10000

enum kith_err kith_rundb_create_file(const char *directory, const char *world,
                                     const char *name, char *path, char *error)
{
    int code = 0;
    for (unsigned n = 1; n <= RUNS_MAX; n++) {
        const int length = snprintf(path, KITH_PATH_BYTES_MAX, "%s/%s-%s-%u.db",
                                    directory, name, world, n);
        code = ENAMETOOLONG;
        if (length < 0 || length >= (int)KITH_PATH_BYTES_MAX)
            break;
        const int file =
            open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file >= 0) {
            close(file);
            return KITH_OK;
        }
        code = errno;
        if (code != EEXIST)
            break;
    }
    const enum kith_err err = kith_rundb_errno(code);
    snprintf(error, KITH_RUNDB_ERROR_BYTES,
             "cannot create a run database in %.200s: %s; %s", directory,
             strerror(code), kith_rundb_advice(err));
    return err;
}

enum kith_err kith_rundb_run(struct kith_rundb *store, const char *key,
                             const char *format, ...)
{
    char value[256];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    return kith_rundb_pair(store, RUN, key, value);
}

void kith_rundb_utc(char text[32])
{
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* What a reader needs to repeat the run. Errors stick. */
static void write_run(struct kith_rundb *store, const char *world,
                      const struct kith_experiment *experiment)
{
    const struct kith_central *central = &experiment->central;
    char started[32];
    kith_rundb_utc(started);
    (void)kith_rundb_run(store, "schema", "%d", KITH_RUNDB_SCHEMA_VERSION);
    (void)kith_rundb_run(store, "name", "%s", experiment->name);
    (void)kith_rundb_run(store, "world", "%s", world);
    (void)kith_rundb_run(store, "seed", "%" PRIu64, experiment->seed);
    (void)kith_rundb_run(store, "peers", "%" PRIu32, experiment->peers);
    (void)kith_rundb_run(store, "build", "%s", kith_build());
    (void)kith_rundb_run(store, "started_utc", "%s", started);
    char hash[KITH_EXPERIMENT_HASH_BYTES];
    kith_experiment_hash_text(experiment, hash);
    (void)kith_rundb_run(store, "experiment_hash", "%s", hash);
    (void)kith_rundb_run(store, "batch", "%" PRIu32, experiment->train.batch);
    (void)kith_rundb_run(store, "model", "%s", experiment->model->name);
    (void)kith_rundb_run(store, "algorithm", "%s",
                         central->present
                             ? kith_central_methods[central->method].name
                             : experiment->gossip.algorithm->name);
    (void)kith_rundb_run(store, "topology", "%s",
                         central->present
                             ? kith_central_exchanges[central->exchange].name
                             : experiment->gossip.topology->name);
    if (experiment->backend != NULL)
        (void)kith_rundb_run(store, "backend", "%s", experiment->backend->name);
    if (experiment->compute.products != NULL)
        (void)kith_rundb_run(store, "products", "%s",
                             experiment->compute.products);
    if (experiment->compute.threads > 0)
        (void)kith_rundb_run(store, "threads", "%" PRIu32,
                             experiment->compute.threads);
    if (experiment->compute.peak > 0)
        (void)kith_rundb_run(store, "peak_flop_per_s", "%.4g",
                             experiment->compute.peak);
    (void)kith_rundb_pair(store, RUN, "experiment",
                          experiment->source == NULL ? "" : experiment->source);
}

bool kith_rundb_make_tables(sqlite3 *database, const char *section)
{
    char sql[KITH_SQL_BYTES];
    kith_sql(kith_asset_rundb_schema().bytes, section,
             KITH_RUNDB_SCHEMA_VERSION, sql);
    return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK;
}

enum kith_err kith_rundb_create_tables(struct kith_rundb *store,
                                       const char *section)
{
    if (store->err == KITH_OK &&
        !kith_rundb_make_tables(store->database, section))
        return kith_rundb_stick(store, "creating tables");
    return store->err;
}

enum kith_err kith_rundb_open_new(struct kith_rundb *store, const char *path)
{
    char pragmas[160];
    kith_text_copy(store->path, sizeof store->path, path);
    if (sqlite3_open_v2(path, &store->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return kith_rundb_stick(store, "opening");
    sqlite3_busy_timeout(store->database, KITH_RUNDB_OPEN_WAIT_MS);
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA journal_mode=DELETE; PRAGMA synchronous=NORMAL;"
             "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             KITH_RUNDB_APPLICATION_ID, KITH_RUNDB_SCHEMA_VERSION);
    (void)kith_rundb_exec(store, pragmas, "creating tables");
    (void)kith_rundb_exec(store, "BEGIN", "creating tables");
    (void)kith_rundb_create_tables(store, "tables");
    for (unsigned kind = 0; kind < KITH_MARK_COUNT; kind++)
        (void)kith_rundb_change(
            store, "creating tables", "INSERT INTO mark_kinds VALUES(?, ?)",
            "is", (int64_t)kind, kith_mark_name((enum kith_mark_kind)kind));
    (void)kith_rundb_exec(store, "COMMIT", "creating tables");
    return kith_rundb_prepare(store, ROW, JOURNAL);
}

void kith_rundb_free(struct kith_rundb *store)
{
    kith_rundb_writer_end(store);
    for (unsigned i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->prepared[i]);
    sqlite3_close(store->database);
    free(store);
}

/* The one run of a file, or this part of many, as it begins. */
static void write_begin(struct kith_rundb *store,
                        const struct kith_experiment *experiment)
{
    (void)kith_rundb_change(
        store, "creating tables",
        "INSERT INTO runs(run_id, cell, seed, state) VALUES(?, 1, ?, ?)", "iis",
        (int64_t)store->run_id, (int64_t)experiment->seed,
        kith_run_state_name(KITH_RUN_RUNNING));
    (void)kith_rundb_change(store, "creating tables",
                            "INSERT INTO cells(cell, label) VALUES(1, ?)", "s",
                            experiment->name);
}

/* On a file that is there and empty; an error removes it. */
static enum kith_err create_at(const char *path, uint32_t run_id,
                               const char *world,
                               const struct kith_experiment *experiment,
                               struct kith_rundb **out, char *error)
{
    struct kith_rundb *store = calloc(1, sizeof *store);
    if (store == NULL) {
        snprintf(error, KITH_RUNDB_ERROR_BYTES, "out of memory");
        unlink(path);
        return KITH_ENOMEM;
    }
    store->run_id = run_id;
    (void)kith_rundb_open_new(store, path);
    write_begin(store, experiment);
    write_run(store, world, experiment);
    const enum kith_err err = kith_rundb_commit(store);
    sqlite3_busy_timeout(store->database, 0);
    if (err != KITH_OK) {
        kith_text_copy(error, KITH_RUNDB_ERROR_BYTES, store->error);
        kith_rundb_free(store);
        unlink(path);
        return err;
    }
    *out = store;
    return KITH_OK;
}

enum kith_err kith_rundb_create(const char *directory, const char *world,
                                const struct kith_experiment *experiment,
                                struct kith_rundb **out, char *path,
                                char *error)
{
    const enum kith_err err =
        kith_rundb_create_file(directory, world, experiment->name, path, error);
    return err == KITH_OK ? create_at(path, 1, world, experiment, out, error)
                          : err;
}

enum kith_err kith_rundb_create_part(const char *path, uint32_t run_id,
                                     const char *world,
                                     const struct kith_experiment *experiment,
                                     struct kith_rundb **out, char *error)
{
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) {
        const enum kith_err err = kith_rundb_errno(errno);
        snprintf(error, KITH_RUNDB_ERROR_BYTES, "cannot create %.300s: %s; %s",
                 path, strerror(errno), kith_rundb_advice(err));
        return err;
    }
    close(file);
    return create_at(path, run_id, world, experiment, out, error);
}

enum kith_err kith_rundb_member(struct kith_rundb *store, kith_id rank,
                                uint32_t incarnation)
{
    (void)kith_rundb_run(store, "rank", "%" PRIu32, rank);
    (void)kith_rundb_run(store, "incarnation", "%" PRIu32, incarnation);
    return kith_rundb_commit(store);
}

enum kith_err kith_rundb_close(struct kith_rundb *store, char *error)
{
    if (store == NULL)
        return KITH_OK;
    enum kith_err err = kith_rundb_writer_wait(store, 0);
    sqlite3_busy_timeout(store->database, CLOSE_WAIT_MS);
    if (err == KITH_OK)
        err = kith_rundb_commit(store);
    if (err == KITH_OK && store->rows > 0)
        err = kith_rundb_stick(store, "saving the last rows");
    if (err != KITH_OK)
        kith_text_copy(error, KITH_RUNDB_ERROR_BYTES, store->error);
    kith_rundb_free(store);
    return err;
}
