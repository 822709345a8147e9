/* See visit.h. */
#include "visit.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "kith/assert.h"
#include "kith/backend.h"

/* Blocking with a deadline: a visit has one connection and no loop, so that it
 * can be made beside whatever else the process does. */
static bool wait_for(const struct kith_visit *visit, short events)
{
    const kith_ns left = visit->until_ns - kith_host_now();
    struct pollfd poll_fd = {visit->fd, events, 0};
    return left > 0 && poll(&poll_fd, 1, (int)(left / KITH_MS) + 1) == 1;
}

/* A connect that does not block, then poll. What is written leaves at once, as
 * a peer's does: an echo that waited for more would be measured. */
static int dial(struct kith_visit *visit, kith_ns wait_ns)
{
    int number = 1;
    socklen_t size = sizeof number;
    visit->fd = socket(visit->address.ss_family,
                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (visit->fd < 0)
        return errno;
    (void)setsockopt(visit->fd, IPPROTO_TCP, TCP_NODELAY, &number, size);
    visit->held = visit->received = 0;
    visit->until_ns = kith_host_now() + wait_ns;
    if (connect(visit->fd, (const struct sockaddr *)&visit->address,
                visit->address_bytes) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (!wait_for(visit, POLLOUT))
        return ETIMEDOUT;
    (void)getsockopt(visit->fd, SOL_SOCKET, SO_ERROR, &number, &size);
    return number;
}

int kith_visit_connect(struct kith_visit *visit, const struct addrinfo *at,
                       kith_ns wait_ns)
{
    KITH_ASSERT(at->ai_addrlen <= sizeof visit->address);
    memcpy(&visit->address, at->ai_addr, at->ai_addrlen);
    visit->address_bytes = at->ai_addrlen;
    return dial(visit, wait_ns);
}

int kith_visit_again(struct kith_visit *visit, kith_ns wait_ns)
{
    KITH_ASSERT(visit->fd >= 0 && visit->session == NULL);
    close(visit->fd);
    return dial(visit, wait_ns);
}

/* MSG_NOSIGNAL: the peer may have closed already, and SIGPIPE would end the
 * command. */
bool kith_visit_write(struct kith_visit *visit, const uint8_t *bytes,
                      size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t count =
            send(visit->fd, bytes + at, size - at, MSG_NOSIGNAL);
        if (count > 0)
            at += (size_t)count;
        else if ((errno != EAGAIN && errno != EINTR) ||
                 !wait_for(visit, POLLOUT))
            return false;
    }
    return true;
}

/* What the session has to say: until it is open, its handshake. */
static bool write_output(struct kith_visit *visit)
{
    uint8_t out[KITH_PREAUTH_BYTES];
    const size_t size = kith_session_output(visit->session, out, sizeof out);
    return kith_visit_write(visit, out, size);
}

/* The session's own lies in bytes that are about to move. */
static void keep_frame(struct kith_visit *visit,
                       const struct kith_session_event *event)
{
    visit->frame_bytes = event->frame_bytes;
    memcpy(visit->frame, event->frame,
           event->frame_bytes < sizeof visit->frame ? event->frame_bytes
                                                    : sizeof visit->frame);
}

/* The session's next event of what is held, NONE: more must come. */
static enum kith_err step(struct kith_visit *visit,
                          enum kith_session_event_kind kind,
                          struct kith_session_event *event)
{
    size_t at = 0;
    enum kith_err err = KITH_OK;
    KITH_ASSERT(visit->held <= sizeof visit->bytes);
    do {
        size_t consumed;
        err = kith_session_read(visit->session, visit->bytes + at,
                                visit->held - at, &consumed, event);
        at += consumed;
        if (event->kind == KITH_SESSION_BULK)
            kith_session_sink(visit->session, NULL);
        if (event->kind == KITH_SESSION_CONTROL)
            keep_frame(visit, event);
    } while (err == KITH_OK && event->kind != kind &&
             event->kind != KITH_SESSION_NONE);
    visit->held -= at;
    memmove(visit->bytes, visit->bytes + at, visit->held);
    return err;
}

/* A record that does not fit what is held is none that a visitor asked for:
 * whoever sends it is left, and no memory is taken for it. */
enum kith_err kith_visit_await(struct kith_visit *visit,
                               enum kith_session_event_kind kind,
                               struct kith_session_event *event)
{
    for (*event = (struct kith_session_event){.kind = KITH_SESSION_NONE};;) {
        const enum kith_err err = step(visit, kind, event);
        if (err != KITH_OK || event->kind == kind)
            return err;
        if (!write_output(visit) || visit->held == sizeof visit->bytes)
            return KITH_ECLOSED;
        if (!wait_for(visit, POLLIN))
            return KITH_ETIMEOUT;
        const ssize_t count = read(visit->fd, visit->bytes + visit->held,
                                   sizeof visit->bytes - visit->held);
        if (count <= 0)
            return KITH_ECLOSED;
        visit->received += (size_t)count;
        visit->held += (size_t)count;
    }
}
