/* Goal: what goes in comes out; nothing is overwritten; a reader of a file just
 * made is waited for; a killed writer leaves a readable file; errors stick; the
 * JSON has exactly the promised keys.
 * Method: databases in a temporary folder, read back with SQLite; children that
 * are killed or read; RLIMIT_FSIZE for a disk that is full; SQLite behind
 * wrappers that see two threads in it. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "kith/fault.h"
#include "kith/check.h"
#include "kith/rundb.h"

/* The linker puts these around what the store asks of SQLite (--wrap). The
 * connection takes no lock: it is one thread's at a time. */
static pthread_t main_thread;
static atomic_int inside;
static atomic_bool met; /* two were */

static void enter(void)
{
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_store(&met, true);
}

int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
    enter();
    const int code = __real_sqlite3_step(statement);
    if (!pthread_equal(pthread_self(), main_thread))
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    (void)atomic_fetch_sub(&inside, 1);
    return code;
}

/* Asked once, before the next of them. */
static void (*before_exec)(sqlite3 *);
int __real_sqlite3_exec(sqlite3 *database, const char *sql,
                        int (*each)(void *, int, char **, char **), void *user,
                        char **error);
int __wrap_sqlite3_exec(sqlite3 *database, const char *sql,
                        int (*each)(void *, int, char **, char **), void *user,
                        char **error);
int __wrap_sqlite3_exec(sqlite3 *database, const char *sql,
                        int (*each)(void *, int, char **, char **), void *user,
                        char **error)
{
    void (*const before)(sqlite3 *) = before_exec;
    before_exec = NULL;
    if (before != NULL)
        before(database);
    enter();
    const int code = __real_sqlite3_exec(database, sql, each, user, error);
    (void)atomic_fetch_sub(&inside, 1);
    return code;
}

int __real_sqlite3_busy_timeout(sqlite3 *database, int milliseconds);
int __wrap_sqlite3_busy_timeout(sqlite3 *database, int milliseconds);
int __wrap_sqlite3_busy_timeout(sqlite3 *database, int milliseconds)
{
    enter();
    const int code = __real_sqlite3_busy_timeout(database, milliseconds);
    (void)atomic_fetch_sub(&inside, 1);
    return code;
}

static char folder[64];
static struct kith_experiment experiment;

static int set_up(void **state)
{
    main_thread = pthread_self();
    static const char text[] =
        "name: x\npeers: 3\nmodel: {kind: consensus, dim: 1}\nstop: {steps: "
        "9}\n"
        "assert: [always finite(model), finally torn == 0]\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-store-XXXXXX");
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

static struct kith_rundb *create(char path[KITH_PATH_BYTES_MAX])
{
    struct kith_rundb *store = NULL;
    char error[KITH_RUNDB_ERROR_BYTES] = "";
    if (kith_rundb_create(folder, "sim", &experiment, &store, path, error) !=
        KITH_OK)
        fail_msg("%s", error);
    return store;
}

/* The first column of the first row, as text. */
static void query(const char *path, const char *sql, char *out, size_t size)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    assert_int_equal(
        sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    snprintf(out, size, "%s", text == NULL ? "NULL" : text);
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

static void assert_query(const char *path, const char *sql, const char *wanted)
{
    char found[256];
    query(path, sql, found, sizeof found);
    if (strcmp(found, wanted) != 0)
        fail_msg("%s: found %s, wanted %s", sql, found, wanted);
}

static struct kith_row row_of(kith_id peer, uint64_t step)
{
    struct kith_row row = kith_row_unknown(peer);
    row.time_ns = (kith_ns)step * KITH_MS;
    row.step = step;
    row.samples = 16 * step;
    row.loss = 0.5;
    return row;
}

static void test_round_trip(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = create(path);
    const struct kith_row row = row_of(2, 1500), mean = row_of(KITH_NOBODY, 7);
    const struct kith_mark mark = {.kind = KITH_MARK_MERGED,
                                   .peer = 1,
                                   .id = {.counter = 5, .incarnation = 1},
                                   .initiator = true,
                                   .value = UINT64_MAX,
                                   .sum = -0.25};
    const struct kith_atom atom = {.at_ns = 2 * KITH_S,
                                   .fault = kith_fault_find("crash"),
                                   .begins = true,
                                   .peer = 2,
                                   .other = KITH_NOBODY,
                                   .factor = 1,
                                   .statement = 3};
    struct kith_checks checks;
    kith_checks_start(&checks);
    checks.results[0].verdict = KITH_VERDICT_HELD;
    checks.results[1].verdict = KITH_VERDICT_BROKEN;
    checks.results[1].value = 4;

    assert_int_equal(kith_rundb_row(store, &row), KITH_OK);
    assert_int_equal(kith_rundb_row(store, &mean), KITH_OK);
    assert_int_equal(kith_rundb_mark(store, 2, KITH_S, &mark), KITH_OK);
    assert_int_equal(kith_rundb_fault(store, 3 * KITH_S, &atom), KITH_OK);
    assert_int_equal(kith_rundb_verdicts(store, &experiment, &checks), KITH_OK);
    assert_int_equal(kith_rundb_summary(store, "key", "it's \"it\""), KITH_OK);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);

    assert_query(path, "SELECT time_s FROM series WHERE peer = 2", "1.5");
    assert_query(path, "SELECT accuracy FROM series WHERE peer = 2", "NULL");
    assert_query(path, "SELECT step FROM series WHERE peer IS NULL", "7");
    assert_query(path, "SELECT step FROM peers WHERE peer = 2", "1500");
    assert_query(path, "SELECT what FROM exchanges", "merged");
    assert_query(path, "SELECT sum FROM marks", "-0.25");
    assert_query(path, "SELECT happened_s - at_s FROM faults", "1.0");
    assert_query(path, "SELECT fault FROM faults", "crash");
    assert_query(path, "SELECT other FROM faults", "NULL");
    assert_query(path, "SELECT count(*) FROM verdicts WHERE held", "1");
    assert_query(path, "SELECT value FROM verdicts WHERE NOT held", "4.0");
    assert_query(path, "SELECT value FROM summary", "it's \"it\"");
    assert_query(path, "SELECT value FROM run WHERE key = 'peers'", "3");
    assert_query(path,
                 "SELECT value LIKE 'name: x%' FROM run WHERE key = "
                 "'experiment'",
                 "1");
    assert_query(path, "PRAGMA application_id", "1802073192");
    unlink(path);
}

