/* Goal: a session is renewed before its keys are old, a visitor replaces
 * nobody's session, a certificate's quotas bind, and models that nobody waits
 * for cost little.
 * Method: forked peers with short limits; the test itself is the doctor, the
 * member with a quota and the one that floods. */
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

static const char yaml[] = "name: sessions\nseed: 5\npeers: 3\n"
                           "stop: {time: 60s}\n"
                           "model: {kind: consensus, dim: 100}\n"
                           "gossip: {algorithm: adpsgd, every: 1}\n"
                           "compute: {step: 5ms}\n";

/* A model of 400 kB. */
static const char large[] = "name: large\nseed: 5\npeers: 3\n"
                            "stop: {time: 60s}\n"
                            "model: {kind: consensus, dim: 100000}\n"
                            "gossip: {algorithm: adpsgd, every: 1}\n"
                            "compute: {step: 20ms}\n";

/* Rank 2's place is the test's. */
static void open_two(struct peers *peers, const char *text)
{
    peers_open(peers, text);
    close(peers->listen_fds[2]);
    peers->listen_fds[2] = -1;
}

/* ---- renewal */

static void renew_after_a_second(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    options->limits.revoked_ns = 50 * KITH_MS;
    options->limits.renew_ns = KITH_S;
}

static void renew_after_a_megabyte(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    options->limits.revoked_ns = 50 * KITH_MS;
    options->limits.renew_bytes = 1 << 20;
}

/* It may be the same one every time: who finds the session old first. */
static bool one_renews(const struct peers *peers)
{
    for (int i = 0; i < 20000; i++) { /* 100 s, on a machine that is busy */
        if (peers_said(peers, 0, "renewing rank=1") ||
            peers_said(peers, 1, "renewing rank=0"))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* Two busy peers come back together again and again and lose nothing. */
static void renewed(const char *text,
                    void (*change)(struct kith_peer_options *, void *))
{
    struct peers peers;
    open_two(&peers, text);
    peers.change = change;
    peers_start(&peers, 0, 0, false);
    peers_start(&peers, 1, 0, false);
    assert_true(visit_said(&peers, 0, "connected rank=1"));
    assert_true(one_renews(&peers));
    const uint64_t step = peers.shared[0].step;
    assert_true(peers_wait_step(&peers, 0, step + 100, 10));
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    if (getenv("PEERS_PRINT"))
        peers_print(&peers, 0);
    assert_true(report->connected >= 2);
    assert_true(peers_said(&peers, 0, "closed in order"));
    /* How many in so many steps is the machine's; that none is lost is not. */
    print_message("expected: some exchanges, none torn; measured: %llu of %llu "
                  "steps, %llu torn\n",
                  (unsigned long long)report->counters.done,
                  (unsigned long long)report->counters.steps,
                  (unsigned long long)report->counters.torn);
    assert_true(report->counters.done > 0);
    assert_int_equal(report->counters.torn, 0);
    peers_close(&peers);
}

static void old_sessions_are_renewed(void **state)
{
    (void)state;
    renewed(yaml, renew_after_a_second);
    renewed(large, renew_after_a_megabyte);
}

/* ---- visitors */

static void on_check(void *user, const struct kith_doctor_check *check)
{
    uint32_t *fails = user;
    *fails += !check->ok;
    if (getenv("PEERS_PRINT"))
        fprintf(stderr, "%u %s %s\n", check->rank, check->layer, check->found);
}

/* The doctor under rank 2's identity, while rank 2 is running. */
static void a_doctor_replaces_nobody(void **state)
{
    struct peers peers;
    char error[KITH_PEER_ERROR_BYTES];
    uint32_t failures = 99, fails = 0;
    (void)state;
    peers_open(&peers, yaml);
    peers_start_all(&peers);
    assert_true(visit_said(&peers, 0, "connected rank=2"));
    assert_true(visit_said(&peers, 1, "connected rank=2"));
    struct kith_doctor_options options = {
        .experiment = &peers.experiment,
        .identity = &peers.identities[2],
        .trust = &peers.trust,
        .self = 2,
        .members = peers.members,
        .dim = 100,
        .user = &fails,
        .on_check = on_check,
    };
    kith_peer_limits_default(&options.limits);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kith_doctor_run(&options, &failures, error), KITH_OK);
        assert_int_equal(failures, 0);
    }
    assert_int_equal(fails, 0);

    assert_true(visit_said(&peers, 0, "visited name=peer-2"));
    assert_true(visit_said(&peers, 1, "visited name=peer-2"));
    assert_true(peers_stop(&peers, 10));
    for (kith_id rank = 0; rank < 2; rank++) {
        if (getenv("PEERS_PRINT"))
            peers_print(&peers, rank);
        assert_false(peers_said(&peers, rank, "replaced by a newer"));
        assert_int_equal(
            peers.shared[rank].report.refusals[KITH_REFUSAL_MEMBER], 0);
    }
    peers_close(&peers);
}

