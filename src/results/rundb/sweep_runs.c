/* A run database of many runs: its plan, and parts that become rows.
 *
 *   NAME-KIND-N.db         runs, cells, settings, and the rows of all runs
 *   NAME-KIND-N.db.parts/  one database for each run that is under way;
 *                          locked by the launcher, so that there is one
 *
 * A part has the same tables and the run's own id in every row, so taking it
 * over is one INSERT ... SELECT * a table. */
#include "kith/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/text.h"
#include "sweep_plan.h"
#include "rundb_store.h"

struct kith_runs {
    struct kith_rundb *store;
    struct kith_plan plan;
    uint8_t *states; /* enum kith_run_state, (cell_count * seeds) */
    char parts[KITH_PATH_BYTES_MAX];
    int lock; /* the folder of the parts, open and locked */
};

const char *kith_run_state_name(enum kith_run_state state)
{
    static const char *const names[] = {
#define KITH_X(name, text) text,
        KITH_RUN_STATES(KITH_X)
#undef KITH_X
    };
    return state < KITH_RUN_STATE_COUNT ? names[state] : "unknown";
}

enum kith_run_state kith_run_state_find(const char *name,
                                        enum kith_run_state other)
{
    for (unsigned state = 0; state < KITH_RUN_STATE_COUNT; state++)
        if (strcmp(name, kith_run_state_name((enum kith_run_state)state)) == 0)
            return (enum kith_run_state)state;
    return other;
}

/* The store's own error, which says everything. */
static enum kith_err told(const struct kith_runs *runs, char *error)
{
    if (runs->store->err != KITH_OK)
        kith_text_copy(error, KITH_RUNDB_ERROR_BYTES, runs->store->error);
    return runs->store->err;
}

