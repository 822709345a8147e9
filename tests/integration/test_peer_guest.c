/* Goal: a visitor that measures the way gets its frames back, whatever they
 * are, and its bulk dropped, within bounds: one at a time, 64 MB, 15 s. The
 * peer goes on as if it had not been. Method: a peer that trains alone; guests
 * made by hand: frames of members', lists and pieces, transfers of all kinds,
 * too much, too long, two at once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/visit.h"

static const char yaml[] = "name: guest\nseed: 9\npeers: 3\n"
                           "stop: {time: 600s}\n"
                           "model: {kind: consensus, dim: 100}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

#define BURST 32768u

static bool put(const struct visit *visit, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = send(visit->fd, bytes, size, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        bytes += count;
        size -= (size_t)count;
    }
    return true;
}

static bool put_frame(const struct visit *visit, const uint8_t *frame,
                      size_t size)
{
    uint8_t out[KITH_CONTROL_BYTES_MAX + 64];
    size_t written;
    assert_int_equal(kith_session_seal_control(visit->session, frame, size, out,
                                               sizeof out, &written),
                     KITH_OK);
    return put(visit, out, written);
}

static bool put_burst(const struct visit *visit, uint64_t transfer,
                      uint64_t offset)
{
    static uint8_t zeros[BURST], out[2 * BURST];
    size_t written;
    const struct kith_session_burst burst = {transfer, offset, zeros, BURST};
    assert_int_equal(kith_session_seal_burst(visit->session, &burst, out,
                                             sizeof out, &written),
                     KITH_OK);
    return put(visit, out, written);
}

static bool came_back(const struct visit *visit, const uint8_t *frame,
                      size_t size)
{
    uint8_t bytes[2 * KITH_CONTROL_BYTES_MAX];
    size_t held = 0;
    for (;;) {
        struct kith_session_event event;
        size_t consumed;
        if (kith_session_read(visit->session, bytes, held, &consumed, &event) !=
            KITH_OK)
            return false;
        if (event.kind == KITH_SESSION_CONTROL) {
            assert_int_equal(event.frame_bytes, size);
            assert_memory_equal(event.frame, frame, size);
            assert_int_equal(consumed, held); /* nothing else came */
            return true;
        }
        const ssize_t count =
            read(visit->fd, bytes + held, sizeof bytes - held);
        if (count <= 0)
            return false;
        held += (size_t)count;
    }
}

/* The next frame is this one. */
static void expect_frame(const struct visit *visit, const uint8_t *frame,
                         size_t size)
{
    assert_true(came_back(visit, frame, size));
}

/* One with a key of its own; let in once it has been away for as long as it was
 * there. */
