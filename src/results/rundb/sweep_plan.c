/* The plan of many runs: cells, settings and seeds, written and read. */
#include "sweep_plan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"

void kith_plan_free(struct kith_plan *plan)
{
    for (uint32_t i = 0; plan->cells != NULL && i < plan->cell_count; i++)
        free(plan->cells[i].experiment);
    free(plan->cells);
    *plan = (struct kith_plan){0};
}

enum kith_run_state kith_plan_cell(const struct kith_plan *plan, uint32_t cell)
{
    if (plan->cells[cell].refused[0] != '\0')
        return KITH_RUN_REFUSED;
    return plan->shards == 0 || cell % plan->shards + 1 == plan->shard
               ? KITH_RUN_PLANNED
               : KITH_RUN_ELSEWHERE;
}

bool kith_shard_read(const char *text, uint32_t *shard, uint32_t *shards)
{
    const char *slash = strchr(text, '/');
    char first[16];
    uint64_t one, all;
    if (slash == NULL || (size_t)(slash - text) >= sizeof first)
        return false;
    memcpy(first, text, (size_t)(slash - text));
    first[slash - text] = '\0';
    if (kith_text_u64(first, &one) != KITH_OK ||
        kith_text_u64(slash + 1, &all) != KITH_OK || one < 1 || one > all ||
        all > KITH_RUNS_MAX)
        return false;
    *shard = (uint32_t)one;
    *shards = (uint32_t)all;
    return true;
}

void kith_sweep_plan_file_kind(const struct kith_plan *plan,
                               char kind[KITH_FILE_KIND_BYTES])
{
    const size_t at =
        kith_text_add(kind, KITH_FILE_KIND_BYTES, 0, "%s", plan->kind);
    if (plan->shards > 0)
        (void)kith_text_add(kind, KITH_FILE_KIND_BYTES, at,
                            "-%" PRIu32 "of%" PRIu32, plan->shard,
                            plan->shards);
}

static const char writing[] = "writing the plan";

static void write_cell(struct kith_rundb *store, int64_t number,
                       const struct kith_cell *cell)
{
    (void)kith_rundb_change(
        store, writing, "INSERT INTO cells VALUES(?,?,?,?,?,?)", "ississ",
        number, cell->label, cell->path, (int64_t)cell->seed, cell->experiment,
        cell->refused[0] == '\0' ? NULL : cell->refused);
    for (uint32_t i = 0; i < cell->setting_count; i++)
        (void)kith_rundb_change(
            store, writing, "INSERT INTO settings VALUES(?,?,?)", "iss", number,
            cell->settings[i].key, cell->settings[i].value);
}

static void write_fact(struct kith_rundb *store, const char *key,
                       const char *value)
{
    (void)kith_rundb_change(store, writing,
                            "INSERT OR REPLACE INTO run VALUES(0,?,?)", "ss",
                            key, value);
}

void kith_sweep_plan_write_runs(struct kith_rundb *store,
                                const struct kith_plan *plan, uint32_t first)
{
    char seeds[24];
    for (uint32_t seed = first; seed < plan->seeds; seed++)
        for (uint32_t i = 0; i < plan->cell_count; i++)
            if (kith_plan_cell(plan, i) == KITH_RUN_PLANNED)
                (void)kith_rundb_change(
                    store, writing,
                    "INSERT INTO runs(run_id, cell, seed, state) "
                    "VALUES(?,?,?,'planned')",
                    "iii", (int64_t)seed * plan->cell_count + i + 1,
                    (int64_t)i + 1, (int64_t)(plan->cells[i].seed + seed));
    snprintf(seeds, sizeof seeds, "%" PRIu32, plan->seeds);
    write_fact(store, "seeds", seeds);
}

