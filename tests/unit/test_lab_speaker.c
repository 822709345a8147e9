/* Goal: a launcher that is late loses nothing of a peer whose run is recorded,
 * in whatever order its records were kept, and is told what it has lost of any
 * other. Method: a pipe that nobody reads while journal parts are spoken, now
 * and then a little of it, and a thread that reads the rest as the peer ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/lab_place.h"
#include "src/lab/records.h"

enum { PARTS = 30000, AT_ONCE = 50 };

struct launcher {
    int fd;
    uint32_t parts; /* that came, in a row from 0 */
    uint32_t gaps;  /* that came behind one that did not */
    uint32_t marks;
    uint64_t dropped; /* as the peer's last record says */
    bool ended;
};

static void hear(struct launcher *launcher)
{
    uint8_t bytes[LAB_RECORD_BYTES];
    struct lab_record record;
    for (size_t got = 0; got < sizeof bytes;) {
        const ssize_t more =
            read(launcher->fd, bytes + got, sizeof bytes - got);
        assert_true(more > 0);
        got += (size_t)more;
    }
    assert_int_equal(kith_lab_record_unpack(bytes, &record), KITH_OK);
    if (record.kind == LAB_RECORD_JOURNAL) {
        launcher->gaps += record.as.journal.part != launcher->parts;
        launcher->parts = record.as.journal.part + 1;
        assert_int_equal(record.as.journal.bytes[0],
                         (uint8_t)record.as.journal.part);
    }
    launcher->marks += record.kind == LAB_RECORD_MARK;
    launcher->ended = record.kind == LAB_RECORD_FINAL;
    if (launcher->ended)
        launcher->dropped = record.as.final.dropped;
}

static void *hear_all(void *arg)
{
    struct launcher *launcher = arg;
    while (!launcher->ended)
        hear(launcher);
    return NULL;
}

static struct launcher spoken(bool records)
{
    static const struct kith_experiment experiment = {.peers = 2};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    const struct kith_lab_place place = {
        .experiment = &experiment, .records = records, .rows_fd = ends[1]};
    struct launcher launcher = {.fd = ends[0]};
    struct kith_speaker *speaker;
    struct kith_peer_options options;
    const struct kith_peer_report report = {.finished = true};
    pthread_t thread;
    assert_int_equal(kith_speaker_open(&place, NULL, &speaker), KITH_OK);
    kith_speaker_options(speaker, &options);
    const struct kith_mark mark = {.kind = KITH_MARK_DONE, .peer = 1};
    for (uint32_t part = 0; part < PARTS; part++) {
        const uint8_t byte = (uint8_t)part;
        if (records)
            options.on_journal(options.user, &byte, 1, false);
        else
            options.on_mark(options.user, part, &mark);
        /* So that what is kept begins in the middle of the ring. The pipe
         * holds more. */
        for (int i = 0; part % 200 == 199 && part < PARTS / 2 && i < AT_ONCE;
             i++)
            hear(&launcher);
    }
    assert_int_equal(pthread_create(&thread, NULL, hear_all, &launcher), 0);
    kith_speaker_end(speaker, KITH_OK, &report, "");
    pthread_join(thread, NULL);
    kith_speaker_close(speaker);
    close(ends[0]);
    close(ends[1]);
    return launcher;
}

static void test_a_recorded_peer(void **state)
{
    (void)state;
    const struct launcher launcher = spoken(true);
    printf("expected: %u parts, 0 dropped; measured: %u, %llu\n",
           (unsigned)PARTS, (unsigned)launcher.parts,
           (unsigned long long)launcher.dropped);
    assert_int_equal(launcher.parts, PARTS);
    assert_int_equal(launcher.gaps, 0);
    assert_int_equal(launcher.dropped, 0);
}

static void test_any_other(void **state)
{
    (void)state;
    const struct launcher launcher = spoken(false);
    printf("expected: %u marks or dropped; measured: %u and %llu\n",
           (unsigned)PARTS, (unsigned)launcher.marks,
           (unsigned long long)launcher.dropped);
    assert_true(launcher.dropped > PARTS / 2); /* 2 MiB hold 4,096 */
    assert_int_equal(launcher.marks + launcher.dropped, PARTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_recorded_peer),
        cmocka_unit_test(test_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
