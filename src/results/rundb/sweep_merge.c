/* Shards of a sweep become one database: kith_runs_merge of kith/sweep.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/text.h"
#include "sweep_plan.h"

/* Runs that are at an end; the rows of no other are copied. */
#define ENDED "(SELECT run_id FROM runs WHERE state <> 'planned')"

struct merge {
    sqlite3 *const *databases; /* (count) */
    const char *const *paths;  /* (count) */
    unsigned count;
    struct kith_plan plan; /* the first one's, whole */
    uint8_t *owners;       /* (runs): 1 + the database that has it; 0: none */
    struct kith_rundb *store;
    char *error;
};

static enum kith_err refuse(const struct merge *merge, unsigned at,
                            enum kith_err err, const char *found)
{
    return kith_text_fail(merge->error, KITH_RUNDB_ERROR_BYTES, err,
                          "merging %.200s: %s", merge->paths[at], found);
}

static enum kith_err read_plan(const struct merge *merge, unsigned at,
                               struct kith_plan *plan)
{
    char error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = calloc(1, sizeof *store);
    if (store == NULL)
        return refuse(merge, at, KITH_ENOMEM, "out of memory");
    store->database = merge->databases[at];
    enum kith_err err =
        kith_sweep_plan_check(store->database, merge->paths[at], error);
    if (err != KITH_OK)
        err = refuse(merge, at, KITH_EPARSE,
                     "it holds no sweep of today's kith; give databases of "
                     "kith sim --shard");
    else if (kith_sweep_plan_read(store, plan) != KITH_OK)
        err = refuse(merge, at, KITH_EPARSE, "its plan cannot be read");
    if (err != KITH_OK)
        kith_plan_free(plan);
    free(store);
    return err;
}

static enum kith_err check_plan(const struct merge *merge, unsigned at)
{
    struct kith_plan there = {0};
    const struct kith_plan *plan = &merge->plan;
    const enum kith_err err = read_plan(merge, at, &there);
    if (err != KITH_OK)
        return err;
    bool same = there.cell_count == plan->cell_count &&
                there.seeds == plan->seeds &&
                strcmp(there.name, plan->name) == 0 &&
                strcmp(there.kind, plan->kind) == 0;
    for (uint32_t i = 0; same && i < plan->cell_count; i++)
        same = kith_sweep_plan_same_cell(&there.cells[i], &plan->cells[i]);
    kith_plan_free(&there);
    return same ? KITH_OK
                : refuse(merge, at, KITH_EMISMATCH,
                         "its cells or seeds are not the first database's; "
                         "give the shards of one sweep");
}

/* Events are copied by the numbers of their kinds. */
static enum kith_err check_kinds(const struct merge *merge, unsigned at)
{
    struct kith_query query;
    bool same = true;
    kith_query_begin(&query, merge->databases[at],
                     "SELECT kind, name FROM mark_kinds", "");
    while (same && kith_query_next(&query)) {
        char name[32];
        const int64_t kind = kith_query_whole(&query, 0);
        kith_query_text(&query, 1, name, sizeof name);
        same = kind >= 0 && kind < KITH_MARK_COUNT &&
               strcmp(name, kith_mark_name((enum kith_mark_kind)kind)) == 0;
    }
    return kith_query_end(&query) && same
               ? KITH_OK
               : refuse(merge, at, KITH_EMISMATCH,
                        "its trace events are another kith's; merge with that "
                        "one");
}

/* Each run belongs to one database. */
static enum kith_err find_owners(const struct merge *merge, unsigned at)
{
    const uint32_t count = merge->plan.cell_count * merge->plan.seeds;
    struct kith_query query;
    enum kith_err err = KITH_OK;
    kith_query_begin(&query, merge->databases[at],
                     "SELECT run_id FROM runs WHERE state <> 'planned'", "");
    while (err == KITH_OK && kith_query_next(&query)) {
        const int64_t id = kith_query_whole(&query, 0);
        char found[400];
        if (id < 1 || id > count) {
            err = refuse(merge, at, KITH_EPARSE, "it has runs of no plan");
        } else if (merge->owners[id - 1] != 0) {
            (void)snprintf(found, sizeof found,
                           "its run %" PRId64 " is in %.200s, too; give each "
                           "shard once",
                           id, merge->paths[merge->owners[id - 1] - 1]);
            err = refuse(merge, at, KITH_EMISMATCH, found);
        } else {
            merge->owners[id - 1] = (uint8_t)(at + 1);
        }
    }
    return kith_query_end(&query) || err != KITH_OK
               ? err
               : refuse(merge, at, KITH_EPARSE, "its runs cannot be read");
}

