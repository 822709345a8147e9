/* Goal: many runs share a file: a part becomes rows in one go, whatever ends
 * the launcher leaves whole runs, another writer is refused, a plan is found
 * again, seeds are added; files of older schemas can still be compared.
 * Method: small plans in a temporary folder, parts written by hand, killed
 * launchers, and files with the tables of schema 1 and 2. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "kith/report.h"
#include "kith/sweep.h"
#include "kith/rundb.h"

static char folder[64];
static struct kith_experiment experiment;

static int set_up(void **state)
{
    static const char text[] =
        "name: x\npeers: 4\nmodel: {kind: quadratic, dim: 3}\n"
        "stop: {steps: 9}\ntarget_loss: 0.6\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-runs-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    return kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                                 &experiment, error) != KITH_OK;
}

static int tear_down(void **state)
{
    (void)state;
    kith_experiment_close(&experiment);
    return rmdir(folder);
}

static const struct kith_report_options own = {.target = {.value = NAN}};

static enum kith_err compare(const char *const *paths, double target_loss,
                             struct kith_comparison *comparison, char *error)
{
    struct kith_report_options options = own;
    options.target.value = target_loss;
    return kith_compare(paths, 1, &options, comparison, error);
}

static struct kith_cell cells[3];

/* Cells a, b and a refused one, with so many seeds. */
static struct kith_plan plan_of(uint32_t seeds)
{
    static char text[] = "name: x\n";
    memset(cells, 0, sizeof cells);
    for (int i = 0; i < 3; i++) {
        snprintf(cells[i].label, sizeof cells[i].label, "cell=%c", 'a' + i);
        snprintf(cells[i].path, sizeof cells[i].path, "/x.yaml");
        cells[i].experiment = text;
        cells[i].seed = 7;
        cells[i].setting_count = 1;
        snprintf(cells[i].settings[0].key, sizeof cells[i].settings[0].key,
                 "cell");
        snprintf(cells[i].settings[0].value, sizeof cells[i].settings[0].value,
                 "%c", 'a' + i);
    }
    snprintf(cells[2].refused, sizeof cells[2].refused, "it's nonsense");
    return (struct kith_plan){.name = "x",
                              .kind = "sweep",
                              .seeds = seeds,
                              .cell_count = 3,
                              .cells = cells};
}

static struct kith_runs *create(uint32_t seeds, char *path)
{
    const struct kith_plan plan = plan_of(seeds);
    struct kith_runs *runs = NULL;
    char error[KITH_RUNDB_ERROR_BYTES] = "";
    if (kith_runs_create(folder, &plan, &runs, path, error) != KITH_OK)
        fail_msg("%s", error);
    return runs;
}

/* What a run's process does: three evaluations, a mark, a summary. */
static void write_part(const struct kith_runs *runs, uint32_t run, double loss)
{
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    struct kith_rundb *store = NULL;
    kith_runs_part(runs, run, path);
    if (kith_rundb_create_part(path, run + 1, "sim", &experiment, &store,
                               error) != KITH_OK)
        fail_msg("%s", error);
    for (uint64_t step = 1; step <= 3; step++) {
        const struct kith_row row = {.peer = KITH_NOBODY,
                                     .time_ns = (kith_ns)step * KITH_S,
                                     .step = step,
                                     .loss = loss / (double)step,
                                     .accuracy = NAN};
        assert_int_equal(kith_rundb_row(store, &row), KITH_OK);
    }
    const struct kith_mark mark = {.kind = KITH_MARK_FINISHED,
                                   .peer = KITH_NOBODY};
    assert_int_equal(kith_rundb_mark(store, 1, KITH_S, &mark), KITH_OK);
    struct kith_summary summary = {.world = "sim",
                                   .loss = {loss / 3, loss / 3, loss / 3},
                                   .accuracy = {NAN, NAN, NAN},
                                   .steps = 36,
                                   .bytes_sent = 400,
                                   .bytes_per_peer_max = 150,
                                   .staleness = {0.5, 2},
                                   .utilisation = 0.75,
                                   .consensus_distance = 0.25,
                                   .completed = true};
    assert_int_equal(kith_rundb_finish(store, &experiment, &summary), KITH_OK);
    if (isfinite(loss))
        assert_true(isfinite(summary.time_to_target_s) == (loss / 3 <= 0.6));
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
}

