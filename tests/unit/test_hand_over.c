/* Goal: the memory of a peer's vectors is handed to neighbours of its host and
 * user whose session stands, to nobody else, and taken from nobody who lies;
 * where it cannot be had models go through the channel, and where a session
 * ends it is given up.
 * Method: the two transports of host_pair.h, beside strangers at the socket,
 * another user, descriptors of the wrong kind, limits of the process. */
#define _GNU_SOURCE
#include "tests/support/host_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGERS 40u

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
    const socklen_t size = name_of(pair_sides[0].transport.hand_over.name, &at);
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
    pair_open_side(0, true, 0);
    for (unsigned i = 0; i < STRANGERS; i++) {
        fds[i] = stranger();
        in += fds[i] >= 0;
        const uint8_t token[KITH_HAND_OVER_TOKEN_BYTES + 1] = {(uint8_t)i};
        if (fds[i] >= 0 && i % 3 > 0)
            (void)send(fds[i], token, sizeof token - i % 3 % 2, MSG_NOSIGNAL);
        uv_run(&pair_loop, UV_RUN_ONCE);
    }
    assert_true(in > 0);
    pair_open_side(1, true, 0);
    kith_transport_dial(&pair_sides[0].transport, 1);
    RUN_UNTIL(pair_sides[0].up == 1 && pair_link(0) != NULL &&
              pair_link(0)->sharing.ready);
    assert_true(pair_cost(1) < 1000);
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
    pair_open(true, true, 0);
    RUN_UNTIL(pair_link(0)->sharing.ready);
    assert_int_equal(pipe(answer), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte, got = setuid(65534) == 0 ? 'n' : '?';
        const int fd = stranger();
        const uint8_t *token = pair_link(0)->sharing.token;
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

/* A member that hands over two descriptors, or one of no sealed memory:
 * none is kept, and models go through the channel. */
static void bad_descriptors_are_not_kept(void **state)
{
    (void)state;
    pair_open(false, true, 0);
    struct kith_hand_over *over = &pair_sides[0].transport.hand_over;
    uint8_t frame[2 + KITH_HAND_OVER_NAME_BYTES + KITH_HAND_OVER_TOKEN_BYTES] =
        {KITH_FRAME_SHARED, KITH_SHARED_OFFER};
    struct sockaddr_un at;
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const socklen_t size = name_of(over->name, &at);
    const int wrong[2] = {memfd_create("wrong", 0), dup(0)};
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    const unsigned before = pair_descriptors();
    assert_true(kith_link_control(pair_sides[0].transport.members[1].link,
                                  frame, sizeof frame));
    RUN_UNTIL(pair_link(1)->sharing.fetch != NULL);
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
    RUN_UNTIL(pair_link(1)->sharing.fetch == NULL);
    close(fd);
    for (unsigned i = 0; i < 10; i++)
        uv_run(&pair_loop, UV_RUN_ONCE);
    assert_null(pair_link(1)->sharing.view.head);
    assert_int_equal(pair_descriptors(), before);
    assert_true(pair_cost(1) > PAIR_BYTES);
    close(listener);
    close(wrong[0]);
    close(wrong[1]);
}

/* A claimant that cannot be accepted stays in the backlog: the socket goes, and
 * the loop sleeps. */
static void no_descriptors_left(void **state)
{
    struct rlimit old, few;
    (void)state;
    pair_open_side(0, true, 0);
    pair_open_side(1, true, 0);
    const int fd = stranger(), next = dup(0);
    assert_true(fd >= 0 && next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    RUN_UNTIL(pair_sides[0].transport.hand_over.listener == NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    close(fd);
}

/* What a certified member says of memory that it never gave, or of places
 * outside, costs it the link and no more. */
static void lies_of_places_end_the_link(void **state)
{
    (void)state;
    pair_open(true, true, 0);
    RUN_UNTIL(pair_link(0)->sharing.ready);
    uint8_t frame[KITH_SHARED_BURST_BYTES] = {KITH_FRAME_SHARED,
                                              KITH_SHARED_BURST};
    memset(frame + 2, 0xff, sizeof frame - 2);
    const uint64_t before =
        pair_sides[1].transport.refusals[KITH_REFUSAL_TRANSFER];
    assert_true(kith_link_control(pair_sides[0].transport.members[1].link,
                                  frame, sizeof frame));
    RUN_UNTIL(pair_sides[1].transport.refusals[KITH_REFUSAL_TRANSFER] > before);
}

static void a_system_without_memory(void **state)
{
    (void)state;
    pair_has_none = true;
    pair_open(true, true, 0);
    assert_null(pair_sides[0].transport.hand_over.listener);
    assert_true(pair_cost(1) > PAIR_BYTES);
}

/* Memory files in our address space, by either side's mapping. */
static int mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "kith-vectors") != NULL;
    fclose(maps);
    return count;
}

/* Whoever is revoked, or revokes, or is only gone: neither end keeps the
 * other's memory or its descriptor. */
static void a_link_that_ends_keeps_no_mapping(void **state)
{
    (void)state;
    pair_open_side(0, true, 0);
    pair_open_side(1, true, 0);
    const unsigned before = pair_descriptors();
    const int owned = mappings();
    kith_transport_dial(&pair_sides[0].transport, 1);
    RUN_UNTIL(pair_link(0) != NULL && pair_link(0)->sharing.ready &&
              pair_link(1)->sharing.ready);
    const int during = mappings() - owned;
    kith_link_tell(pair_sides[0].transport.members[1].link,
                   KITH_REFUSAL_REVOKED, KITH_NOTICE_REVOKED, "a test");
    RUN_UNTIL(pair_link(0) == NULL && pair_link(1) == NULL);
    for (unsigned i = 0; i < 10; i++)
        uv_run(&pair_loop, UV_RUN_ONCE);
    const int after = mappings() - owned;
    printf("T6.4 neighbours' memory mapped while a link stands, after its "
           "revocation, descriptors left: expected 2, 0 and 0, measured %d, %d "
           "and %d\n",
           during, after, (int)pair_descriptors() - (int)before);
    assert_true(during == 2 && after == 0);
    assert_int_equal(pair_descriptors(), before);
}

int main(void)
{
#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, pair_setup, pair_teardown)
    const struct CMUnitTest tests[] = {
        TEST(strangers_get_nothing),
        TEST(another_user_is_turned_away),
        TEST(bad_descriptors_are_not_kept),
        TEST(no_descriptors_left),
        TEST(lies_of_places_end_the_link),
        TEST(a_system_without_memory),
        TEST(a_link_that_ends_keeps_no_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