static enum kith_err check_all(struct merge *merge)
{
    enum kith_err err = read_plan(merge, 0, &merge->plan);
    if (err != KITH_OK)
        return err;
    merge->plan.shard = merge->plan.shards = 0;
    merge->owners =
        calloc((size_t)merge->plan.cell_count * merge->plan.seeds, 1);
    if (merge->owners == NULL)
        return refuse(merge, 0, KITH_ENOMEM, "out of memory");
    for (unsigned i = 0; i < merge->count && err == KITH_OK; i++) {
        err = check_plan(merge, i);
        if (err == KITH_OK)
            err = check_kinds(merge, i);
        if (err == KITH_OK)
            err = find_owners(merge, i);
    }
    return err;
}

static const char merging[] = "merging shards";

/* Rows of a table, as wide as it is here. */
static bool copy_rows(const struct merge *merge, unsigned at, const char *table)
{
    char sql[KITH_SQL_BYTES];
    struct kith_query from, to;
    (void)snprintf(sql, sizeof sql, "SELECT * FROM %s", table);
    kith_query_begin(&to, merge->store->database, sql, "");
    const int columns =
        to.statement == NULL ? 0 : sqlite3_column_count(to.statement);
    if (!kith_query_end(&to) || columns == 0)
        return false;
    size_t length = kith_text_add(sql, sizeof sql, 0,
                                  "INSERT OR REPLACE INTO %s VALUES(?", table);
    for (int i = 1; i < columns; i++)
        length = kith_text_add(sql, sizeof sql, length, ", ?");
    (void)kith_text_add(sql, sizeof sql, length, ")");
    kith_query_begin(&to, merge->store->database, sql, "");
    /* As they were written: an index would sort them by peer. */
    (void)snprintf(sql, sizeof sql,
                   "SELECT * FROM %s NOT INDEXED WHERE run_id IN " ENDED,
                   table);
    kith_query_begin(&from, merge->databases[at], sql, "");
    return kith_query_copy(&from, &to, 0);
}

static enum kith_err copy_all(const struct merge *merge)
{
    static const char *const tables[] = {
        "runs", "run", "series", "marks", "faults", "verdicts", "summary"};
    struct kith_rundb *store = merge->store;
    (void)kith_rundb_exec(store, "BEGIN", merging);
    for (unsigned i = 0; i < merge->count; i++)
        for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
            if (store->err == KITH_OK && !copy_rows(merge, i, tables[k])) {
                (void)kith_rundb_exec(store, "ROLLBACK", merging);
                return refuse(merge, i, KITH_EPARSE,
                              "its rows cannot be copied: it is damaged, or "
                              "the disk is full");
            }
    if (kith_rundb_exec(store, "COMMIT", merging) != KITH_OK)
        kith_text_copy(merge->error, KITH_RUNDB_ERROR_BYTES, store->error);
    return store->err;
}

/* On `out`, which is there and empty. */
static enum kith_err write_all(struct merge *merge, const char *out)
{
    merge->store = calloc(1, sizeof *merge->store);
    if (merge->store == NULL)
        return refuse(merge, 0, KITH_ENOMEM, "out of memory");
    (void)kith_rundb_open_new(merge->store, out);
    enum kith_err err = kith_sweep_plan_write(merge->store, &merge->plan);
    if (err == KITH_OK)
        err = copy_all(merge);
    else
        kith_text_copy(merge->error, KITH_RUNDB_ERROR_BYTES,
                       merge->store->error);
    kith_rundb_free(merge->store);
    return err;
}

/* Runs that a whole sweep has, and none of these databases. */
static uint32_t count_missing(const struct merge *merge)
{
    const struct kith_plan *plan = &merge->plan;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < plan->cell_count * plan->seeds; i++)
        missing +=
            merge->owners[i] == 0 &&
            kith_plan_cell(plan, i % plan->cell_count) == KITH_RUN_PLANNED;
    return missing;
}

enum kith_err kith_runs_merge(sqlite3 *const *databases,
                              const char *const *paths, unsigned count,
                              const char *out, uint32_t *missing, char *error)
{
    struct merge merge = {
        .databases = databases, .paths = paths, .count = count, .error = error};
    KITH_ASSERT(count > 0 && count < UINT8_MAX);
    enum kith_err err = check_all(&merge);
    if (err == KITH_OK) {
        const int file = open(out, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file < 0)
            err = kith_text_fail(
                error, KITH_RUNDB_ERROR_BYTES, kith_rundb_errno(errno),
                "cannot create %.300s: %s; name a new file behind --merge", out,
                strerror(errno));
        else
            close(file);
        if (err == KITH_OK && (err = write_all(&merge, out)) != KITH_OK)
            unlink(out);
    }
    if (err == KITH_OK)
        *missing = count_missing(&merge);
    free(merge.owners);
    kith_plan_free(&merge.plan);
    return err;
}