static void take(struct kith_runs *runs, uint32_t run, double loss)
{
    char error[KITH_RUNDB_ERROR_BYTES] = "", part[KITH_PATH_BYTES_MAX];
    write_part(runs, run, loss);
    if (kith_runs_take(runs, run, error) != KITH_OK)
        fail_msg("%s", error);
    kith_runs_part(runs, run, part);
    assert_int_not_equal(access(part, F_OK), 0);
}

static void assert_query(const char *path, const char *sql, const char *wanted)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    assert_int_equal(
        sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL),
        SQLITE_OK);
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    text = text == NULL ? "NULL" : text;
    if (strcmp(text, wanted) != 0)
        fail_msg("%s: found %s, wanted %s", sql, text, wanted);
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

static void test_parts_become_rows(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    struct kith_runs *runs = create(2, path);
    assert_int_equal(kith_runs_count(runs), 6);
    assert_int_equal(kith_runs_state(runs, 2), KITH_RUN_REFUSED);
    take(runs, 0, 1.2);
    take(runs, 4, 6);
    take(runs, 3, NAN); /* it diverged */
    assert_int_equal(kith_runs_fail(runs, 1, "no \"memory\"", error), KITH_OK);
    assert_int_equal(kith_runs_state(runs, 0), KITH_RUN_DONE);
    assert_int_equal(kith_runs_state(runs, 3), KITH_RUN_DIVERGED);
    assert_int_equal(kith_runs_state(runs, 1), KITH_RUN_FAILED);
    kith_runs_close(runs);

    assert_query(path, "SELECT count(*) FROM series", "9");
    assert_query(path, "SELECT count(DISTINCT run_id) FROM marks", "3");
    assert_query(path, "SELECT loss FROM series WHERE run_id = 5 AND step = 2",
                 "3.0");
    assert_query(path, "SELECT time_to_target_s FROM runs WHERE run_id = 1",
                 "2.0");
    assert_query(path, "SELECT time_to_target_s FROM runs WHERE run_id = 5",
                 "NULL");
    assert_query(path, "SELECT bytes_mean FROM runs WHERE run_id = 5", "100.0");
    assert_query(path, "SELECT seed FROM runs WHERE run_id = 5", "8");
    assert_query(path, "SELECT problem FROM runs WHERE run_id = 2",
                 "no \"memory\"");
    assert_query(path, "SELECT count(*) FROM runs WHERE cell = 3", "0");
    assert_query(path,
                 "SELECT value FROM settings WHERE cell = 2 AND key = 'cell'",
                 "b");
    assert_query(path,
                 "SELECT count(*) FROM summary WHERE run_id = 4 AND key "
                 "= 'steps'",
                 "1");
    unlink(path);
}

/* SIGKILL while a part is half written: it is not there, and done again. */
static void test_killed_launcher(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct kith_runs *runs = create(1, path);
        take(runs, 0, 1);
        write_part(runs, 1, 1); /* whole, but not taken over */
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);

    const struct kith_plan plan = plan_of(1);
    struct kith_runs *runs = NULL;
    assert_int_equal(kith_runs_find(folder, &plan, path), KITH_OK);
    if (kith_runs_open(path, &runs, error) != KITH_OK)
        fail_msg("%s", error);
    assert_int_equal(kith_runs_state(runs, 0), KITH_RUN_DONE);
    assert_int_equal(kith_runs_state(runs, 1), KITH_RUN_PLANNED);
    assert_string_equal(kith_runs_plan(runs)->cells[1].label, "cell=b");
    assert_string_equal(kith_runs_plan(runs)->cells[2].refused,
                        "it's nonsense");
    assert_int_equal(kith_runs_plan(runs)->cells[0].seed, 7);
    take(runs, 1, 1); /* nothing of the first try is in the way */
    kith_runs_close(runs);
    assert_query(path, "SELECT count(*) FROM series", "6");

    assert_int_equal(kith_runs_find(folder, &plan, path), KITH_ENOENT);
    const struct kith_plan more = plan_of(2);
    assert_int_equal(kith_runs_find(folder, &more, path), KITH_OK);
    cells[0].label[0] = 'C';
    assert_int_equal(kith_runs_find(folder, &more, path), KITH_ENOENT);
    unlink(path);
}