/* A visitor needs a certificate like anybody else, no role, and patience. */
static void visitors_are_held_to_a_rate(void **state)
{
    struct peers peers;
    struct visit visit;
    struct kith_identity watcher;
    (void)state;
    open_two(&peers, yaml);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    struct visit_options options = visit_as(&peers, 2);
    options.rank = KITH_NOBODY;
    options.identity = &watcher;
    peers_certify(&peers, &watcher, "watcher", -90000, -3600);
    visit_begin(&visit, &peers, &options);
    visit_end(&visit);
    assert_true(visit_said(&peers, 0, "refused kind=expired"));

    peers_certify_roles(&peers, &watcher, "watcher", KITH_ROLE_OBSERVE);
    for (int i = 0; i < 30; i++) {
        visit_begin(&visit, &peers, &options);
        visit_end(&visit);
    }
    assert_true(visit_said(&peers, 0, "visited name=watcher"));
    assert_true(visit_said(&peers, 0, "refused kind=rate"));
    assert_true(peers_stop(&peers, 10));
    assert_int_equal(peers.shared[0].report.connected, 0);
    peers_close(&peers);
}

/* ---- one key from two places */

static void two_seconds(struct kith_peer_options *options, void *arg)
{
    (void)arg;
    options->limits.alive_ns = 2 * KITH_S;
}

/* The first one stays while it is heard; both addresses are named, and the
 * second one is told. */
static void one_key_from_two_places(void **state)
{
    struct peers peers;
    struct visit here, there;
    (void)state;
    open_two(&peers, yaml);
    peers.change = two_seconds;
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    struct visit_options options = visit_as(&peers, 2);
    options.from = 0x7f000001;
    visit_begin(&here, &peers, &options);
    assert_true(visit_said(&peers, 0, "connected rank=2"));
    options.from = 0x7f000002;
    options.process = 1;
    options.stay = true;
    visit_begin(&there, &peers, &options);
    assert_int_equal(kith_session_notice(there.session), KITH_NOTICE_ELSEWHERE);
    visit_end(&there);
    assert_true(
        visit_said(&peers, 0, "refused kind=two_places address=127.0.0.2"));
    assert_true(peers_said(&peers, 0, "rank 2, peer-2, stays at 127.0.0.1:"));
    assert_false(peers_said(&peers, 0, "replaced by a newer"));

    options.stay = false;
    nanosleep(&(struct timespec){.tv_sec = 2, .tv_nsec = 500000000}, NULL);
    visit_begin(&there, &peers, &options);
    assert_true(
        visit_said(&peers, 0, "moved rank=2 name=peer-2 address=127.0.0.2"));
    visit_end(&there);
    visit_end(&here);
    assert_true(peers_stop(&peers, 10));
    assert_int_equal(peers.shared[0].report.refusals[KITH_REFUSAL_PLACES], 1);
    peers_close(&peers);
}

/* ---- revocation lists */

/* Says that a list of so many bytes comes, then sends as many zeros, in one
 * burst; 0: says nothing. */
static void send_list(const struct peers *peers, uint32_t announced,
                      size_t bytes)
{
    static uint8_t out[KITH_PREAUTH_BYTES + 2048], zeros[1024];
    uint8_t frame[13] = {0xc1, 0, 0, 0, 0, 0, 0, 0, 9};
    struct visit visit;
    size_t at = 0, written = 0;
    const struct visit_options options = visit_as(peers, 2);
    visit_begin(&visit, peers, &options);
    frame[11] = (uint8_t)(announced >> 8);
    frame[12] = (uint8_t)announced;
    if (announced > 0)
        assert_int_equal(kith_session_seal_control(visit.session, frame,
                                                   sizeof frame, out,
                                                   sizeof out, &at),
                         KITH_OK);
    assert_int_equal(
        kith_session_seal_burst(
            visit.session,
            &(const struct kith_session_burst){UINT64_MAX, 0, zeros, bytes},
            out + at, sizeof out - at, &written),
        KITH_OK);
    (void)!send(visit.fd, out, at + written, MSG_NOSIGNAL);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    visit_end(&visit);
}

/* A member that passes on what is no list, or another length than it said. */
static void lists_are_bounded_and_signed(void **state)
{
    struct peers peers;
    (void)state;
    open_two(&peers, yaml);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    const uint32_t size = (uint32_t)kith_crl_size(1);
    send_list(&peers, size, size);
    assert_true(visit_said(&peers, 0, "a revocation list that nobody signed"));
    send_list(&peers, 16, 16);
    assert_true(visit_said(&peers, 0, "list of an impossible length"));
    send_list(&peers, 0, size);
    send_list(&peers, size, size + 1);
    assert_true(visit_said(&peers, 0, "a burst that was not announced"));
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    assert_int_equal(report->refusals[KITH_REFUSAL_RECORD], 2);
    assert_int_equal(report->refusals[KITH_REFUSAL_TRANSFER], 2);
    assert_false(peers_said(&peers, 0, "revocations sequence"));
    peers_close(&peers);
}

/* ---- quotas */

