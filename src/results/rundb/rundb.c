/* The run database: rows in, SQLite out.
 *
 * One transaction per second of wall time, so that a killed run loses at most
 * that and the disk is asked to sync once a second, not once a row. The first
 * error sticks: the transaction in progress is rolled back, what was committed
 * stays readable, and every later call returns the same code.
 * Source: sqlite.org/c3ref, sqlite.org/lockingv3.html (rollback journal). */
#include "kith/fault.h"
#include "kith/rundb.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "kith/assert.h"
#include "kith/check.h"
#include "kith/journal.h"
#include "kith/plain_file.h"
#include "rundb_store.h"

KITH_ASSET(rundb_statements, KITH_RUNDB_SOURCE "/statements.sql");

/* Rows of one transaction, should they come faster than seconds pass. */
#define BATCH_ROWS_MAX 200000u
/* Links of a statement that have a row each: as many as a page reads. */
#define LINK_ROWS 1000u

/* Sections of statements.sql. */
static const char *const statements[STATEMENT_COUNT] = {
    [ROW] = "row",
    [EVENT] = "event",
    [EVENTS] = "events",
    [FAULT] = "fault",
    [VERDICT] = "verdict",
    [SUMMARY] = "summary",
    [RUN] = "run",
    [FINISH] = "finish",
    [JOURNAL] = "journal",
    [MODEL] = "model",
    [PLACE] = "place",
    [ZONE] = "zone",
    [ZONE_TRAFFIC] = "zone_traffic",
};

enum kith_err kith_rundb_errno(int code)
{
    return code == EEXIST ? KITH_EEXIST : kith_file_error(code);
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
    if (store->err == KITH_OK &&
        sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK)
        return kith_rundb_stick(store, what);
    return store->err;
}

enum kith_err kith_rundb_change(struct kith_rundb *store, const char *what,
                                const char *sql, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    if (store->err == KITH_OK &&
        !kith_query_run(store->database, sql, types, values))
        (void)kith_rundb_stick(store, what);
    va_end(values);
    return store->err;
}

/* While somebody reads, the transaction stays open and is committed later: a
 * look at a running database must not end the run. */
static enum kith_err store_commit(struct kith_rundb *store)
{
    if (store->rows == 0)
        return KITH_OK;
    if (kith_rundb_events_settle(store) != KITH_OK)
        return store->err;
    if (sqlite3_exec(store->database, "COMMIT", NULL, NULL, NULL) ==
        SQLITE_OK) {
        store->rows = 0;
        return KITH_OK;
    }
    if ((sqlite3_errcode(store->database) & 0xff) != SQLITE_BUSY)
        return kith_rundb_stick(store, "saving rows");
    store->begun_ns = kith_host_now();
    return KITH_OK;
}

enum kith_err kith_rundb_flush(struct kith_rundb *store)
{
    if (store->err != KITH_OK)
        return store->err;
    if (store->rows > 0 && kith_host_now() - store->begun_ns >= KITH_S)
        return store_commit(store);
    return KITH_OK;
}

enum kith_err kith_rundb_commit(struct kith_rundb *store)
{
    return store->err == KITH_OK ? store_commit(store) : store->err;
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
        store->begun_ns = kith_host_now();
    }
    store->rows++;
    return KITH_OK;
}

/* Not for ever in a transaction. */
static enum kith_err store_age(struct kith_rundb *store)
{
    if (store->rows >= BATCH_ROWS_MAX)
        return store_commit(store);
    return kith_rundb_flush(store);
}

/* The database is the caller's, and a row has room in it. */
static enum kith_err store_begin(struct kith_rundb *store)
{
    const enum kith_err err = store_room(store);
    return err == KITH_OK ? kith_rundb_writer_wait(store, 0) : err;
}

static enum kith_err store_end(struct kith_rundb *store,
                               enum statement statement, int bound)
{
    sqlite3_stmt *insert = store->prepared[statement];
    KITH_ASSERT(bound == sqlite3_bind_parameter_count(insert));
    enum kith_err err = KITH_OK;
    if (sqlite3_step(insert) != SQLITE_DONE)
        err = kith_rundb_stick(store, "adding a row");
    sqlite3_reset(insert);
    return err == KITH_OK ? store_age(store) : err;
}

/* A row of the run: `types` and values as kith_query_bind() has them. */
static enum kith_err add_row(struct kith_rundb *store, enum statement statement,
                             const char *types, ...)
{
    const enum kith_err err = store_begin(store);
    if (err != KITH_OK)
        return err;
    int at = 1;
    va_list values;
    sqlite3_bind_int64(store->prepared[statement], 1, store->run_id);
    va_start(values, types);
    kith_query_bind(store->prepared[statement], &at, types, values);
    va_end(values);
    return store_end(store, statement, at);
}

/* For rows of a table's columns: one more value. */
static void bind_next(sqlite3_stmt *statement, int *at, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    kith_query_bind(statement, at, types, values);
    va_end(values);
}