static void test_one_writer(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    struct kith_runs *runs = create(1, path), *second = NULL;
    assert_int_equal(kith_runs_open(path, &second, error), KITH_EBUSY);
    assert_non_null(strstr(error, "another kith sim"));
    assert_int_equal(kith_runs_extend(runs, 3, error), KITH_OK);
    assert_int_equal(kith_runs_count(runs), 9);
    assert_int_equal(kith_runs_state(runs, 8), KITH_RUN_REFUSED);
    assert_int_equal(kith_runs_state(runs, 7), KITH_RUN_PLANNED);
    assert_int_equal(kith_runs_extend(runs, 2, error), KITH_OK);
    assert_int_equal(kith_runs_count(runs), 9);
    kith_runs_close(runs);
    assert_int_equal(kith_runs_open(path, &second, error), KITH_OK);
    assert_int_equal(kith_runs_count(second), 9);
    kith_runs_close(second);
    assert_int_equal(kith_runs_open("/nowhere/x.db", &second, error),
                     KITH_ENOENT);
    unlink(path);
}

static const struct kith_outcome *
outcome_of(const struct kith_comparison *comparison, uint32_t run_id)
{
    for (uint32_t i = 0; i < comparison->outcome_count; i++)
        if (comparison->outcomes[i].run_id == run_id)
            return &comparison->outcomes[i];
    fail_msg("run %u is not compared", (unsigned)run_id);
    return NULL;
}

static void test_compared(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_REPORT_ERROR_BYTES] = "";
    struct kith_runs *runs = create(3, path);
    take(runs, 0, 3);
    take(runs, 3, 6);
    take(runs, 6, 1.5);
    kith_runs_close(runs);
    const char *const paths[] = {path};
    struct kith_comparison comparison;
    if (compare(paths, NAN, &comparison, error) != KITH_OK)
        fail_msg("%s", error);
    assert_int_equal(comparison.cell_count, 3);
    assert_int_equal(comparison.outcome_count, 6);
    const struct kith_cell_outcome *cell = &comparison.cells[0];
    const struct kith_spread *loss = &cell->spreads[KITH_COLUMN_loss];
    assert_int_equal(cell->runs, 3);
    assert_int_equal(cell->states[KITH_RUN_DONE], 3);
    assert_int_equal(loss->count, 3); /* 1, 2 and 0.5 */
    assert_true(fabs(loss->mean - 3.5 / 3) < 1e-12);
    assert_true(fabs(loss->deviation - 0.76376261582597338) < 1e-12);
    assert_true(loss->low == 0.5 && loss->high == 2);
    assert_int_equal(cell->spreads[KITH_COLUMN_accuracy].count, 0);
    assert_int_equal(cell->spreads[KITH_COLUMN_time_to_target_s].count, 1);
    assert_true(cell->spreads[KITH_COLUMN_utilisation].mean == 0.75);
    assert_int_equal(comparison.cells[1].states[KITH_RUN_PLANNED], 3);
    assert_string_equal(comparison.cells[2].refused, "it's nonsense");
    assert_int_equal(outcome_of(&comparison, 4)->seed, 8);
    kith_comparison_close(&comparison);

    /* Another target is looked up in the series. */
    assert_int_equal(compare(paths, 2.5, &comparison, error), KITH_OK);
    assert_true(
        outcome_of(&comparison, 4)->values[KITH_COLUMN_time_to_target_s] == 3);
    assert_true(
        outcome_of(&comparison, 7)->values[KITH_COLUMN_time_to_target_s] == 1);
    kith_comparison_close(&comparison);
    unlink(path);
}

/* The tables of schema 2 as they were; schema 1 had no samples_per_s and what
 * follows it. */
