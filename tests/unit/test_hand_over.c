/* Goal: two peers of one host read models from each other's memory once both
 * want to, and a model arrives whichever way it goes: where one end does not
 * share, over a link that is shaped, beside strangers at the socket. A model
 * that is filled anew while it is read is thrown away, and the next one comes;
 * one whose parts come in another order is no model (T6.3).
 * Method: two transports on one loop, joined by loopback, each with one slot of
 * three bursts; bytes on the sockets tell which way a model went. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "kith/backend.h"
#include "kith/wire.h"
#include "src/peer/transport.h"
#include "tests/support/sessions.h"

#define SIDES 2u
#define SLOT 1u
#define BYTES (2 * (size_t)KITH_BURST_BYTES + 4096)
#define PATIENCE_NS (20 * KITH_S)
#define STRANGERS 40u

static struct side {
    struct kith_transport transport;
    struct kith_identity identity;
    struct kith_shared shared;
    uint8_t *slot, *inbox; /* (BYTES) */
    int up;
    unsigned models, unwanted, asked; /* bursts for which an inbox was asked */
    unsigned refill_at;               /* the other's slot, at that burst */
    bool wants;
} sides[SIDES];

static uv_loop_t loop;
static uv_timer_t heartbeat;
static struct sessions_cluster cluster;
static struct kith_member members[SIDES];
static int listeners[SIDES];

static void on_up(void *arg, kith_id peer)
{
    struct side *side = arg;
    (void)peer;
    side->up++;
}

static void on_down(void *arg, kith_id peer)
{
    (void)arg, (void)peer;
}

static void on_message(void *arg, kith_id from, const struct kith_message *m)
{
    struct side *side = arg;
    (void)from;
    if (m->kind != KITH_MESSAGE_MODEL)
        return;
    assert_true(m->finite);
    side->models += m->slot == SLOT;
    side->unwanted += m->slot == KITH_SLOT_NONE;
}

static uint32_t on_inbox(void *arg, kith_id from, const struct kith_message *m)
{
    struct side *side = arg;
    (void)from, (void)m;
    if (++side->asked == side->refill_at)
        kith_shared_refill(&sides[side == &sides[0]].shared, SLOT);
    return side->wants ? SLOT : KITH_SLOT_NONE;
}

/* One slot is sent from and received into here: the sender's is the shared
 * one. */
static void *on_slot(void *arg, uint32_t slot)
{
    struct side *side = arg;
    assert_int_equal(slot, SLOT);
    return side == &sides[0] ? side->slot : side->inbox;
}

static void on_log(void *user, const char *line)
{
    (void)user;
    printf("  %s\n", line);
}

static void on_heartbeat(uv_timer_t *timer)
{
    (void)timer;
}

/* The system will not have shared memory: options name vectors all the same. */
static bool has_none;

static void open_side(kith_id rank, bool shares, kith_ns delay_ns)
{
    struct side *side = &sides[rank];
    char name[16];
    snprintf(name, sizeof name, "peer-%u", (unsigned)rank);
    sessions_identity(&side->identity, name, &cluster);
    struct kith_certificate certificate =
        sessions_certificate(&side->identity, name, &cluster);
    certificate.rank = rank;
    certificate.not_before_s = (int64_t)time(NULL) - SESSIONS_DAY_S;
    certificate.not_after_s = (int64_t)time(NULL) + SESSIONS_DAY_S;
    sessions_certify(&side->identity, &certificate, &cluster);
    side->slot =
        has_none ? calloc(1, BYTES) : kith_shared_take(&side->shared, BYTES);
    side->inbox = calloc(1, BYTES);
    assert_true(side->slot != NULL && side->inbox != NULL);
    side->wants = true;
    struct kith_transport_options options = {
        .members = members,
        .peers = SIDES,
        .self = rank,
        .seed = 7,
        .identity = &side->identity,
        .trust = &cluster.trust,
        .suite = KITH_SUITE_CHACHAPOLY,
        .hello = {.rank = rank, .dim = BYTES / 4, .model = "none"},
        .backend = kith_backend_find("naive32"),
        .payload_bytes = BYTES,
        .model_bytes = BYTES,
        .shared = shares ? &side->shared : NULL,
        .log_user = side,
        .on_log = on_log,
        .usual = {.latency_ns = delay_ns},
        .user = {.arg = side,
                 .up = on_up,
                 .down = on_down,
                 .message = on_message,
                 .inbox = on_inbox,
                 .slot = on_slot},
    };
    kith_peer_limits_default(&options.limits);
    options.limits.dial_first_ns = options.limits.dial_max_ns = KITH_MS;
    assert_int_equal(
        kith_transport_init(&side->transport, &loop, &options, listeners[rank]),
        KITH_OK);
    kith_transport_unhold(&side->transport);
}

