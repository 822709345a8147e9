/* The tables of a run database. kith_schema_version names this shape; a reader
 * refuses another one. Times are seconds since the start of the run, NULL is
 * "not measured", peer NULL is the averaged model. */
#ifndef KITH_SRC_STORE_SCHEMA_H
#define KITH_SRC_STORE_SCHEMA_H

/* "kith" in ASCII: PRAGMA application_id, what `file` and the report check. */
#define STORE_APPLICATION_ID 0x6b697468
#define STORE_SCHEMA_VERSION 2
/* The oldest that a report reads: 1 has no STORE_SPEED. */
#define STORE_SCHEMA_OLDEST 1

/* X(column, type): struct kith_speed, the last columns of the series. */
#define STORE_SPEED(X)                                                         \
    X(samples_per_s, "REAL")                                                   \
    X(tokens_per_s, "REAL")                                                    \
    X(flop_per_s, "REAL")                                                      \
    X(mfu, "REAL")                                                             \
    X(data_wait_s, "REAL")                                                     \
    X(exchange_overlap, "REAL")                                                \
    X(memory_bytes, "INTEGER")
#define STORE_SPEED_TYPED(name, type) ", " #name " " type
#define STORE_SPEED_NAMED(name, type) ", " #name
#define STORE_SPEED_NULL(name, type) ", NULL AS " #name
#define STORE_SPEED_TYPES STORE_SPEED(STORE_SPEED_TYPED)
#define STORE_SPEED_NAMES STORE_SPEED(STORE_SPEED_NAMED)
#define STORE_SPEED_NULLS STORE_SPEED(STORE_SPEED_NULL)

/* One statement per line of the array in store.c's open. */
#define STORE_TABLES                                                           \
    "CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"             \
    "CREATE TABLE series(peer INTEGER, time_s REAL NOT NULL,"                  \
    " step INTEGER NOT NULL, samples INTEGER NOT NULL, loss REAL,"             \
    " accuracy REAL, consensus_distance REAL, bytes_sent INTEGER,"             \
    " bytes_received INTEGER, waiting_s REAL, staleness REAL,"                 \
    " attempts INTEGER, done INTEGER, failed INTEGER, refused INTEGER,"        \
    " skipped INTEGER, torn INTEGER, cpu_train_s REAL, cpu_aead_s REAL,"       \
    " cpu_socket_s REAL, cpu_other_s REAL" STORE_SPEED_TYPES ");"              \
    "CREATE TABLE mark_kinds(kind INTEGER PRIMARY KEY, name TEXT NOT NULL);"   \
    "CREATE TABLE marks(peer INTEGER NOT NULL, time_s REAL NOT NULL,"          \
    " kind INTEGER NOT NULL, other INTEGER, initiator INTEGER NOT NULL,"       \
    " incarnation INTEGER NOT NULL, counter INTEGER NOT NULL,"                 \
    " value INTEGER NOT NULL, sum REAL);"                                      \
    "CREATE TABLE faults(at_s REAL NOT NULL, happened_s REAL NOT NULL,"        \
    " fault TEXT NOT NULL, peer INTEGER NOT NULL, other INTEGER,"              \
    " factor REAL, statement INTEGER);"                                        \
    "CREATE TABLE verdicts(assertion TEXT NOT NULL, held INTEGER NOT NULL,"    \
    " value REAL, at_s REAL);"                                                 \
    "CREATE TABLE summary(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"         \
    "CREATE VIEW peers AS SELECT peer, max(time_s) AS time_s, step, samples,"  \
    " loss, accuracy, consensus_distance, bytes_sent, bytes_received,"         \
    " waiting_s, staleness, attempts, done, failed, refused, skipped, torn,"   \
    " cpu_train_s, cpu_aead_s, cpu_socket_s, cpu_other_s" STORE_SPEED_NAMES    \
    " FROM series WHERE peer IS NOT NULL GROUP BY peer;"                       \
    "CREATE VIEW exchanges AS SELECT m.time_s, m.peer, k.name AS what,"        \
    " m.other, m.initiator, m.incarnation, m.counter, m.value, m.sum"          \
    " FROM marks m JOIN mark_kinds k USING(kind)"                              \
    " WHERE k.name IN ('opened','refused','serving','merged','done',"          \
    " 'failed','undone','torn','adopted','split');"

#endif
