/* Goal: a record between a peer's process and the launcher says the same on
 * both sides, and nothing but a record is taken for one.
 * Method: round trips of every kind with extreme values; then each byte of a
 * valid record is changed in turn, and random bytes are offered: whatever is
 * accepted must pack to the same bytes again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kith/rng.h"
#include "src/lab/records.h"

static struct lab_record sample(enum lab_record_kind kind)
{
    struct lab_record record;
    memset(&record, 0, sizeof record);
    record.kind = kind;
    record.peer = 7;
    record.incarnation = 3;
    record.time_ns = 1234567890123;
    switch (kind) {
    case LAB_RECORD_READY:
        record.as.ready = (struct lab_ready){25000000, 5};
        break;
    case LAB_RECORD_KINDS:
        break;
    case LAB_RECORD_ROW:
        record.as.row = (struct kith_row){.peer = 7,
                                          .time_ns = 1234567890123,
                                          .step = 5,
                                          .samples = 80,
                                          .loss = -0.25,
                                          .accuracy = 1,
                                          .consensus_distance = 3.5,
                                          .bytes_sent = INT64_MAX,
                                          .bytes_received = 1,
                                          .waiting_s = 0.125,
                                          .staleness = 0.5,
                                          .staleness_max = 2,
                                          .received = 11,
                                          .training_s = 1.5,
                                          .attempts = 9,
                                          .done = 8,
                                          .failed = 7,
                                          .refused = 6,
                                          .skipped = 5,
                                          .torn = 4,
                                          .cpu_train_s = 1,
                                          .cpu_aead_s = 2,
                                          .cpu_socket_s = 3,
                                          .cpu_other_s = 4,
                                          .speed = {.measured = true,
                                                    .samples_per_s = 1000,
                                                    .tokens_per_s = NAN,
                                                    .flop_per_s = 1e9,
                                                    .mfu = 0.5,
                                                    .data_wait_s = 0.25,
                                                    .exchange_overlap = 0.75,
                                                    .memory_bytes = 4096}};
        break;
    case LAB_RECORD_MARK:
        record.as.mark = (struct kith_mark){.kind = KITH_MARK_TORN,
                                            .peer = KITH_NOBODY,
                                            .id = {UINT64_MAX, 2},
                                            .initiator = true,
                                            .value = UINT64_MAX,
                                            .sum = -1e300};
        break;
    case LAB_RECORD_PIECES:
        record.as.pieces =
            (struct kith_piece_totals){210, 35, 175, 0, 1, INT64_MAX};
        break;
    case LAB_RECORD_QUIET:
        record.as.quiet = true;
        break;
    case LAB_RECORD_LINE:
        strcpy(record.as.line, "connected peer 2 at 127.0.0.1:7117");
        break;
    case LAB_RECORD_FINAL:
        record.as.final = (struct lab_final){
            .err = KITH_ENOSPC,
            .finished = true,
            .saved = true,
            .dropped = 2,
        };
        strcpy(record.as.final.text, "cannot save");
        break;
    case LAB_RECORD_SCORE:
        record.as.score = (struct lab_score){.step = 100,
                                             .peers = 8,
                                             .loss = 0.3,
                                             .accuracy = 0.875,
                                             .consensus_distance = 0.5,
                                             .correlation = 0.99};
        break;
    case LAB_RECORD_JOURNAL:
        record.as.journal.part = UINT32_MAX;
        record.as.journal.size = KITH_JOURNAL_PART_BYTES;
        memset(record.as.journal.bytes, 0xa5, KITH_JOURNAL_PART_BYTES);
        break;
    }
    return record;
}

static void every_kind_survives_the_pipe(void **state)
{
    (void)state;
    for (int kind = 0; kind < LAB_RECORD_KINDS; kind++) {
        const struct lab_record sent = sample((enum lab_record_kind)kind);
        uint8_t bytes[LAB_RECORD_BYTES], again[LAB_RECORD_BYTES];
        struct lab_record got;

        kith_lab_record_pack(&sent, bytes);
        assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);

        assert_int_equal(got.kind, sent.kind);
        assert_int_equal(got.peer, 7);
        assert_int_equal(got.incarnation, 3);
        assert_true(got.time_ns == sent.time_ns);
        kith_lab_record_pack(&got, again);
        assert_memory_equal(bytes, again, sizeof bytes);
    }
}

static void fields_keep_their_places(void **state)
{
    (void)state;
    uint8_t bytes[LAB_RECORD_BYTES];
    struct lab_record got;

    struct lab_record sent = sample(LAB_RECORD_ROW);
    kith_lab_record_pack(&sent, bytes);
    assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);
    assert_true(got.as.row.bytes_sent == INT64_MAX);
    assert_true(got.as.row.loss == -0.25);
    assert_true(got.as.row.torn == 4 && got.as.row.attempts == 9);
    assert_true(got.as.row.cpu_other_s == 4);
    const struct kith_speed *speed = &got.as.row.speed;
    assert_true(speed->measured && speed->samples_per_s == 1000);
    assert_true(isnan(speed->tokens_per_s) && speed->flop_per_s == 1e9);
    assert_true(speed->mfu == 0.5 && speed->data_wait_s == 0.25);
    assert_true(speed->exchange_overlap == 0.75 && speed->memory_bytes == 4096);

    sent = sample(LAB_RECORD_MARK);
    kith_lab_record_pack(&sent, bytes);
    assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);
    assert_int_equal(got.as.mark.kind, KITH_MARK_TORN);
    assert_true(got.as.mark.peer == KITH_NOBODY && got.as.mark.initiator);
    assert_true(got.as.mark.id.counter == UINT64_MAX);
    assert_true(got.as.mark.sum == -1e300);

    sent = sample(LAB_RECORD_FINAL);
    kith_lab_record_pack(&sent, bytes);
    assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);
    assert_int_equal(got.as.final.err, KITH_ENOSPC);
    assert_true(got.as.final.finished && !got.as.final.interrupted);
    assert_string_equal(got.as.final.text, "cannot save");
}

static void what_is_not_measured_stays_so(void **state)
{
    (void)state;
    struct lab_record sent = sample(LAB_RECORD_ROW), got;
    sent.as.row.accuracy = sent.as.row.staleness = NAN;
    sent.as.row.loss = INFINITY; /* a diverging run */
    uint8_t bytes[LAB_RECORD_BYTES];

    kith_lab_record_pack(&sent, bytes);

    assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);
    assert_true(isnan(got.as.row.accuracy) && isnan(got.as.row.staleness));
    assert_true(isinf(got.as.row.loss));
}