static void make_old(const char *path, int version)
{
    static const char tables[] =
        "CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
        "CREATE TABLE mark_kinds(kind INTEGER PRIMARY KEY, name TEXT NOT NULL);"
        "CREATE TABLE marks(peer INTEGER NOT NULL, time_s REAL NOT NULL, kind "
        "INTEGER NOT NULL, other INTEGER, initiator INTEGER NOT NULL, "
        "incarnation INTEGER NOT NULL, counter INTEGER NOT NULL, value INTEGER "
        "NOT NULL, sum REAL);"
        "CREATE TABLE faults(at_s REAL NOT NULL, happened_s REAL NOT NULL, "
        "fault TEXT NOT NULL, peer INTEGER NOT NULL, other INTEGER, factor "
        "REAL, statement INTEGER);"
        "CREATE TABLE verdicts(assertion TEXT NOT NULL, held INTEGER NOT NULL,"
        " value REAL, at_s REAL);"
        "CREATE TABLE summary(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
        "INSERT INTO run VALUES('name','old'),('world','sim'),('seed','9'),"
        "('peers','4');"
        "INSERT INTO summary VALUES('loss.averaged','0.5'),('steps','36'),"
        "('bytes.sent','400'),('bytes.per_peer_max','150'),('completed','1'),"
        "('accuracy.averaged',NULL),('violations','0'),"
        "('consensus_distance','0.25');"
        "INSERT INTO series(time_s, step, samples, loss) VALUES(1,9,9,2),"
        "(2,18,18,1),(3,27,27,0.5);";
    char sql[4096], *problem = NULL;
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    snprintf(sql, sizeof sql,
             "PRAGMA application_id=1802073192; PRAGMA user_version=%d;"
             "CREATE TABLE series(peer INTEGER, time_s REAL NOT NULL, step "
             "INTEGER NOT NULL, samples INTEGER NOT NULL, loss REAL, accuracy "
             "REAL, consensus_distance REAL, bytes_sent INTEGER, "
             "bytes_received INTEGER, waiting_s REAL, staleness REAL, attempts "
             "INTEGER, done INTEGER, failed INTEGER, refused INTEGER, skipped "
             "INTEGER, torn INTEGER, cpu_train_s REAL, cpu_aead_s REAL, "
             "cpu_socket_s REAL, cpu_other_s REAL%s);%s",
             version,
             version < 2 ? ""
                         : ", samples_per_s REAL, tokens_per_s REAL, "
                           "flop_per_s REAL, mfu REAL, data_wait_s REAL, "
                           "exchange_overlap REAL, memory_bytes INTEGER",
             tables);
    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s", problem);
    sqlite3_close(database);
}

static void test_older_schemas(void **state)
{
    (void)state;
    char error[KITH_REPORT_ERROR_BYTES] = "";
    for (int version = 1; version <= 2; version++) {
        char path[96], out[96];
        struct kith_comparison comparison;
        snprintf(path, sizeof path, "%s/old.db", folder);
        snprintf(out, sizeof out, "%s/out", folder);
        make_old(path, version);
        const char *const paths[] = {path};
        if (compare(paths, 1.5, &comparison, error) != KITH_OK)
            fail_msg("%s", error);
        assert_int_equal(comparison.outcome_count, 1);
        const struct kith_outcome *outcome = &comparison.outcomes[0];
        assert_string_equal(comparison.cells[0].label, "old sim");
        assert_int_equal(outcome->state, KITH_RUN_DONE);
        assert_int_equal(outcome->seed, 9);
        assert_true(outcome->values[KITH_COLUMN_loss] == 0.5);
        assert_true(outcome->values[KITH_COLUMN_time_to_target_s] == 2);
        assert_true(outcome->values[KITH_COLUMN_bytes_mean] == 100);
        assert_true(outcome->values[KITH_COLUMN_bytes_max] == 150);
        assert_true(isnan(outcome->values[KITH_COLUMN_utilisation]));
        assert_true(isnan(outcome->values[KITH_COLUMN_accuracy]));
        kith_comparison_close(&comparison);
        static const enum kith_report_form forms[] = {
            KITH_REPORT_PAGE, KITH_REPORT_TABLE, KITH_REPORT_POINTS};
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (kith_report_write(paths, 1, out, forms[i], &own, error) !=
                KITH_OK)
                fail_msg("%s", error);
        unlink(path);
        unlink(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_become_rows),
        cmocka_unit_test(test_killed_launcher),
        cmocka_unit_test(test_one_writer),
        cmocka_unit_test(test_compared),
        cmocka_unit_test(test_older_schemas),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
