/* Plain sockets between two processes: the ceilings of bench_transport and
 * bench_channel. Blocking one way, and one thread per process both ways. */
#ifndef KITH_BENCH_PLAIN_H
#define KITH_BENCH_PLAIN_H

#include "bench/bench.h"
#include "bench/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BENCH_WRITE ((size_t)1 << 20)
/* Not a hot buffer: a tensor, read and written cyclically. */
#define BENCH_TENSOR ((size_t)64 << 20)

static inline void bench_socket_options(int fd)
{
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, BENCH_CONGESTION,
               sizeof BENCH_CONGESTION - 1);
}

/* Two connected sockets on loopback. */
static inline void bench_socket_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, sizeof at) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (void *)&at, &size) != 0 ||
        connect(fds[1], (void *)&at, size) != 0) {
        perror("bench: loopback");
        exit(1);
    }
    fds[0] = accept(listener, NULL, NULL);
    close(listener);
    bench_socket_options(fds[0]);
    bench_socket_options(fds[1]);
}

static inline void bench_write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t count = write(fd, bytes, size);
        if (count <= 0) {
            perror("bench: write");
            exit(1);
        }
        bytes += count;
        size -= (size_t)count;
    }
}

static inline void bench_plain_send(int fd, const uint8_t *tensor, size_t total)
{
    for (size_t sent = 0; sent < total; sent += BENCH_WRITE)
        bench_write_all(fd, tensor + sent % BENCH_TENSOR, BENCH_WRITE);
}

static inline void bench_plain_receive(int fd, uint8_t *tensor, size_t total)
{
    for (size_t got = 0; got < total;) {
        const size_t at = got % BENCH_TENSOR;
        const size_t left = BENCH_TENSOR - at;
        const ssize_t count =
            read(fd, tensor + at, left < BENCH_WRITE ? left : BENCH_WRITE);
        if (count <= 0) {
            perror("bench: read");
            exit(1);
        }
        got += (size_t)count;
    }
}

/* Both ways at once: `total` bytes out and in, whichever is ready. */
static inline void bench_plain_duplex(int fd, uint8_t *source, uint8_t *target,
                                      size_t total)
{
    size_t sent = 0, got = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (sent < total || got < total) {
        bool moved = false;
        if (sent < total) {
            const size_t left = BENCH_TENSOR - sent % BENCH_TENSOR;
            const size_t want = left < total - sent ? left : total - sent;
            const ssize_t count =
                write(fd, source + sent % BENCH_TENSOR,
                      want < BENCH_WRITE / 4 ? want : BENCH_WRITE / 4);
            moved = count > 0;
            sent += count > 0 ? (size_t)count : 0;
        }
        if (got < total) {
            const size_t left = BENCH_TENSOR - got % BENCH_TENSOR;
            const size_t want = left < total - got ? left : total - got;
            const ssize_t count =
                read(fd, target + got % BENCH_TENSOR,
                     want < BENCH_WRITE / 4 ? want : BENCH_WRITE / 4);
            moved = moved || count > 0;
            got += count > 0 ? (size_t)count : 0;
        }
        struct pollfd ready = {
            fd,
            (short)((got < total ? POLLIN : 0) | (sent < total ? POLLOUT : 0)),
            0};
        if (!moved)
            poll(&ready, 1, -1);
    }
}

#endif
