/* Goal: a journal says the same on both sides, part by part, and nothing else
 * is taken for one: cut, changed and random bytes are refused or packed again
 * to the same bytes; a killed peer's last words end where they were cut.
 * Method: round trips of every kind with extreme values; each byte of a stream
 * changed; a database with two lives, read back, then damaged with SQLite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "kith/journal.h"
#include "kith/rng.h"
#include "kith/fault.h"
#include "kith/wire.h"

enum { ENTRIES = 11 };

static const struct kith_message model = {.kind = KITH_MESSAGE_MODEL,
                                          .pattern = KITH_PATTERN_ROUND,
                                          .id = {UINT64_MAX, UINT32_MAX},
                                          .mine = true,
                                          .step = UINT64_MAX,
                                          .scalar_count = KITH_SCALARS_MAX,
                                          .scalars = {-0.25},
                                          .payload_bytes = 4096,
                                          .slot = KITH_SLOTS_MAX - 1,
                                          .finite = true,
                                          .distance_squared = 1e300};
static const struct kith_message ack = {.kind = KITH_MESSAGE_ACK,
                                        .pattern = KITH_PATTERN_SWAP,
                                        .id = {.counter = 3},
                                        .slot = KITH_SLOT_NONE};
static const struct kith_work_result trained = {
    .kind = KITH_WORK_TRAIN, .finite = true, .is_part = true, .loss = INFINITY};
static const struct kith_work_result saved = {.kind = KITH_WORK_SAVE};

static struct kith_journal_entry event(enum kith_event_kind kind, kith_ns now,
                                       int64_t utc)
{
    return (struct kith_journal_entry){
        .kind = KITH_JOURNAL_EVENT,
        .event = {
            .kind = kind, .now_ns = now, .utc_s = utc, .from = KITH_NOBODY}};
}

static void make_entries(struct kith_journal_entry entries[ENTRIES])
{
    const int64_t utc = 1800000000;
    entries[0] = (struct kith_journal_entry){.kind = KITH_JOURNAL_BEGIN,
                                             .step = 17,
                                             .digest = UINT64_MAX,
                                             .adopt = true};
    entries[1] = event(KITH_EVENT_START, 0, utc);
    entries[2] = event(KITH_EVENT_WAKE, 1, utc);
    entries[3] = event(KITH_EVENT_LINK_UP, KITH_S, utc + 1);
    entries[3].event.from = KITH_PEERS_MAX - 1;
    entries[4] = event(KITH_EVENT_MESSAGE, KITH_S, utc - 1);
    entries[4].event.from = 1;
    entries[4].event.message = &model;
    entries[5] = event(KITH_EVENT_MESSAGE, 2 * KITH_S, utc - 1);
    entries[5].event.from = 0;
    entries[5].event.message = &ack;
    entries[6] = event(KITH_EVENT_WORK_DONE, 2 * KITH_S, utc);
    entries[6].event.result = &trained;
    entries[7] = event(KITH_EVENT_WORK_DONE, INT64_C(1) << 60, utc);
    entries[7].event.result = &saved;
    entries[8] = event(KITH_EVENT_LEAVE, INT64_C(1) << 60, -utc);
    entries[9] = (struct kith_journal_entry){
        .kind = KITH_JOURNAL_LIE,
        .lie = {KITH_LIE_SCALE, -10, KITH_FAULT_MODELS_MAX}};
    entries[10] =
        (struct kith_journal_entry){.kind = KITH_JOURNAL_END, .ran = true};
}

static size_t pack_all(uint8_t bytes[ENTRIES * KITH_JOURNAL_ENTRY_BYTES_MAX],
                       size_t ends[ENTRIES])
{
    struct kith_journal_entry entries[ENTRIES];
    struct kith_journal_clock clock = {0};
    size_t at = 0;
    make_entries(entries);
    for (int i = 0; i < ENTRIES; i++)
        ends[i] = at += kith_journal_pack(&clock, &entries[i], bytes + at);
    return at;
}

static void assert_same(const struct kith_journal_entry *a,
                        const struct kith_journal_entry *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(a->step == b->step && a->digest == b->digest);
    assert_true(a->adopt == b->adopt && a->ran == b->ran);
    assert_memory_equal(&a->lie, &b->lie, sizeof a->lie);
    if (a->kind != KITH_JOURNAL_EVENT)
        return;
    assert_int_equal(a->event.kind, b->event.kind);
    assert_true(a->event.now_ns == b->event.now_ns);
    assert_true(a->event.utc_s == b->event.utc_s);
    assert_int_equal(a->event.from, b->event.from);
    if (a->event.message != NULL)
        assert_memory_equal(a->event.message, &b->message, sizeof b->message);
    if (a->event.result != NULL)
        assert_memory_equal(a->event.result, &b->result, sizeof b->result);
}

static void test_round_trip(void **state)
{
    (void)state;
    uint8_t bytes[ENTRIES * KITH_JOURNAL_ENTRY_BYTES_MAX];
    size_t ends[ENTRIES], at = 0;
    struct kith_journal_entry entries[ENTRIES], found;
    struct kith_journal_clock clock = {0};
    const size_t size = pack_all(bytes, ends);
    make_entries(entries);

    for (int i = 0; i < ENTRIES; i++) {
        size_t used = 0;
        for (size_t cut = 0; cut < ends[i] - at; cut++)
            assert_int_equal(
                kith_journal_unpack(&clock, bytes + at, cut, &found, &used),
                KITH_EAGAIN);
        assert_int_equal(
            kith_journal_unpack(&clock, bytes + at, size - at, &found, &used),
            KITH_OK);
        assert_int_equal(used, ends[i] - at);
        assert_same(&entries[i], &found);
        at += used;
    }
    assert_int_equal(at, size);
}

/* What a reader got must pack to the bytes it was read from; a varint may have
 * been longer than it need be. */
