/* Runs side by side: one row a run, and over the seeds of a cell
 *
 *   mean       m = sum(v_i) / n
 *   deviation  sqrt(sum((v_i - m)^2) / (n - 1))
 *
 * A run that never came to the target loss has no time to it: it is left out of
 * that mean, and the count says so. */
#include "src/results/report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kith/text.h"
#include "kith/rundb_tables.h"

/* Rows of one comparison, over all databases. */
#define ROWS_MAX (2 * KITH_RUNS_MAX)

/* Values of a run in the order of KITH_COLUMNS, from the table runs; ?1 is the
 * target loss or NULL. */
static const char new_runs[] =
    "SELECT r.run_id, r.cell, r.seed, r.state, r.problem, r.violations, "
    "accuracy, loss, CASE WHEN ?1 IS NULL THEN time_to_target_s ELSE "
    "(SELECT min(time_s) FROM series s WHERE s.run_id = r.run_id AND "
    "s.peer IS NULL AND s.loss <= ?1) END, steps, bytes_mean, bytes_max, "
    "staleness_mean, staleness_max, consensus_distance, utilisation "
    "FROM runs r ORDER BY r.cell, r.run_id";

/* Before schema 3: one run, which the summary tells of. */
#define VALUE(key) "(SELECT value FROM summary WHERE key = '" key "')"
static const char old_runs[] =
    "SELECT 1, 1, (SELECT value FROM run WHERE key = 'seed'), "
    "CASE " VALUE(
        "completed") " WHEN '1' THEN 'done' ELSE 'interrupted' END, "
                     "NULL, " VALUE("violations") ", " VALUE(
                         "accuracy."
                         "averaged") ", " VALUE("loss.averaged") ", (SELECT "
                                                                 "min(time_s) "
                                                                 "FROM "
                                                                 "series WHERE "
                                                                 "peer IS "
                                                                 "NULL AND "
                                                                 "loss <= "
                                                                 "?1), " VALUE("steps") ", " VALUE(
                                                                     "bytes."
                                                                     "sent") " "
                                                                             "*"
                                                                             " "
                                                                             "1"
                                                                             "."
                                                                             "0"
                                                                             " "
                                                                             "/"
                                                                             " "
                                                                             "("
                                                                             "S"
                                                                             "E"
                                                                             "L"
                                                                             "E"
                                                                             "C"
                                                                             "T"
                                                                             " "
                                                                             "v"
                                                                             "a"
                                                                             "l"
                                                                             "u"
                                                                             "e"
                                                                             " "
                                                                             "F"
                                                                             "R"
                                                                             "O"
                                                                             "M"
                                                                             " "
                                                                             "r"
                                                                             "u"
                                                                             "n"
                                                                             " "
                                                                             "W"
                                                                             "H"
                                                                             "E"
                                                                             "R"
                                                                             "E"
                                                                             " "
                                                                             "k"
                                                                             "e"
                                                                             "y"
                                                                             " "
                                                                             "="
                                                                             " "
                                                                             "'"
                                                                             "p"
                                                                             "e"
                                                                             "e"
                                                                             "r"
                                                                             "s"
                                                                             "'"
                                                                             ")"
                                                                             ","
                                                                             " " VALUE(
                                                                                 "byt"
                                                                                 "es."
                                                                                 "per"
                                                                                 "_pe"
                                                                                 "er_"
                                                                                 "ma"
                                                                                 "x") ", NULL, NULL, " VALUE("consensus_distance") ", NULL";

static enum kith_err fail(const struct kith_database *database, char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "comparing the run database %s: %s", database->path,
                  sqlite3_errmsg(database->handle));
    return KITH_EPARSE;
}

static enum kith_err no_memory(char *error)
{
    kith_text_add(error, KITH_REPORT_ERROR_BYTES, 0,
                  "comparing runs: out of memory, or more than %u rows",
                  ROWS_MAX);
    return KITH_ENOMEM;
}

static void column_copy(sqlite3_stmt *row, int at, char *text, size_t size)
{
    const char *value = (const char *)sqlite3_column_text(row, at);
    kith_text_copy(text, size, value == NULL ? "" : value);
}

/* A number, also one that stands as text, as older summaries have it. */
static double column_real(sqlite3_stmt *row, int at)
{
    const double value = sqlite3_column_double(row, at);
    return sqlite3_column_type(row, at) == SQLITE_NULL || !isfinite(value)
               ? NAN
               : value;
}