static void test_never_overwrites(void **state)
{
    (void)state;
    char first[KITH_PATH_BYTES_MAX], second[KITH_PATH_BYTES_MAX];
    char error[KITH_RUNDB_ERROR_BYTES];
    assert_int_equal(kith_rundb_close(create(first), error), KITH_OK);
    assert_int_equal(kith_rundb_close(create(second), error), KITH_OK);
    assert_string_not_equal(first, second);
    unlink(first);
    unlink(second);
}

static pid_t reader;

/* Somebody reads the file that has just been made, for a moment. */
static void read_new(sqlite3 *database)
{
    const char *path = sqlite3_db_filename(database, "main");
    int told[2];
    char word;
    assert_int_equal(pipe(told), 0);
    reader = fork();
    if (reader == 0) {
        sqlite3 *own = NULL;
        const bool reads =
            sqlite3_open_v2(path, &own, SQLITE_OPEN_READONLY, NULL) ==
                SQLITE_OK &&
            __real_sqlite3_exec(own, "BEGIN; SELECT * FROM sqlite_master", NULL,
                                NULL, NULL) == SQLITE_OK;
        const bool says = write(told[1], reads ? "y" : "n", 1) == 1;
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        _exit(says ? 0 : 1);
    }
    assert_int_equal(read(told[0], &word, 1), 1);
    assert_int_equal(word, 'y');
    close(told[0]);
    close(told[1]);
}

static void test_read_at_birth(void **state)
{
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    int status;
    (void)state;
    before_exec = read_new;
    struct kith_rundb *store = create(path);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
    unlink(path);
}

static void test_folders(void **state)
{
    (void)state;
    struct kith_rundb *store;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    assert_int_equal(kith_rundb_create("/nonexistent", "sim", &experiment,
                                       &store, path, error),
                     KITH_ENOENT);
    assert_non_null(strstr(error, "--out"));
    assert_int_equal(kith_rundb_create("/proc", "sim", &experiment, &store,
                                       path, error) == KITH_OK,
                     0);
}

/* Killed in the middle of rows: the file opens, its rows are whole. */
static void test_kill(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], found[64];
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct kith_rundb *store = create(path);
        /* The path, then rows until the end; past the first second they are
         * committed. */
        if (write(ready[1], path, sizeof path) < 0)
            _exit(1);
        for (uint64_t step = 0;; step++) {
            const struct kith_row row = row_of(0, step);
            if (kith_rundb_row(store, &row) != KITH_OK)
                _exit(1);
            usleep(100);
        }
    }
    assert_int_equal(read(ready[0], path, sizeof path), sizeof path);
    usleep(1500000);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);

    assert_query(path, "PRAGMA integrity_check", "ok");
    query(path, "SELECT count(*) FROM series", found, sizeof found);
    assert_true(atoi(found) > 100);
    close(ready[0]);
    close(ready[1]);
    unlink(path);
}

static enum kith_err put_row(struct kith_rundb *store, uint64_t step)
{
    const struct kith_row row = row_of(0, step);
    return kith_rundb_row(store, &row);
}