static void bind_column(sqlite3_stmt *statement, int *at,
                        const struct kith_row *row,
                        const struct kith_series_column *column)
{
    const void *value = (const char *)row + column->offset;
    if (column->place == KITH_SERIES_speed && !row->speed.measured) {
        bind_next(statement, at, "s", NULL);
    } else if (column->kind >= KITH_SERIES_REAL) {
        bind_next(statement, at, "r", *(const double *)value);
    } else {
        const uint64_t whole = *(const uint64_t *)value;
        const bool unknown = whole == 0 && column->kind == KITH_SERIES_KNOWN;
        bind_next(statement, at, "u", unknown ? UINT64_MAX : whole);
    }
}

enum kith_err kith_rundb_row(struct kith_rundb *store,
                             const struct kith_row *row)
{
    const enum kith_err err = store_begin(store);
    if (err != KITH_OK)
        return err;
    int at = 0;
    bind_next(store->prepared[ROW], &at, "ipt", (int64_t)store->run_id,
              row->peer, row->time_ns);
    for (unsigned i = 0; i < kith_series_column_count; i++)
        bind_column(store->prepared[ROW], &at, row, &kith_series_columns[i]);
    return store_end(store, ROW, at);
}

enum kith_err kith_rundb_mark(struct kith_rundb *store, kith_id peer,
                              kith_ns time_ns, const struct kith_mark *mark)
{
    const enum kith_err err = store_room(store);
    if (err != KITH_OK)
        return err;
    struct rundb_batch *batch = &store->batches[store->filling];
    batch->events[batch->count++] = (struct rundb_event){peer, time_ns, *mark};
    if (batch->count % RUNDB_LOOK != 0)
        return KITH_OK;
    if (batch->count == RUNDB_BATCH_EVENTS &&
        kith_rundb_events_hand_on(store) != KITH_OK)
        return store->err;
    return store_age(store);
}

static enum kith_err add_fault(struct kith_rundb *store, kith_ns happened_ns,
                               const struct kith_atom *atom, const char *name)
{
    const double factor =
        kith_atom_has_factor(atom) ? atom->factor : (double)NAN;
    return add_row(store, FAULT, "ttspprp", atom->at_ns, happened_ns, name,
                   atom->peer, atom->other, factor,
                   atom->statement); /* UINT32_MAX: not in the list */
}

/* Where each of many links had a row it would tell nobody more. The end as the
 * begin: a page looks for the same words. */
static bool has_one_row(const struct kith_sides *sides)
{
    return sides != NULL &&
           (sides->walked == NULL ||
            (uint64_t)sides->counts[0] * sides->counts[1] > LINK_ROWS);
}

enum kith_err kith_rundb_fault(struct kith_rundb *store, kith_ns happened_ns,
                               const struct kith_atom *atom)
{
    const char *const event = kith_atom_event(atom)->name;
    struct kith_atom_walk walk = {.atom = atom};
    struct kith_atom one;
    enum kith_err err = KITH_OK;
    if (has_one_row(atom->sides)) {
        char sides[200], name[256]; /* "cut 0..499 <-> 500..999" */
        (void)snprintf(name, sizeof name, "%s %s", event,
                       kith_sides_text(atom->sides, sides, sizeof sides));
        return add_fault(store, happened_ns, atom, name);
    }
    while (err == KITH_OK && kith_atom_next(&walk, &one))
        err = add_fault(store, happened_ns, &one, kith_atom_event(&one)->name);
    return err;
}

enum kith_err kith_rundb_verdicts(struct kith_rundb *store,
                                  const struct kith_experiment *experiment,
                                  const struct kith_checks *checks)
{
    for (uint32_t i = 0; i < experiment->check_count; i++)
        (void)add_row(
            store, VERDICT, "surt", experiment->checks[i].text,
            (uint64_t)(checks->results[i].verdict == KITH_VERDICT_HELD),
            checks->results[i].value, checks->results[i].at_ns);
    return store->err;
}

enum kith_err kith_rundb_journal_begin(struct kith_rundb *store)
{
    (void)kith_rundb_commit(store);
    (void)kith_rundb_create_tables(store, "journal");
    (void)kith_rundb_prepare(store, JOURNAL, PLACE);
    (void)kith_rundb_run(store, "journal", "%d", KITH_JOURNAL_VERSION);
    return kith_rundb_commit(store);
}

enum kith_err kith_rundb_journal_vectors(struct kith_rundb *store, uint32_t dim,
                                         uint32_t buffers)
{
    (void)kith_rundb_run(store, "vectors", "%" PRIu32, dim);
    return kith_rundb_run(store, "buffers", "%" PRIu32, buffers);
}

enum kith_err kith_rundb_journal(struct kith_rundb *store, kith_id peer,
                                 uint32_t incarnation, uint32_t part,
                                 const uint8_t *bytes, size_t size)
{
    return add_row(store, JOURNAL, "puub", peer, (uint64_t)incarnation,
                   (uint64_t)part, (const void *)bytes, size);
}