enum kith_err kith_sweep_plan_write(struct kith_rundb *store,
                                    const struct kith_plan *plan)
{
    char started[32];
    kith_rundb_utc(started);
    /* Few commits, each worth a run: they survive a power cut. */
    (void)kith_rundb_exec(store, "PRAGMA synchronous=FULL; BEGIN",
                          "creating tables");
    (void)kith_rundb_create_tables(store, "indexes");
    write_fact(store, "name", plan->name);
    write_fact(store, "kind", plan->kind);
    write_fact(store, "build", kith_build());
    write_fact(store, "started_utc", started);
    if (plan->shards > 0) {
        char shard[32];
        snprintf(shard, sizeof shard, "%" PRIu32 "/%" PRIu32, plan->shard,
                 plan->shards);
        write_fact(store, "shard", shard);
    }
    for (uint32_t i = 0; i < plan->cell_count; i++)
        write_cell(store, (int64_t)i + 1, &plan->cells[i]);
    kith_sweep_plan_write_runs(store, plan, 0);
    return kith_rundb_exec(store, "COMMIT", "creating tables");
}

/* Every row of `sql` to `each`, until one is refused. */
static void
each_row(struct kith_rundb *store, const char *sql, struct kith_plan *plan,
         bool (*each)(const struct kith_query *, struct kith_plan *))
{
    struct kith_query query;
    bool taken = store->err == KITH_OK;
    kith_query_begin(&query, store->database, sql, "");
    while (taken && kith_query_next(&query))
        taken = each(&query, plan);
    if (!kith_query_end(&query) || !taken)
        (void)kith_rundb_stick(store, "reading the plan");
}

static bool read_fact(const struct kith_query *row, struct kith_plan *plan)
{
    char key[32], value[KITH_NAME_MAX];
    uint64_t seeds;
    kith_query_text(row, 0, key, sizeof key);
    kith_query_text(row, 1, value, sizeof value);
    if (strcmp(key, "name") == 0)
        kith_text_copy(plan->name, sizeof plan->name, value);
    if (strcmp(key, "kind") == 0)
        kith_text_copy(plan->kind, sizeof plan->kind, value);
    if (strcmp(key, "seeds") == 0 && kith_text_u64(value, &seeds) == KITH_OK &&
        seeds <= KITH_RUNS_MAX)
        plan->seeds = (uint32_t)seeds;
    return strcmp(key, "shard") != 0 ||
           kith_shard_read(value, &plan->shard, &plan->shards);
}

static bool read_cell(const struct kith_query *row, struct kith_plan *plan)
{
    if (plan->seeds == 0 || /* else as many as the file holds */
        kith_query_whole(row, 0) != (int64_t)plan->cell_count + 1 ||
        (uint64_t)(plan->cell_count + 1) * plan->seeds > KITH_RUNS_MAX)
        return false;
    struct kith_cell *cells =
        realloc(plan->cells, (plan->cell_count + 1) * sizeof *plan->cells);
    if (cells == NULL)
        return false;
    plan->cells = cells;
    struct kith_cell *cell = &cells[plan->cell_count];
    memset(cell, 0, sizeof *cell);
    kith_query_text(row, 1, cell->label, sizeof cell->label);
    kith_query_text(row, 2, cell->path, sizeof cell->path);
    cell->seed = (uint64_t)kith_query_whole(row, 3);
    const char *text = (const char *)sqlite3_column_text(row->statement, 4);
    if (text != NULL && strlen(text) <= KITH_YAML_BYTES_MAX)
        cell->experiment = strdup(text);
    kith_query_text(row, 5, cell->refused, sizeof cell->refused);
    plan->cell_count++;
    return cell->experiment != NULL || cell->refused[0] != '\0';
}

static bool read_setting(const struct kith_query *row, struct kith_plan *plan)
{
    const int64_t number = kith_query_whole(row, 0);
    if (number < 1 || number > plan->cell_count ||
        plan->cells[number - 1].setting_count == KITH_SETTINGS_MAX)
        return false;
    struct kith_cell *cell = &plan->cells[number - 1];
    struct kith_setting *setting = &cell->settings[cell->setting_count++];
    kith_query_text(row, 1, setting->key, sizeof setting->key);
    kith_query_text(row, 2, setting->value, sizeof setting->value);
    return true;
}

