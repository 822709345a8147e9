/* The run database: rows in, SQLite out.
 *
 * One transaction per second of wall time, so that a killed run loses at most
 * that and the disk is asked to sync once a second, not once a row. The first
 * error sticks: the transaction in progress is rolled back, what was committed
 * stays readable, and every later call returns the same code.
 * Source: sqlite.org/c3ref, sqlite.org/lockingv3.html (rollback journal). */
#include "kith/rundb.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "kith/journal.h"
#include "kith/text.h"
#include "rundb.h"
#include "tables.h"

/* Rows of one transaction, should they come faster than seconds pass. */
#define BATCH_ROWS_MAX 200000u

static const char *const statements[STATEMENT_COUNT] = {
    [ROW] = ("INSERT INTO series VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
             "?,?,?,?,?,?,?,?,?,?,?,?,?)"),
    [MARKS] = "INSERT INTO marks SELECT * FROM waiting",
    [FAULT] = "INSERT INTO faults VALUES(?,?,?,?,?,?,?,?)",
    [VERDICT] = "INSERT INTO verdicts VALUES(?,?,?,?,?)",
    [SUMMARY] = "INSERT OR REPLACE INTO summary VALUES(?,?,?)",
    [RUN] = "INSERT OR REPLACE INTO run VALUES(?,?,?)",
    [FINISH] = ("UPDATE runs SET state=?2, target_loss=?3, time_to_target_s="
                "(SELECT min(time_s) FROM series WHERE run_id=?1 AND peer IS "
                "NULL AND loss <= ?3), steps=?4, bytes_mean=?5, bytes_max=?6, "
                "staleness_mean=?7, staleness_max=?8, consensus_distance=?9, "
                "utilisation=?10, loss=?11, accuracy=?12, violations=?13, "
                "virtual_s=?14, wall_s=?15 WHERE run_id=?1"),
    [JOURNAL] = "INSERT INTO journal VALUES(?,?,?,?,?)",
    [MODEL] = "INSERT INTO models VALUES(?,?,?,?,?,?,?,?)",
};

static kith_ns now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (kith_ns)now.tv_sec * KITH_S + now.tv_nsec;
}

enum kith_err kith_rundb_errno(int code)
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

const char *kith_rundb_advice(enum kith_err err)
{
    if (err == KITH_ENOSPC)
        return "free some space, or choose another folder with --out";
    if (err == KITH_EPERM || err == KITH_ENOENT)
        return "choose a folder that you can write to with --out";
    return "what was committed before stays readable";
}

enum kith_err kith_rundb_stick(struct kith_rundb *store, const char *what)
{
    if (store->err != KITH_OK)
        return store->err;
    store->err = sqlite_err(store->database);
    snprintf(store->error, sizeof store->error,
             "cannot write %.300s: %s: %s (%.100s); %s", store->path, what,
             kith_err_text(store->err), sqlite3_errmsg(store->database),
             kith_rundb_advice(store->err));
    if (!sqlite3_get_autocommit(store->database))
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    store->rows = store->batches[store->filling].count = 0;
    return store->err;
}

enum kith_err kith_rundb_exec(struct kith_rundb *store, const char *sql,
                              const char *what)
{
    if (sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK)
        return kith_rundb_stick(store, what);
    return KITH_OK;
}

/* While somebody reads, the transaction stays open and is committed later: a
 * look at a running database must not end the run. */
static enum kith_err store_commit(struct kith_rundb *store)
{
    if (store->rows == 0)
        return KITH_OK;
    if (kith_rundb_marks_settle(store) != KITH_OK)
        return store->err;
    if (sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL) ==
        SQLITE_OK) {
        store->rows = 0;
        return KITH_OK;
    }
    if ((sqlite3_errcode(store->database) & 0xff) != SQLITE_BUSY)
        return kith_rundb_stick(store, "saving rows");
    store->begun_ns = now_ns();
    return KITH_OK;
}

enum kith_err kith_rundb_flush(struct kith_rundb *store)
{
    if (store->err != KITH_OK)
        return store->err;
    if (store->rows > 0 && now_ns() - store->begun_ns >= KITH_S)
        return store_commit(store);
    return KITH_OK;
}

enum kith_err kith_rundb_commit(struct kith_rundb *store)
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

static void bind_bytes(struct binder *binder, const void *bytes, size_t size)
{
    sqlite3_bind_blob64(binder->statement, ++binder->at, bytes, size,
                        SQLITE_TRANSIENT);
}