static enum kith_err put_mark(struct kith_rundb *store, uint64_t counter)
{
    const struct kith_mark mark = {
        .kind = KITH_MARK_MERGED, .peer = 1, .id = {.counter = counter}};
    return kith_rundb_mark(store, 2, (kith_ns)counter, &mark);
}

/* Marks that a thread writes: all of them, in order, beside rows; while it has
 * the database nobody else does. */
static void test_ahead(void **state)
{
    (void)state;
    enum { MARKS = 10000 };
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = create(path);
    kith_rundb_start_writer(store);
    for (uint64_t i = 1; i <= MARKS; i++) {
        assert_int_equal(put_mark(store, i), KITH_OK);
        if (i % 997 == 0 && i < 7000)
            assert_int_equal(put_row(store, i), KITH_OK);
        if (i == MARKS / 2)
            assert_int_equal(kith_rundb_commit(store), KITH_OK);
    }
    /* The thread has begun with the last batch, and is not through. */
    (void)nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
    assert_false(atomic_load(&met));
    assert_query(path, "SELECT count(*) FROM marks", "10000");
    assert_query(path, "SELECT count(*) FROM marks WHERE rowid != counter",
                 "0");
    assert_query(path, "SELECT count(*) FROM series", "7");
    assert_query(path, "PRAGMA integrity_check", "ok");
    unlink(path);
}

/* The disk fills up: one clear error that stays, and a readable file. */
static void fill_up(bool ahead, enum kith_err (*put)(struct kith_rundb *store,
                                                     uint64_t step))
{
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES] = "";
    struct rlimit old, small;
    struct kith_rundb *store = create(path);
    if (ahead)
        kith_rundb_start_writer(store);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 256 * 1024;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

    enum kith_err err = KITH_OK;
    for (uint64_t step = 0; step < 2000000 && err == KITH_OK; step++)
        err = put(store, step);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

    assert_true(err == KITH_ENOSPC || err == KITH_EIO);
    assert_int_equal(put(store, 1), err);
    assert_int_equal(put_row(store, 1), err);
    assert_non_null(strstr(kith_rundb_error(store), path));
    assert_int_equal(kith_rundb_close(store, error), err);
    assert_non_null(strstr(error, path));
    assert_query(path, "PRAGMA integrity_check", "ok");
    unlink(path);
}

static void test_full(void **state)
{
    (void)state;
    fill_up(false, put_row);
    fill_up(false, put_mark);
    fill_up(true, put_mark);
}

static struct kith_summary some_summary(void)
{
    return (struct kith_summary){
        .world = "sim",
        .trace_hash = 0xabc,
        .has_trace_hash = true,
        .virtual_s = 1.5,
        .wall_s = 0.25,
        .events = UINT64_MAX,
        .steps = 9,
        .samples = 144,
        .accuracy = {0.75, NAN, INFINITY},
        .loss = {NAN, NAN, NAN},
        .consensus_distance = 0,
        .correlation = {1, 0.5},
        .exchanges = {1, 2, 3, 4, 5, 6},
        .bytes_sent = 100,
        .bytes_per_peer_max = 60,
        .staleness = {0.5, 3},
        .utilisation = NAN,
        .channel = {NAN, NAN, NAN, NAN, NAN},
        .cpu = {NAN, NAN, NAN, NAN},
        .completed = true,
    };
}

/* Exactly the keys of docs/operations.md, in order, and nothing else. */
static void test_json(void **state)
{
    (void)state;
    char found[2048] = "", wanted[2048], path[96];
    const struct kith_summary summary = some_summary();
    snprintf(path, sizeof path, "%s/out", folder);
    fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    assert_non_null(freopen(path, "w", stdout));
    kith_summary_json(stdout, &experiment, &summary, "a\"b.db");
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    assert_null(fgets(wanted, sizeof wanted, file)); /* one line */
    fclose(file);
    unlink(path);

    snprintf(wanted, sizeof wanted,
             "{\"experiment\": \"x\", \"world\": \"sim\", \"peers\": 3, "
             "\"seed\": 1, \"build\": \"%s\", "
             "\"trace_hash\": \"0000000000000abc\", \"virtual_s\": 1.5, "
             "\"wall_s\": 0.25, \"events\": null, \"steps\": 9, "
             "\"samples\": 144, "
             "\"accuracy\": {\"averaged\": 0.75, \"mean\": null, "
             "\"worst\": null, \"peers\": 0, \"mean_error\": null}, "
             "\"loss\": {\"averaged\": null, \"mean\": null, "
             "\"worst\": null}, \"consensus_distance\": 0, "
             "\"correlation\": {\"last\": 1, \"lowest\": 0.5}, "
             "\"exchanges\": {\"done\": 2, \"failed\": 3, \"refused\": 4}, "
             "\"bytes\": {\"sent\": 100, \"per_peer_max\": 60}, "
             "\"staleness\": {\"mean\": 0.5, \"max\": 3}, "
             "\"utilisation\": null, "
             "\"channel\": {\"in_flight_mean\": null, "
             "\"in_flight_max\": null, \"idle_s\": null, "
             "\"idle_share\": null, \"passes\": null}, "
             "\"curve\": {\"points\": 0, \"left_out\": 0, \"rows\": 0}, "
             "\"time_to_target_s\": null, "
             "\"speed\": {\"samples_per_s\": null, \"tokens_per_s\": null, "
             "\"flop_per_s\": null, \"mfu\": null, "
             "\"peak_flop_per_s\": null, \"data_wait_s\": null, "
             "\"exchange_overlap\": null, \"memory_bytes\": null}, "
             "\"compute\": {\"products\": \"own\", \"threads\": null}, "
             "\"pieces\": {\"count\": null, \"origin\": null, \"peers\": null, "
             "\"disk\": null, \"refused\": null, \"unkept\": null}, "
             "\"faults\": 0, \"violations\": 0, "
             "\"database\": \"a\\\"b.db\"}\n",
             kith_build());
    assert_string_equal(found, wanted);
}

