/* Sockets of a few bytes, all of them without waiting; each has a handle of its
 * own, whose memory goes when libuv has closed it, whether or not the link or
 * the listener that it was for still stands. */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include "hand_over.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kith/assert.h"
#include "transport.h"

#define NAME KITH_HAND_OVER_NAME_BYTES
#define TOKEN KITH_HAND_OVER_TOKEN_BYTES
#define BACKLOG 16
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

_Static_assert(2 + NAME + TOKEN <= KITH_CONTROL_BYTES_MAX,
               "an offer is a control frame");

/* One that has connected to us and is to show its token. */
/* At most KITH_CLAIMANTS_MAX, and none once the process stops. */
struct kith_claimant {
    uv_poll_t poll;
    int fd;
    struct kith_transport *transport;
    uint32_t place;
};

/* A descriptor that we wait for. */
struct kith_fetch {
    uv_poll_t poll;
    int fd;
    struct kith_link *link; /* NULL: it has closed */
};

/* ---- sockets */

static socklen_t address_of(const uint8_t name[NAME], struct sockaddr_un *at)
{
    char hex[2 * NAME + 1];
    sodium_bin2hex(hex, sizeof hex, name, NAME);
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* Abstract: the name begins with 0 and ends where the length says. */
    const int length =
        snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "kith-%s", hex);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)length);
}

/* Who connected, or listens: as it was when it did. */
static bool is_same_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           size == sizeof who && who.uid == geteuid();
}