static void long_and_dirty_lines_are_cut_and_cleaned(void **state)
{
    (void)state;
    struct lab_record sent = sample(LAB_RECORD_LINE), got;
    memset(sent.as.line, 'x', sizeof sent.as.line);
    sent.as.line[3] = '\n';
    sent.as.line[4] = '\x1b';
    uint8_t bytes[LAB_RECORD_BYTES];

    kith_lab_record_pack(&sent, bytes);

    assert_int_equal(kith_lab_record_unpack(bytes, &got), KITH_OK);
    assert_int_equal(strlen(got.as.line), LAB_TEXT_BYTES - 1);
    assert_int_equal(got.as.line[3], ' ');
    assert_int_equal(got.as.line[4], ' ');
}

/* The error of a record that says what no peer of ours would. */
static void assert_refused(const char *what, const struct lab_record *sent)
{
    uint8_t bytes[LAB_RECORD_BYTES];
    struct lab_record got;
    kith_lab_record_pack(sent, bytes);
    if (kith_lab_record_unpack(bytes, &got) != KITH_EPARSE)
        fail_msg("%s was taken", what);
}

static void impossible_values_are_refused(void **state)
{
    (void)state;
    struct lab_record sent = sample(LAB_RECORD_ROW);
    sent.peer = KITH_PEERS_MAX;
    assert_refused("a rank out of range", &sent);
    sent = sample(LAB_RECORD_ROW);
    sent.time_ns = -1;
    assert_refused("a negative time", &sent);
    sent = sample(LAB_RECORD_ROW);
    sent.as.row.step = (uint64_t)1 << 63;
    assert_refused("a counter past 2^63", &sent);
    sent = sample(LAB_RECORD_ROW);
    sent.as.row.waiting_s = INFINITY;
    assert_refused("an infinite span", &sent);
    sent = sample(LAB_RECORD_ROW);
    sent.as.row.training_s = -1;
    assert_refused("a negative span", &sent);
    sent = sample(LAB_RECORD_ROW);
    sent.as.row.speed.exchange_overlap = 1.5;
    assert_refused("a share above 1", &sent);
    sent = sample(LAB_RECORD_MARK);
    sent.as.mark.kind = KITH_MARK_COUNT;
    assert_refused("an unknown event", &sent);
    sent = sample(LAB_RECORD_MARK);
    sent.as.mark.peer = KITH_PEERS_MAX;
    assert_refused("an event with a rank out of range", &sent);
    sent = sample(LAB_RECORD_FINAL);
    sent.as.final.err = (enum kith_err) - 0x7000;
    assert_refused("an unknown error", &sent);
    sent = sample(LAB_RECORD_SCORE);
    sent.as.score.accuracy = 1.25;
    assert_refused("an accuracy above 1", &sent);
    sent = sample(LAB_RECORD_SCORE);
    sent.as.score.peers = KITH_PEERS_MAX + 1;
    assert_refused("more peers than there can be", &sent);
}