static void test_finish(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = create(path);
    struct kith_summary summary = some_summary();
    assert_int_equal(kith_rundb_finish(store, &experiment, &summary), KITH_OK);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
    assert_query(path, "SELECT value FROM summary WHERE key = 'experiment'",
                 "x");
    assert_query(path,
                 "SELECT value FROM summary WHERE key = 'accuracy.averaged'",
                 "0.75");
    assert_query(path, "SELECT value FROM summary WHERE key = 'events'",
                 "NULL");
    assert_query(path, "SELECT value FROM summary WHERE key = 'exchanges.torn'",
                 "6");
    unlink(path);
}

static void count_row(void *user, const struct kith_row *row)
{
    struct kith_row *last = user;
    assert_true(row->step > last->step || last->step == 0);
    *last = *row;
}

/* A run goes on in its own database; what it will do again is taken out. */
static void test_go_on(void **state)
{
    (void)state;
    char path[KITH_PATH_BYTES_MAX], error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = create(path);
    struct kith_summary summary = some_summary();
    struct kith_row row = {.peer = 1,
                           .time_ns = 1500000000,
                           .samples = 7,
                           .loss = 0.25,
                           .accuracy = NAN,
                           .bytes_sent = 40,
                           .torn = 3,
                           .cpu_other_s = 0.5};
    for (row.step = 1; row.step <= 5; row.step++)
        assert_int_equal(kith_rundb_row(store, &row), KITH_OK);
    assert_int_equal(kith_rundb_finish(store, &experiment, &summary), KITH_OK);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);

    struct kith_experiment other = experiment;
    other.seed++;
    assert_int_equal(kith_rundb_reopen(path, "sim", &other, &store, error),
                     KITH_EMISMATCH);
    assert_non_null(strstr(error, "of another experiment: its seed is 1, this "
                                  "run's is 2"));
    assert_int_equal(kith_rundb_reopen(path, "lab", &experiment, &store, error),
                     KITH_EMISMATCH);
    assert_int_equal(
        kith_rundb_reopen("/nowhere/x.db", "sim", &experiment, &store, error),
        KITH_ENOENT);
    char *text;
    assert_int_equal(kith_rundb_experiment(path, &text, error), KITH_OK);
    assert_string_equal(text, experiment.source);
    free(text);

    if (kith_rundb_reopen(path, "sim", &experiment, &store, error) != KITH_OK)
        fail_msg("%s", error);
    assert_query(path, "SELECT count(*) FROM series", "5"); /* so far */
    struct kith_row last = {.step = 0};
    uint32_t next = 9;
    assert_int_equal(kith_rundb_go_back(store, 4, &last, count_row), KITH_OK);
    assert_int_equal(kith_rundb_incarnation(store, &next), KITH_OK);
    assert_int_equal(next, 0); /* no marks */
    assert_int_equal(last.step, 3);
    assert_int_equal(last.peer, 1);
    assert_int_equal(last.time_ns, 1500000000);
    assert_true(last.loss == 0.25 && isnan(last.accuracy));
    assert_int_equal(last.torn, 3);
    assert_true(last.cpu_other_s == 0.5);
    row.step = 4;
    assert_int_equal(kith_rundb_row(store, &row), KITH_OK);
    assert_int_equal(kith_rundb_commit(store), KITH_OK);
    assert_query(path, "SELECT count(*) FROM series", "4");
    assert_query(path, "SELECT count(*) FROM summary", "0");
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_never_overwrites),
        cmocka_unit_test(test_read_at_birth),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_go_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
