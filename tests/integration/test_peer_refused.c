/* Goal: whoever cannot prove membership is refused, logged with the reason and
 * counted, and nothing else is disturbed.
 * Method: two honest peers train; a third process of the test plays strangers
 * against rank 0: plain bytes, silence, another authority, an expired
 * certificate, another experiment, the wrong rank, two ranks, no role, in and
 * out all the time. Then the honest two must have finished as if nothing had
 * been. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/wire.h"
#include "tests/support/visit.h"

static const char yaml[] = "name: refused\nseed: 9\npeers: 3\n"
                           "stop: {steps: 400}\n"
                           "model: {kind: consensus, dim: 100}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

/* The peer's eight preface bytes or nothing, until it closes. */
static void expect_closed(int fd)
{
    char bytes[256];
    ssize_t count;
    errno = 0;
    while ((count = read(fd, bytes, sizeof bytes)) > 0)
        ;
    assert_true(count == 0 || errno == ECONNRESET);
    close(fd);
}

static void plain_bytes(const struct peers *peers)
{
    const int fd = visit_dial(peers, 0);
    const char *text = "GET / HTTP/1.1\r\nHost: kith\r\n\r\n and then a lot";
    assert_true(write(fd, text, strlen(text)) > 0);
    expect_closed(fd);
    assert_true(visit_said(peers, 0, "refused kind=preface"));
}

static void wrong_version(const struct peers *peers)
{
    const int fd = visit_dial(peers, 0);
    uint8_t bytes[40] = {'k', 'i', 't', 'h', 99, 1};
    assert_true(write(fd, bytes, sizeof bytes) > 0);
    expect_closed(fd);
    assert_true(visit_said(peers, 0, "refused kind=version"));
}

static void silence(const struct peers *peers)
{
    const int fd = visit_dial(peers, 0);
    const time_t began = time(NULL);
    expect_closed(fd);
    assert_true(time(NULL) - began >= 1); /* of 2 s */
    assert_true(visit_said(peers, 0, "refused kind=timeout"));
}

static void stranger(const struct peers *peers,
                     const struct kith_identity *identity,
                     const struct kith_trust *trust, uint32_t rank,
                     uint64_t hash, bool stay)
{
    struct visit visit;
    struct visit_options options = visit_as(peers, 0);
    options.identity = identity;
    options.trust = trust;
    options.rank = rank;
    options.hash = hash;
    options.stay = stay;
    visit_begin(&visit, peers, &options);
    visit_end(&visit);
}

/* The member of rank 2 says the same thing as fast as it can, for a second or
 * two, or until it is thrown out. */
static void babble(const struct peers *peers,
                   const struct kith_message *message)
{
    struct visit visit;
    struct timespec now, until;
    uint8_t frame[KITH_WIRE_BYTES_MAX], out[16384];
    const size_t size = kith_wire_pack(message, frame);
    const struct visit_options options = visit_as(peers, 2);
    visit_begin(&visit, peers, &options);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    do {
        size_t at = 0, written = 0;
        while (sizeof out - at > kith_session_control_size(size)) {
            assert_int_equal(
                kith_session_seal_control(visit.session, frame, size, out + at,
                                          sizeof out - at, &written),
                KITH_OK);
            at += written;
        }
        if (send(visit.fd, out, at, MSG_NOSIGNAL) < (ssize_t)at)
            break;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec <= until.tv_sec);
    visit_end(&visit);
}

static void strangers(struct peers *peers)
{
    struct kith_identity identity = peers->identities[2];
    const uint64_t hash = kith_experiment_hash(&peers->experiment);

    stranger(peers, &identity, &peers->trust, 1, hash, true);
    assert_true(visit_said(peers, 0, "refused kind=member"));
    stranger(peers, &identity, &peers->trust, 77, hash, true);
    assert_true(visit_said(peers, 0, "claims rank 77"));
    stranger(peers, &identity, &peers->trust, 2, hash + 1, true);
    assert_true(visit_said(peers, 0, "refused kind=mismatch"));

    peers_certify(peers, &identity, "peer-2", -90000, -3600);
    stranger(peers, &identity, &peers->trust, 2, hash, true);
    assert_true(visit_said(peers, 0, "refused kind=expired"));

    struct peers other;
    peers_open(&other, yaml); /* another authority over the same cluster id */
    memcpy(other.trust.cluster, peers->trust.cluster, KITH_CLUSTER_BYTES);
    peers_certify(&other, &identity, "peer-2", -60, 3600);
    stranger(peers, &identity, &peers->trust, 2, hash, true);
    assert_true(visit_said(peers, 0, "refused kind=auth"));
    peers_close(&other);
}

