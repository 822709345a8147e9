/* The plan of many runs: cells, settings and seeds, written and read. */
#include "sweep_plan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "kith/rundb_tables.h"

void kith_plan_free(struct kith_plan *plan)
{
    for (uint32_t i = 0; plan->cells != NULL && i < plan->cell_count; i++)
        free(plan->cells[i].experiment);
    free(plan->cells);
    *plan = (struct kith_plan){0};
}

/* One statement; types: 'i' int64_t, 's' const char *, NULL where it is NULL.
 */
static enum kith_err put(struct kith_rundb *store, const char *sql,
                         const char *types, ...)
{
    static const char what[] = "writing the plan";
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL) !=
        SQLITE_OK)
        return kith_rundb_stick(store, what);
    va_list list;
    va_start(list, types);
    for (int i = 0; types[i] != '\0'; i++)
        if (types[i] == 'i')
            sqlite3_bind_int64(statement, i + 1, va_arg(list, int64_t));
        else
            sqlite3_bind_text(statement, i + 1, va_arg(list, const char *), -1,
                              SQLITE_STATIC);
    va_end(list);
    const int code = sqlite3_step(statement);
    const enum kith_err err =
        code == SQLITE_DONE ? KITH_OK : kith_rundb_stick(store, what);
    sqlite3_finalize(statement);
    return err;
}

static enum kith_err write_cell(struct kith_rundb *store, int64_t number,
                                const struct kith_cell *cell)
{
    const char *refused = cell->refused[0] == '\0' ? NULL : cell->refused;
    enum kith_err err = put(store, "INSERT INTO cells VALUES(?,?,?,?,?,?)",
                            "ississ", number, cell->label, cell->path,
                            (int64_t)cell->seed, cell->experiment, refused);
    for (uint32_t i = 0; i < cell->setting_count && err == KITH_OK; i++)
        err = put(store, "INSERT INTO settings VALUES(?,?,?)", "iss", number,
                  cell->settings[i].key, cell->settings[i].value);
    return err;
}

enum kith_err kith_sweep_plan_write_runs(struct kith_rundb *store,
                                         const struct kith_plan *plan,
                                         uint32_t first)
{
    enum kith_err err = KITH_OK;
    for (uint32_t seed = first; seed < plan->seeds; seed++)
        for (uint32_t i = 0; i < plan->cell_count && err == KITH_OK; i++)
            if (plan->cells[i].refused[0] == '\0')
                err =
                    put(store,
                        "INSERT INTO runs(run_id, cell, seed, state) "
                        "VALUES(?,?,?,'planned')",
                        "iii", (int64_t)seed * plan->cell_count + i + 1,
                        (int64_t)i + 1, (int64_t)(plan->cells[i].seed + seed));
    char seeds[24];
    snprintf(seeds, sizeof seeds, "%" PRIu32, plan->seeds);
    return err == KITH_OK ? put(store,
                                "INSERT OR REPLACE INTO run VALUES(0,"
                                "'seeds',?)",
                                "s", seeds)
                          : err;
}

enum kith_err kith_sweep_plan_write(struct kith_rundb *store,
                                    const struct kith_plan *plan)
{
    char started[32];
    kith_rundb_utc(started);
    const struct {
        const char *key, *value;
    } facts[] = {{"name", plan->name},
                 {"kind", plan->kind},
                 {"build", kith_build()},
                 {"started_utc", started}};
    /* Few commits, each worth a run: they survive a power cut. */
    enum kith_err err = kith_rundb_exec(
        store, "PRAGMA synchronous=FULL; BEGIN;" RUNDB_INDEXES, "creating");
    for (size_t i = 0; i < sizeof facts / sizeof *facts && err == KITH_OK; i++)
        err = put(store, "INSERT INTO run VALUES(0,?,?)", "ss", facts[i].key,
                  facts[i].value);
    for (uint32_t i = 0; i < plan->cell_count && err == KITH_OK; i++)
        err = write_cell(store, (int64_t)i + 1, &plan->cells[i]);
    if (err == KITH_OK)
        err = kith_sweep_plan_write_runs(store, plan, 0);
    return err == KITH_OK ? kith_rundb_exec(store, "COMMIT", "creating") : err;
}

/* Every row of `sql` to `each`, until one is refused. */
static enum kith_err each_row(struct kith_rundb *store, const char *sql,
                              struct kith_plan *plan,
                              bool (*each)(sqlite3_stmt *, struct kith_plan *))
{
    static const char what[] = "reading the plan";
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(store->database, sql, -1, &row, NULL) != SQLITE_OK)
        return kith_rundb_stick(store, what);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW && each(row, plan))
        ;
    sqlite3_finalize(row);
    return code == SQLITE_DONE ? KITH_OK : kith_rundb_stick(store, what);
}

static void column_copy(sqlite3_stmt *row, int at, char *text, size_t size)
{
    const char *value = (const char *)sqlite3_column_text(row, at);
    kith_text_copy(text, size, value == NULL ? "" : value);
}

static bool read_fact(sqlite3_stmt *row, struct kith_plan *plan)
{
    char key[32], value[KITH_NAME_MAX];
    uint64_t seeds;
    column_copy(row, 0, key, sizeof key);
    column_copy(row, 1, value, sizeof value);
    if (strcmp(key, "name") == 0)
        kith_text_copy(plan->name, sizeof plan->name, value);
    if (strcmp(key, "kind") == 0)
        kith_text_copy(plan->kind, sizeof plan->kind, value);
    if (strcmp(key, "seeds") == 0 && kith_text_u64(value, &seeds) == KITH_OK &&
        seeds <= KITH_RUNS_MAX)
        plan->seeds = (uint32_t)seeds;
    return true;
}

