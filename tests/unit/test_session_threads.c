/* Goal: however many threads seal and open, the bytes, events, errors and
 * counts are those of one.
 *
 * Method: two pairs of sessions with the same keys, one with threads and one
 * without, say the same things: bursts of every length at which a record begins
 * or ends, a whole model with control frames between its bursts, across a
 * rekey, on every provider of every suite. Every record of a burst is spoiled
 * once, in text, tag and length. Sessions end in the middle of a model while
 * their threads go on; threads start, sleep and stop. A build with
 * --enable-sanitize=thread watches all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "src/peer/record_threads.h"
#include "src/protocol/session/session_state.h"
#include "tests/support/sessions.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MODEL_BYTES (5 * KITH_BURST_BYTES + 3 * KITH_BULK_BYTES + 12345)
#define WIRE_BYTES (2 * KITH_BURST_BYTES)
#define STRIDE_BYTES (KITH_BULK_BYTES + KITH_RECORD_OVERHEAD)
/* Where a burst's first payload record begins. */
#define FIRST_BYTES (KITH_RECORD_OVERHEAD + KITH_ANNOUNCEMENT_BYTES)

static uint8_t *vector, *inbox, *wire, *other_wire;
static struct kith_record_threads threads;

/* Two pairs: [0] has the loop's thread alone, [1] has `threads`. */
struct worlds {
    struct sessions pairs[2];
};

static void worlds_open(struct worlds *worlds, const struct kith_aead *aead,
                        enum kith_suite suite)
{
    for (int w = 0; w < 2; w++) {
        struct sessions *pair = &worlds->pairs[w];
        sessions_setup(pair, suite, aead, 1);
        for (int i = 0; w == 1 && i < 2; i++)
            pair->ends[i].config.threads = &threads.session;
        assert_true(sessions_start(pair));
        assert_true(sessions_connect(pair));
    }
}

static void worlds_close(struct worlds *worlds)
{
    sessions_close(&worlds->pairs[0]);
    sessions_close(&worlds->pairs[1]);
}

static struct worlds *open_any(void)
{
    static struct worlds worlds;
    worlds_open(&worlds, NULL, KITH_SUITE_AESGCM);
    return &worlds;
}

static size_t seal(struct sessions *pair, size_t offset, size_t length,
                   uint8_t *out)
{
    size_t n = 0;
    assert_int_equal(KITH_OK, kith_session_seal_burst(
                                  pair->ends[0].session,
                                  &(const struct kith_session_burst){
                                      9, offset, vector + offset, length},
                                  out, WIRE_BYTES, &n));
    assert_int_equal(kith_session_burst_size(length), n);
    return n;
}

/* The same burst in both worlds: the same bytes, and it arrives. */
static void say_burst(struct worlds *worlds, size_t offset, size_t length)
{
    const size_t n = seal(&worlds->pairs[0], offset, length, wire);
    assert_int_equal(n, seal(&worlds->pairs[1], offset, length, other_wire));
    assert_memory_equal(wire, other_wire, n);
    for (int w = 0; w < 2; w++) {
        struct sessions_end *end = &worlds->pairs[w].ends[1];
        end->sink = inbox + offset;
        memset(end->sink, 0, length);
        assert_int_equal(KITH_OK, sessions_feed(end, w ? other_wire : wire, n));
        assert_int_equal(KITH_SESSION_BURST, end->last.kind);
        assert_memory_equal(vector + offset, end->sink, length);
    }
}

static void say_control(struct worlds *worlds, size_t length)
{
    size_t n = 0, other = 0;
    assert_int_equal(KITH_OK, kith_session_seal_control(
                                  worlds->pairs[0].ends[0].session, vector,
                                  length, wire, WIRE_BYTES, &n));
    assert_int_equal(KITH_OK, kith_session_seal_control(
                                  worlds->pairs[1].ends[0].session, vector,
                                  length, other_wire, WIRE_BYTES, &other));
    assert_int_equal(n, other);
    assert_memory_equal(wire, other_wire, n);
    for (int w = 0; w < 2; w++)
        assert_int_equal(KITH_OK, sessions_feed(&worlds->pairs[w].ends[1],
                                                w ? other_wire : wire, n));
}

/* Both worlds have counted alike, at both ends. */
static void assert_equal_counts(const struct worlds *worlds)
{
    for (int i = 0; i < 2; i++) {
        struct kith_session_counters one, many;
        kith_session_counters(worlds->pairs[0].ends[i].session, &one);
        kith_session_counters(worlds->pairs[1].ends[i].session, &many);
        assert_memory_equal(&one, &many, sizeof one);
    }
}

