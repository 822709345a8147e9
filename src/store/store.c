/* The run database: rows in, SQLite out.
 *
 * One transaction per second of wall time, so that a killed run loses at most
 * that and the disk is asked to sync once a second, not once a row. The first
 * error sticks: the transaction in progress is rolled back, what was committed
 * stays readable, and every later call returns the same code.
 * Source: sqlite.org/c3ref, sqlite.org/lockingv3.html (rollback journal). */
#include "kith/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "kith/text.h"
#include "private.h"
#include "schema.h"

/* Runs of one name in one folder before we ask for another folder. */
#define RUNS_MAX 100000u
/* Rows of one transaction, should they come faster than seconds pass. */
#define BATCH_ROWS_MAX 200000u
/* How long the end of a run waits for readers. */
#define CLOSE_WAIT_MS 10000

static const char *const statements[STATEMENT_COUNT] = {
    [ROW] = ("INSERT INTO series VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
             "?,?,?,?,?,?,?,?,?)"),
    [MARK] = "INSERT INTO marks VALUES(?,?,?,?,?,?,?,?,?)",
    [FAULT] = "INSERT INTO faults VALUES(?,?,?,?,?,?,?)",
    [VERDICT] = "INSERT INTO verdicts VALUES(?,?,?,?)",
    [SUMMARY] = "INSERT OR REPLACE INTO summary VALUES(?,?)",
    [RUN] = "INSERT OR REPLACE INTO run VALUES(?,?)",
};

static kith_ns now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (kith_ns)now.tv_sec * KITH_S + now.tv_nsec;
}

static enum kith_err errno_err(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
        return KITH_ENOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
        return KITH_EPERM;
    case ENOENT:
    case ENOTDIR:
        return KITH_ENOENT;
    case EEXIST:
        return KITH_EEXIST;
    default:
        return KITH_EIO;
    }
}

static enum kith_err sqlite_err(sqlite3 *database)
{
    const int code = sqlite3_errcode(database) & 0xff;
    if (code == SQLITE_FULL)
        return KITH_ENOSPC;
    if (code == SQLITE_NOMEM)
        return KITH_ENOMEM;
    const int system = sqlite3_system_errno(database);
    if (code == SQLITE_IOERR && (system == ENOSPC || system == EDQUOT))
        return KITH_ENOSPC;
    if (code == SQLITE_READONLY || code == SQLITE_PERM)
        return KITH_EPERM;
    return KITH_EIO;
}

static const char *advice(enum kith_err err)
{
    if (err == KITH_ENOSPC)
        return "free some space, or choose another folder with --out";
    if (err == KITH_EPERM || err == KITH_ENOENT)
        return "choose a folder that you can write to with --out";
    return "what was committed before stays readable";
}

enum kith_err store_stick(struct kith_store *store, const char *what)
{
    if (store->err != KITH_OK)
        return store->err;
    store->err = sqlite_err(store->database);
    snprintf(store->error, sizeof store->error,
             "cannot write %.300s: %s: %s (%.100s); %s", store->path, what,
             kith_err_text(store->err), sqlite3_errmsg(store->database),
             advice(store->err));
    if (!sqlite3_get_autocommit(store->database))
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    store->rows = 0;
    return store->err;
}

enum kith_err store_exec(struct kith_store *store, const char *sql,
                         const char *what)
{
    if (sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK)
        return store_stick(store, what);
    return KITH_OK;
}

/* While somebody reads, the transaction stays open and is committed later: a
 * look at a running database must not end the run. */
static enum kith_err store_commit(struct kith_store *store)
{
    if (store->rows == 0)
        return KITH_OK;
    if (sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL) ==
        SQLITE_OK) {
        store->rows = 0;
        return KITH_OK;
    }
    if ((sqlite3_errcode(store->database) & 0xff) != SQLITE_BUSY)
        return store_stick(store, "saving rows");
    store->begun_ns = now_ns();
    return KITH_OK;
}

enum kith_err kith_store_flush(struct kith_store *store)
{
    if (store->err != KITH_OK)
        return store->err;
    if (store->rows > 0 && now_ns() - store->begun_ns >= KITH_S)
        return store_commit(store);
    return KITH_OK;
}

enum kith_err kith_store_commit(struct kith_store *store)
{
    return store->err == KITH_OK ? store_commit(store) : store->err;
}

/* Values are bound left to right. */
struct binder {
    sqlite3_stmt *statement;
    int at;
};