static void strangers_are_refused(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]); /* rank 2 never starts */
    peers.listen_fds[2] = -1;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(peers_wait_step(&peers, 0, 5, 20));

    plain_bytes(&peers);
    wrong_version(&peers);
    strangers(&peers);
    silence(&peers);

    assert_true(peers_wait_finished(&peers, 0, 30));
    assert_true(peers_wait_finished(&peers, 1, 30));
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    if (getenv("PEERS_PRINT"))
        peers_print(&peers, 0);
    assert_int_equal(report->refusals[KITH_REFUSAL_PREFACE], 1);
    assert_int_equal(report->refusals[KITH_REFUSAL_VERSION], 1);
    assert_int_equal(report->refusals[KITH_REFUSAL_MEMBER], 2);
    assert_int_equal(report->refusals[KITH_REFUSAL_MISMATCH], 1);
    assert_int_equal(report->refusals[KITH_REFUSAL_EXPIRED], 1);
    assert_int_equal(report->refusals[KITH_REFUSAL_AUTH], 1);
    /* A handshake that a busy machine drew out is one, too. */
    assert_true(report->refusals[KITH_REFUSAL_TIMEOUT] >= 1);
    assert_int_equal(report->counters.bad, 0);
    assert_int_equal(report->counters.torn, 0);
    print_message("expected: some exchanges; measured: %llu\n",
                  (unsigned long long)report->counters.done);
    assert_true(report->counters.done > 0);
    peers_close(&peers);
}

static void another_key_for_1(struct kith_peer_options *options, void *arg)
{
    static struct kith_member members[3];
    (void)arg;
    if (options->self != 0)
        return;
    memcpy(members, options->members, sizeof members);
    members[1].fingerprint[0] ^= 1;
    options->members = members;
}

/* A certified member of a cluster without a list of keys: it may have its
 * certificate's rank and no other, even where it comes first, needs the role,
 * and cannot come and go as it likes. The two who train do not notice. */
static void a_member_keeps_its_place(void **state)
{
    struct peers peers;
    struct kith_identity identity;
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers.members[2].has_fingerprint = false;
    peers.members[1].has_fingerprint = false;
    const uint64_t hash = kith_experiment_hash(&peers.experiment);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));

    identity = peers.identities[2];
    stranger(&peers, &identity, &peers.trust, 1, hash, true);
    assert_true(
        visit_said(&peers, 0, "of peer-2 is for rank 2, it claims rank 1"));
    stranger(&peers, &identity, &peers.trust, 2, hash, false);
    assert_true(visit_said(&peers, 0, "connected rank=2 name=peer-2"));
    peers_certify(&peers, &identity, "peer-2", -60, 3600); /* renewed */
    stranger(&peers, &identity, &peers.trust, 1, hash, true);
    assert_int_equal(peers_said(&peers, 0, "connected rank=1"), false);
    for (int i = 0; i < 20; i++)
        stranger(&peers, &identity, &peers.trust, 2, hash, false);
    assert_true(visit_said(&peers, 0, "refused kind=rate"));
    peers_certify_roles(&peers, &identity, "watcher", KITH_ROLE_OBSERVE);
    stranger(&peers, &identity, &peers.trust, 1, hash, true);
    assert_true(visit_said(&peers, 0, "watcher lacks the role train"));

    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 0, "connected rank=1 name=peer-1"));
    assert_true(peers_wait_finished(&peers, 0, 30));
    assert_true(peers_stop(&peers, 10));
    assert_int_equal(peers.shared[0].report.refusals[KITH_REFUSAL_MEMBER], 3);
    peers_close(&peers);
}

/* A peer whose certificate is for another rank: the others tell it so, and it
 * ends by itself with what to do; meanwhile it does not knock all the time. */
