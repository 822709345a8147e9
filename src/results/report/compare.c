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
#include "src/results/report/databases.h"

/* Rows of one comparison, over all databases. */
#define ROWS_MAX (2 * KITH_RUNS_MAX)

static void end(struct kith_database *database, struct kith_query *query)
{
    if (!kith_query_end(query) && database->err == KITH_OK)
        database->err =
            kith_text_fail(database->error, KITH_REPORT_ERROR_BYTES,
                           KITH_EPARSE, "comparing the run database %s: %s",
                           database->path, sqlite3_errmsg(database->handle));
}

static void no_memory(struct kith_database *database)
{
    database->err = kith_text_fail(
        database->error, KITH_REPORT_ERROR_BYTES, KITH_ENOMEM,
        "comparing runs: out of memory, or more than %u rows", ROWS_MAX);
}

static struct kith_cell_outcome *cell_add(struct kith_comparison *comparison)
{
    const size_t count = (size_t)comparison->cell_count + 1;
    struct kith_cell_outcome *cells =
        count > ROWS_MAX ? NULL
                         : realloc(comparison->cells, count * sizeof *cells);
    if (cells == NULL)
        return NULL;
    comparison->cells = cells;
    struct kith_cell_outcome *cell = &cells[comparison->cell_count++];
    memset(cell, 0, sizeof *cell);
    return cell;
}

static void add_cells(struct kith_comparison *comparison,
                      struct kith_database *database, uint32_t index)
{
    struct kith_query query;
    kith_database_query(database, database->many ? "cells" : "cells.1", &query,
                        "");
    while (kith_query_next(&query)) {
        struct kith_cell_outcome *cell = cell_add(comparison);
        if (cell == NULL) {
            no_memory(database);
            break;
        }
        cell->database = index;
        cell->cell = (uint32_t)kith_query_whole(&query, 0);
        kith_query_text(&query, 1, cell->label, sizeof cell->label);
        kith_query_text(&query, 2, cell->refused, sizeof cell->refused);
    }
    end(database, &query);
}

/* The cell of this number, or NULL. Both lists are in order of number. */
static struct kith_cell_outcome *
cell_find(const struct kith_comparison *comparison, uint32_t *from,
          int64_t number)
{
    while (*from < comparison->cell_count &&
           comparison->cells[*from].cell < number)
        (*from)++;
    return *from < comparison->cell_count &&
                   comparison->cells[*from].cell == number
               ? &comparison->cells[*from]
               : NULL;
}

static void add_settings(struct kith_comparison *comparison,
                         struct kith_database *database, uint32_t from)
{
    struct kith_query query;
    if (!database->many)
        return;
    kith_database_query(database, "settings", &query, "");
    while (kith_query_next(&query)) {
        struct kith_cell_outcome *cell =
            cell_find(comparison, &from, kith_query_whole(&query, 0));
        if (cell == NULL || cell->setting_count == KITH_SETTINGS_MAX)
            continue;
        struct kith_setting *setting = &cell->settings[cell->setting_count++];
        kith_query_text(&query, 1, setting->key, sizeof setting->key);
        kith_query_text(&query, 2, setting->value, sizeof setting->value);
    }
    end(database, &query);
}

/* The last column of that name, or -1, which reads as NULL. */
static int find_column(const struct kith_query *query, const char *name)
{
    int at = sqlite3_column_count(query->statement) - 1;
    while (at >= 0 &&
           strcmp(sqlite3_column_name(query->statement, at), name) != 0)
        at--;
    return at;
}

static int64_t whole_of(const struct kith_query *query, const char *name)
{
    return kith_query_whole(query, find_column(query, name));
}