static void bind_real(struct binder *binder, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(binder->statement, ++binder->at, value);
    else
        sqlite3_bind_null(binder->statement, ++binder->at);
}

static void bind_time(struct binder *binder, kith_ns time_ns)
{
    bind_real(binder, (double)time_ns / 1e9);
}

static void bind_whole(struct binder *binder, uint64_t value)
{
    if (value <= INT64_MAX)
        sqlite3_bind_int64(binder->statement, ++binder->at, (int64_t)value);
    else
        sqlite3_bind_null(binder->statement, ++binder->at);
}

static void bind_peer(struct binder *binder, kith_id peer)
{
    if (peer == KITH_NOBODY)
        sqlite3_bind_null(binder->statement, ++binder->at);
    else
        sqlite3_bind_int64(binder->statement, ++binder->at, peer);
}

static void bind_text(struct binder *binder, const char *text)
{
    sqlite3_bind_text(binder->statement, ++binder->at, text, -1,
                      SQLITE_TRANSIENT);
}

/* Opens a transaction where none is. */
static enum kith_err store_begin(struct kith_store *store,
                                 enum statement statement,
                                 struct binder *binder)
{
    if (store->err != KITH_OK)
        return store->err;
    if (store->rows == 0) {
        const enum kith_err err = store_exec(store, "BEGIN", "starting");
        if (err != KITH_OK)
            return err;
        store->begun_ns = now_ns();
    }
    store->rows++;
    *binder = (struct binder){.statement = store->prepared[statement]};
    return KITH_OK;
}

static enum kith_err store_end(struct kith_store *store, struct binder *binder)
{
    KITH_ASSERT(binder->at == sqlite3_bind_parameter_count(binder->statement));
    const int code = sqlite3_step(binder->statement);
    if (code != SQLITE_DONE) {
        const enum kith_err err = store_stick(store, "adding a row");
        sqlite3_reset(binder->statement);
        return err;
    }
    sqlite3_reset(binder->statement);
    if (store->rows >= BATCH_ROWS_MAX)
        return store_commit(store);
    return kith_store_flush(store);
}

/* STORE_SPEED, in its order. */
static void bind_speed(struct binder *binder, const struct kith_speed *speed)
{
    const bool measured = speed->measured;
    bind_real(binder, measured ? speed->samples_per_s : NAN);
    bind_real(binder, measured ? speed->tokens_per_s : NAN);
    bind_real(binder, measured ? speed->flop_per_s : NAN);
    bind_real(binder, measured ? speed->mfu : NAN);
    bind_real(binder, measured ? speed->data_wait_s : NAN);
    bind_real(binder, measured ? speed->exchange_overlap : NAN);
    bind_whole(binder, measured && speed->memory_bytes > 0 ? speed->memory_bytes
                                                           : UINT64_MAX);
}

struct kith_row kith_row_unknown(kith_id peer)
{
    return (struct kith_row){.peer = peer,
                             .loss = NAN,
                             .accuracy = NAN,
                             .consensus_distance = NAN,
                             .waiting_s = NAN,
                             .staleness = NAN,
                             .cpu_train_s = NAN,
                             .cpu_aead_s = NAN,
                             .cpu_socket_s = NAN,
                             .cpu_other_s = NAN};
}

enum kith_err kith_store_row(struct kith_store *store,
                             const struct kith_row *row)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, ROW, &binder);
    if (err != KITH_OK)
        return err;
    bind_peer(&binder, row->peer);
    bind_time(&binder, row->time_ns);
    bind_whole(&binder, row->step);
    bind_whole(&binder, row->samples);
    bind_real(&binder, row->loss);
    bind_real(&binder, row->accuracy);
    bind_real(&binder, row->consensus_distance);
    bind_whole(&binder, row->bytes_sent);
    bind_whole(&binder, row->bytes_received);
    bind_real(&binder, row->waiting_s);
    bind_real(&binder, row->staleness);
    bind_whole(&binder, row->attempts);
    bind_whole(&binder, row->done);
    bind_whole(&binder, row->failed);
    bind_whole(&binder, row->refused);
    bind_whole(&binder, row->skipped);
    bind_whole(&binder, row->torn);
    bind_real(&binder, row->cpu_train_s);
    bind_real(&binder, row->cpu_aead_s);
    bind_real(&binder, row->cpu_socket_s);
    bind_real(&binder, row->cpu_other_s);
    bind_speed(&binder, &row->speed);
    return store_end(store, &binder);
}