static int setup(void **state)
{
    char error[KITH_PEER_ERROR_BYTES];
    (void)state;
    sessions_cluster(&cluster, "hand-over");
    memset(sides, 0, sizeof sides);
    assert_int_equal(uv_loop_init(&loop), 0);
    uv_timer_init(&loop, &heartbeat);
    uv_timer_start(&heartbeat, on_heartbeat, 1, 1);
    for (kith_id i = 0; i < SIDES; i++)
        assert_int_equal(kith_peer_listen("127.0.0.1:0", &listeners[i],
                                          members[i].address, error),
                         KITH_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (kith_id i = 0; i < SIDES; i++)
        kith_transport_stop(&sides[i].transport);
    uv_close((uv_handle_t *)&heartbeat, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    for (kith_id i = 0; i < SIDES; i++) {
        kith_transport_free(&sides[i].transport);
        kith_shared_free(&sides[i].shared);
        free(sides[i].inbox);
        if (has_none)
            free(sides[i].slot);
    }
    has_none = false;
    return uv_loop_close(&loop);
}

/* Turns of the loop until the condition holds. */
#define RUN_UNTIL(condition)                                                   \
    do {                                                                       \
        const kith_ns began_ns = (kith_ns)uv_hrtime();                         \
        while (!(condition) && (kith_ns)uv_hrtime() - began_ns < PATIENCE_NS)  \
            uv_run(&loop, UV_RUN_ONCE);                                        \
        assert_true(condition);                                                \
    } while (0)

static const struct kith_link *link_of(kith_id rank)
{
    return sides[rank].transport.members[!rank].link;
}

static void open_sides(bool first, bool second, kith_ns delay_ns)
{
    open_side(0, first, delay_ns);
    open_side(1, second, delay_ns);
    kith_transport_dial(&sides[0].transport, 1);
    RUN_UNTIL(sides[0].up == 1 && sides[1].up == 1);
}

static void fill(uint8_t seed)
{
    for (size_t i = 0; i < BYTES; i++) /* floats that are finite */
        sides[0].slot[i] = i % 4 == 3 ? 0x3f : (uint8_t)(seed + i % 251);
}

static void send_model(uint64_t step)
{
    const struct kith_message message = {.kind = KITH_MESSAGE_MODEL,
                                         .pattern = KITH_PATTERN_SWAP,
                                         .id = {.counter = step + 1},
                                         .mine = true,
                                         .step = step,
                                         .payload_bytes = BYTES,
                                         .slot = SLOT};
    kith_transport_send(&sides[0].transport, 1, &message);
}

/* Bytes that the sender's sockets took for one model that arrives whole. */
static uint64_t cost_of_model(uint8_t seed)
{
    const uint64_t before = sides[0].transport.net.bytes_sent;
    const unsigned models = sides[1].models;
    fill(seed);
    send_model(seed);
    RUN_UNTIL(sides[1].models == models + 1);
    assert_memory_equal(sides[1].inbox, sides[0].slot, BYTES);
    return sides[0].transport.net.bytes_sent - before;
}

/* Of the sender's, and of the receiver's, which ends in the inbox. */
static void passes(const char *way, uint64_t models, uint64_t expected)
{
    const uint64_t out = sides[0].transport.use.passes;
    const uint64_t in = sides[1].transport.use.passes;
    printf("T6.1 passes of sender and receiver, %s: expected %llu and 1, "
           "measured %.3g and %.3g\n",
           way, (unsigned long long)expected, (double)out / (double)models,
           (double)in / (double)models);
    assert_int_equal(out, expected * models);
    assert_int_equal(in, models);
}

static void models_go_by_memory(void **state)
{
    (void)state;
    open_sides(true, true, 0);
    RUN_UNTIL(link_of(0)->sharing.ready && link_of(1)->sharing.ready);
    for (uint8_t i = 0; i < 5; i++) {
        const uint64_t sent = cost_of_model(i);
        assert_true(sent < 1000);
        if (i == 0)
            printf("T6.1 bytes on the socket, model of %zu: expected <= 1000, "
                   "measured %llu\n",
                   BYTES, (unsigned long long)sent);
    }
    passes("shared memory", 5, 0);
}

static void one_that_does_not_share(void **state)
{
    (void)state;
    open_sides(true, false, 0);
    assert_true(cost_of_model(1) > BYTES);
    assert_true(cost_of_model(2) > BYTES);
    passes("sealed, TCP", 2, 1);
    assert_false(link_of(0)->sharing.ready);
}

static void a_shaped_link_carries_its_bytes(void **state)
{
    (void)state;
    open_sides(true, true, KITH_MS);
    RUN_UNTIL(link_of(0)->sharing.ready);
    assert_true(cost_of_model(1) > BYTES);
    const uint64_t outside = sides[0].transport.sent.slots[SLOT].outside;
    printf(
        "T6.5 models that go another way than by the memory that a neighbour "
        "has: expected 1, measured %llu\n",
        (unsigned long long)outside);
    assert_int_equal(outside, 1);
}

static void torn_models_are_thrown_away(void **state)
{
    (void)state;
    open_sides(true, true, 0);
    RUN_UNTIL(link_of(0)->sharing.ready);
    (void)cost_of_model(1);
    /* The begin asks once, then each burst: the second one of three. */
    sides[1].refill_at = sides[1].asked + 3;
    send_model(2);
    RUN_UNTIL(sides[1].unwanted == 1);
    assert_int_equal(sides[1].models, 1);
    assert_true(cost_of_model(3) < 1000);
    /* Nobody waits for it: its bytes are not looked at. */
    sides[1].wants = false;
    send_model(4);
    RUN_UNTIL(sides[1].unwanted == 2);
    sides[1].wants = true;
    assert_true(cost_of_model(5) < 1000);
}

static socklen_t name_of(const uint8_t *name, struct sockaddr_un *at)
{
    char hex[2 * KITH_HAND_OVER_NAME_BYTES + 1];
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    for (size_t i = 0; i < KITH_HAND_OVER_NAME_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", name[i]);
    const int length =
        snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "kith-%s", hex);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)length);
}