/* Only files that we name: run-N.db and what SQLite puts beside it. */
static void remove_parts(const struct kith_runs *runs)
{
    DIR *folder = opendir(runs->parts);
    if (folder == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "run-", 4) == 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* The folder of the parts, made where it is missing, and locked. */
static enum kith_err lock_parts(struct kith_runs *runs, char *error)
{
    const char *path = runs->store->path;
    const int length =
        snprintf(runs->parts, sizeof runs->parts, "%s.parts", path);
    if (length < 0 || (size_t)length >= sizeof runs->parts - 32)
        return kith_rundb_refuse(error, path, KITH_EINVAL,
                                 "its path is too long");
    if (mkdir(runs->parts, 0777) == 0 || errno == EEXIST)
        runs->lock = open(runs->parts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (runs->lock < 0)
        return kith_rundb_refuse(error, runs->parts, kith_rundb_errno(errno),
                                 strerror(errno));
    if (flock(runs->lock, LOCK_EX | LOCK_NB) != 0)
        return kith_rundb_refuse(
            error, path, KITH_EBUSY,
            "another kith sim is writing it; wait for that one, or end it");
    remove_parts(runs);
    return KITH_OK;
}

uint32_t kith_runs_count(const struct kith_runs *runs)
{
    return runs->plan.cell_count * runs->plan.seeds;
}

static uint8_t state_at(const struct kith_query *query, int column)
{
    char name[32];
    kith_query_text(query, column, name, sizeof name);
    return (uint8_t)kith_run_state_find(name, KITH_RUN_PLANNED);
}

/* What stands in the table runs; a cell that is refused has no row. */
static void read_states(struct kith_runs *runs)
{
    const uint32_t count = kith_runs_count(runs);
    if (runs->store->err != KITH_OK)
        return;
    free(runs->states);
    runs->states = calloc(count > 0 ? count : 1, 1);
    if (runs->states == NULL) {
        (void)kith_rundb_stick(runs->store, "out of memory");
        return;
    }
    for (uint32_t run = 0; run < count; run++)
        runs->states[run] =
            (uint8_t)kith_plan_cell(&runs->plan, run % runs->plan.cell_count);
    struct kith_query query;
    kith_query_begin(&query, runs->store->database,
                     "SELECT run_id, state FROM runs", "");
    while (kith_query_next(&query)) {
        const int64_t id = kith_query_whole(&query, 0);
        if (id >= 1 && id <= count)
            runs->states[id - 1] = state_at(&query, 1);
    }
    if (!kith_query_end(&query))
        (void)kith_rundb_stick(runs->store, "reading runs");
}

static enum kith_err read_plan(struct kith_runs *runs, char *error)
{
    (void)kith_sweep_plan_read(runs->store, &runs->plan);
    read_states(runs);
    return told(runs, error);
}

static struct kith_runs *runs_new(void)
{
    struct kith_runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL)
        return NULL;
    runs->lock = -1;
    runs->store = calloc(1, sizeof *runs->store);
    if (runs->store == NULL) {
        free(runs);
        return NULL;
    }
    return runs;
}

enum kith_err kith_runs_create(const char *directory,
                               const struct kith_plan *plan,
                               struct kith_runs **out, char *path, char *error)
{
    char kind[KITH_FILE_KIND_BYTES];
    kith_sweep_plan_file_kind(plan, kind);
    enum kith_err err =
        kith_rundb_create_file(directory, kind, plan->name, path, error);
    if (err != KITH_OK)
        return err;
    struct kith_runs *runs = runs_new();
    if (runs == NULL) {
        unlink(path);
        return kith_rundb_refuse(error, path, KITH_ENOMEM, "out of memory");
    }
    (void)kith_rundb_open_new(runs->store, path);
    (void)kith_sweep_plan_write(runs->store, plan);
    err = read_plan(runs, error);
    if (err == KITH_OK)
        err = lock_parts(runs, error);
    if (err != KITH_OK) {
        kith_runs_close(runs);
        unlink(path);
        return err;
    }
    *out = runs;
    return KITH_OK;
}

enum kith_err kith_runs_open(const char *path, struct kith_runs **out,
                             char *error)
{
    struct kith_runs *runs = runs_new();
    if (runs == NULL)
        return kith_rundb_refuse(error, path, KITH_ENOMEM, "out of memory");
    kith_text_copy(runs->store->path, sizeof runs->store->path, path);
    enum kith_err err = KITH_OK;
    if (sqlite3_open_v2(path, &runs->store->database,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        err = kith_rundb_refuse(error, path, KITH_ENOENT,
                                sqlite3_errmsg(runs->store->database));
    if (err == KITH_OK)
        err = kith_sweep_plan_check(runs->store->database, path, error);
    if (err == KITH_OK)
        err = lock_parts(runs, error);
    if (err == KITH_OK)
        err = read_plan(runs, error);
    if (err == KITH_OK &&
        kith_rundb_prepare(runs->store, ROW, JOURNAL) != KITH_OK)
        err = told(runs, error);
    if (err != KITH_OK) {
        kith_runs_close(runs);
        return err;
    }
    *out = runs;
    return KITH_OK;
}

const struct kith_plan *kith_runs_plan(const struct kith_runs *runs)
{
    return &runs->plan;
}

enum kith_err kith_runs_extend(struct kith_runs *runs, uint32_t seeds,
                               char *error)
{
    const uint32_t before = runs->plan.seeds;
    if (seeds <= before)
        return KITH_OK;
    runs->plan.seeds = seeds;
    (void)kith_rundb_exec(runs->store, "BEGIN", "adding seeds");
    kith_sweep_plan_write_runs(runs->store, &runs->plan, before);
    (void)kith_rundb_exec(runs->store, "COMMIT", "adding seeds");
    read_states(runs);
    return told(runs, error);
}

enum kith_run_state kith_runs_state(const struct kith_runs *runs, uint32_t run)
{
    return (enum kith_run_state)runs->states[run];
}

void kith_runs_part(const struct kith_runs *runs, uint32_t run,
                    char path[KITH_PATH_BYTES_MAX])
{
    (void)kith_text_add(path, KITH_PATH_BYTES_MAX, 0, "%s/run-%" PRIu32 ".db",
                        runs->parts, run + 1);
}

void kith_runs_forget(struct kith_runs *runs)
{
    if (runs->lock >= 0)
        close(runs->lock);
    runs->lock = -1;
}

/* Attached as `part`; what an earlier try left is not there, but costs nothing
 * to make sure of. */
static const char taking[] = "taking a run over";

static void take_rows(struct kith_rundb *store, uint32_t id)
{
    static const char *const tables[] = {"run",    "series",   "marks",
                                         "faults", "verdicts", "summary"};
    char sql[KITH_SQL_BYTES];
    (void)kith_rundb_exec(store, "BEGIN", taking);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        snprintf(sql, sizeof sql,
                 "DELETE FROM main.%s WHERE run_id = %" PRIu32
                 "; INSERT INTO main.%s SELECT * FROM part.%s",
                 tables[i], id, tables[i], tables[i]);
        (void)kith_rundb_exec(store, sql, taking);
    }
    kith_rundb_sql("take", sql);
    (void)kith_rundb_change(store, taking, sql, "i", (int64_t)id);
    (void)kith_rundb_exec(store, "COMMIT", taking);
}

static void take_part(struct kith_runs *runs, uint32_t run, const char *part)
{
    struct kith_query query;
    struct kith_rundb *store = runs->store;
    if (kith_rundb_change(store, taking, "ATTACH ? AS part", "s", part) !=
        KITH_OK)
        return;
    take_rows(store, run + 1);
    (void)sqlite3_exec(store->database, "DETACH part", NULL, NULL, NULL);
    kith_query_begin(&query, store->database,
                     "SELECT state FROM runs WHERE run_id = ?", "i",
                     (int64_t)run + 1);
    if (store->err == KITH_OK && kith_query_next(&query))
        runs->states[run] = state_at(&query, 0);
    if (!kith_query_end(&query))
        (void)kith_rundb_stick(store, taking);
}

enum kith_err kith_runs_take(struct kith_runs *runs, uint32_t run, char *error)
{
    char part[KITH_PATH_BYTES_MAX];
    kith_runs_part(runs, run, part);
    take_part(runs, run, part);
    (void)unlink(part);
    return told(runs, error);
}

enum kith_err kith_runs_fail(struct kith_runs *runs, uint32_t run,
                             const char *problem, char *error)
{
    char part[KITH_PATH_BYTES_MAX];
    kith_runs_part(runs, run, part);
    (void)unlink(part);
    if (kith_rundb_change(
            runs->store, "saving a failure",
            "UPDATE runs SET state = 'failed', problem = ? WHERE run_id = ?",
            "si", problem, (int64_t)run + 1) == KITH_OK)
        runs->states[run] = KITH_RUN_FAILED;
    return told(runs, error);
}

void kith_runs_close(struct kith_runs *runs)
{
    if (runs->lock >= 0) {
        remove_parts(runs);
        (void)rmdir(runs->parts);
        close(runs->lock);
    }
    kith_rundb_free(runs->store);
    kith_plan_free(&runs->plan);
    free(runs->states);
    free(runs);
}