enum kith_err kith_store_mark(struct kith_store *store, kith_id peer,
                              kith_ns time_ns, const struct kith_mark *mark)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, MARK, &binder);
    if (err != KITH_OK)
        return err;
    bind_peer(&binder, peer);
    bind_time(&binder, time_ns);
    bind_whole(&binder, (uint64_t)mark->kind);
    bind_peer(&binder, mark->peer);
    bind_whole(&binder, mark->initiator);
    bind_whole(&binder, mark->id.incarnation);
    /* The database's integers are signed; a counter or value that does not
     * fit keeps its bits. */
    sqlite3_bind_int64(binder.statement, ++binder.at,
                       (sqlite3_int64)mark->id.counter);
    sqlite3_bind_int64(binder.statement, ++binder.at,
                       (sqlite3_int64)mark->value);
    bind_real(&binder, mark->sum);
    return store_end(store, &binder);
}

enum kith_err kith_store_fault(struct kith_store *store, kith_ns happened_ns,
                               const struct kith_atom *atom)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, FAULT, &binder);
    if (err != KITH_OK)
        return err;
    bind_time(&binder, atom->at_ns);
    bind_time(&binder, happened_ns);
    bind_text(&binder, kith_fault_name(atom->kind));
    bind_peer(&binder, atom->peer);
    bind_peer(&binder, atom->other);
    bind_real(&binder, atom->kind == KITH_FAULT_SLOW ? atom->factor : NAN);
    bind_peer(&binder, atom->statement); /* UINT32_MAX: not in the list */
    return store_end(store, &binder);
}

enum kith_err kith_store_verdict(struct kith_store *store,
                                 const struct kith_check *check, bool held,
                                 double value, kith_ns at_ns)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, VERDICT, &binder);
    if (err != KITH_OK)
        return err;
    bind_text(&binder, check->text);
    bind_whole(&binder, held);
    bind_real(&binder, value);
    bind_time(&binder, at_ns);
    return store_end(store, &binder);
}

enum kith_err kith_store_verdicts(struct kith_store *store,
                                  const struct kith_experiment *experiment,
                                  const struct kith_checks *checks)
{
    for (uint32_t i = 0; i < experiment->check_count; i++)
        (void)kith_store_verdict(
            store, &experiment->checks[i],
            checks->results[i].verdict == KITH_VERDICT_HELD,
            checks->results[i].value, checks->results[i].at_ns);
    return store->err;
}

static enum kith_err store_pair(struct kith_store *store,
                                enum statement statement, const char *key,
                                const char *value)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, statement, &binder);
    if (err != KITH_OK)
        return err;
    bind_text(&binder, key);
    if (value == NULL)
        sqlite3_bind_null(binder.statement, ++binder.at);
    else
        bind_text(&binder, value);
    return store_end(store, &binder);
}

enum kith_err kith_store_summary(struct kith_store *store, const char *key,
                                 const char *value)
{
    return store_pair(store, SUMMARY, key, value);
}

const char *kith_store_error(const struct kith_store *store)
{
    return store->error;
}

/* Reserves the first free DIRECTORY/NAME-WORLD-N.db by creating it. */
static enum kith_err create_file(const char *directory, const char *world,
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
    const enum kith_err err = errno_err(code);
    snprintf(error, KITH_STORE_ERROR_BYTES,
             "cannot create a run database in %.200s: %s; %s", directory,
             strerror(code), advice(err));
    return err;
}

enum kith_err store_run(struct kith_store *store, const char *key,
                        const char *format, ...)
{
    char value[256];
    va_list list;
    va_start(list, format);
    vsnprintf(value, sizeof value, format, list);
    va_end(list);
    return store_pair(store, RUN, key, value);
}