static void guest_begin(struct visit *visit, const struct peers *peers,
                        kith_id rank)
{
    static const uint8_t frame[] = {7};
    struct visit_options options = visit_as(peers, rank);
    options.rank = KITH_NOBODY;
    options.incarnation = KITH_VISIT_MEASURES;
    for (unsigned i = 0; i < 300; i++) {
        visit_begin(visit, peers, &options);
        if (kith_session_is_open(visit->session) &&
            put_frame(visit, frame, sizeof frame) &&
            came_back(visit, frame, sizeof frame))
            return;
        visit_end(visit);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    fail_msg("never let in");
}

/* Whatever it still sends. */
static void expect_closed(const struct visit *visit)
{
    uint8_t bytes[4096];
    ssize_t count;
    const struct timeval patience = {.tv_sec = 100};
    setsockopt(visit->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    errno = 0;
    while ((count = read(visit->fd, bytes, sizeof bytes)) > 0)
        ;
    assert_true(count == 0 || errno == ECONNRESET);
}

/* Beginnings of members' frames: a model's header, DROPPED, EDITION, SHARED,
 * PIECE; and nothing at all. */
static void frames_come_back(const struct peers *peers)
{
    static const uint8_t firsts[] = {0x93, 0xc0, 0xc1, 0xc2, 0xc3, 0xff};
    uint8_t frame[KITH_CONTROL_BYTES_MAX] = {0};
    struct visit visit;
    guest_begin(&visit, peers, 1);
    for (size_t i = 0; i < sizeof firsts; i++) {
        frame[0] = firsts[i];
        frame[1] = (uint8_t)i;
        assert_true(put_frame(&visit, frame, 38));
        expect_frame(&visit, frame, 38);
    }
    assert_true(put_frame(&visit, frame, 1));
    expect_frame(&visit, frame, 1);
    assert_true(put_frame(&visit, frame, sizeof frame)); /* too long */
    expect_closed(&visit);
    visit_end(&visit);
}

/* Transfers that would be a model, a list, a piece; out of order. */
static void bulk_is_dropped(const struct peers *peers)
{
    static const uint64_t transfers[] = {0, 7, UINT64_MAX, UINT64_MAX - 1};
    static const uint8_t frame[] = {1, 2, 3};
    struct visit visit;
    guest_begin(&visit, peers, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(put_burst(&visit, transfers[i], (7 - i) * BURST));
        assert_true(put_frame(&visit, frame, sizeof frame));
        expect_frame(&visit, frame, sizeof frame);
    }
    visit_end(&visit);
}

static void too_much_ends_it(const struct peers *peers)
{
    struct visit visit;
    unsigned bursts = 0;
    guest_begin(&visit, peers, 1);
    while (bursts < 4096 && put_burst(&visit, 0, (uint64_t)bursts * BURST))
        bursts++;
    assert_in_range(bursts, 2040, 4095); /* 64 MB, and what sockets hold */
    expect_closed(&visit);
    visit_end(&visit);
}

/* Bursts of a byte cost as much as those of 32 kB. */
static void tiny_bursts_end_it(const struct peers *peers)
{
    uint8_t byte = 0, out[256];
    struct visit visit;
    unsigned bursts = 0;
    guest_begin(&visit, peers, 2);
    for (; bursts < 1000000; bursts++) {
        size_t written;
        const struct kith_session_burst burst = {0, bursts, &byte, 1};
        assert_int_equal(kith_session_seal_burst(visit.session, &burst, out,
                                                 sizeof out, &written),
                         KITH_OK);
        if (!put(&visit, out, written))
            break;
    }
    assert_true(bursts < 1000000);
    expect_closed(&visit);
    visit_end(&visit);
}

/* Frames that are short cost as much as 64 kB. */
static void talk_ends_it(const struct peers *peers)
{
    static const uint8_t frame[] = {1};
    uint8_t out[64];
    size_t written;
    struct visit visit;
    guest_begin(&visit, peers, 1);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(kith_session_seal_control(visit.session, frame, 1, out,
                                                   sizeof out, &written),
                         KITH_OK);
        if (!put(&visit, out, written))
            break;
    }
    expect_closed(&visit);
    visit_end(&visit);
}

static void one_at_a_time(const struct peers *peers)
{
    static const uint8_t frame[] = {1, 2, 3};
    struct visit first, second;
    guest_begin(&first, peers, 1);
    struct visit_options options = visit_as(peers, 2);
    options.rank = KITH_NOBODY;
    options.incarnation = KITH_VISIT_MEASURES;
    visit_begin(&second, peers, &options);
    expect_closed(&second);
    visit_end(&second);
    assert_true(put_frame(&first, frame, sizeof frame));
    expect_frame(&first, frame, sizeof frame);
    const time_t began = time(NULL);
    expect_closed(&first); /* it stays too long */
    assert_true(time(NULL) - began >= 10);
    visit_end(&first);
}

/* Who is not one of the cluster is none of its guests; a visitor that does not
 * measure is seen off as ever. */
static void others_are_none(const struct peers *peers)
{
    struct visit visit;
    struct visit_options options = visit_as(peers, 1);
    options.rank = KITH_NOBODY;
    options.stay = true;
    visit_begin(&visit, peers, &options);
    visit_end(&visit);
    assert_true(visit_said(peers, 0, "visited name="));
    options.hash++;
    options.incarnation = KITH_VISIT_MEASURES;
    visit_begin(&visit, peers, &options);
    visit_end(&visit);
    assert_true(visit_said(peers, 0, "refused kind=mismatch"));
}

static void guests_are_bounded(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, yaml);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    frames_come_back(&peers);
    bulk_is_dropped(&peers);
    too_much_ends_it(&peers);
    tiny_bursts_end_it(&peers);
    talk_ends_it(&peers);
    others_are_none(&peers);
    one_at_a_time(&peers);
    assert_true(peers_said(&peers, 0, "measures=way"));
    assert_true(peers_stop(&peers, 10));
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