static bool read_cell(sqlite3_stmt *row, struct kith_plan *plan)
{
    if (sqlite3_column_int64(row, 0) != (sqlite3_int64)plan->cell_count + 1 ||
        (uint64_t)(plan->cell_count + 1) * plan->seeds > KITH_RUNS_MAX)
        return false;
    struct kith_cell *cells =
        realloc(plan->cells, (plan->cell_count + 1) * sizeof *plan->cells);
    if (cells == NULL)
        return false;
    plan->cells = cells;
    struct kith_cell *cell = &cells[plan->cell_count];
    memset(cell, 0, sizeof *cell);
    column_copy(row, 1, cell->label, sizeof cell->label);
    column_copy(row, 2, cell->path, sizeof cell->path);
    cell->seed = (uint64_t)sqlite3_column_int64(row, 3);
    const char *text = (const char *)sqlite3_column_text(row, 4);
    if (text != NULL && strlen(text) <= KITH_YAML_BYTES_MAX)
        cell->experiment = strdup(text);
    column_copy(row, 5, cell->refused, sizeof cell->refused);
    plan->cell_count++;
    return cell->experiment != NULL || cell->refused[0] != '\0';
}

static bool read_setting(sqlite3_stmt *row, struct kith_plan *plan)
{
    const sqlite3_int64 number = sqlite3_column_int64(row, 0);
    if (number < 1 || number > plan->cell_count ||
        plan->cells[number - 1].setting_count == KITH_SETTINGS_MAX)
        return false;
    struct kith_cell *cell = &plan->cells[number - 1];
    struct kith_setting *setting = &cell->settings[cell->setting_count++];
    column_copy(row, 1, setting->key, sizeof setting->key);
    column_copy(row, 2, setting->value, sizeof setting->value);
    return true;
}

enum kith_err kith_sweep_plan_read(struct kith_rundb *store,
                                   struct kith_plan *plan)
{
    *plan = (struct kith_plan){0};
    enum kith_err err = each_row(
        store, "SELECT key, value FROM run WHERE run_id = 0", plan, read_fact);
    if (err == KITH_OK)
        err = each_row(store,
                       "SELECT cell, label, path, seed, experiment, refused "
                       "FROM cells ORDER BY cell",
                       plan, read_cell);
    if (err == KITH_OK)
        err = each_row(store, "SELECT cell, key, value FROM settings", plan,
                       read_setting);
    if (err == KITH_OK && (plan->seeds == 0 || plan->cell_count == 0))
        err = kith_rundb_stick(store, "it holds no plan");
    return err;
}

static bool read_number(sqlite3 *database, const char *sql, int64_t *value)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return false;
    const bool found = sqlite3_step(row) == SQLITE_ROW;
    if (found)
        *value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return found;
}

enum kith_err kith_sweep_plan_check(sqlite3 *database, const char *path,
                                    char *error)
{
    int64_t application = 0, version = 0, plans = 0;
    const char *what = NULL;
    enum kith_err err = KITH_EPARSE;
    if (!read_number(database, "PRAGMA application_id", &application) ||
        application != RUNDB_APPLICATION_ID) {
        what = "not a run database of kith";
    } else if (!read_number(database, "PRAGMA user_version", &version) ||
               version != RUNDB_SCHEMA_VERSION) {
        what = "written by another version of kith";
        err = KITH_EVERSION;
    } else if (!read_number(database,
                            "SELECT count(*) FROM run WHERE run_id = 0 AND "
                            "key = 'seeds'",
                            &plans) ||
               plans != 1) {
        what = "it holds one run, not those of --sweep or --all-cells";
    }
    if (what == NULL)
        return KITH_OK;
    snprintf(error, KITH_RUNDB_ERROR_BYTES, "cannot go on with %.200s: %s",
             path, what);
    return err;
}

void kith_sweep_plan_state(sqlite3 *database, uint32_t id, char state[32])
{
    char sql[80];
    sqlite3_stmt *row;
    state[0] = '\0';
    snprintf(sql, sizeof sql, "SELECT state FROM runs WHERE run_id = %" PRIu32,
             id);
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return;
    if (sqlite3_step(row) == SQLITE_ROW)
        column_copy(row, 0, state, 32);
    sqlite3_finalize(row);
}

static bool same_cell(const struct kith_cell *a, const struct kith_cell *b)
{
    const bool text = a->experiment != NULL && b->experiment != NULL;
    return strcmp(a->label, b->label) == 0 && strcmp(a->path, b->path) == 0 &&
           a->seed == b->seed &&
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
        same = there.cell_count == plan->cell_count;
    for (uint32_t i = 0; same && i < plan->cell_count; i++)
        same = same_cell(&there.cells[i], &plan->cells[i]);
    same = same &&
           ((read_number(store.database,
                         "SELECT count(*) FROM runs WHERE state = 'planned'",
                         &open_runs) &&
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
    char prefix[2 * KITH_NAME_MAX + 4];
    const size_t length = (size_t)snprintf(prefix, sizeof prefix, "%s-%s-",
                                           plan->name, plan->kind);
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