/* What a reader needs to repeat the run. */
static enum kith_err write_run(struct kith_store *store, const char *world,
                               const struct kith_experiment *experiment)
{
    char started[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)store_run(store, "schema", "%d", STORE_SCHEMA_VERSION);
    (void)store_run(store, "name", "%s", experiment->name);
    (void)store_run(store, "world", "%s", world);
    (void)store_run(store, "seed", "%" PRIu64, experiment->seed);
    (void)store_run(store, "peers", "%" PRIu32, experiment->peers);
    (void)store_run(store, "build", "%s", kith_build());
    (void)store_run(store, "started_utc", "%s", started);
    (void)store_run(store, "experiment_hash", "%016" PRIx64,
                    kith_experiment_hash(experiment));
    (void)store_run(store, "batch", "%" PRIu32, experiment->train.batch);
    (void)store_run(store, "model", "%s", experiment->model->name);
    (void)store_run(store, "algorithm", "%s",
                    experiment->gossip.algorithm->name);
    (void)store_run(store, "topology", "%s", experiment->gossip.topology->name);
    if (experiment->backend != NULL)
        (void)store_run(store, "backend", "%s", experiment->backend->name);
    if (experiment->compute.products != NULL)
        (void)store_run(store, "products", "%s", experiment->compute.products);
    if (experiment->compute.threads > 0)
        (void)store_run(store, "threads", "%" PRIu32,
                        experiment->compute.threads);
    if (experiment->compute.peak > 0)
        (void)store_run(store, "peak_flop_per_s", "%.4g",
                        experiment->compute.peak);
    return store_pair(store, RUN, "experiment",
                      experiment->source == NULL ? "" : experiment->source);
}

static enum kith_err write_mark_kinds(struct kith_store *store)
{
    for (unsigned kind = 0; kind < KITH_MARK_COUNT; kind++) {
        char sql[128];
        snprintf(sql, sizeof sql, "INSERT INTO mark_kinds VALUES(%u,'%s')",
                 kind, kith_mark_name((enum kith_mark_kind)kind));
        const enum kith_err err = store_exec(store, sql, "creating tables");
        if (err != KITH_OK)
            return err;
    }
    return KITH_OK;
}

enum kith_err store_prepare(struct kith_store *store)
{
    enum kith_err err = KITH_OK;
    for (unsigned i = 0; i < STATEMENT_COUNT && err == KITH_OK; i++)
        if (sqlite3_prepare_v3(store->database, statements[i], -1,
                               SQLITE_PREPARE_PERSISTENT, &store->prepared[i],
                               NULL) != SQLITE_OK)
            err = store_stick(store, "preparing");
    return err;
}

static enum kith_err open_tables(struct kith_store *store)
{
    char pragmas[160];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA journal_mode=DELETE; PRAGMA synchronous=NORMAL;"
             "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
    enum kith_err err = store_exec(store, pragmas, "creating tables");
    if (err == KITH_OK)
        err = store_exec(store, "BEGIN;" STORE_TABLES, "creating tables");
    if (err == KITH_OK)
        err = write_mark_kinds(store);
    if (err == KITH_OK)
        err = store_exec(store, "COMMIT", "creating tables");
    return err == KITH_OK ? store_prepare(store) : err;
}

void store_free(struct kith_store *store)
{
    for (unsigned i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->prepared[i]);
    sqlite3_close(store->database);
    free(store);
}

enum kith_err kith_store_create(const char *directory, const char *world,
                                const struct kith_experiment *experiment,
                                struct kith_store **out, char *path,
                                char *error)
{
    enum kith_err err =
        create_file(directory, world, experiment->name, path, error);
    if (err != KITH_OK)
        return err;
    struct kith_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        snprintf(error, KITH_STORE_ERROR_BYTES, "out of memory");
        unlink(path);
        return KITH_ENOMEM;
    }
    kith_text_copy(store->path, sizeof store->path, path);
    if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE, NULL) !=
        SQLITE_OK)
        err = store_stick(store, "opening");
    if (err == KITH_OK)
        err = open_tables(store);
    if (err == KITH_OK)
        err = write_run(store, world, experiment);
    if (err == KITH_OK)
        err = store_commit(store);
    if (err != KITH_OK) {
        kith_text_copy(error, KITH_STORE_ERROR_BYTES, store->error);
        store_free(store);
        unlink(path);
        return err;
    }
    *out = store;
    return KITH_OK;
}

enum kith_err kith_store_close(struct kith_store *store, char *error)
{
    if (store == NULL)
        return KITH_OK;
    enum kith_err err = store->err;
    sqlite3_busy_timeout(store->database, CLOSE_WAIT_MS);
    if (err == KITH_OK)
        err = store_commit(store);
    if (err == KITH_OK && store->rows > 0)
        err = store_stick(store, "saving the last rows");
    if (err != KITH_OK)
        kith_text_copy(error, KITH_STORE_ERROR_BYTES, store->error);
    store_free(store);
    return err;
}