static void walk(const uint8_t *bytes, size_t size)
{
    struct kith_journal_clock clock = {0}, again = {0};
    struct kith_journal_entry entry;
    size_t at = 0, used = 0;
    uint8_t packed[KITH_JOURNAL_ENTRY_BYTES_MAX];
    while (kith_journal_unpack(&clock, bytes + at, size - at, &entry, &used) ==
           KITH_OK) {
        assert_in_range(used, 1, size - at);
        entry.event.message = &entry.message;
        entry.event.result = &entry.result;
        assert_in_range(kith_journal_pack(&again, &entry, packed), 1, used);
        assert_memory_equal(&clock, &again, sizeof clock);
        at += used;
    }
}

static void test_damaged_bytes(void **state)
{
    (void)state;
    uint8_t bytes[ENTRIES * KITH_JOURNAL_ENTRY_BYTES_MAX], noise[256];
    size_t ends[ENTRIES];
    const size_t size = pack_all(bytes, ends);
    for (size_t i = 0; i < size; i++) {
        const uint8_t kept = bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            bytes[i] = (uint8_t)value;
            walk(bytes, size);
        }
        bytes[i] = kept;
    }
    struct kith_rng rng;
    kith_rng_init(&rng, 7, KITH_STREAM_TEST, 0);
    for (int turn = 0; turn < 20000; turn++) {
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)kith_rng_u32(&rng);
        noise[0] %= 8;
        walk(noise, sizeof noise);
    }
}

/* ---- in a database */

static char folder[64], path[KITH_PATH_BYTES_MAX];
static struct kith_experiment experiment;

static int set_up(void **state)
{
    static const char text[] = "name: x\npeers: 3\nmodel: {kind: quadratic, "
                               "dim: 4}\nstop: {steps: 9}\n";
    char error[KITH_EXPERIMENT_ERROR_BYTES];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-journal-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    if (kith_experiment_parse("x.yaml", text, strlen(text), NULL, 0,
                              &experiment, error) == KITH_OK)
        return 0;
    fprintf(stderr, "%s\n", error);
    return 1;
}

static int tear_down(void **state)
{
    (void)state;
    kith_experiment_close(&experiment);
    return rmdir(folder);
}

static void write_part(struct kith_rundb *store, uint32_t life, uint32_t part,
                       const uint8_t *bytes, size_t size)
{
    assert_int_equal(kith_rundb_journal(store, 1, life, part, bytes, size),
                     KITH_OK);
}

/* Peer 1: a life cut within an entry, and a whole one in parts of 7 bytes; its
 * final model. */
static void write_run(void)
{
    uint8_t bytes[ENTRIES * KITH_JOURNAL_ENTRY_BYTES_MAX];
    size_t ends[ENTRIES];
    char error[KITH_RUNDB_ERROR_BYTES];
    struct kith_rundb *store = NULL;
    const struct kith_score score = {.loss = 0.5, .accuracy = NAN};
    const double z[4] = {1, 2, 3, 4};
    const size_t size = pack_all(bytes, ends);
    assert_int_equal(
        kith_rundb_create(folder, "lab", &experiment, &store, path, error),
        KITH_OK);
    assert_int_equal(kith_rundb_journal_begin(store), KITH_OK);
    write_part(store, 0, 0, bytes, ends[3]);
    write_part(store, 0, 1, bytes + ends[3], 5);
    uint32_t part = 0;
    for (size_t at = 0; at < size; at += 7)
        write_part(store, 2, part++, bytes + at, size - at < 7 ? size - at : 7);
    assert_int_equal(kith_rundb_model(store, 1, 9, &score, z, 4), KITH_OK);
    assert_int_equal(kith_rundb_model(store, KITH_NOBODY, 9, &score, NULL, 4),
                     KITH_OK);
    assert_int_equal(kith_rundb_close(store, error), KITH_OK);
}