static void say_lengths(struct worlds *worlds)
{
    static const size_t lengths[] = {1,
                                     KITH_BULK_BYTES - 1,
                                     KITH_BULK_BYTES,
                                     KITH_BULK_BYTES + 1,
                                     2 * KITH_BULK_BYTES,
                                     3 * KITH_BULK_BYTES + 77,
                                     KITH_BURST_BYTES - 1,
                                     KITH_BURST_BYTES};
    say_control(worlds, 0);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        say_burst(worlds, 0, lengths[i]);
        say_control(worlds, i);
    }
    assert_equal_counts(worlds);
}

/* As a link sends one: bursts, and what is said between them. */
static void say_model(struct worlds *worlds)
{
    for (size_t at = 0; at < MODEL_BYTES; at += KITH_BURST_BYTES) {
        const size_t left = MODEL_BYTES - at;
        say_burst(worlds, at,
                  left < KITH_BURST_BYTES ? left : KITH_BURST_BYTES);
        say_control(worlds, at % 50);
    }
    assert_memory_equal(vector, inbox, MODEL_BYTES);
    assert_equal_counts(worlds);
}

static void test_same_bytes(void **state)
{
    (void)state;
    static const enum kith_suite suites[] = {
        KITH_SUITE_AESGCM, KITH_SUITE_CHACHAPOLY, KITH_SUITE_AEGIS256X2};
    static struct worlds worlds;
    int runs = 0;
    for (size_t s = 0; s < COUNT(suites); s++)
        for (size_t i = 0; kith_aeads[i]; i++) {
            if (!kith_aead_has(kith_aeads[i], suites[s]))
                continue;
            worlds_open(&worlds, kith_aeads[i], suites[s]);
            say_lengths(&worlds);
            say_model(&worlds);
            worlds_close(&worlds);
            runs++;
        }
    assert_true(runs >= 1);
}

/* A key that ends before, behind and between the records of a burst. */
static void test_rekeys(void **state)
{
    (void)state;
    struct worlds *worlds = open_any();
    for (uint32_t left = 1; left <= 20; left++) {
        for (int w = 0; w < 2; w++) {
            struct sessions_end *ends = worlds->pairs[w].ends;
            ends[0].session->send.since_rekey =
                ends[1].session->receive.since_rekey =
                    KITH_REKEY_RECORDS - left;
        }
        say_burst(worlds, 0, 11 * KITH_BULK_BYTES - 5);
        say_control(worlds, left);
    }
    assert_equal_counts(worlds);
    worlds_close(worlds);
}

/* A counter near its end: the same error as with one, and none after it. */
static void test_nonces_end(void **state)
{
    (void)state;
    for (uint64_t left = 2; left <= 18; left += 8) {
        struct worlds *worlds = open_any();
        for (int w = 0; w < 2; w++) {
            struct kith_session *s = worlds->pairs[w].ends[0].session;
            size_t n = 0;
            s->send.cipher.n = UINT64_MAX - left;
            const enum kith_err err =
                kith_session_seal_burst(s,
                                        &(const struct kith_session_burst){
                                            9, 0, vector, KITH_BURST_BYTES},
                                        wire, WIRE_BYTES, &n);
            assert_int_equal(left > KITH_BURST_RECORDS ? KITH_OK : KITH_ELIMIT,
                             err);
            assert_int_equal(err == KITH_OK, n > 0);
            assert_int_equal(err == KITH_OK, kith_session_is_open(s));
        }
        worlds_close(worlds);
    }
}

/* ---- what is asked of each record */

/* One place a record; the value says how often it was asked of. */
struct asked {
    atomic_int times[KITH_BURST_RECORDS];
    size_t fails; /* the record that does not pass */
};

static bool passes(const void *arg, uint64_t at, size_t bytes)
{
    /* Constant for the session; it is the test's. */
    struct asked *asked = (struct asked *)(uintptr_t)arg;
    const size_t i = (size_t)(at / KITH_BULK_BYTES);
    atomic_fetch_add(&asked->times[i], 1);
    if (at % KITH_BULK_BYTES != 0 ||
        memcmp(vector + at, inbox + at, bytes) != 0)
        return false;
    return i != asked->fails;
}

/* Feeds in pieces and joins what RECORD events say; the burst's announcement is
 * in the first piece. */