/* Room for a row; opens a transaction where none is. */
static enum kith_err store_room(struct kith_rundb *store)
{
    if (store->err != KITH_OK)
        return store->err;
    if (store->rows == 0) {
        const enum kith_err err = kith_rundb_exec(store, "BEGIN", "starting");
        if (err != KITH_OK)
            return err;
        store->begun_ns = now_ns();
    }
    store->rows++;
    return KITH_OK;
}

static enum kith_err store_begin(struct kith_rundb *store,
                                 enum statement statement,
                                 struct binder *binder)
{
    enum kith_err err = store_room(store);
    if (err == KITH_OK)
        err = kith_rundb_ahead_wait(store, 0);
    *binder = (struct binder){.statement = store->prepared[statement]};
    if (err == KITH_OK)
        sqlite3_bind_int64(binder->statement, ++binder->at, store->run_id);
    return err;
}

static enum kith_err store_insert(struct kith_rundb *store,
                                  const struct binder *binder)
{
    KITH_ASSERT(binder->at == sqlite3_bind_parameter_count(binder->statement));
    enum kith_err err = KITH_OK;
    if (sqlite3_step(binder->statement) != SQLITE_DONE)
        err = kith_rundb_stick(store, "adding a row");
    sqlite3_reset(binder->statement);
    return err;
}

/* Not for ever in a transaction. */
static enum kith_err store_age(struct kith_rundb *store)
{
    if (store->rows >= BATCH_ROWS_MAX)
        return store_commit(store);
    return kith_rundb_flush(store);
}

static enum kith_err store_end(struct kith_rundb *store, struct binder *binder)
{
    const enum kith_err err = store_insert(store, binder);
    return err == KITH_OK ? store_age(store) : err;
}

/* RUNDB_SPEED, in its order. */
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
                             .staleness_max = NAN,
                             .training_s = NAN,
                             .cpu_train_s = NAN,
                             .cpu_aead_s = NAN,
                             .cpu_socket_s = NAN,
                             .cpu_other_s = NAN};
}

