/* Marks on their way into the database.
 *
 * A run leaves a mark for every decision, most of a database's rows. They wait
 * in the store, many of them, and become rows by one statement that reads
 * them where they wait, through a virtual table: nothing is bound, and what
 * SQLite needs of the cache it takes seldom. A row costs 0.28 us so, 0.36
 * bound sixteen at a time, 0.54 one by one.
 * Source: sqlite.org/vtab.html, eponymous-only. */
#include "rundb.h"

#include <math.h>
#include <stdlib.h>

struct cursor {
    sqlite3_vtab_cursor base;
    uint32_t at;
};

struct table {
    sqlite3_vtab base;
    const struct kith_rundb *store;
};

static int table_connect(sqlite3 *database, void *store, int count,
                         const char *const *words, sqlite3_vtab **out,
                         char **error)
{
    (void)count, (void)words, (void)error;
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    table->store = store;
    *out = &table->base;
    return sqlite3_declare_vtab(
        database, "CREATE TABLE waiting(run_id, peer, time_s, kind, other, "
                  "initiator, incarnation, counter, value, sum)");
}

static int table_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table, (void)info; /* There is but one way: all, in order. */
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL)
        return SQLITE_NOMEM;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int cursor_begin(sqlite3_vtab_cursor *cursor, int plan, const char *name,
                        int count, sqlite3_value **values)
{
    (void)plan, (void)name, (void)count, (void)values;
    ((struct cursor *)cursor)->at = 0;
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *cursor)
{
    ((struct cursor *)cursor)->at++;
    return SQLITE_OK;
}

static const struct kith_rundb *store_of(const sqlite3_vtab_cursor *cursor)
{
    return ((const struct table *)cursor->pVtab)->store;
}

static const struct store_batch *leaving(const struct kith_rundb *store)
{
    return &store->batches[store->leaving];
}

static int cursor_end(sqlite3_vtab_cursor *cursor)
{
    return ((struct cursor *)cursor)->at >= leaving(store_of(cursor))->count;
}

static int cursor_row(sqlite3_vtab_cursor *cursor, sqlite3_int64 *row)
{
    *row = ((struct cursor *)cursor)->at;
    return SQLITE_OK;
}

static void put_real(sqlite3_context *context, double value)
{
    if (isfinite(value))
        sqlite3_result_double(context, value);
    else
        sqlite3_result_null(context);
}

static void put_peer(sqlite3_context *context, kith_id peer)
{
    if (peer == KITH_NOBODY)
        sqlite3_result_null(context);
    else
        sqlite3_result_int64(context, peer);
}

/* The database's integers are signed; a counter or value that does not fit
 * keeps its bits. */
static int cursor_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context,
                         int column)
{
    const struct kith_rundb *store = store_of(cursor);
    const struct store_mark *row =
        &leaving(store)->marks[((struct cursor *)cursor)->at];
    const struct kith_mark *mark = &row->mark;
    switch (column) {
    case 0:
        sqlite3_result_int64(context, store->run_id);
        break;
    case 1:
        put_peer(context, row->peer);
        break;
    case 2:
        put_real(context, (double)row->time_ns / 1e9);
        break;
    case 3:
        sqlite3_result_int64(context, (sqlite3_int64)mark->kind);
        break;
    case 4:
        put_peer(context, mark->peer);
        break;
    case 5:
        sqlite3_result_int64(context, mark->initiator);
        break;
    case 6:
        sqlite3_result_int64(context, mark->id.incarnation);
        break;
    case 7:
        sqlite3_result_int64(context, (sqlite3_int64)mark->id.counter);
        break;
    case 8:
        sqlite3_result_int64(context, (sqlite3_int64)mark->value);
        break;
    default:
        put_real(context, mark->sum);
        break;
    }
    return SQLITE_OK;
}

enum kith_err kith_rundb_marks_open(struct kith_rundb *store)
{
    static const sqlite3_module module = {.xConnect = table_connect,
                                          .xBestIndex = table_plan,
                                          .xDisconnect = table_disconnect,
                                          .xOpen = table_open,
                                          .xClose = cursor_close,
                                          .xFilter = cursor_begin,
                                          .xNext = cursor_next,
                                          .xEof = cursor_end,
                                          .xColumn = cursor_column,
                                          .xRowid = cursor_row};
    return sqlite3_create_module(store->database, "waiting", &module, store) ==
                   SQLITE_OK
               ? KITH_OK
               : kith_rundb_stick(store, "preparing");
}

bool kith_rundb_marks_write(struct kith_rundb *store)
{
    sqlite3_stmt *insert = store->prepared[MARKS];
    const bool done = sqlite3_step(insert) == SQLITE_DONE;
    (void)sqlite3_reset(insert);
    store->batches[store->leaving].count = 0;
    store->leaving = (store->leaving + 1) % RUNDB_BATCHES;
    return done;
}

enum kith_err kith_rundb_marks_leave(struct kith_rundb *store)
{
    if (kith_rundb_ahead_wait(store, RUNDB_BATCHES - 2) != KITH_OK)
        return store->err;
    store->filling = (store->filling + 1) % RUNDB_BATCHES;
    if (store->ahead != NULL)
        kith_rundb_ahead_go(store);
    else if (!kith_rundb_marks_write(store))
        return kith_rundb_stick(store, "adding marks");
    return KITH_OK;
}

enum kith_err kith_rundb_marks_settle(struct kith_rundb *store)
{
    const enum kith_err err = store->batches[store->filling].count > 0
                                  ? kith_rundb_marks_leave(store)
                                  : KITH_OK;
    return err == KITH_OK ? kith_rundb_ahead_wait(store, 0) : err;
}
