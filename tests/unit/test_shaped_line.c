/* Goal: a line in takes what has been held back until its last bit had left as
 * it comes: a burst over an idle path costs its bytes once, as in the
 * simulator; what several senders bring at once still waits for the line.
 * Method: a socket of a shaped network, a pair of descriptors and a clock by
 * hand; when it reads on says where the line is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kith/limits.h"
#include "src/peer/socket.h"

enum { RATE = 50000000, BURST = KITH_BURST_BYTES, BIT = 65536 };

/* Ahead of the real clock, so that no timer of the system expires. */
static kith_ns clock_ns = INT64_C(1) << 60;
static size_t came;

uint64_t uv_hrtime(void)
{
    return (uint64_t)clock_ns;
}

static void give_room(struct kith_socket *socket, uint8_t **bytes, size_t *size)
{
    (void)socket;
    static uint8_t room[BIT];
    *bytes = room;
    *size = sizeof room;
}

static void read_some(struct kith_socket *socket, ssize_t size)
{
    (void)socket;
    assert_true(size > 0);
    came += (size_t)size;
}

static void closed(struct kith_socket *socket)
{
    (void)socket;
}

/* Bytes that are there now; what the line is busy with is waited for. Returns
 * how long. */
static kith_ns take(struct kith_socket *socket, int fd, size_t size)
{
    static const uint8_t bytes[BIT];
    const kith_ns began_ns = clock_ns;
    const size_t end = came + size;
    size_t sent = came;
    while (came < end) {
        const size_t left = end - sent;
        if (left > 0 && sent == came) {
            const ssize_t n = write(fd, bytes, left < BIT ? left : BIT);
            assert_true(n > 0);
            sent += (size_t)n;
        }
        if (socket->throttled && socket->throttled_until_ns > clock_ns)
            clock_ns = socket->throttled_until_ns;
        kith_socket_flow(socket, socket->flow); /* what is due is let go */
        uv_run(socket->net->loop, UV_RUN_NOWAIT);
    }
    return clock_ns - began_ns;
}

static void test_line(void **state)
{
    const struct kith_link_terms terms = {.rate_bits = RATE};
    struct kith_net net;
    struct kith_socket socket;
    uv_loop_t loop;
    int pair[2];
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(kith_net_init(&net, &loop, &terms, BURST), KITH_OK);
    assert_int_equal(kith_socket_init(&socket, &net, NULL), KITH_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    assert_int_equal(uv_tcp_open(&socket.tcp, pair[0]), 0);
    socket.alloc = give_room;
    socket.read = read_some;
    socket.closed = closed;
    assert_int_equal(kith_socket_start(&socket), KITH_OK);

    const kith_ns burst_ns = kith_line_time(BURST, RATE);
    for (unsigned i = 0; i < 4; i++) { /* as a line out lets them go */
        clock_ns += burst_ns;
        const kith_ns waited = take(&socket, pair[1], BURST);
        printf("  burst %u of a message, beyond its %.1f ms: expected 0 ms, "
               "measured %.1f ms\n",
               i, 1e-6 * (double)burst_ns, 1e-6 * (double)waited);
        assert_int_equal(waited, 0);
    }
    /* Four lines out at once into one in: three bursts more than it takes. */
    clock_ns += burst_ns;
    const kith_ns waited = take(&socket, pair[1], 4 * (size_t)BURST);
    printf("  four bursts at once: expected %.1f ms but a read of it, measured "
           "%.1f ms\n",
           3e-6 * (double)burst_ns, 1e-6 * (double)waited);
    assert_in_range(waited, 3 * burst_ns - kith_line_time(BIT, RATE) - KITH_MS,
                    3 * burst_ns);
    kith_net_stop(&net);
    uv_run(&loop, UV_RUN_DEFAULT);
    kith_net_free(&net);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