static void the_refused_is_told(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, yaml);
    peers_certify(&peers, &peers.identities[1], "peer-7", -60, 3600);
    for (int i = 0; i < 3; i++)
        peers.members[i].has_fingerprint = false;
    peers_start_all(&peers);
    assert_true(visit_said(&peers, 1, "hopeless reason="));
    for (int i = 0; i < 2000 && !peers.shared[1].ended; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_true(peers.shared[1].ended);
    assert_true(peers_wait_finished(&peers, 0, 30));
    (void)peers_stop(&peers, 10);
    if (getenv("PEERS_PRINT"))
        for (kith_id i = 0; i < 3; i++)
            peers_print(&peers, i);
    assert_int_equal(peers.shared[1].err, KITH_EAUTH);
    assert_non_null(strstr(peers.shared[1].error,
                           "rank 1 is not wanted: our certificate is for "
                           "another rank"));
    assert_true(peers_said(&peers, 1, "refused-by rank=0"));
    assert_true(peers_said(&peers, 0, "of peer-7 is for rank 7"));
    assert_int_equal(peers.shared[0].err, KITH_OK);
    assert_true(peers.shared[0].report.counters.done > 0);
    peers_close(&peers);
}

/* One member's word sends nobody away, and a refusal at once after the session
 * has opened counts as a failed dial. */
static void one_liar_sends_nobody_away(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    /* Rank 0 alone believes that rank 1 has another key. */
    peers.change = another_key_for_1;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 1, "refused-by rank=0"));
    assert_true(peers_wait_finished(&peers, 1, 30)); /* 400 steps, 2 s */
    assert_true(peers_stop(&peers, 10));
    if (getenv("PEERS_PRINT"))
        for (kith_id i = 0; i < 2; i++)
            peers_print(&peers, i);
    assert_true(peers_said(&peers, 1, "its member list has another key"));
    assert_false(peers_said(&peers, 1, "hopeless"));
    assert_in_range(peers.shared[0].report.refusals[KITH_REFUSAL_MEMBER], 1,
                    20);
    peers_close(&peers);
}

/* 270 silent connections: from the 257th on one makes room for the next,
 * training goes on, and a member comes in. */
static void a_flood_is_bounded(void **state)
{
    struct peers peers;
    int fds[270];
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    for (int i = 0; i < 270; i++)
        fds[i] = visit_dial(&peers, 0);
    assert_true(visit_said(&peers, 0, "refused kind=half_open"));
    const uint64_t step = peers.shared[0].step;
    assert_true(peers_wait_step(&peers, 0, step + 20, 5));
    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 0, "connected rank=1"));
    assert_true(visit_said(&peers, 0, "refused kind=timeout"));
    for (int i = 0; i < 270; i++)
        expect_closed(fds[i]); /* by the peer, each in its own time */
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    if (getenv("PEERS_PRINT"))
        peers_print(&peers, 0);
    assert_true(report->refusals[KITH_REFUSAL_HALF_OPEN] >= 14);
    assert_true(report->refusals[KITH_REFUSAL_TIMEOUT] >= 240);
    peers_close(&peers);
}

/* A member that talks without end costs the loop a share, not its neighbour's
 * training; one that talks nonsense is thrown out. */
static void a_babbler_stalls_nobody(void **state)
{
    struct peers peers;
    (void)state;
    peers_open(&peers, yaml);
    close(peers.listen_fds[2]);
    peers.listen_fds[2] = -1;
    peers_start(&peers, 0, 0, false);
    assert_true(peers_wait_step(&peers, 0, 5, 20));

    const uint64_t step = peers.shared[0].step;
    enum {
        STEPS = 60,
        TIMES = 60
    }; /* of about 300 a time, on an idle machine */
    struct kith_message message = {.kind = KITH_MESSAGE_ABORTED,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = 1, .incarnation = 7},
                                   .mine = true};
    int times = 0; /* known, about nothing: ignored */
    for (; times < TIMES && peers.shared[0].step < step + STEPS; times++)
        babble(&peers, &message);
    print_message("expected: %d steps meanwhile; measured: %llu in %d times\n",
                  STEPS, (unsigned long long)(peers.shared[0].step - step),
                  times);
    assert_true(peers.shared[0].step >= step + STEPS);

    message.kind = KITH_MESSAGE_ACCEPT; /* an initiator accepts nothing */
    babble(&peers, &message);
    assert_true(visit_said(&peers, 0, "it keeps breaking the protocol"));
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    assert_int_equal(report->refusals[KITH_REFUSAL_RECORD], 1);
    assert_in_range(peers.shared[0].marks[KITH_MARK_BAD], 1, 100);
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_member_keeps_its_place),
        cmocka_unit_test(the_refused_is_told),
        cmocka_unit_test(one_liar_sends_nobody_away),
        cmocka_unit_test(a_flood_is_bounded),
        cmocka_unit_test(a_babbler_stalls_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