enum kith_err kith_rundb_row(struct kith_rundb *store,
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
    bind_real(&binder, row->staleness_max);
    bind_whole(&binder, row->received);
    bind_real(&binder, row->training_s);
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

enum kith_err kith_rundb_mark(struct kith_rundb *store, kith_id peer,
                              kith_ns time_ns, const struct kith_mark *mark)
{
    const enum kith_err err = store_room(store);
    if (err != KITH_OK)
        return err;
    struct store_batch *batch = &store->batches[store->filling];
    batch->marks[batch->count++] = (struct store_mark){peer, time_ns, *mark};
    if (batch->count % RUNDB_LOOK != 0)
        return KITH_OK;
    if (batch->count == RUNDB_TOGETHER &&
        kith_rundb_marks_leave(store) != KITH_OK)
        return store->err;
    return store_age(store);
}

enum kith_err kith_rundb_fault(struct kith_rundb *store, kith_ns happened_ns,
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
    bind_real(&binder, kith_fault_has_factor(atom->kind) ? atom->factor : NAN);
    bind_peer(&binder, atom->statement); /* UINT32_MAX: not in the list */
    return store_end(store, &binder);
}

enum kith_err kith_rundb_verdict(struct kith_rundb *store,
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

enum kith_err kith_rundb_verdicts(struct kith_rundb *store,
                                  const struct kith_experiment *experiment,
                                  const struct kith_checks *checks)
{
    for (uint32_t i = 0; i < experiment->check_count; i++)
        (void)kith_rundb_verdict(
            store, &experiment->checks[i],
            checks->results[i].verdict == KITH_VERDICT_HELD,
            checks->results[i].value, checks->results[i].at_ns);
    return store->err;
}

enum kith_err kith_rundb_journal_begin(struct kith_rundb *store)
{
    enum kith_err err = kith_rundb_commit(store);
    if (err == KITH_OK)
        err = kith_rundb_exec(store, RUNDB_JOURNAL, "creating tables");
    if (err == KITH_OK)
        err = kith_rundb_prepare(store, JOURNAL, STATEMENT_COUNT);
    if (err == KITH_OK)
        err = kith_rundb_run(store, "journal", "%d", KITH_JOURNAL_VERSION);
    return err == KITH_OK ? kith_rundb_commit(store) : err;
}

enum kith_err kith_rundb_journal(struct kith_rundb *store, kith_id peer,
                                 uint32_t incarnation, uint32_t part,
                                 const uint8_t *bytes, size_t size)
{
    struct binder binder;
    const enum kith_err err = store_begin(store, JOURNAL, &binder);
    if (err != KITH_OK)
        return err;
    bind_peer(&binder, peer);
    bind_whole(&binder, incarnation);
    bind_whole(&binder, part);
    bind_bytes(&binder, bytes, size);
    return store_end(store, &binder);
}

enum kith_err kith_rundb_model(struct kith_rundb *store, kith_id peer,
                               uint64_t step, const struct kith_score *score,
                               const double *z, size_t dim)
{
    struct binder binder;
    const uint64_t digest = z == NULL ? 0 : kith_journal_digest(z, dim);
    const bool kept =
        z != NULL && dim <= KITH_JOURNAL_MODEL_BYTES_MAX / sizeof *z;
    const enum kith_err err = store_begin(store, MODEL, &binder);
    if (err != KITH_OK)
        return err;
    bind_peer(&binder, peer);
    bind_whole(&binder, step);
    bind_real(&binder, score->loss);
    bind_real(&binder, score->accuracy);
    bind_whole(&binder, dim);
    sqlite3_bind_int64(binder.statement, ++binder.at, (sqlite3_int64)digest);
    bind_bytes(&binder, kept ? z : NULL, kept ? dim * sizeof *z : 0);
    return store_end(store, &binder);
}

enum kith_err kith_rundb_pair(struct kith_rundb *store,
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

enum kith_err kith_rundb_summary(struct kith_rundb *store, const char *key,
                                 const char *value)
{
    return kith_rundb_pair(store, SUMMARY, key, value);
}

/* A model that learns and has no loss at its end has diverged. */
static enum kith_run_state state_of(const struct kith_experiment *experiment,
                                    const struct kith_summary *summary)
{
    if (!summary->completed)
        return KITH_RUN_INTERRUPTED;
    return kith_model_learns(experiment->model) &&
                   !isfinite(summary->loss.averaged)
               ? KITH_RUN_DIVERGED
               : KITH_RUN_DONE;
}

/* Per machine. */
static double bytes_mean(const struct kith_experiment *experiment,
                         const struct kith_summary *summary)
{
    const uint32_t nodes =
        summary->nodes > 0 ? summary->nodes : experiment->peers;
    return summary->bytes_sent == UINT64_MAX
               ? NAN
               : (double)summary->bytes_sent / nodes;
}

static double read_reached(struct kith_rundb *store)
{
    sqlite3_stmt *statement;
    double reached_s = NAN;
    if (sqlite3_prepare_v2(store->database,
                           "SELECT time_to_target_s FROM runs WHERE run_id=?1 "
                           "AND time_to_target_s IS NOT NULL",
                           -1, &statement, NULL) != SQLITE_OK)
        return NAN;
    sqlite3_bind_int64(statement, 1, store->run_id);
    if (sqlite3_step(statement) == SQLITE_ROW)
        reached_s = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return reached_s;
}

enum kith_err kith_rundb_finish_run(struct kith_rundb *store,
                                    const struct kith_experiment *experiment,
                                    const struct kith_summary *summary,
                                    double *reached_s)
{
    struct binder binder;
    *reached_s = NAN;
    enum kith_err err = store_begin(store, FINISH, &binder);
    if (err != KITH_OK)
        return err;
    bind_text(&binder, kith_run_state_name(state_of(experiment, summary)));
    bind_real(&binder,
              experiment->target_loss > 0 ? experiment->target_loss : NAN);
    bind_whole(&binder, summary->steps);
    bind_real(&binder, bytes_mean(experiment, summary));
    bind_whole(&binder, summary->bytes_per_peer_max);
    bind_real(&binder, summary->staleness.mean);
    bind_real(&binder, summary->staleness.max);
    bind_real(&binder, summary->consensus_distance);
    bind_real(&binder, summary->utilisation);
    bind_real(&binder, summary->loss.averaged);
    bind_real(&binder, summary->accuracy.averaged);
    bind_whole(&binder, summary->violations);
    bind_real(&binder, summary->virtual_s);
    bind_real(&binder, summary->wall_s);
    err = store_end(store, &binder);
    if (err == KITH_OK)
        *reached_s = read_reached(store);
    return err;
}

const char *kith_rundb_error(const struct kith_rundb *store)
{
    return store->error;
}

enum kith_err kith_rundb_prepare(struct kith_rundb *store, enum statement first,
                                 enum statement end)
{
    enum kith_err err = first == ROW ? kith_rundb_marks_open(store) : KITH_OK;
    for (unsigned i = first; i < end && err == KITH_OK; i++)
        if (sqlite3_prepare_v3(store->database, statements[i], -1,
                               SQLITE_PREPARE_PERSISTENT, &store->prepared[i],
                               NULL) != SQLITE_OK)
            err = kith_rundb_stick(store, "preparing");
    return err;
}