static void execute(const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void test_read_back(void **state)
{
    (void)state;
    char note[KITH_JOURNAL_ERROR_BYTES], error[KITH_JOURNAL_ERROR_BYTES];
    struct kith_journal *journal;
    struct kith_journal_entry entries[ENTRIES], found;
    struct kith_journal_model kept;
    uint32_t life;
    double z[4];
    write_run();
    make_entries(entries);

    assert_int_equal(
        kith_journal_open(path, &experiment, &journal, note, error), KITH_OK);
    assert_string_equal(note, "");
    assert_true(kith_journal_returns(journal, 1, 0));
    assert_false(kith_journal_returns(journal, 1, 2));
    for (int i = 0; i < 4 + ENTRIES; i++) {
        assert_int_equal(kith_journal_next(journal, 1, &life, &found, error),
                         KITH_OK);
        assert_int_equal(life, i < 4 ? 0 : 2);
        assert_same(&entries[i < 4 ? i : i - 4], &found);
    }
    assert_int_equal(kith_journal_next(journal, 1, &life, &found, error),
                     KITH_ENOENT);
    assert_int_equal(kith_journal_next(journal, 0, &life, &found, error),
                     KITH_ENOENT);
    assert_int_equal(kith_journal_model(journal, 1, 4, &kept, z, error),
                     KITH_OK);
    assert_true(kept.kept && kept.step == 9 && z[3] == 4);
    assert_true(kept.digest == kith_journal_digest(z, 4));
    assert_true(kept.score.loss == 0.5 && isnan(kept.score.accuracy));
    assert_int_equal(
        kith_journal_model(journal, KITH_NOBODY, 4, &kept, NULL, error),
        KITH_OK);
    assert_false(kept.kept);
    assert_int_equal(kith_journal_model(journal, 2, 4, &kept, z, error),
                     KITH_ENOENT);
    assert_int_equal(kith_journal_model(journal, 1, 5, &kept, z, error),
                     KITH_EPARSE);
    kith_journal_close(journal);
    unlink(path);
}

/* How reading peer 1 to its end ends; the error must name what it met. */
static void assert_refused(const char *damage, enum kith_err wanted,
                           const char *words)
{
    char note[KITH_JOURNAL_ERROR_BYTES], error[KITH_JOURNAL_ERROR_BYTES] = "";
    struct kith_journal *journal = NULL;
    struct kith_journal_entry entry;
    uint32_t life;
    write_run();
    execute(damage);
    enum kith_err err =
        kith_journal_open(path, &experiment, &journal, note, error);
    while (err == KITH_OK)
        err = kith_journal_next(journal, 1, &life, &entry, error);
    if (err != wanted || strstr(error, words) == NULL)
        fail_msg("%s: %s, \"%s\", not \"%s\"", damage, kith_err_text(err),
                 error, words);
    kith_journal_close(journal);
    unlink(path);
}

static void test_damaged_database(void **state)
{
    (void)state;
    assert_refused("DELETE FROM journal WHERE incarnation=2 AND part=3",
                   KITH_EPARSE, "part 3 of peer 1's journal (life 2)");
    assert_refused("UPDATE journal SET part=part+1 WHERE incarnation=0 AND "
                   "part=1",
                   KITH_EPARSE, "part 1 of peer 1's journal (life 0)");
    assert_refused("UPDATE journal SET bytes=zeroblob(481) WHERE part=1",
                   KITH_EPARSE, "a part of 481 bytes");
    assert_refused("UPDATE journal SET bytes=zeroblob(80000000) WHERE part=1",
                   KITH_EPARSE, "too big");
    assert_refused("UPDATE journal SET bytes=x'' WHERE part=1", KITH_EPARSE,
                   "a part of 0 bytes");
    assert_refused("UPDATE journal SET bytes=x'ff' WHERE part=1", KITH_EPARSE,
                   "is damaged: part 1 of peer 1 (life 0)");
    assert_refused("UPDATE journal SET incarnation=-1 WHERE incarnation=0",
                   KITH_EPARSE, "life -1");
    assert_refused("DROP TABLE journal", KITH_EPARSE, "no such table");
    /* A query without end in place of a table. */
    assert_refused("DROP TABLE journal; CREATE VIEW journal AS WITH RECURSIVE "
                   "n(part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM n) "
                   "SELECT 1 AS run_id, 1 AS peer, 0 AS incarnation, part, "
                   "x'45' AS bytes FROM n",
                   KITH_EPARSE, "found a view");
    assert_refused("UPDATE run SET value='9' WHERE key='journal'",
                   KITH_EVERSION, "version 9");
    assert_refused("DELETE FROM run WHERE key='journal'", KITH_EMISMATCH,
                   "no journal");
    assert_refused("UPDATE run SET value='sim' WHERE key='world'",
                   KITH_EMISMATCH, "kith sim");
    assert_refused("UPDATE run SET value='0' WHERE key='experiment_hash'",
                   KITH_EMISMATCH, "changed");
    assert_refused("PRAGMA user_version=2", KITH_EVERSION, "schema 2");
    assert_refused("PRAGMA application_id=2", KITH_EPARSE, "not a run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_damaged_database),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