/* One byte goes with it: a message of nothing would carry none. */
static bool send_descriptor(int to, int fd)
{
    char byte = 0;
    struct iovec vector = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* -1: none came. There is room for one, and not for what aligns the buffer: the
 * kernel closes what does not fit. */
static int receive_descriptor(int from)
{
    char byte;
    struct iovec vector = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    if (recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (head != NULL && head->cmsg_level == SOL_SOCKET &&
        head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

/* ---- the owner */

static void claimant_free(uv_handle_t *handle)
{
    struct kith_claimant *claimant = handle->data;
    close(claimant->fd);
    free(claimant);
}

/* Its place is free at once. */
static void claimant_close(struct kith_claimant *claimant)
{
    struct kith_hand_over *over = &claimant->transport->hand_over;
    KITH_ASSERT(over->claimants[claimant->place] == claimant);
    over->claimants[claimant->place] = NULL;
    uv_close((uv_handle_t *)&claimant->poll, claimant_free);
}

/* Whose token is it? In constant time for each link, though only our own user
 * can ask. */
static bool is_token(const struct kith_transport *transport,
                     const uint8_t token[TOKEN])
{
    bool found = false;
    for (const struct kith_link *l = transport->links; l != NULL; l = l->next)
        if (l->state == KITH_LINK_OPEN && l->sharing.offered &&
            sodium_memcmp(l->sharing.token, token, TOKEN) == 0)
            found = true;
    return found;
}

/* Whatever it says first is all that it may say. */
static void claimant_speaks(uv_poll_t *poll, int status, int events)
{
    struct kith_claimant *claimant = poll->data;
    struct kith_transport *transport = claimant->transport;
    KITH_NET_SCOPE(&transport->net);
    uint8_t token[TOKEN + 1];
    const ssize_t size =
        status == 0 && (events & UV_READABLE)
            ? recv(claimant->fd, token, sizeof token, MSG_DONTWAIT)
            : 0;
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size == (ssize_t)TOKEN && is_token(transport, token) &&
        !send_descriptor(claimant->fd, transport->options.shared->fd))
        kith_transport_log(transport, "shared-memory not-handed-over "
                                      "reason=\"the descriptor was not sent\"");
    claimant_close(claimant);
}

/* Of another user nothing is read. */
static void take_claimant(struct kith_transport *transport, int fd)
{
    struct kith_hand_over *over = &transport->hand_over;
    struct kith_claimant *claimant =
        is_same_user(fd) ? calloc(1, sizeof *claimant) : NULL;
    if (claimant == NULL) {
        close(fd);
        return;
    }
    *claimant = (struct kith_claimant){
        .fd = fd, .transport = transport, .place = over->next};
    claimant->poll.data = claimant;
    if (uv_poll_init(transport->loop, &claimant->poll, fd) != 0) {
        claimant_free((uv_handle_t *)&claimant->poll);
        return;
    }
    over->next = (over->next + 1) % KITH_CLAIMANTS_MAX;
    if (over->claimants[claimant->place] != NULL)
        claimant_close(over->claimants[claimant->place]);
    over->claimants[claimant->place] = claimant;
    uv_poll_start(&claimant->poll, UV_READABLE | UV_DISCONNECT,
                  claimant_speaks);
}

/* One at a time: libuv calls again while more wait. */
static void claimant_comes(uv_poll_t *poll, int status, int events)
{
    struct kith_transport *transport = poll->data;
    KITH_NET_SCOPE(&transport->net);
    (void)events;
    errno = 0;
    const int fd = status == 0 ? accept4(transport->hand_over.fd, NULL, NULL,
                                         SOCK_CLOEXEC | SOCK_NONBLOCK)
                               : -1;
    if (fd >= 0) {
        take_claimant(transport, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        /* It stays in the backlog, and would wake us for ever. */
        kith_transport_log(transport, "shared-memory off reason=\"%s\"",
                           strerror(errno));
        kith_hand_over_stop(transport);
    }
}

/* The transport may be gone by then, so the handle is memory of its own. */
static void listener_free(uv_handle_t *handle)
{
    free(handle);
}

/* NULL, or why not. */
static const char *listen_for_claimants(struct kith_transport *transport)
{
    struct kith_hand_over *over = &transport->hand_over;
    struct sockaddr_un at;
    randombytes_buf(over->name, sizeof over->name);
    const socklen_t size = address_of(over->name, &at);
    const int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return strerror(errno);
    /* Nobody passes descriptors to us here; of a kernel before 6.16 it is
     * ignored. */
    const int none = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof none);
    if (bind(fd, (struct sockaddr *)&at, size) != 0 ||
        listen(fd, BACKLOG) != 0) {
        close(fd);
        return strerror(errno);
    }
    uv_poll_t *poll = calloc(1, sizeof *poll);
    if (poll == NULL || uv_poll_init(transport->loop, poll, fd) != 0) {
        free(poll);
        close(fd);
        return "no memory";
    }
    poll->data = transport;
    over->fd = fd;
    over->listener = poll;
    uv_poll_start(poll, UV_READABLE, claimant_comes);
    return NULL;
}

void kith_hand_over_start(struct kith_transport *transport)
{
    const struct kith_shared *shared = transport->options.shared;
    if (shared == NULL)
        return;
    const char *why = shared->head == NULL
                          ? "the vectors do not lie in sealed memory"
                          : listen_for_claimants(transport);
    if (why != NULL)
        kith_transport_log(transport, "shared-memory off reason=\"%s\"", why);
}

/* Twice is harmless. */
void kith_hand_over_stop(struct kith_transport *transport)
{
    struct kith_hand_over *over = &transport->hand_over;
    if (over->listener == NULL)
        return;
    for (uint32_t i = 0; i < KITH_CLAIMANTS_MAX; i++)
        if (over->claimants[i] != NULL)
            claimant_close(over->claimants[i]);
    uv_poll_stop(over->listener);
    close(over->fd);
    uv_close((uv_handle_t *)over->listener, listener_free);
    over->listener = NULL;
}

/* Both ends of a connection within one host have the same address, unless it
 * has several; then, or where a guess is wrong, TCP carries the models. */
static bool is_own_host(const struct kith_link *link)
{
    struct sockaddr_storage ends[2];
    int sizes[2] = {sizeof ends[0], sizeof ends[1]};
    const uv_tcp_t *tcp = &link->socket.tcp;
    if (uv_tcp_getsockname(tcp, (struct sockaddr *)&ends[0], &sizes[0]) != 0 ||
        uv_tcp_getpeername(tcp, (struct sockaddr *)&ends[1], &sizes[1]) != 0)
        return false;
    return kith_address_is_same_host((const struct sockaddr *)&ends[0],
                                     (const struct sockaddr *)&ends[1]);
}

/* Each link has a token of its own, so that what is handed over belongs to a
 * session that stands. */
void kith_hand_over_opened(struct kith_link *link)
{
    struct kith_link_sharing *sharing = &link->sharing;
    const struct kith_hand_over *over = &link->transport->hand_over;
    if (over->listener == NULL || !is_own_host(link))
        return;
    uint8_t frame[2 + NAME + TOKEN] = {KITH_FRAME_SHARED, KITH_SHARED_OFFER};
    randombytes_buf(sharing->token, sizeof sharing->token);
    memcpy(frame + 2, over->name, NAME);
    memcpy(frame + 2 + NAME, sharing->token, TOKEN);
    sharing->offered = true;
    (void)kith_link_control(link, frame, sizeof frame);
    sodium_memzero(frame, sizeof frame);
}

/* ---- the reader */

static void fetch_free(uv_handle_t *handle)
{
    struct kith_fetch *fetch = handle->data;
    close(fetch->fd);
    free(fetch);
}

/* The link may go before its answer comes. */
static void fetch_close(struct kith_fetch *fetch)
{
    if (fetch->link != NULL)
        fetch->link->sharing.fetch = NULL;
    fetch->link = NULL;
    uv_close((uv_handle_t *)&fetch->poll, fetch_free);
}

/* The descriptor, or the end of a socket that had none for us. */
static void fetch_comes(uv_poll_t *poll, int status, int events)
{
    struct kith_fetch *fetch = poll->data;
    struct kith_link *link = fetch->link;
    KITH_NET_SCOPE(&link->transport->net);
    const int fd = status == 0 && (events & UV_READABLE)
                       ? receive_descriptor(fetch->fd)
                       : -1;
    fetch_close(fetch);
    if (fd < 0)
        return;
    const struct kith_transport_options *options = &link->transport->options;
    const size_t bytes = options->payload_bytes > options->model_bytes
                             ? options->payload_bytes
                             : options->model_bytes;
    const char *why = kith_shared_map(
        fd, kith_shared_most(KITH_SLOTS_MAX, bytes), &link->sharing.view);
    if (why != NULL) {
        kith_transport_log(link->transport,
                           "shared-memory refused rank=%u reason=\"%s\"",
                           link->rank, why);
        return;
    }
    const uint8_t frame[2] = {KITH_FRAME_SHARED, KITH_SHARED_READY};
    if (kith_link_control(link, frame, sizeof frame))
        kith_transport_log(link->transport, "shared-memory rank=%u mib=%.1f",
                           link->rank,
                           (double)link->sharing.view.bytes / 0x1p20);
}

/* -1 where there is no such socket here, or another user's. */
/* Nothing waits: a backlog that is full is a socket that is not there. The name
 * is of our own making but for 16 bytes, so that no member can have us connect
 * to another program's socket. -1: no such socket, or of another user. */
static int connect_to_owner(const uint8_t name[NAME],
                            const uint8_t token[TOKEN])
{
    struct sockaddr_un at;
    const socklen_t size = address_of(name, &at);
    const int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, size) == 0 && is_same_user(fd) &&
        send(fd, token, TOKEN, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)TOKEN)
        return fd;
    close(fd);
    return -1;
}

/* Once for each link: a member that offers again is not asked again. */
static void offer_comes(struct kith_link *link, const uint8_t *name,
                        const uint8_t *token)
{
    struct kith_link_sharing *sharing = &link->sharing;
    if (sharing->asked || link->transport->hand_over.listener == NULL)
        return;
    sharing->asked = true;
    const int fd = connect_to_owner(name, token);
    if (fd < 0)
        return;
    struct kith_fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL) {
        close(fd);
        return;
    }
    *fetch = (struct kith_fetch){.fd = fd, .link = link};
    fetch->poll.data = fetch;
    if (uv_poll_init(link->transport->loop, &fetch->poll, fd) != 0) {
        fetch_free((uv_handle_t *)&fetch->poll);
        return;
    }
    sharing->fetch = fetch;
    uv_poll_start(&fetch->poll, UV_READABLE | UV_DISCONNECT, fetch_comes);
}

/* A peer of the same cluster may not share: then an offer is not answered. */
bool kith_hand_over_frame(struct kith_link *link, const uint8_t *frame,
                          size_t size)
{
    KITH_ASSERT(size > 0 && frame[0] == KITH_FRAME_SHARED);
    if (size == 2 + NAME + TOKEN && frame[1] == KITH_SHARED_OFFER) {
        offer_comes(link, frame + 2, frame + 2 + NAME);
        return true;
    }
    if (size == 2 && frame[1] == KITH_SHARED_READY && link->sharing.offered) {
        link->sharing.ready = true;
        return true;
    }
    return kith_link_refuse(link, KITH_REFUSAL_RECORD,
                            "a frame of shared memory that is none");
}

/* Called for every link that closes, and once: the handle of a fetch goes
 * later, by itself. Their memory is unmapped here, for nothing reads it any
 * more. */
void kith_hand_over_closed(struct kith_link *link)
{
    struct kith_link_sharing *sharing = &link->sharing;
    if (sharing->fetch != NULL)
        fetch_close(sharing->fetch);
    kith_shared_unmap(&sharing->view);
    sodium_memzero(sharing->token, sizeof sharing->token);
    sharing->offered = sharing->ready = false;
}