enum kith_err kith_rundb_model(struct kith_rundb *store, kith_id peer,
                               uint64_t step, const struct kith_score *score,
                               const double *z, size_t dim)
{
    const uint64_t digest = z == NULL ? 0 : kith_journal_digest(z, dim);
    const bool kept =
        z != NULL && dim <= KITH_JOURNAL_MODEL_BYTES_MAX / sizeof *z;
    return add_row(store, MODEL, "purruib", peer, step, score->loss,
                   score->accuracy, (uint64_t)dim, (int64_t)digest,
                   kept ? (const void *)z : NULL,
                   kept ? dim * sizeof *z : (size_t)0);
}

enum kith_err kith_rundb_pair(struct kith_rundb *store,
                              enum statement statement, const char *key,
                              const char *value)
{
    return add_row(store, statement, "ss", key, value);
}

enum kith_err kith_rundb_summary(struct kith_rundb *store, const char *key,
                                 const char *value)
{
    return kith_rundb_pair(store, SUMMARY, key, value);
}

enum kith_err kith_rundb_data_rows(struct kith_rundb *store, size_t train,
                                   size_t test)
{
    char rows[2][24];
    (void)snprintf(rows[0], sizeof rows[0], "%zu", train);
    (void)snprintf(rows[1], sizeof rows[1], "%zu", test);
    const enum kith_err err = kith_rundb_summary(store, "train_rows", rows[0]);
    return err != KITH_OK ? err
                          : kith_rundb_summary(store, "test_rows", rows[1]);
}

/* Within a transaction: whoever reads holds up its end alone. */
enum kith_err kith_rundb_zone_map(struct kith_rundb *store,
                                  const struct kith_zones *zones,
                                  const struct kith_zone_map *map,
                                  kith_ns slot_ns)
{
    KITH_ASSERT(slot_ns > 0 && map->count <= KITH_PLACES_MAX);
    (void)store_begin(store);
    (void)kith_rundb_create_tables(store, "zone_map");
    (void)kith_rundb_prepare(store, PLACE, STATEMENT_COUNT);
    (void)kith_rundb_run(store, "zone_slot_s", "%.9f", (double)slot_ns / 1e9);
    for (uint32_t i = 0; i < map->count; i++)
        (void)add_row(store, PLACE, "usurr", (uint64_t)i, map->places[i].name,
                      (uint64_t)map->places[i].peers, map->places[i].x,
                      map->places[i].y);
    for (uint32_t i = 0; i < map->zones; i++)
        (void)add_row(
            store, ZONE, "uuu", (uint64_t)i, (uint64_t)map->place_of[i],
            zones->first == NULL ? UINT64_MAX : (uint64_t)zones->first[i]);
    return store->err;
}

enum kith_err kith_rundb_zone_traffic(struct kith_rundb *store,
                                      const struct kith_zone_traffic *traffic)
{
    return add_row(store, ZONE_TRAFFIC, "uuuuuu", (uint64_t)traffic->slot,
                   (uint64_t)traffic->from, (uint64_t)traffic->to,
                   traffic->done, traffic->failed, traffic->bytes);
}

static double read_reached(struct kith_rundb *store, double target_loss)
{
    struct kith_query query;
    char sql[KITH_SQL_BYTES];
    kith_rundb_sql("reached", sql);
    kith_query_begin(&query, store->database, sql, "ir", (int64_t)store->run_id,
                     target_loss);
    const double reached_s =
        kith_query_next(&query) ? kith_query_real(&query, 0) : (double)NAN;
    return kith_query_end(&query) ? reached_s : (double)NAN;
}

enum kith_err kith_rundb_finish_run(struct kith_rundb *store,
                                    enum kith_run_state state,
                                    struct kith_results *results)
{
    results->time_to_target_s = NAN;
    const enum kith_err err = store_begin(store);
    if (err != KITH_OK)
        return err;
    results->time_to_target_s = read_reached(store, results->target_loss);
    int at = 0;
    bind_next(store->prepared[FINISH], &at, "is", (int64_t)store->run_id,
              kith_run_state_name(state));
#define REAL "r"
#define COUNT "u"
#define KITH_RESULT(kind, name)                                                \
    bind_next(store->prepared[FINISH], &at, kind, results->name);
#include "kith/results.def"
#undef REAL
#undef COUNT
    return store_end(store, FINISH, at);
}

const char *kith_rundb_error(const struct kith_rundb *store)
{
    return store->error;
}

void kith_rundb_sql(const char *name, char text[KITH_SQL_BYTES])
{
    kith_sql(kith_asset_rundb_statements().bytes, name,
             KITH_RUNDB_SCHEMA_VERSION, text);
}

enum kith_err kith_rundb_prepare(struct kith_rundb *store, enum statement first,
                                 enum statement end)
{
    char sql[KITH_SQL_BYTES];
    for (unsigned i = first; i < end && store->err == KITH_OK; i++) {
        kith_rundb_sql(statements[i], sql);
        if (sqlite3_prepare_v3(store->database, sql, -1,
                               SQLITE_PREPARE_PERSISTENT, &store->prepared[i],
                               NULL) != SQLITE_OK)
            (void)kith_rundb_stick(store, "preparing");
    }
    return store->err;
}