enum kith_err kith_sweep_plan_read(struct kith_rundb *store,
                                   struct kith_plan *plan)
{
    *plan = (struct kith_plan){0};
    each_row(store, "SELECT key, value FROM run WHERE run_id = 0", plan,
             read_fact);
    each_row(store,
             "SELECT cell, label, path, seed, experiment, refused "
             "FROM cells ORDER BY cell",
             plan, read_cell);
    each_row(store, "SELECT cell, key, value FROM settings", plan,
             read_setting);
    return plan->seeds == 0 || plan->cell_count == 0
               ? kith_rundb_stick(store, "it holds no plan")
               : store->err;
}

enum kith_err kith_sweep_plan_check(sqlite3 *database, const char *path,
                                    char *error)
{
    int64_t plans = 0;
    char what[96];
    enum kith_err err = kith_rundb_check_file(
        database, KITH_RUNDB_SCHEMA_VERSION, what, sizeof what);
    if (err == KITH_OK &&
        (!kith_query_one_whole(database,
                               "SELECT count(*) FROM run WHERE run_id = 0 AND "
                               "key = 'seeds'",
                               &plans, "") ||
         plans != 1)) {
        err = KITH_EPARSE;
        kith_text_copy(what, sizeof what,
                       "it holds one run, not those of --sweep or --all-cells");
    }
    return err == KITH_OK ? err : kith_rundb_refuse(error, path, err, what);
}

bool kith_sweep_plan_same_cell(const struct kith_cell *a,
                               const struct kith_cell *b)
{
    const bool text = a->experiment != NULL && b->experiment != NULL;
    return strcmp(a->label, b->label) == 0 && a->seed == b->seed &&
           (text ? strcmp(a->experiment, b->experiment) == 0
                 : a->experiment == b->experiment);
}

/* The cells of this plan, and something left to do? */
static bool goes_on(const char *path, const struct kith_plan *plan)
{
    struct kith_rundb store = {0};
    struct kith_plan there = {0};
    char error[KITH_RUNDB_ERROR_BYTES];
    int64_t open_runs = 0;
    bool same = false;
    if (sqlite3_open_v2(path, &store.database, SQLITE_OPEN_READONLY, NULL) ==
            SQLITE_OK &&
        kith_sweep_plan_check(store.database, path, error) == KITH_OK &&
        kith_sweep_plan_read(&store, &there) == KITH_OK)
        same = there.cell_count == plan->cell_count &&
               there.shard == plan->shard && there.shards == plan->shards;
    for (uint32_t i = 0; same && i < plan->cell_count; i++)
        same = strcmp(there.cells[i].path, plan->cells[i].path) == 0 &&
               kith_sweep_plan_same_cell(&there.cells[i], &plan->cells[i]);
    same = same && ((kith_query_one_whole(
                         store.database,
                         "SELECT count(*) FROM runs WHERE state = 'planned'",
                         &open_runs, "") &&
                     open_runs > 0) ||
                    plan->seeds > there.seeds);
    kith_plan_free(&there);
    sqlite3_close(store.database);
    return same;
}

enum kith_err kith_runs_find(const char *directory,
                             const struct kith_plan *plan, char *path)
{
    DIR *folder = opendir(directory);
    if (folder == NULL)
        return KITH_ENOENT;
    char prefix[KITH_NAME_MAX + KITH_FILE_KIND_BYTES + 4];
    char kind[KITH_FILE_KIND_BYTES];
    kith_sweep_plan_file_kind(plan, kind);
    const size_t length =
        (size_t)snprintf(prefix, sizeof prefix, "%s-%s-", plan->name, kind);
    unsigned newest = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        unsigned number = 0;
        char rest[8] = "";
        if (strncmp(entry->d_name, prefix, length) == 0 &&
            sscanf(entry->d_name + length, "%9u%7s", &number, rest) == 2 &&
            strcmp(rest, ".db") == 0 && number > newest) {
            char found[KITH_PATH_BYTES_MAX];
            (void)kith_text_add(found, sizeof found, 0, "%s/%s", directory,
                                entry->d_name);
            if (goes_on(found, plan)) {
                newest = number;
                kith_text_copy(path, KITH_PATH_BYTES_MAX, found);
            }
        }
    }
    closedir(folder);
    return newest > 0 ? KITH_OK : KITH_ENOENT;
}