static struct kith_cell_outcome *cell_add(struct kith_comparison *comparison)
{
    const size_t count = (size_t)comparison->cell_count + 1;
    struct kith_cell_outcome *cells =
        count > ROWS_MAX ? NULL
                         : realloc(comparison->cells, count * sizeof *cells);
    if (cells == NULL) {
        return NULL;
    }
    comparison->cells = cells;
    struct kith_cell_outcome *cell = &cells[comparison->cell_count++];
    memset(cell, 0, sizeof *cell);
    return cell;
}

/* A database of one run is a cell of its own, named by experiment and world. */
static const char *cells_of(const struct kith_database *database)
{
    return database->many
               ? "SELECT cell, label, refused FROM cells ORDER BY cell"
               : "SELECT 1, (SELECT value FROM run WHERE key = 'name') || "
                 "' ' || (SELECT value FROM run WHERE key = 'world'), NULL";
}

static enum kith_err add_cells(struct kith_comparison *comparison,
                               const struct kith_database *database,
                               uint32_t index, char *error)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database->handle, cells_of(database), -1, &row,
                           NULL) != SQLITE_OK) {
        return fail(database, error);
    }
    enum kith_err err = KITH_OK;
    int code = sqlite3_step(row);
    for (; code == SQLITE_ROW && err == KITH_OK; code = sqlite3_step(row)) {
        struct kith_cell_outcome *cell = cell_add(comparison);
        if (cell == NULL) {
            err = no_memory(error);
            break;
        }
        cell->database = index;
        cell->cell = (uint32_t)sqlite3_column_int64(row, 0);
        column_copy(row, 1, cell->label, sizeof cell->label);
        column_copy(row, 2, cell->refused, sizeof cell->refused);
    }
    if (err == KITH_OK && code != SQLITE_DONE) {
        err = fail(database, error);
    }
    sqlite3_finalize(row);
    return err;
}

/* The cell of this number, or NULL. Both lists are in order of number. */
static struct kith_cell_outcome *
cell_find(const struct kith_comparison *comparison, uint32_t *from,
          int64_t number)
{
    while (*from < comparison->cell_count &&
           comparison->cells[*from].cell < number) {
        (*from)++;
    }
    return *from < comparison->cell_count &&
                   comparison->cells[*from].cell == number
               ? &comparison->cells[*from]
               : NULL;
}

static enum kith_err add_settings(struct kith_comparison *comparison,
                                  const struct kith_database *database,
                                  uint32_t first, char *error)
{
    sqlite3_stmt *row;
    if (!database->many) {
        return KITH_OK;
    }
    if (sqlite3_prepare_v2(
            database->handle,
            "SELECT cell, key, value FROM settings ORDER BY cell, key", -1,
            &row, NULL) != SQLITE_OK) {
        return fail(database, error);
    }
    uint32_t from = first;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        struct kith_cell_outcome *cell =
            cell_find(comparison, &from, sqlite3_column_int64(row, 0));
        if (cell == NULL || cell->setting_count == KITH_SETTINGS_MAX) {
            continue;
        }
        struct kith_setting *setting = &cell->settings[cell->setting_count++];
        column_copy(row, 1, setting->key, sizeof setting->key);
        column_copy(row, 2, setting->value, sizeof setting->value);
    }
    sqlite3_finalize(row);
    return code == SQLITE_DONE ? KITH_OK : fail(database, error);
}

static enum kith_run_state state_of(const char *name)
{
    unsigned state = 0;
    while (state + 1 < KITH_RUN_STATE_COUNT &&
           strcmp(name, kith_run_state_name((enum kith_run_state)state)) != 0) {
        state++;
    }
    return (enum kith_run_state)state;
}

static bool add_outcome(struct kith_comparison *comparison, sqlite3_stmt *row,
                        uint32_t cell)
{
    const size_t count = (size_t)comparison->outcome_count + 1;
    /* Doubled: a sweep may have many. */
    if (count > ROWS_MAX) {
        return false;
    }
    if ((count & (count - 1)) == 0) {
        struct kith_outcome *more =
            realloc(comparison->outcomes, 2 * count * sizeof *more);
        if (more == NULL) {
            return false;
        }
        comparison->outcomes = more;
    }
    char state[32];
    column_copy(row, 3, state, sizeof state);
    struct kith_outcome *outcome =
        &comparison->outcomes[comparison->outcome_count++];
    *outcome = (struct kith_outcome){
        .database = comparison->cells[cell].database,
        .run_id = (uint32_t)sqlite3_column_int64(row, 0),
        .cell = cell,
        .seed = (uint64_t)sqlite3_column_int64(row, 2),
        .violations = (uint32_t)sqlite3_column_int64(row, 5),
        .state = state_of(state),
    };
    column_copy(row, 4, outcome->problem, sizeof outcome->problem);
    for (int i = 0; i < KITH_COLUMN_COUNT; i++) {
        outcome->values[i] = column_real(row, 6 + i);
    }
    return true;
}