static int stranger(void)
{
    struct sockaddr_un at;
    const socklen_t size = name_of(sides[0].transport.hand_over.name, &at);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* None of them is given a descriptor, and members are. */
static void strangers_get_nothing(void **state)
{
    int fds[STRANGERS];
    unsigned in = 0;
    (void)state;
    open_side(0, true, 0);
    for (unsigned i = 0; i < STRANGERS; i++) {
        fds[i] = stranger();
        in += fds[i] >= 0;
        const uint8_t token[KITH_HAND_OVER_TOKEN_BYTES + 1] = {(uint8_t)i};
        if (fds[i] >= 0 && i % 3 > 0)
            (void)send(fds[i], token, sizeof token - i % 3 % 2, MSG_NOSIGNAL);
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_true(in > 0);
    open_side(1, true, 0);
    kith_transport_dial(&sides[0].transport, 1);
    RUN_UNTIL(sides[0].up == 1 && link_of(0) != NULL &&
              link_of(0)->sharing.ready);
    assert_true(cost_of_model(1) < 1000);
    for (unsigned i = 0; i < STRANGERS; i++) {
        char byte;
        if (fds[i] < 0)
            continue;
        assert_true(recv(fds[i], &byte, 1, MSG_DONTWAIT) <= 0);
        close(fds[i]);
    }
    printf("%u of %u strangers were let in, none was handed anything\n", in,
           STRANGERS);
}

/* With the right token, even. Only root can become somebody else. */
static void another_user_is_turned_away(void **state)
{
    int answer[2];
    (void)state;
    if (geteuid() != 0)
        skip();
    open_sides(true, true, 0);
    RUN_UNTIL(link_of(0)->sharing.ready);
    assert_int_equal(pipe(answer), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte, got = setuid(65534) == 0 ? 'n' : '?';
        const int fd = stranger();
        const uint8_t *token = link_of(0)->sharing.token;
        if (fd >= 0) {
            (void)send(fd, token, KITH_HAND_OVER_TOKEN_BYTES, MSG_NOSIGNAL);
            struct pollfd ready = {.fd = fd, .events = POLLIN};
            (void)poll(&ready, 1, 5000);
            if (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
                got = 'y';
        }
        (void)!write(answer[1], &got, 1);
        _exit(0);
    }
    char got = 0;
    const int flags = fcntl(answer[0], F_GETFL);
    fcntl(answer[0], F_SETFL, flags | O_NONBLOCK);
    RUN_UNTIL(got != 0 || read(answer[0], &got, 1) == 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(answer[0]);
    close(answer[1]);
    printf("another user's claim: expected nothing, measured %s\n",
           got == 'n' ? "nothing" : "something");
    assert_int_equal(got, 'n');
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

/* A member that hands over two descriptors, or one of no sealed memory: none is
 * kept, and models go through the channel. */
static void bad_descriptors_are_not_kept(void **state)
{
    (void)state;
    open_sides(false, true, 0);
    struct kith_hand_over *over = &sides[0].transport.hand_over;
    uint8_t frame[2 + KITH_HAND_OVER_NAME_BYTES + KITH_HAND_OVER_TOKEN_BYTES] =
        {KITH_FRAME_SHARED, KITH_SHARED_OFFER};
    struct sockaddr_un at;
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const socklen_t size = name_of(over->name, &at);
    const int wrong[2] = {memfd_create("wrong", 0), dup(0)};
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    const unsigned before = descriptors();
    assert_true(kith_link_control(sides[0].transport.members[1].link, frame,
                                  sizeof frame));
    RUN_UNTIL(link_of(1)->sharing.fetch != NULL);
    const int fd = accept(listener, NULL, NULL);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof wrong)];
    } control = {.bytes = {0}};
    struct iovec vector = {frame, 1};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof wrong);
    memcpy(CMSG_DATA(&control.head), wrong, sizeof wrong);
    assert_int_equal(sendmsg(fd, &message, 0), 1);
    RUN_UNTIL(link_of(1)->sharing.fetch == NULL);
    close(fd);
    for (unsigned i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_null(link_of(1)->sharing.view.head);
    assert_int_equal(descriptors(), before);
    assert_true(cost_of_model(1) > BYTES);
    close(listener);
    close(wrong[0]);
    close(wrong[1]);
}

/* READY comes while the first burst is on its way by TCP. */
static void a_model_may_come_both_ways(void **state)
{
    (void)state;
    open_sides(true, true, 0);
    RUN_UNTIL(link_of(0)->sharing.ready && link_of(1)->sharing.ready);
    (void)cost_of_model(1);
    struct kith_link *out = sides[0].transport.members[1].link;
    kith_shared_refill(&sides[0].shared, SLOT);
    fill(2);
    out->sharing.ready = false;
    out->traffic.bursts = KITH_BURSTS_MIN - 1; /* room for one */
    send_model(2);
    out->traffic.bursts -= KITH_BURSTS_MIN - 1;
    out->sharing.ready = true;
    kith_traffic_pump(out);
    RUN_UNTIL(sides[1].models + sides[1].unwanted > 1);
    assert_int_equal(sides[1].models, 2);
    assert_memory_equal(sides[1].inbox, sides[0].slot, BYTES);
}

/* A claimant that cannot be accepted stays in the backlog: the socket goes, and
 * the loop sleeps. */
static void no_descriptors_left(void **state)
{
    struct rlimit old, few;
    (void)state;
    open_side(0, true, 0);
    open_side(1, true, 0);
    const int fd = stranger(), next = dup(0);
    assert_true(fd >= 0 && next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    RUN_UNTIL(sides[0].transport.hand_over.listener == NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    close(fd);
}

/* What a certified member says of memory that it never gave, or of places
 * outside, costs it the link and no more. */
static void lies_of_places_end_the_link(void **state)
{
    (void)state;
    open_sides(true, true, 0);
    RUN_UNTIL(link_of(0)->sharing.ready);
    uint8_t frame[KITH_SHARED_BURST_BYTES] = {KITH_FRAME_SHARED,
                                              KITH_SHARED_BURST};
    memset(frame + 2, 0xff, sizeof frame - 2);
    const uint64_t before = sides[1].transport.refusals[KITH_REFUSAL_TRANSFER];
    assert_true(kith_link_control(sides[0].transport.members[1].link, frame,
                                  sizeof frame));
    RUN_UNTIL(sides[1].transport.refusals[KITH_REFUSAL_TRANSFER] > before);
}

/* As kith_traffic_pump() does it, but for the order of the three bursts. */
static void send_in_order(const unsigned order[3])
{
    struct kith_link *link = sides[0].transport.members[1].link;
    struct kith_transfer transfer = {.message = {.kind = KITH_MESSAGE_MODEL,
                                                 .pattern = KITH_PATTERN_SWAP,
                                                 .id = {.counter = 1},
                                                 .mine = true,
                                                 .payload_bytes = BYTES,
                                                 .slot = SLOT}};
    uint8_t header[KITH_WIRE_BYTES_MAX], frame[KITH_SHARED_BURST_BYTES];
    link->traffic.out_id++;
    assert_true(kith_link_control(link, header,
                                  kith_wire_pack(&transfer.message, header)));
    for (unsigned i = 0; i < 3; i++) {
        transfer.offset = order[i] * (size_t)KITH_BURST_BYTES;
        const size_t length = order[i] < 2 ? KITH_BURST_BYTES : 4096;
        const size_t size = kith_shared_burst_place(
            link, &transfer, sides[0].slot, length, frame);
        assert_int_equal(size, sizeof frame);
        (void)kith_link_control(link, frame, size);
    }
}

/* A transport that delivers out of address order: the paper's flag, the last
 * byte of a write, would take such a model for whole. */
static void bursts_out_of_order_are_detected(void **state)
{
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint64_t *refused =
        &sides[1].transport.refusals[KITH_REFUSAL_TRANSFER];
    (void)state;
    open_side(0, true, 0);
    open_side(1, true, 0);
    for (unsigned i = 0; i < 6; i++) {
        /* After a refusal the next dial waits. */
        RUN_UNTIL((kith_transport_dial(&sides[0].transport, 1),
                   link_of(0) != NULL && link_of(0)->sharing.ready));
        fill((uint8_t)i);
        send_in_order(orders[i]);
        RUN_UNTIL(*refused + sides[1].models == i + 1);
        RUN_UNTIL(i == 0 || link_of(0) == NULL);
    }
    printf("T6.3 models accepted and refused, of the 6 orders of 3 bursts: "
           "expected 1 and 5, measured %u and %llu\n",
           sides[1].models, (unsigned long long)*refused);
    assert_int_equal(sides[1].models, 1);
}

/* What the analyser has of the only slot. */
static void the_first_model_alone_is_copied(void **state)
{
    const struct kith_sent_slot *slot = &sides[0].transport.sent.slots[SLOT];
    (void)state;
    open_sides(true, true, 0);
    assert_false(link_of(0)->sharing.ready); /* it takes some turns */
    (void)cost_of_model(1);
    const uint64_t first = slot->by_channel;
    RUN_UNTIL(link_of(0)->sharing.ready);
    for (uint8_t i = 2; i < 7; i++)
        (void)cost_of_model(i);
    printf("T6.5 copies at the sender in iteration 1, in 2 to 6: expected 1 "
           "and 0, measured %llu and %llu\n",
           (unsigned long long)first,
           (unsigned long long)(slot->by_channel - first));
    assert_int_equal(first, 1);
    assert_int_equal(slot->by_channel, 1);
    assert_int_equal(slot->by_memory, 5);
}

static void a_system_without_memory(void **state)
{
    (void)state;
    has_none = true;
    open_sides(true, true, 0);
    assert_null(sides[0].transport.hand_over.listener);
    assert_true(cost_of_model(1) > BYTES);
}

/* Whoever is revoked, or revokes, or is only gone: neither end keeps the
 * other's memory or its descriptor. */
static void a_link_that_ends_keeps_no_mapping(void **state)
{
    (void)state;
    open_side(0, true, 0);
    open_side(1, true, 0);
    const unsigned before = descriptors();
    kith_transport_dial(&sides[0].transport, 1);
    RUN_UNTIL(link_of(0) != NULL && link_of(0)->sharing.ready &&
              link_of(1)->sharing.ready);
    struct kith_link *ours = sides[0].transport.members[1].link;
    struct kith_link *theirs = sides[1].transport.members[0].link;
    kith_link_tell(ours, KITH_REFUSAL_REVOKED, KITH_NOTICE_REVOKED, "a test");
    RUN_UNTIL(link_of(0) == NULL && link_of(1) == NULL);
    const int kept =
        (ours->sharing.view.head != NULL) + (theirs->sharing.view.head != NULL);
    for (unsigned i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_ONCE);
    printf("T6.4 mappings kept, descriptors left, after a revocation: expected "
           "0 and 0, measured %d and %d\n",
           kept, (int)descriptors() - (int)before);
    assert_int_equal(kept, 0);
    assert_int_equal(descriptors(), before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(models_go_by_memory),
        TEST(one_that_does_not_share),
        TEST(a_shaped_link_carries_its_bytes),
        TEST(torn_models_are_thrown_away),
        TEST(strangers_get_nothing),
        TEST(another_user_is_turned_away),
        TEST(bad_descriptors_are_not_kept),
        TEST(a_model_may_come_both_ways),
        TEST(no_descriptors_left),
        TEST(lies_of_places_end_the_link),
        TEST(bursts_out_of_order_are_detected),
        TEST(the_first_model_alone_is_copied),
        TEST(a_system_without_memory),
        TEST(a_link_that_ends_keeps_no_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
