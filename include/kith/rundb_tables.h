/* The tables of a run database. RUNDB_SCHEMA_VERSION names this shape; a reader
 * refuses a later one. Times are seconds since the start of the run, NULL is
 * "not measured", peer NULL is the averaged model.
 *
 * One file holds one run, run_id 1, or the many of a sweep. There run_id 0 of
 * the table run says what all have in common, and `settings` in what the cells
 * differ. */
#ifndef KITH_RUNDB_TABLES_H
#define KITH_RUNDB_TABLES_H

/* "kith" in ASCII: PRAGMA application_id, what `file` and the report check. */
#define RUNDB_APPLICATION_ID 0x6b697468
#define RUNDB_SCHEMA_VERSION 3
/* The oldest that a report reads: 1 has no RUNDB_SPEED; 1 and 2 hold one run,
 * without run_id, RUNDB_AGE, runs, cells and settings. */
#define RUNDB_SCHEMA_OLDEST 1

/* X(column, type): struct kith_speed, the last columns of the series. */
#define RUNDB_SPEED(X)                                                         \
    X(samples_per_s, "REAL")                                                   \
    X(tokens_per_s, "REAL")                                                    \
    X(flop_per_s, "REAL")                                                      \
    X(mfu, "REAL")                                                             \
    X(data_wait_s, "REAL")                                                     \
    X(exchange_overlap, "REAL")                                                \
    X(memory_bytes, "INTEGER")
/* Behind staleness; what is the age of a model, and the rest of the time. */
#define RUNDB_AGE(X)                                                           \
    X(staleness_max, "REAL")                                                   \
    X(received, "INTEGER")                                                     \
    X(training_s, "REAL")
/* What runs are compared by: columns of the table runs. */
#define RUNDB_RESULTS(X)                                                       \
    X(target_loss, "REAL")                                                     \
    X(time_to_target_s, "REAL")                                                \
    X(steps, "INTEGER")                                                        \
    X(bytes_mean, "REAL")                                                      \
    X(bytes_max, "INTEGER")                                                    \
    X(staleness_mean, "REAL")                                                  \
    X(staleness_max, "REAL")                                                   \
    X(consensus_distance, "REAL")                                              \
    X(utilisation, "REAL")                                                     \
    X(loss, "REAL")                                                            \
    X(accuracy, "REAL")                                                        \
    X(violations, "INTEGER")                                                   \
    X(virtual_s, "REAL")                                                       \
    X(wall_s, "REAL")
#define RUNDB_TYPED(name, type) ", " #name " " type
#define RUNDB_NAMED(name, type) ", " #name
#define RUNDB_NULL(name, type) ", NULL AS " #name
#define RUNDB_SPEED_TYPES RUNDB_SPEED(RUNDB_TYPED)
#define RUNDB_SPEED_NAMES RUNDB_SPEED(RUNDB_NAMED)
#define RUNDB_SPEED_NULLS RUNDB_SPEED(RUNDB_NULL)
#define RUNDB_AGE_NAMES RUNDB_AGE(RUNDB_NAMED)
#define RUNDB_AGE_NULLS RUNDB_AGE(RUNDB_NULL)
#define RUNDB_RESULT_NAMES RUNDB_RESULTS(RUNDB_NAMED)