static enum kith_err add_runs(struct kith_comparison *comparison,
                              const struct kith_database *database,
                              uint32_t first, double target_loss, char *error)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database->handle,
                           database->version >= 3 ? new_runs : old_runs, -1,
                           &row, NULL) != SQLITE_OK) {
        return fail(database, error);
    }
    if (isfinite(target_loss)) {
        sqlite3_bind_double(row, 1, target_loss);
    }
    enum kith_err err = KITH_OK;
    uint32_t from = first;
    int code = sqlite3_step(row);
    for (; code == SQLITE_ROW; code = sqlite3_step(row)) {
        if (cell_find(comparison, &from, sqlite3_column_int64(row, 1)) ==
            NULL) {
            continue;
        }
        if (!add_outcome(comparison, row, from)) {
            err = no_memory(error);
            break;
        }
    }
    if (err == KITH_OK && code != SQLITE_DONE) {
        err = fail(database, error);
    }
    sqlite3_finalize(row);
    return err;
}

enum kith_err kith_comparison_add(struct kith_comparison *comparison,
                                  const struct kith_database *database,
                                  uint32_t index, double target_loss,
                                  char *error)
{
    const uint32_t first = comparison->cell_count;
    enum kith_err err = add_cells(comparison, database, index, error);
    if (err == KITH_OK) {
        err = add_settings(comparison, database, first, error);
    }
    return err == KITH_OK
               ? add_runs(comparison, database, first, target_loss, error)
               : err;
}

static void spread_add(struct kith_spread *spread, double value)
{
    if (!isfinite(value)) {
        return;
    }
    if (spread->count == 0 || value < spread->low) {
        spread->low = value;
    }
    if (spread->count == 0 || value > spread->high) {
        spread->high = value;
    }
    /* Welford: `deviation` is the sum of squares until the end. */
    const double before = spread->count == 0 ? 0 : spread->mean;
    spread->count++;
    spread->mean = before + (value - before) / spread->count;
    spread->deviation += (value - before) * (value - spread->mean);
}

void kith_comparison_finish(struct kith_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++) {
        const struct kith_outcome *outcome = &comparison->outcomes[i];
        struct kith_cell_outcome *cell = &comparison->cells[outcome->cell];
        cell->runs++;
        cell->states[outcome->state]++;
        cell->violations += outcome->violations;
        for (int k = 0; k < KITH_COLUMN_COUNT; k++) {
            spread_add(&cell->spreads[k], outcome->values[k]);
        }
    }
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        for (int k = 0; k < KITH_COLUMN_COUNT; k++) {
            struct kith_spread *spread = &comparison->cells[i].spreads[k];
            if (spread->count == 0) {
                spread->mean = spread->low = spread->high = NAN;
            }
            spread->deviation =
                spread->count < 2
                    ? NAN
                    : sqrt(spread->deviation / (spread->count - 1));
        }
    }
}

enum kith_err kith_compare(const char *const *databases, unsigned count,
                           double target_loss,
                           struct kith_comparison *comparison, char *error)
{
    *comparison = (struct kith_comparison){0};
    enum kith_err err = KITH_OK;
    for (unsigned i = 0; i < count && err == KITH_OK; i++) {
        struct kith_database database;
        err = kith_database_open(databases[i], &database, error);
        if (err == KITH_OK) {
            err = kith_comparison_add(comparison, &database, i, target_loss,
                                      error);
            kith_database_close(&database);
        }
    }
    if (err != KITH_OK) {
        kith_comparison_close(comparison);
        return err;
    }
    kith_comparison_finish(comparison);
    return KITH_OK;
}

void kith_comparison_close(struct kith_comparison *comparison)
{
    free(comparison->outcomes);
    free(comparison->cells);
    *comparison = (struct kith_comparison){0};
}