static enum kith_err feed_pieces(struct kith_session *s, uint8_t *bytes,
                                 size_t size, size_t piece, struct asked *asked,
                                 bool *passed, uint64_t *opened)
{
    size_t at = 0;
    *passed = true;
    *opened = 0;
    for (size_t end = piece; at < size; end += piece)
        for (;;) { /* Each turn yields an event or is the last. */
            struct kith_session_event event;
            size_t used = 0;
            const size_t to = end < size ? end : size;
            const enum kith_err err =
                kith_session_read(s, bytes + at, to - at, &used, &event);
            at += used;
            if (err != KITH_OK)
                return err;
            if (event.kind == KITH_SESSION_NONE)
                break;
            if (event.kind == KITH_SESSION_BULK) {
                kith_session_sink(s, inbox);
                kith_session_check(s, passes, asked);
            }
            if (event.kind == KITH_SESSION_RECORD) {
                assert_true(event.record_at == *opened);
                *opened += event.record_bytes;
                *passed = *passed && event.passed;
            }
        }
    return KITH_OK;
}

static void test_checks(void **state)
{
    (void)state;
    static const size_t pieces[] = {1000, STRIDE_BYTES, 3 * STRIDE_BYTES + 1,
                                    WIRE_BYTES};
    struct worlds *worlds = open_any();
    const size_t length = KITH_BURST_BYTES - 1000;
    for (size_t p = 0; p < COUNT(pieces); p++)
        for (int w = 0; w < 2; w++)
            for (size_t fails = 0; fails <= KITH_BURST_RECORDS; fails += 4) {
                struct asked asked = {.fails = fails};
                bool passed;
                uint64_t opened;
                memset(inbox, 0, length);
                const size_t n = seal(&worlds->pairs[w], 0, length, wire);
                assert_int_equal(KITH_OK,
                                 feed_pieces(worlds->pairs[w].ends[1].session,
                                             wire, n, pieces[p], &asked,
                                             &passed, &opened));
                assert_true(opened == length);
                assert_int_equal(fails == KITH_BURST_RECORDS, passed);
                for (size_t i = 0; i < KITH_BURST_RECORDS; i++)
                    assert_int_equal(1, atomic_load(&asked.times[i]));
            }
    worlds_close(worlds);
}

/* ---- bytes that somebody changed */

enum spoiled { SPOILED_LENGTH, SPOILED_TEXT, SPOILED_TAG, SPOILED_COUNT };

/* One bit of record `i` is turned; in the world with threads and in the other
 * the same is said of it, and its place holds zeros. */
static void spoil(enum spoiled what, size_t i, bool has_sink)
{
    struct worlds *worlds = open_any();
    for (int w = 0; w < 2; w++) {
        struct sessions_end *end = &worlds->pairs[w].ends[1];
        const size_t at = FIRST_BYTES + i * STRIDE_BYTES +
                          (what == SPOILED_LENGTH ? 1
                           : what == SPOILED_TEXT ? KITH_LENGTH_BYTES + 777
                                                  : STRIDE_BYTES - 1);
        const size_t n = seal(&worlds->pairs[w], 0, KITH_BURST_BYTES, wire);
        memset(inbox, 0, KITH_BURST_BYTES);
        wire[at] ^= 1;
        end->sink = has_sink ? inbox : NULL;
        assert_int_equal(what == SPOILED_LENGTH ? KITH_EPARSE : KITH_EAUTH,
                         sessions_feed(end, wire, n));
        assert_int_not_equal(KITH_SESSION_BURST, end->last.kind);
        assert_true(has_sink ? sodium_is_zero(inbox + i * KITH_BULK_BYTES,
                                              KITH_BULK_BYTES)
                             : sodium_is_zero(inbox, KITH_BURST_BYTES));
        assert_string_equal(what == SPOILED_LENGTH
                                ? "bulk record has not the announced length"
                                : "record does not authenticate",
                            kith_session_reason(end->session));
        assert_false(kith_session_is_open(end->session));
    }
    worlds_close(worlds);
}

static void test_spoiled(void **state)
{
    (void)state;
    for (int what = 0; what < SPOILED_COUNT; what++)
        for (size_t i = 0; i < KITH_BURST_RECORDS; i++)
            spoil((enum spoiled)what, i, i % 3 != 0);
}

/* What did not authenticate is asked nothing, and neither of two swapped
 * records opens in the other's place. */