static void give_quota(const struct peers *peers, kith_id rank,
                       uint64_t of_model, uint64_t of_round,
                       struct kith_identity *identity)
{
    struct kith_certificate certificate;
    *identity = peers->identities[rank];
    assert_int_equal(kith_certificate_decode(identity->certificate,
                                             identity->certificate_bytes,
                                             &certificate),
                     KITH_OK);
    certificate.quota_model_bytes = of_model;
    certificate.quota_round_bytes = of_round;
    identity->certificate_bytes = kith_certificate_sign(
        &certificate, peers->secret, identity->certificate);
}

/* Sends one model, as often as there is time and the peer listens; returns how
 * often. */
static uint64_t send_models(const struct visit *visit,
                            const struct peers *peers, uint64_t times,
                            int seconds, uint64_t counter_step)
{
    const size_t bytes =
        visit_as(peers, 2).dim * peers->experiment.backend->element_bytes;
    uint8_t *model = calloc(1, bytes);
    const size_t room = kith_session_control_size(KITH_WIRE_BYTES_MAX) +
                        kith_session_burst_size(KITH_BURST_BYTES);
    uint8_t *out = malloc(room), frame[KITH_WIRE_BYTES_MAX];
    struct kith_message message = {.kind = KITH_MESSAGE_MODEL,
                                   .pattern = KITH_PATTERN_SWAP,
                                   .id = {.counter = 1},
                                   .payload_bytes = bytes,
                                   .mine = true};
    struct timespec now, until;
    uint64_t sent = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    assert_true(bytes <= KITH_BURST_BYTES);
    do {
        size_t at = 0, written = 0;
        const size_t size = kith_wire_pack(&message, frame);
        assert_int_equal(kith_session_seal_control(visit->session, frame, size,
                                                   out, room, &at),
                         KITH_OK);
        assert_int_equal(
            kith_session_seal_burst(
                visit->session,
                &(const struct kith_session_burst){sent, 0, model, bytes},
                out + at, room - at, &written),
            KITH_OK);
        if (send(visit->fd, out, at + written, MSG_NOSIGNAL) <
            (ssize_t)(at + written))
            break;
        sent++;
        message.id.counter += counter_step;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (sent < times && now.tv_sec <= until.tv_sec);
    free(model);
    free(out);
    return sent;
}

static void quotas_bind(void **state)
{
    struct peers peers;
    struct visit visit;
    struct kith_identity identity;
    (void)state;
    open_two(&peers, yaml);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    const uint64_t model = 100 * peers.experiment.backend->element_bytes;
    struct visit_options options = visit_as(&peers, 2);
    options.identity = &identity;

    options.stay = true;
    give_quota(&peers, 2, model - 1, 0, &identity);
    visit_begin(&visit, &peers, &options);
    visit_end(&visit);
    assert_true(visit_said(&peers, 0, "the certificate of peer-2 allows 399"));
    give_quota(&peers, 2, 0, model - 1, &identity);
    visit_begin(&visit, &peers, &options);
    visit_end(&visit);
    assert_true(visit_said(&peers, 0, "and 399 a round"));

    options.stay = false;
    give_quota(&peers, 2, model, 2 * model, &identity);
    visit_begin(&visit, &peers, &options);
    assert_int_equal(send_models(&visit, &peers, 5, 5, 1), 5);
    visit_end(&visit);
    assert_false(peers_said(&peers, 0, "more models in one round"));
    visit_begin(&visit, &peers, &options); /* one exchange, three models */
    (void)send_models(&visit, &peers, 3, 5, 0);
    assert_true(visit_said(&peers, 0, "more models in one round"));
    visit_end(&visit);
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    assert_int_equal(report->refusals[KITH_REFUSAL_MEMBER], 2);
    assert_int_equal(report->refusals[KITH_REFUSAL_TRANSFER], 1);
    peers_close(&peers);
}

/* ---- models that nobody waits for */

static void unasked_models_cost_little(void **state)
{
    struct peers peers;
    struct visit visit;
    (void)state;
    open_two(&peers, large);
    peers_start(&peers, 0, 0, false);
    assert_true(visit_said(&peers, 0, "listening"));
    const struct visit_options options = visit_as(&peers, 2);
    visit_begin(&visit, &peers, &options);
    const uint64_t sent = send_models(&visit, &peers, UINT64_MAX, 2, 1);
    visit_end(&visit);
    assert_true(peers_stop(&peers, 10));
    const struct kith_peer_report *report = &peers.shared[0].report;
    if (getenv("PEERS_PRINT"))
        peers_print(&peers, 0);
    print_message("%llu models of 400 kB in 2 to 3 s, %.3f s of CPU\n",
                  (unsigned long long)sent,
                  report->cpu.aead_s + report->cpu.socket_s);
    assert_in_range(sent, 5, 4000); /* without a limit: 5,000 and more */
    peers_close(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_sessions_are_renewed),
        cmocka_unit_test(a_doctor_replaces_nobody),
        cmocka_unit_test(visitors_are_held_to_a_rate),
        cmocka_unit_test(one_key_from_two_places),
        cmocka_unit_test(lists_are_bounded_and_signed),
        cmocka_unit_test(quotas_bind),
        cmocka_unit_test(unasked_models_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