static bool add_outcome(struct kith_comparison *comparison,
                        const struct kith_query *query, uint32_t cell)
{
    const size_t count = (size_t)comparison->outcome_count + 1;
    /* Doubled: a sweep may have many. */
    if (count > ROWS_MAX)
        return false;
    if ((count & (count - 1)) == 0) {
        struct kith_outcome *more =
            realloc(comparison->outcomes, 2 * count * sizeof *more);
        if (more == NULL)
            return false;
        comparison->outcomes = more;
    }
    char state[32];
    kith_query_text(query, find_column(query, "state"), state, sizeof state);
    struct kith_outcome *outcome =
        &comparison->outcomes[comparison->outcome_count++];
    *outcome = (struct kith_outcome){
        .database = comparison->cells[cell].database,
        .run_id = (uint32_t)whole_of(query, "run_id"),
        .cell = cell,
        .seed = (uint64_t)whole_of(query, "seed"),
        .violations = (uint32_t)whole_of(query, "violations"),
        .state = kith_run_state_find(state, KITH_RUN_REFUSED),
    };
    kith_query_text(query, find_column(query, "problem"), outcome->problem,
                    sizeof outcome->problem);
    for (int i = 0; i < KITH_COLUMN_COUNT; i++)
        outcome->values[i] = kith_query_real(
            query, find_column(query, kith_comparison_columns[i].name));
    return true;
}

static void add_runs(struct kith_comparison *comparison,
                     struct kith_database *database, uint32_t from,
                     struct kith_target target)
{
    struct kith_query query;
    kith_database_query(database, database->version >= 3 ? "runs" : "run.1",
                        &query, "ri", target.value,
                        (int64_t)target.is_accuracy);
    while (database->err == KITH_OK && kith_query_next(&query))
        if (cell_find(comparison, &from, whole_of(&query, "cell")) != NULL &&
            !add_outcome(comparison, &query, from))
            no_memory(database);
    end(database, &query);
}

void kith_comparison_add(struct kith_comparison *comparison,
                         struct kith_database *database, uint32_t index,
                         struct kith_target target)
{
    const uint32_t first = comparison->cell_count;
    add_cells(comparison, database, index);
    if (database->err == KITH_OK)
        add_settings(comparison, database, first);
    if (database->err == KITH_OK)
        add_runs(comparison, database, first, target);
}

static void spread_add(struct kith_spread *spread, double value)
{
    if (!isfinite(value))
        return;
    if (spread->count == 0 || value < spread->low)
        spread->low = value;
    if (spread->count == 0 || value > spread->high)
        spread->high = value;
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
        if (cell->runs++ == 0)
            cell->first_run = i;
        cell->states[outcome->state]++;
        cell->violations += outcome->violations;
        for (int k = 0; k < KITH_COLUMN_COUNT; k++)
            spread_add(&cell->spreads[k], outcome->values[k]);
    }
    for (uint32_t i = 0; i < comparison->cell_count; i++) {
        for (int k = 0; k < KITH_COLUMN_COUNT; k++) {
            struct kith_spread *spread = &comparison->cells[i].spreads[k];
            if (spread->count == 0)
                spread->mean = spread->low = spread->high = NAN;
            spread->deviation =
                spread->count < 2
                    ? NAN
                    : sqrt(spread->deviation / (spread->count - 1));
        }
    }
}

enum kith_err kith_compare(const char *const *databases, unsigned count,
                           const struct kith_report_options *options,
                           struct kith_comparison *comparison, char *error)
{
    struct kith_databases open;
    *comparison = (struct kith_comparison){0};
    enum kith_err err = kith_databases_open(
        databases, count, KITH_DATABASE_WAIT_MS, &open, error);
    if (err != KITH_OK)
        return err;
    for (unsigned i = 0; i < open.count && err == KITH_OK; i++) {
        kith_comparison_add(comparison, &open.list[i], i, options->target);
        err = open.list[i].err;
    }
    kith_databases_close(&open);
    kith_comparison_finish(comparison);
    if (err == KITH_OK && options->baseline != NULL)
        err = kith_comparison_pair(comparison, options->baseline, error);
    if (err != KITH_OK)
        kith_comparison_close(comparison);
    return err;
}

void kith_comparison_close(struct kith_comparison *comparison)
{
    free(comparison->outcomes);
    free(comparison->cells);
    *comparison = (struct kith_comparison){0};
}