static void test_swapped(void **state)
{
    (void)state;
    struct worlds *worlds = open_any();
    static uint8_t record[STRIDE_BYTES];
    struct asked asked = {.fails = SIZE_MAX};
    bool passed;
    uint64_t opened;
    uint8_t *first = wire + FIRST_BYTES + 3 * STRIDE_BYTES;
    const size_t n = seal(&worlds->pairs[1], 0, KITH_BURST_BYTES, wire);
    memcpy(record, first, STRIDE_BYTES);
    memcpy(first, first + STRIDE_BYTES, STRIDE_BYTES);
    memcpy(first + STRIDE_BYTES, record, STRIDE_BYTES);
    assert_int_equal(KITH_EAUTH,
                     feed_pieces(worlds->pairs[1].ends[1].session, wire, n, n,
                                 &asked, &passed, &opened));
    assert_true(opened == 0);
    assert_int_equal(0, atomic_load(&asked.times[3]));
    assert_int_equal(0, atomic_load(&asked.times[4]));
    worlds_close(worlds);
}

/* ---- ends and beginnings */

/* A session that is closed with half of a burst read, and one that has sealed
 * half of a model, leave threads that serve the next. */
static void test_close_in_the_middle(void **state)
{
    (void)state;
    for (int turn = 0; turn < 10; turn++) {
        struct worlds *worlds = open_any();
        struct sessions_end *end = &worlds->pairs[1].ends[1];
        const size_t n = seal(&worlds->pairs[1], 0, KITH_BURST_BYTES, wire);
        end->sink = inbox;
        assert_int_equal(KITH_OK,
                         sessions_feed(end, wire, n / 2 + (size_t)turn * 997));
        (void)seal(&worlds->pairs[1], KITH_BURST_BYTES, KITH_BURST_BYTES, wire);
        for (int i = 0; i < 2; i++) {
            kith_session_close(worlds->pairs[1].ends[i].session);
            assert_true(sodium_is_zero(worlds->pairs[1].ends[i].memory,
                                       kith_session_size()));
            worlds->pairs[1].ends[i].session = NULL;
        }
        worlds_close(worlds);
    }
    struct worlds *worlds = open_any();
    say_model(worlds);
    worlds_close(worlds);
}

struct job {
    atomic_int times[KITH_BURST_RECORDS];
    atomic_bool busy[KITH_LANES_MAX];
};

static void job_part(void *context, unsigned lane, size_t i)
{
    struct job *job = context;
    atomic_fetch_add(&job->times[i], 1);
    /* No two parts of a lane at once: what is not atomic here is a lane's. */
    if (lane >= threads.session.lanes ||
        atomic_exchange(&job->busy[lane], true))
        atomic_fetch_add(&job->times[i], 100);
    atomic_store(&job->busy[lane], false);
}

/* Jobs of every size, close to each other and after a sleep. */
static void test_jobs(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= KITH_LANES_MAX; lanes++) {
        kith_record_threads_stop(&threads);
        assert_int_equal(KITH_OK, kith_record_threads_start(&threads, lanes));
        for (int turn = 0; turn < 2000; turn++) {
            struct job job = {.busy = {false}};
            const size_t count = 1 + (size_t)turn % KITH_BURST_RECORDS;
            threads.session.run(threads.session.arg, count, job_part, &job);
            for (size_t i = 0; i < KITH_BURST_RECORDS; i++)
                assert_int_equal(i < count, atomic_load(&job.times[i]));
            if (turn % 200 == 0)
                usleep(1000);
        }
    }
}

/* Threads that never had a job, that sleep, and that have just had one. */
static void test_starts_and_stops(void **state)
{
    (void)state;
    for (int turn = 0; turn < 30; turn++) {
        struct job job = {.busy = {false}};
        kith_record_threads_stop(&threads);
        assert_int_equal(KITH_OK,
                         kith_record_threads_start(
                             &threads, 1 + (unsigned)turn % KITH_LANES_MAX));
        if (turn % 3 == 1)
            usleep(1000);
        if (turn % 3 == 2)
            threads.session.run(threads.session.arg, 16, job_part, &job);
    }
    assert_true(kith_record_threads_cpu(&threads) >= 0);
}

static int setup(void **state)
{
    (void)state;
    static const uint8_t seed[randombytes_SEEDBYTES] = {1};
    vector = malloc(MODEL_BYTES);
    inbox = malloc(MODEL_BYTES);
    wire = malloc(WIRE_BYTES);
    other_wire = malloc(WIRE_BYTES);
    if (sodium_init() < 0 || !vector || !inbox || !wire || !other_wire)
        return -1;
    randombytes_buf_deterministic(vector, MODEL_BYTES, seed);
    return kith_record_threads_start(&threads, 3) == KITH_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    kith_record_threads_stop(&threads);
    free(vector);
    free(inbox);
    free(wire);
    free(other_wire);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_rekeys),
        cmocka_unit_test(test_nonces_end),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_close_in_the_middle),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_starts_and_stops),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
