/* See kith/join.h. Rows are copied value by value from one connection to the
 * other: nothing of a foreign file is attached, so nothing in it can run. */
#include "kith/join.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "rundb_store.h"

KITH_ASSET(rundb_join, KITH_RUNDB_SOURCE "/join.sql");

/* NAME.read and NAME.write of join.sql, in an order that has the names of trace
 * events before the events. */
static const char *const tables[] = {"told",   "facts", "ends",
                                     "series", "kinds", "marks"};

static void join_sql(const char *name, const char *ending,
                     char sql[KITH_SQL_BYTES])
{
    char section[32];
    (void)snprintf(section, sizeof section, "%s%s", name, ending);
    kith_sql(kith_asset_rundb_join().bytes, section, KITH_RUNDB_SCHEMA_VERSION,
             sql);
}

static bool read_whole(sqlite3 *database, const char *key, uint32_t *value)
{
    char text[24];
    uint64_t whole;
    if (!kith_rundb_fact(database, key, text, sizeof text) ||
        kith_text_u64(text, &whole) != KITH_OK || whole > UINT32_MAX)
        return false;
    *value = (uint32_t)whole;
    return true;
}

bool kith_join_read(sqlite3 *database, struct kith_join_part *part)
{
    struct kith_join_part found;
    char world[8];
    int64_t version = 0;
    if (!kith_query_one_whole(database, "PRAGMA user_version", &version, "") ||
        version != KITH_RUNDB_SCHEMA_VERSION ||
        !kith_rundb_fact(database, "world", world, sizeof world) ||
        strcmp(world, "peer") != 0 ||
        !kith_rundb_fact(database, "experiment_hash", found.run,
                         sizeof found.run) ||
        !read_whole(database, "rank", &found.rank) ||
        !read_whole(database, "peers", &found.peers) ||
        found.rank >= found.peers)
        return false;
    *part = found;
    return true;
}

static bool copy_table(sqlite3 *database, kith_id rank, const char *name,
                       sqlite3 *joined)
{
    char sql[KITH_SQL_BYTES];
    struct kith_query from, to;
    join_sql(name, ".read", sql);
    kith_query_begin(&from, database, sql, "");
    join_sql(name, ".write", sql);
    kith_query_begin(&to, joined, sql, "p", rank);
    return kith_query_copy(&from, &to, 1); /* behind the rank */
}

static bool run(sqlite3 *joined, const char *file, const char *section)
{
    char sql[KITH_SQL_BYTES];
    kith_sql(file, section, KITH_RUNDB_SCHEMA_VERSION, sql);
    return sqlite3_exec(joined, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool mark(sqlite3 *joined)
{
    char pragmas[96];
    (void)snprintf(pragmas, sizeof pragmas,
                   "PRAGMA application_id=%d; PRAGMA user_version=%d;",
                   KITH_RUNDB_APPLICATION_ID, KITH_RUNDB_SCHEMA_VERSION);
    return sqlite3_exec(joined, pragmas, NULL, NULL, NULL) == SQLITE_OK;
}

enum kith_err kith_join(sqlite3 *const *databases,
                        const struct kith_join_part *parts, unsigned count,
                        sqlite3 **joined)
{
    *joined = NULL;
    if (sqlite3_open_v2("", joined, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        NULL) != SQLITE_OK)
        return KITH_ENOMEM;
    const char *join = kith_asset_rundb_join().bytes;
    bool whole =
        mark(*joined) &&
        sqlite3_exec(*joined, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
        kith_rundb_make_tables(*joined, "tables") &&
        run(*joined, join, "stage");
    for (unsigned i = 0; whole && i < count; i++) {
        KITH_ASSERT(strcmp(parts[i].run, parts[0].run) == 0);
        for (size_t k = 0; whole && k < sizeof tables / sizeof *tables; k++)
            whole = copy_table(databases[i], parts[i].rank, tables[k], *joined);
    }
    whole = whole && run(*joined, join, "finish") &&
            sqlite3_exec(*joined, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    if (whole)
        return KITH_OK;
    return sqlite3_errcode(*joined) == SQLITE_NOMEM ? KITH_ENOMEM : KITH_EPARSE;
}