/* One statement per line of the array in rundb_open.c. */
#define RUNDB_TABLES                                                           \
    "CREATE TABLE runs(run_id INTEGER PRIMARY KEY, cell INTEGER NOT NULL,"     \
    " seed INTEGER NOT NULL, state TEXT NOT NULL,"                             \
    " problem TEXT" RUNDB_RESULTS(                                             \
        RUNDB_TYPED) ");"                                                      \
                     "CREATE TABLE cells(cell INTEGER PRIMARY KEY, label "     \
                     "TEXT NOT NULL,"                                          \
                     " path TEXT, seed INTEGER, experiment TEXT, refused "     \
                     "TEXT);"                                                  \
                     "CREATE TABLE settings(cell INTEGER NOT NULL, key TEXT "  \
                     "NOT NULL,"                                               \
                     " value TEXT NOT NULL, PRIMARY KEY(cell, key)) WITHOUT "  \
                     "ROWID;"                                                  \
                     "CREATE TABLE run(run_id INTEGER NOT NULL, key TEXT NOT " \
                     "NULL, value,"                                            \
                     " PRIMARY KEY(run_id, key)) WITHOUT ROWID;"               \
                     "CREATE TABLE series(run_id INTEGER NOT NULL, peer "      \
                     "INTEGER,"                                                \
                     " time_s REAL NOT NULL,"                                  \
                     " step INTEGER NOT NULL, samples INTEGER NOT NULL, loss " \
                     "REAL,"                                                   \
                     " accuracy REAL, consensus_distance REAL, bytes_sent "    \
                     "INTEGER,"                                                \
                     " bytes_received INTEGER, waiting_s REAL,"                \
                     " staleness REAL" RUNDB_AGE(                              \
                         RUNDB_TYPED) ","                                      \
                                      " attempts INTEGER, done INTEGER, "      \
                                      "failed INTEGER, refused INTEGER,"       \
                                      " skipped INTEGER, torn INTEGER, "       \
                                      "cpu_train_s REAL, cpu_aead_s REAL,"     \
                                      " cpu_socket_s REAL, cpu_other_s "       \
                                      "REAL" RUNDB_SPEED_TYPES ");"            \
                                      "CREATE TABLE mark_kinds(kind INTEGER "  \
                                      "PRIMARY KEY, name TEXT NOT NULL);"      \
                                      "CREATE TABLE marks(run_id INTEGER NOT " \
                                      "NULL, peer INTEGER NOT NULL,"           \
                                      " time_s REAL NOT NULL,"                 \
                                      " kind INTEGER NOT NULL, other "         \
                                      "INTEGER, initiator INTEGER NOT NULL,"   \
                                      " incarnation INTEGER NOT NULL, "        \
                                      "counter INTEGER NOT NULL,"              \
                                      " value INTEGER NOT NULL, sum REAL);"    \
                                      "CREATE TABLE faults(run_id INTEGER "    \
                                      "NOT NULL, at_s REAL NOT NULL,"          \
                                      " happened_s REAL NOT NULL,"             \
                                      " fault TEXT NOT NULL, peer INTEGER "    \
                                      "NOT NULL, other INTEGER,"               \
                                      " factor REAL, statement INTEGER);"      \
                                      "CREATE TABLE verdicts(run_id INTEGER "  \
                                      "NOT NULL, assertion TEXT NOT NULL,"     \
                                      " held INTEGER NOT NULL, value REAL, "   \
                                      "at_s REAL);"                            \
                                      "CREATE TABLE summary(run_id INTEGER "   \
                                      "NOT NULL, key TEXT NOT NULL, value,"    \
                                      " PRIMARY KEY(run_id, key)) WITHOUT "    \
                                      "ROWID;"                                 \
                                      "CREATE VIEW peers AS SELECT run_id, "   \
                                      "peer, max(time_s) AS time_s, step,"     \
                                      " samples, loss, accuracy, "             \
                                      "consensus_distance, bytes_sent,"        \
                                      " bytes_received, waiting_s, "           \
                                      "staleness" RUNDB_AGE_NAMES ","          \
                                      " attempts, done, failed, refused, "     \
                                      "skipped, torn,"                         \
                                      " cpu_train_s, cpu_aead_s, "             \
                                      "cpu_socket_s, "                         \
                                      "cpu_other_s" RUNDB_SPEED_NAMES          \
                                      " FROM series WHERE peer IS NOT NULL "   \
                                      "GROUP BY run_id, peer;"                 \
                                      "CREATE VIEW exchanges AS SELECT "       \
                                      "m.run_id, m.time_s, m.peer,"            \
                                      " k.name AS what,"                       \
                                      " m.other, m.initiator, m.incarnation, " \
                                      "m.counter, m.value, m.sum"              \
                                      " FROM marks m JOIN mark_kinds k "       \
                                      "USING(kind)"                            \
                                      " WHERE k.name IN "                      \
                                      "('opened','refused','serving','merged'" \
                                      ",'done',"                               \
                                      " 'failed','undone','torn','adopted','"  \
                                      "split');"
/* Where there are many runs, each is looked up. */
#define RUNDB_INDEXES                                                          \
    "CREATE INDEX series_run ON series(run_id, peer);"                         \
    "CREATE INDEX marks_run ON marks(run_id);"
/* Of a recorded run, and there alone: kith/journal.h. Version 3 stands, for no
 * reader looks at tables that it does not know. peer NULL in models: the
 * average; digest 0, model NULL: not kept. */
#define RUNDB_JOURNAL                                                          \
    "CREATE TABLE journal(run_id INTEGER NOT NULL, peer INTEGER NOT NULL,"     \
    " incarnation INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT "    \
    "NULL, PRIMARY KEY(run_id, peer, incarnation, part)) WITHOUT ROWID;"       \
    "CREATE TABLE models(run_id INTEGER NOT NULL, peer INTEGER, step INTEGER"  \
    " NOT NULL, loss REAL, accuracy REAL, dim INTEGER NOT NULL, digest "       \
    "INTEGER NOT NULL, model BLOB);"

#endif