/* Offsets: a long array's head is 3 bytes, a short one's 1; then version and
 * kind, and 7 as the peer. */
static void malformed_records_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        enum lab_record_kind kind;
        size_t at;
        uint8_t value;
        enum kith_err err;
    } cases[] = {
        {"no array", LAB_RECORD_ROW, 0, 'X', KITH_EPARSE},
        {"fewer values", LAB_RECORD_ROW, 2, 8, KITH_EPARSE},
        {"version", LAB_RECORD_ROW, 3, 9, KITH_EVERSION},
        {"kind", LAB_RECORD_ROW, 4, LAB_RECORD_KINDS, KITH_EPARSE},
        {"another kind", LAB_RECORD_ROW, 4, LAB_RECORD_READY, KITH_EPARSE},
        {"an array of 2^31 values", LAB_RECORD_ROW, 5, 0xdd, KITH_EPARSE},
        {"a map", LAB_RECORD_ROW, 5, 0xdf, KITH_EPARSE},
        {"text for a number", LAB_RECORD_ROW, 5, 0xa1, KITH_EPARSE},
        {"bytes past the end", LAB_RECORD_JOURNAL, 20, 0xff, KITH_EPARSE},
        {"padding", LAB_RECORD_ROW, LAB_RECORD_BYTES - 1, 1, KITH_EPARSE},
        {"control character", LAB_RECORD_LINE, 20, '\n', KITH_EPARSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct lab_record sent = sample(cases[i].kind);
        uint8_t bytes[LAB_RECORD_BYTES];
        struct lab_record got;
        kith_lab_record_pack(&sent, bytes);

        bytes[cases[i].at] = cases[i].value;

        const enum kith_err err = kith_lab_record_unpack(bytes, &got);
        if (err != cases[i].err)
            fail_msg("%s: %s", cases[i].what, kith_err_text(err));
    }
}

static void check_canonical(const uint8_t *bytes)
{
    struct lab_record got;
    uint8_t again[LAB_RECORD_BYTES];
    if (kith_lab_record_unpack(bytes, &got) != KITH_OK)
        return;
    kith_lab_record_pack(&got, again);
    assert_memory_equal(bytes, again, LAB_RECORD_BYTES);
}

static void what_is_accepted_is_canonical(void **state)
{
    (void)state;
    struct kith_rng rng;
    kith_rng_init(&rng, 1, KITH_STREAM_TEST, 0);
    for (int kind = 0; kind < LAB_RECORD_KINDS; kind++) {
        const struct lab_record sent = sample((enum lab_record_kind)kind);
        uint8_t bytes[LAB_RECORD_BYTES];
        kith_lab_record_pack(&sent, bytes);
        for (size_t at = 0; at < LAB_RECORD_BYTES; at++) {
            const uint8_t kept = bytes[at];
            for (int i = 0; i < 4; i++) {
                bytes[at] = (uint8_t)kith_rng_u32(&rng);
                check_canonical(bytes);
            }
            bytes[at] = kept;
        }
        for (int i = 0; i < 2000; i++) {
            kith_rng_fill(&rng, bytes + 5, LAB_RECORD_BYTES - 5);
            check_canonical(bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives_the_pipe),
        cmocka_unit_test(fields_keep_their_places),
        cmocka_unit_test(what_is_not_measured_stays_so),
        cmocka_unit_test(long_and_dirty_lines_are_cut_and_cleaned),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(malformed_records_are_refused),
        cmocka_unit_test(what_is_accepted_is_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
